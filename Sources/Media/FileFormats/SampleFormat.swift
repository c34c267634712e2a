/// The format of the samples in a file.
package struct SampleFormat {
    package enum Coding: Equatable {
        case samples(bits: Int, isFloat: Bool, isLittleEndian: Bool)
        case aLaw, muLaw
        case packets
    }
    package let rate: Double
    package let channels: Int
    package let coding: Coding

    /// Reads a CAFAudioFormat.
    package init?(coreAudio bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        func word(_ place: Int) -> Int { Int(bytes[place..<place + 4].number) }
        rate = Double(bitPattern: bytes[..<8].number)
        channels = word(24)
        let (flags, bits, packet) = (word(12), word(28), word(16))
        switch bytes[8..<12].text {
        case "lpcm":
            let isFloat = flags & 1 != 0
            guard (isFloat ? [32, 64] : [8, 16, 24, 32]).contains(bits) else { return nil }
            coding = .samples(bits: bits, isFloat: isFloat, isLittleEndian: bits > 8 && flags & 2 != 0)
        case "alaw": coding = .aLaw
        case "ulaw": coding = .muLaw
        case "ima4":
            guard word(20) == IMA4.framesPerPacket else { return nil }
            coding = .packets
        default: return nil
        }
        guard isSane, packet == unit else { return nil }
    }

    /// Reads the extended COMM chunk of an AIFF-C. Its rate is an 80-bit floating-point number.
    package init?(compressedAIFF bytes: [UInt8]) {
        channels = Int(bytes[..<2].number)
        let exponent = (Int(bytes[8..<10].number) & 0x7fff) - 16_383
        let mantissa = Double(bytes[10..<18].number) / Double(UInt64(1) << 63)
        rate = (0...30).contains(exponent) ? mantissa * Double(1 << exponent) : 0
        switch bytes[18..<22].text {
        case "alaw", "ALAW": coding = .aLaw
        case "ulaw", "ULAW": coding = .muLaw
        case "ima4": coding = .packets
        default: return nil
        }
        guard isSane else { return nil }
    }

    /// Reads the second half of an AU header: the encoding, the rate and the channels.
    package init?(sun bytes: [UInt8]) {
        guard bytes.count == 12 else { return nil }
        (rate, channels) = (Double(bytes[4..<8].number), Int(bytes[8..<12].number))
        let number = Int(bytes[..<4].number)
        switch number {
        case 1: coding = .muLaw
        case 2...5: coding = .samples(bits: (number - 1) * 8, isFloat: false, isLittleEndian: false)
        case 6, 7: coding = .samples(bits: (number - 5) * 32, isFloat: true, isLittleEndian: false)
        case 27: coding = .aLaw
        default: return nil
        }
        guard isSane else { return nil }
    }

    private var isSane: Bool { rate >= 1_000 && rate <= 384_000 && (1...8).contains(channels) }

    /// The bytes of a frame, or of one packet of each channel.
    package var unit: Int {
        switch coding {
        case .samples(let bits, _, _): channels * bits / 8
        case .aLaw, .muLaw: channels
        case .packets: channels * IMA4.packetSize
        }
    }

    /// The bytes of this number of seconds and a little more.
    package func size(_ seconds: Double) -> Int {
        let frames = Int(seconds * rate) + 2
        return coding == .packets ? (frames / IMA4.framesPerPacket + 2) * unit : frames * unit
    }

    /// The header of a WAV with `size` bytes in this format. Not for big-endian samples and IMA4, which a WAV cannot
    /// contain.
    package func waveHeader(size: Int) -> [UInt8] {
        let (tag, bits): (UInt16, Int) =
            switch coding {
            case .samples(let bits, let isFloat, _): (isFloat ? 3 : 1, bits)
            case .aLaw: (6, 8)
            case .muLaw: (7, 8)
            case .packets: (1, 16)
            }
        return WaveFile.header(
            tag: tag, bits: bits, channels: channels, sampleRate: Int(rate), size: UInt32(clamping: size))
    }

    /// The header of an AIFF-C, for big-endian samples and IMA4.
    package func aiffHeader(size: Int) -> [UInt8] {
        func bytes<T: FixedWidthInteger>(_ value: T) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
        let (name, bits): (String, Int) =
            switch coding {
            case .samples(let bits, isFloat: false, _): ("NONE", bits)
            case .samples(let bits, isFloat: true, _): ("fl\(bits)", bits)
            case .aLaw: ("alaw", 8)
            case .muLaw: ("ulaw", 8)
            case .packets: ("ima4", 16)
            }
        let whole = UInt64(rate)
        let zeros = whole.leadingZeroBitCount
        var common = bytes(UInt16(clamping: channels)) + bytes(UInt32(clamping: size / unit))
        common += bytes(UInt16(clamping: bits)) + bytes(UInt16(clamping: 16_383 + 63 - zeros)) + bytes(whole << zeros)
        common += Array(name.utf8) + [0, 0]
        let data = UInt32(clamping: size + 8)
        var header = Array("FORM".utf8) + bytes(UInt32(clamping: Int(data) + common.count + 20))
        header += Array("AIFCCOMM".utf8) + bytes(UInt32(clamping: common.count)) + common
        return header + Array("SSND".utf8) + bytes(data) + [UInt8](repeating: 0, count: 8)
    }
}
