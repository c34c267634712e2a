/// The frames at the beginning of MP3 data. They show whether it is MP3, and give an estimate of its length.
package struct MP3Frames {
    /// Seconds for each byte, averaged over these frames.
    package let secondsPerByte: Double
    /// The part of the decoded frames that is sound; nil if the encoder did not write it.
    package let sound: Sound?

    /// In frames of samples: the padding by encoder and decoder before the sound, and the length of the sound.
    package struct Sound {
        package let skip: Int
        package let length: Int
        /// Hz.
        package let rate: Int
    }

    /// Nil if `bytes` do not begin with a frame: sync, MPEG 1, 2 or 2.5, layer 3, and a valid bit rate and sample rate.
    package init?(_ bytes: [UInt8]) {
        var place = 0
        var seconds = 0.0
        while bytes.count >= place + 4, let frame = MP3Frames.frame(bytes[place...(place + 3)].map(Int.init)) {
            place += frame.size
            seconds += frame.seconds
        }
        guard place > 0 else { return nil }
        secondsPerByte = seconds / Double(place)
        sound = MP3Frames.sound(bytes)
    }

    /// The delay of every decoder of layer 3, in frames.
    private static let decoderDelay = 529

    /// Reads LAME's extension of the Xing header in the first frame. FFmpeg also writes it.
    private static func sound(_ bytes: [UInt8]) -> Sound? {
        func number(_ place: Int, _ count: Int) -> Int {
            bytes[place..<place + count].reduce(0) { $0 << 8 | Int($1) }
        }
        guard bytes.count >= 200 else { return nil }
        let (isFirst, isMono) = (bytes[1] >> 3 & 3 == 3, bytes[3] >> 6 == 3)
        var place = 4 + (isFirst ? (isMono ? 17 : 32) : isMono ? 9 : 17)
        guard ["Xing", "Info"].contains(String(decoding: bytes[place..<place + 4], as: UTF8.self)) else { return nil }
        let flags = number(place + 4, 4)
        guard flags & 1 != 0 else { return nil }
        let whole = number(place + 8, 4) * (isFirst ? 1_152 : 576)
        // The counts of frames and bytes, the table and the quality are all optional.
        place += 8 + [(1, 4), (2, 4), (4, 100), (8, 4)].reduce(0) { $0 + (flags & $1.0 != 0 ? $1.1 : 0) }
        guard ["LAME", "Lavf", "Lavc"].contains(String(decoding: bytes[place..<place + 4], as: UTF8.self)) else {
            return nil
        }
        let delays = number(place + 21, 3)
        let length = whole - (delays >> 12) - (delays & 0xfff)
        guard length > 0 else { return nil }
        return Sound(skip: (delays >> 12) + decoderDelay, length: length, rate: rate(bytes[1], bytes[2]))
    }

    private static func rate(_ second: UInt8, _ third: UInt8) -> Int {
        let version = second >> 3 & 3
        return [44_100, 48_000, 32_000, 1][Int(third >> 2 & 3)] / (version == 3 ? 1 : version == 2 ? 2 : 4)
    }

    private static func frame(_ head: [Int]) -> (size: Int, seconds: Double)? {
        let version = head[1] >> 3 & 3
        let rateIndex = head[2] >> 2 & 3
        let bitIndex = head[2] >> 4
        guard head[0] == 0xff, head[1] & 0xe6 == 0xe2, version != 1, rateIndex != 3, bitIndex != 0, bitIndex != 15
        else { return nil }
        let isFirst = version == 3
        let rate = MP3Frames.rate(UInt8(head[1]), UInt8(head[2]))
        // kbit/s. MPEG 1 has a separate row.
        let first = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
        let second = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
        let bits = (isFirst ? first : second)[bitIndex] * 1_000
        let size = (isFirst ? 144 : 72) * bits / rate + (head[2] >> 1 & 1)
        return (max(4, size), (isFirst ? 1_152.0 : 576.0) / Double(rate))
    }
}
