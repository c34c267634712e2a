import Glibc

/// What the start of a Matroska or WebM file states.
package struct MatroskaHeader {
    private enum ID {
        static let header = 0x1A45_DFA3
        static let segment = 0x1853_8067
        static let info = 0x1549_A966
        static let duration = 0x4489
        static let cluster = 0x1F43_B675
    }

    /// Elements that are read before the search ends.
    private static let limit = 256

    /// Whether it states its length. A recording of a browser and a stream do not, because their length was unknown when the
    /// start was written.
    package private(set) var statesLength = false

    /// Nil if it is not such a file.
    package init?(_ path: [UInt8]) {
        let file = open(path.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        self.init(size: Int(lseek(file, 0, SEEK_END))) { FileContent.bytes(of: file, at: $0, count: $1) }
    }

    /// - Parameter read: reads bytes from a position; fewer at the end of the file.
    package init?(size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]) {
        guard let header = Element(read(0, 16)), header.id == ID.header, let end = header.end(from: 0) else {
            return nil
        }
        guard let segment = Element(read(end, 16)), segment.id == ID.segment else { return }
        var place = end + segment.head
        for _ in 0..<Self.limit where place < size {
            guard let element = Element(read(place, 16)), element.id != ID.cluster else { return }
            guard let next = element.end(from: place) else { return }
            if element.id == ID.info {
                statesLength = Self.hasDuration(read(place + element.head, min(next - place, 4_096)), element.size ?? 0)
                return
            }
            place = next
        }
    }

    private static func hasDuration(_ bytes: [UInt8], _ size: Int) -> Bool {
        var place = 0
        while place < min(size, bytes.count), let element = Element(Array(bytes[place...].prefix(16))) {
            if element.id == ID.duration {
                let start = place + element.head
                // A length of 0 is no length.
                return bytes.dropFirst(start).prefix(element.size ?? 0).contains { $0 != 0 }
            }
            guard let next = element.end(from: place) else { return false }
            place = next
        }
        return false
    }

    /// The start of an element of EBML (RFC 8794): its id and its size.
    private struct Element {
        let id: Int
        /// The bytes before the content.
        let head: Int
        /// The bytes of the content; nil: unknown.
        let size: Int?

        init?(_ bytes: [UInt8]) {
            guard let first = bytes.first, first >= 0x10 else { return nil }
            let idWidth = first.leadingZeroBitCount + 1
            guard bytes.count > idWidth, bytes[idWidth] > 0 else { return nil }
            let sizeWidth = bytes[idWidth].leadingZeroBitCount + 1
            guard bytes.count >= idWidth + sizeWidth else { return nil }
            id = bytes.prefix(idWidth).reduce(0) { $0 << 8 | Int($1) }
            head = idWidth + sizeWidth
            let marker = 1 << (7 * sizeWidth)
            let value = bytes[idWidth..<head].reduce(0) { $0 << 8 | Int($1) } & (marker - 1)
            size = value == marker - 1 ? nil : value
        }

        func end(from place: Int) -> Int? {
            guard let size, size < 1 << 48 else { return nil }
            return place + head + size
        }
    }
}
