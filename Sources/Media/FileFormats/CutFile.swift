import Glibc

/// Files that end before they say, such as an incomplete download.
package enum CutFile {
    /// Whether an MP4, QuickTime, Matroska, WebM, AVI or WAV file is shorter than it states. Of other formats, and of those
    /// that do not state their length, nobody knows.
    package static func isCut(_ path: [UInt8]) -> Bool {
        let file = open(path.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return false }
        defer { close(file) }
        return isCut(size: Int(lseek(file, 0, SEEK_END))) { FileContent.bytes(of: file, at: $0, count: $1) }
    }

    /// - Parameter read: reads bytes from a position; fewer at the end of the file.
    package static func isCut(size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]) -> Bool {
        let head = read(0, 64)
        if head.dropFirst(4).starts(with: "ftyp".utf8) { return isCutMovie(size, read) }
        if head.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) { return isCutMatroska(head[...], size) }
        if head.starts(with: "RIFF".utf8), head.count >= 8 {
            let stated = head[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) }
            // Programs that cannot seek write the largest number, or nearly.
            return stated < 0x7FFF_0000 && stated + 8 > size
        }
        return false
    }

    /// A film of fragments has some boxes for each second.
    private static let mostBoxes = 1 << 18

    private static func isCutMovie(_ size: Int, _ read: (_ place: Int, _ count: Int) -> [UInt8]) -> Bool {
        var place = 0
        for _ in 0..<mostBoxes where place < size {
            // A length of 0 means the rest of the file.
            guard let box = MovieIndex.Box(read(place, 16)[...], 0) else { return false }
            if box.length > size - place { return true }
            place += box.length
        }
        return false
    }

    /// The header, then the segment, whose length is stated if the writer could seek.
    private static func isCutMatroska(_ head: ArraySlice<UInt8>, _ size: Int) -> Bool {
        guard let header = number(head, 4) else { return false }
        let segment = 4 + header.width + header.value
        guard head.count >= segment + 12, head[segment..<segment + 4].elementsEqual([0x18, 0x53, 0x80, 0x67]),
            let length = number(head, segment + 4), !length.isUnknown
        else { return false }
        return segment + 4 + length.width + length.value > size
    }

    /// A number of EBML: the first byte states its width.
    private static func number(_ bytes: ArraySlice<UInt8>, _ place: Int) -> (value: Int, width: Int, isUnknown: Bool)? {
        guard place < bytes.count, bytes[place] != 0 else { return nil }
        let width = bytes[place].leadingZeroBitCount + 1
        guard place + width <= bytes.count else { return nil }
        let first = Int(bytes[place]) & ((1 << (8 - width)) - 1)
        let value = bytes[(place + 1)..<(place + width)].reduce(first) { $0 << 8 | Int($1) }
        // Sums with it must not overflow.
        guard value < 1 << 56 else { return nil }
        return (value, width, value == (1 << (7 * width)) - 1)
    }
}
