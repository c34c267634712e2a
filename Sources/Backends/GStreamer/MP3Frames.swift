/// The frames at the beginning of MP3 data: whether there are any, and how long the whole would be.
struct MP3Frames {
    /// Seconds for each byte, over the frames seen.
    let secondsPerByte: Double

    /// Nil where `bytes` do not begin with a frame: sync, MPEG 1, 2 or 2.5, layer 3, a bit rate and a rate that exist.
    init?(_ bytes: [UInt8]) {
        var place = 0
        var seconds = 0.0
        while bytes.count >= place + 4, let frame = MP3Frames.frame(bytes[place...(place + 3)].map(Int.init)) {
            place += frame.size
            seconds += frame.seconds
        }
        guard place > 0 else { return nil }
        secondsPerByte = seconds / Double(place)
    }

    private static func frame(_ head: [Int]) -> (size: Int, seconds: Double)? {
        let version = head[1] >> 3 & 3
        let rateIndex = head[2] >> 2 & 3
        let bitIndex = head[2] >> 4
        guard head[0] == 0xff, head[1] & 0xe6 == 0xe2, version != 1, rateIndex != 3, bitIndex != 0, bitIndex != 15
        else { return nil }
        let isFirst = version == 3
        let rate = [44_100, 48_000, 32_000][rateIndex] / (isFirst ? 1 : version == 2 ? 2 : 4)
        // kbit/s; MPEG 1 has a row of its own.
        let first = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
        let second = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
        let bits = (isFirst ? first : second)[bitIndex] * 1_000
        let size = (isFirst ? 144 : 72) * bits / rate + (head[2] >> 1 & 1)
        return (max(4, size), (isFirst ? 1_152.0 : 576.0) / Double(rate))
    }
}
