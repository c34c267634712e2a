import Glibc

/// The times of an MPEG program or transport stream, from the headers of the packets at both ends of the file
/// (ISO/IEC 13818-1, 2.4.3.7). GStreamer computes the length from the clock of the stream, which is not that of its pictures.
package struct PresentationTimes: Equatable {
    /// The length in seconds, from the first time to the last picture or sound that begins.
    package let length: Double
    /// Whether the last time is that of pictures: the last one lasts as long as any.
    package let endsWithPictures: Bool

    /// How much is read at each end, in bytes.
    static let part = 1 << 20
    /// The times are numbers of 33 bits, in units of 1/90,000 s. They begin again after 26 hours.
    private static let unit = 90_000.0

    /// Nil if there are no times, or if they do not grow, as in two streams one after the other.
    package init?(_ path: [UInt8]) {
        let file = open(path.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        let size = Int(lseek(file, 0, SEEK_END))
        let tail = max(0, size - Self.part)
        self.init(
            head: FileContent.bytes(of: file, at: 0, count: Self.part),
            tail: FileContent.bytes(of: file, at: tail, count: Self.part))
    }

    init?(head: [UInt8], tail: [UInt8]) {
        guard let begin = Self.times(head).map(\.time).min(),
            let last = Self.times(tail).max(by: { $0.time < $1.time }), last.time > begin
        else { return nil }
        length = Double(last.time - begin) / Self.unit
        endsWithPictures = last.isPicture
    }

    /// The times in the headers of packets with pictures or sound.
    static func times(_ bytes: [UInt8]) -> [(time: Int, isPicture: Bool)] {
        var times: [(time: Int, isPicture: Bool)] = []
        bytes.withUnsafeBufferPointer { bytes in
            var place = 0
            while place + 14 <= bytes.count {
                // The start of a packet: 0, 0, 1 and the kind of its content.
                guard bytes[place + 2] <= 1 else {
                    place += 3
                    continue
                }
                defer { place += 1 }
                guard bytes[place] == 0, bytes[place + 1] == 0, bytes[place + 2] == 1 else { continue }
                let kind = bytes[place + 3]
                let isPicture = (0xE0...0xEF).contains(kind) || kind == 0xFD
                guard isPicture || (0xC0...0xDF).contains(kind) || kind == 0xBD, bytes[place + 6] & 0xC0 == 0x80,
                    bytes[place + 7] & 0x80 != 0, let time = Self.time(bytes[(place + 9)..<(place + 14)])
                else { continue }
                times.append((time, isPicture))
            }
        }
        return times
    }

    /// Nil if the marks between its parts are wrong.
    private static func time(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Int? {
        let parts = bytes.map(Int.init)
        guard parts[0] & 0xE1 == 0x21, parts[2] & 1 == 1, parts[4] & 1 == 1 else { return nil }
        let (high, middle, low) = (parts[0] >> 1 & 7, parts[1] << 8 | parts[2], parts[3] << 8 | parts[4])
        return high << 30 | (middle >> 1) << 15 | low >> 1
    }
}
