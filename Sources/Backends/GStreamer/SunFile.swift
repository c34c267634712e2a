/// What an AU file's header says (Sun's and NeXT's `.snd`): all of it big-endian.
///
/// GStreamer's auparse ends at once where it is asked to play at another rate; read as what it is behind its header, the
/// sound is found at any place and rate.
struct SunFile {
    /// Bytes before the sound.
    let header: Int
    /// gst-launch text that makes raw sound of the rest.
    let decoder: String
    let bytesPerSecond: Int

    private static let headerLimit = 1 << 20

    /// nil for what is none, or none with samples of a kind that is read here.
    init?(_ head: [UInt8]) {
        guard head.count >= 24, head.starts(with: ".snd".utf8) else { return nil }
        func number(_ place: Int) -> Int { head[place..<place + 4].reduce(0) { $0 << 8 | Int($1) } }
        let (rate, channels) = (number(16), number(20))
        header = number(4)
        guard (24...SunFile.headerLimit).contains(header), (1_000...384_000).contains(rate), (1...8).contains(channels)
        else { return nil }
        let (format, bytes): (String, Int)
        var tail = ""
        switch number(12) {
        case 1: (format, bytes, tail) = ("format=mulaw", 1, " ! mulawdec")
        case 2: (format, bytes) = ("pcm-format=s8", 1)
        case 3: (format, bytes) = ("pcm-format=s16be", 2)
        case 4: (format, bytes) = ("pcm-format=s24be", 3)
        case 5: (format, bytes) = ("pcm-format=s32be", 4)
        case 6: (format, bytes) = ("pcm-format=f32be", 4)
        case 7: (format, bytes) = ("pcm-format=f64be", 8)
        case 27: (format, bytes, tail) = ("format=alaw", 1, " ! alawdec")
        default: return nil
        }
        bytesPerSecond = bytes * rate * channels
        decoder = "rawaudioparse \(format) sample-rate=\(rate) num-channels=\(channels)\(tail)"
    }
}
