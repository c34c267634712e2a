import Glibc

extension MovieIndex {
    /// A part of a file that is copied from another file.
    package enum Part: Equatable {
        case bytes([UInt8])
        /// A range of the other file.
        case range(place: Int, count: Int)

        package var count: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .range(_, let count): count
            }
        }
    }

    /// The parts of the same film with its index (`moov`) before the data that the index points to, so that players can
    /// start before they have the whole file. Nil: it is not such a file, or it has no index.
    package static func partsWithIndexFirst(descriptor file: Int32) -> [Part]? {
        partsWithIndexFirst(size: Int(lseek(file, 0, SEEK_END))) { FileContent.bytes(of: file, at: $0, count: $1) }
    }

    /// - Parameter read: reads bytes from a position; fewer at the end of the file.
    package static func partsWithIndexFirst(size: Int, read: (_ place: Int, _ count: Int) -> [UInt8]) -> [Part]? {
        guard let type = Box(read(0, 16)[...], 0), type.kind == "ftyp" else { return nil }
        var place = type.length
        for _ in 0..<boxLimit {
            guard let box = Box(read(place, 16)[...], 0), box.length <= size - place else { return nil }
            if box.kind == "moov" {
                guard box.length <= indexLimit else { return nil }
                let bytes = read(place, box.length)
                guard bytes.count == box.length else { return nil }
                return parts(index: bytes[...], at: place, behind: type.length, size)
            }
            place += box.length
        }
        return nil
    }

    private static func parts(index: ArraySlice<UInt8>, at place: Int, behind begin: Int, _ size: Int) -> [Part] {
        if place == begin { return [.range(place: 0, count: size)] }
        var front = [UInt8]()
        // Positions of 32 bits are not enough if the file has nearly 4 GiB.
        for isWide in [false, true] {
            // The length of the new index depends only on `isWide`.
            let length = moved(index, isWide) { _ in 0 }.count
            var largest = 0
            front = moved(index, isWide) { old in
                let new = old &+ (old < place ? length : length - index.count)
                largest = max(largest, new)
                return new
            }
            if largest <= UInt32.max { break }
        }
        let rest = place + index.count
        return [
            .range(place: 0, count: begin), .bytes(front), .range(place: begin, count: place - begin),
            .range(place: rest, count: size - rest),
        ].filter { $0.count > 0 }
    }

    /// The boxes that contain the tables of positions, each inside the one before.
    private static let way = ["moov", "trak", "mdia", "minf", "stbl"]

    /// The boxes with new positions of the chunks.
    /// - Parameter depth: the number of boxes of ``way`` that they are in.
    private static func moved(
        _ boxes: ArraySlice<UInt8>, depth: Int = 0, _ isWide: Bool, _ place: (Int) -> Int
    ) -> [UInt8] {
        var all: [UInt8] = []
        all.reserveCapacity(boxes.count)
        var rest = boxes
        while let box = Box(rest, 0), box.length <= rest.count {
            let whole = rest.prefix(box.length)
            let content = whole.dropFirst(box.header)
            switch box.kind {
            case "stco" where depth == way.count: all += table(content, isLong: false, isWide, place)
            case "co64" where depth == way.count: all += table(content, isLong: true, isWide, place)
            case let kind where depth < way.count && kind == way[depth]:
                all += self.box(kind, moved(content, depth: depth + 1, isWide, place))
            default: all += whole
            }
            rest = rest.dropFirst(box.length)
        }
        return all + rest
    }

    private static func table(
        _ content: ArraySlice<UInt8>, isLong: Bool, _ isWide: Bool, _ place: (Int) -> Int
    ) -> [UInt8] {
        let (width, wanted) = (isLong ? 8 : 4, isLong || isWide ? 8 : 4)
        let count = min(number(content, 4, 4), max(0, content.count - 8) / width)
        var table = Array(content.prefix(4)) + big(count, 4)
        table.reserveCapacity(8 + count * wanted)
        for entry in 0..<count { table += big(place(number(content, 8 + entry * width, width)), wanted) }
        return box(wanted == 8 ? "co64" : "stco", table)
    }

    static func box(_ kind: String, _ content: some Collection<UInt8>) -> [UInt8] {
        big(content.count + 8, 4) + kind.utf8 + content
    }

    static func big(_ value: Int, _ count: Int) -> [UInt8] {
        (1...count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - $0))) }
    }
}
