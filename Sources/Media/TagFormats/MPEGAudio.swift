/// The duration of MPEG audio, layers 1 to 3, and of AAC with ADTS headers.
enum MPEGAudio {
    private struct Frame {
        let size: Int
        let samples: Int
        let rate: Int
        let bitRate: Int
        let isAAC: Bool
        /// The position of the Xing header in the frame.
        let tables: Int

        init?(_ bytes: ArraySlice<UInt8>) {
            let head = Array(bytes.prefix(7))
            guard head.count == 7, head[0] == 0xFF else { return nil }
            if head[1] & 0xF6 == 0xF0 {
                let rates = [
                    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
                    7_350,
                ]
                let index = Int(head[2] >> 2 & 0xF)
                guard index < rates.count else { return nil }
                rate = rates[index]
                size = Int(head[3] & 3) << 11 | Int(head[4]) << 3 | Int(head[5]) >> 5
                guard size > 7 else { return nil }
                (samples, isAAC, tables) = (1_024 * (Int(head[6] & 3) + 1), true, 0)
                bitRate = size * 8 * rate / samples
                return
            }
            let version = head[1] >> 3 & 3
            let layer = 4 - Int(head[1] >> 1 & 3)
            let rateIndex = Int(head[2] >> 2 & 3)
            let bitIndex = Int(head[2] >> 4)
            guard head[1] & 0xE0 == 0xE0, version != 1, layer < 4, rateIndex < 3, bitIndex > 0, bitIndex < 15 else {
                return nil
            }
            let isFirst = version == 3
            rate = [44_100, 48_000, 32_000][rateIndex] / (isFirst ? 1 : version == 2 ? 2 : 4)
            let row = isFirst ? layer - 1 : layer == 1 ? 3 : 4
            bitRate = Self.bitRates[row][bitIndex - 1] * 1_000
            samples = layer == 1 ? 384 : layer == 2 || isFirst ? 1_152 : 576
            let padding = Int(head[2] >> 1 & 1)
            size = layer == 1 ? (12 * bitRate / rate + padding) * 4 : samples / 8 * bitRate / rate + padding
            let isMono = head[3] >> 6 == 3
            tables = 4 + (isFirst ? (isMono ? 17 : 32) : (isMono ? 9 : 17))
            isAAC = false
        }

        private static let bitRates = [
            [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
            [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
            [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
            [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
            [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
        ]
    }

    /// The duration in seconds; nil if there is no frame near the start.
    static func duration(_ source: SoundSource, _ start: UInt64) -> Double? {
        guard let (place, frame, bytes) = firstFrame(source, start) else { return nil }
        return duration(source, place, frame, bytes)
    }

    /// The place of the first frame with sound: a frame with tables is written anew by programs that copy the sound. Nil
    /// if there is no frame near the start.
    static func sound(_ source: SoundSource, _ start: UInt64) -> UInt64? {
        guard let (place, frame, bytes) = firstFrame(source, start) else { return nil }
        return hasTables(frame, bytes) ? place + UInt64(frame.size) : place
    }

    private static func hasTables(_ frame: Frame, _ bytes: ArraySlice<UInt8>) -> Bool {
        let tables = bytes.dropFirst(frame.tables)
        return !frame.isAAC
            && (tables.starts(with: "Xing".utf8) || tables.starts(with: "Info".utf8)
                || bytes.dropFirst(36).starts(with: "VBRI".utf8))
    }

    /// The first frame, its place, and the bytes from there on.
    private static func firstFrame(
        _ source: SoundSource, _ start: UInt64
    ) -> (place: UInt64, frame: Frame, bytes: ArraySlice<UInt8>)? {
        let near = Array(source.bytes(start, 65_536))
        var index = 0
        while index + 7 < near.count {
            // A second frame must begin where the first one ends; otherwise any two bytes could be taken for a frame.
            if near[index] == 0xFF, let frame = Frame(near[index...]) {
                let next = index + frame.size
                if next + 7 > near.count || Frame(near[next...]).map({ $0.rate == frame.rate }) == true {
                    return (start + UInt64(index), frame, near[index...])
                }
            }
            index += 1
        }
        return nil
    }

    private static func duration(
        _ source: SoundSource, _ start: UInt64, _ frame: Frame, _ bytes: ArraySlice<UInt8>
    ) -> Double {
        var end = source.size
        if source.size > 128, source.starts(source.size - 128, with: "TAG") { end -= 128 }
        let size = Double(end > start ? end - start : 0)
        if frame.isAAC {
            // Frames differ in size, so the mean size of the first ones is used.
            var (index, count) = (bytes.startIndex, 0)
            while index + 7 < bytes.endIndex, let next = Frame(bytes[index...]) {
                index += next.size
                count += 1
            }
            let mean = Double(index - bytes.startIndex) / Double(max(1, count))
            return size / max(1, mean) * Double(frame.samples) / Double(frame.rate)
        }
        let tables = bytes.dropFirst(frame.tables)
        var frames: UInt64 = 0
        if tables.starts(with: "Xing".utf8) || tables.starts(with: "Info".utf8), tables.bigNumber(4, 4) & 1 != 0 {
            frames = tables.bigNumber(8, 4)
        } else if bytes.dropFirst(36).starts(with: "VBRI".utf8) {
            frames = bytes.bigNumber(36 + 14, 4)
        }
        if frames > 0 { return Double(frames) * Double(frame.samples) / Double(frame.rate) }
        return size * 8 / Double(frame.bitRate)
    }
}
