import CGStreamer
import Glibc
import PluginAPI

/// Sound files of Apple's that GStreamer cannot read, as far as sound effects need them: the Core Audio Format with
/// linear PCM or IMA4 (Core Audio Format Specification 1.0), and AIFF-C with IMA4.
enum AppleFile {
    /// More parts than this has no sane file; each costs a read.
    private static let partLimit = 64

    /// The samples as a WAV in memory, whose descriptor is the caller's; nil for a file of another kind, or one that
    /// cannot be read.
    /// - Parameter limit: seconds; a longer one gives that much and a little more.
    static func wave(path: String, limit: Double) throws(SessionError) -> Int32? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        let head = read(file, at: 0, count: 12)
        do throws(Refusal) {
            let bytes: [UInt8]
            if head.starts(with: "caff".utf8) {
                bytes = try coreAudio(file, limit)
            } else if head.count == 12, head.starts(with: "FORM".utf8), head[8...].elementsEqual("AIFC".utf8),
                let made = try compressedAIFF(file, limit)
            {
                bytes = made
            } else {
                return nil
            }
            let memory = shim_memory_file("sound")
            _ = bytes.withUnsafeBytes { pwrite(memory, $0.baseAddress, $0.count, 0) }
            return memory
        } catch {
            throw .badParameter("'\(path)' cannot be decoded: \(error.reason)")
        }
    }

    private struct Refusal: Error {
        let reason: String
    }

    private static func coreAudio(_ file: Int32, _ limit: Double) throws(Refusal) -> [UInt8] {
        var place = 8
        var format: Format?
        var data: (place: Int, size: Int)?
        // How many of a compressed file's frames are sound: the last packet is filled up.
        var frames = Int.max
        for _ in 0..<partLimit {
            let header = read(file, at: place, count: 12)
            guard header.count == 12 else { break }
            let size = Int64(bitPattern: number(header[4...]))
            place += 12
            switch String(decoding: header[..<4], as: UTF8.self) {
            case "desc":
                format = Format(coreAudio: read(file, at: place, count: 32))
                guard format != nil else { throw Refusal(reason: "of CAF only linear PCM and IMA4 are read") }
            case "pakt":
                let table = read(file, at: place, count: 24)
                if table.count == 24 { frames = Int(clamping: number(table[8..<16])) }
            case "data":
                guard format != nil else { throw Refusal(reason: "its samples come before their format") }
                // The edit count comes first; a size of −1 is the rest of the file.
                data = (place + 4, size < 4 ? .max : Int(size - 4))
            default: break
            }
            if size < 0, data != nil { break }
            guard size >= 0, size < 1 << 40 else { throw Refusal(reason: "a part of it has no size") }
            place += Int(size)
        }
        guard let format, let data else {
            throw Refusal(reason: place > 8 ? "it has no samples" : "it is cut short")
        }
        return format.wave(read(file, at: data.place, count: min(data.size, format.size(limit))), frames: frames)
    }

    /// Nil where it is compressed in another way, or not at all.
    private static func compressedAIFF(_ file: Int32, _ limit: Double) throws(Refusal) -> [UInt8]? {
        var place = 12
        var format: Format?
        for _ in 0..<partLimit {
            let header = read(file, at: place, count: 8)
            guard header.count == 8 else { break }
            let size = Int(number(header[4...]))
            place += 8
            switch String(decoding: header[..<4], as: UTF8.self) {
            case "COMM":
                let common = read(file, at: place, count: 22)
                guard common.count == 22, common[18...].elementsEqual("ima4".utf8) else { return nil }
                format = Format(compressedAIFF: common)
                guard format != nil else { throw Refusal(reason: "its format is out of all range") }
            case "SSND":
                guard let format else { return nil }
                let offset = read(file, at: place, count: 4)
                guard offset.count == 4 else { break }
                let start = 8 + Int(number(offset[...]))
                guard start <= size else { throw Refusal(reason: "it has no samples") }
                let packets = read(file, at: place + start, count: min(size - start, format.size(limit)))
                return format.wave(packets, frames: .max)
            default: break
            }
            // Parts begin at even places.
            place += size + size % 2
        }
        return nil
    }

    private static func read(_ file: Int32, at place: Int, count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { $1 = max(0, pread(file, $0.baseAddress, count, off_t(place))) }
    }

    /// Big-endian, of eight bytes at the most.
    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    /// How the samples lie in the file.
    private struct Format {
        enum Coding: Equatable {
            case samples(bits: Int, isFloat: Bool, isLittleEndian: Bool)
            case packets
        }
        let rate: Double
        let channels: Int
        let coding: Coding

        /// CAFAudioFormat.
        init?(coreAudio bytes: [UInt8]) {
            guard bytes.count == 32 else { return nil }
            func word(_ place: Int) -> Int { Int(number(bytes[place..<place + 4])) }
            rate = Double(bitPattern: number(bytes[..<8]))
            channels = word(24)
            let (flags, bits, packet) = (word(12), word(28), word(16))
            switch String(decoding: bytes[8..<12], as: UTF8.self) {
            case "lpcm":
                let isFloat = flags & 1 != 0
                guard (isFloat ? [32, 64] : [8, 16, 24, 32]).contains(bits) else { return nil }
                coding = .samples(bits: bits, isFloat: isFloat, isLittleEndian: flags & 2 != 0)
            case "ima4":
                guard word(20) == IMA4.framesPerPacket else { return nil }
                coding = .packets
            default: return nil
            }
            guard isSane, packet == unit else { return nil }
        }

        /// The extended COMM part of an AIFF-C with IMA4: its rate is an 80-bit floating-point number.
        init?(compressedAIFF bytes: [UInt8]) {
            channels = Int(number(bytes[..<2]))
            let exponent = (Int(number(bytes[8..<10])) & 0x7fff) - 16_383
            let mantissa = Double(number(bytes[10..<18])) / Double(UInt64(1) << 63)
            rate = (0...30).contains(exponent) ? mantissa * Double(1 << exponent) : 0
            coding = .packets
            guard isSane else { return nil }
        }

        private var isSane: Bool { rate >= 1_000 && rate <= 384_000 && (1...8).contains(channels) }

        /// The bytes of a frame, or of a packet of each channel.
        private var unit: Int {
            switch coding {
            case .samples(let bits, _, _): channels * bits / 8
            case .packets: channels * IMA4.packetSize
            }
        }

        /// The bytes of that many seconds, and a little more.
        func size(_ seconds: Double) -> Int {
            let frames = Int(seconds * rate) + 2
            return coding == .packets ? (frames / IMA4.framesPerPacket + 2) * unit : frames * unit
        }

        func wave(_ bytes: [UInt8], frames: Int) -> [UInt8] {
            switch coding {
            case .packets:
                let samples = IMA4.samples(bytes, channels: channels)
                let sound = samples.prefix(min(frames, samples.count) * channels * 2)
                return header(bits: 16, isFloat: false, size: sound.count) + sound
            case .samples(let bits, let isFloat, let isLittleEndian):
                var samples = bytes
                samples.removeLast(samples.count % unit)
                let width = bits / 8
                if !isLittleEndian, width > 1 {
                    for start in stride(from: 0, to: samples.count, by: width) {
                        samples[start..<start + width].reverse()
                    }
                }
                // A WAV's 8 bits have no sign.
                if width == 1 { for place in samples.indices { samples[place] ^= 0x80 } }
                return header(bits: bits, isFloat: isFloat, size: samples.count) + samples
            }
        }

        private func header(bits: Int, isFloat: Bool, size: Int) -> [UInt8] {
            func bytes<T: FixedWidthInteger>(_ value: T) -> [UInt8] {
                withUnsafeBytes(of: value.littleEndian) { Array($0) }
            }
            let frame = channels * bits / 8
            var header = Array("RIFF".utf8) + bytes(UInt32(clamping: 36 + size)) + Array("WAVEfmt ".utf8)
            header += bytes(UInt32(16)) + bytes(UInt16(isFloat ? 3 : 1)) + bytes(UInt16(clamping: channels))
            header += bytes(UInt32(clamping: Int(rate))) + bytes(UInt32(clamping: Int(rate) * frame))
            header += bytes(UInt16(clamping: frame)) + bytes(UInt16(clamping: bits))
            return header + Array("data".utf8) + bytes(UInt32(clamping: size))
        }
    }
}
