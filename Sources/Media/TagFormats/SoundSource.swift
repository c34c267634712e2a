/// The bytes of a file at any position. Its first and last bytes are in memory, where nearly all tags are.
public final class SoundSource {
    public let size: UInt64
    private let head: [UInt8]
    private let tail: [UInt8]
    private let fetch: (_ place: UInt64, _ count: Int) -> [UInt8]
    /// Reads a text of an old tag, which does not state its encoding; nil: it cannot.
    private let oldText: ((ArraySlice<UInt8>) -> String?)?

    /// The largest part of a file that is read at once, in bytes: a picture in a tag.
    static let limit = 32 << 20

    /// - Parameters:
    ///   - head: the first bytes; `tail`: the last bytes. They may overlap.
    ///   - oldText: reads a text that does not state its encoding, or says that it is Latin-1; nil: as Latin-1.
    ///   - fetch: reads bytes from a position, fewer at the end of the file.
    public init(
        size: UInt64, head: [UInt8], tail: [UInt8] = [], oldText: ((ArraySlice<UInt8>) -> String?)? = nil,
        _ fetch: @escaping (_ place: UInt64, _ count: Int) -> [UInt8]
    ) {
        (self.size, self.head, self.tail, self.oldText, self.fetch) = (size, head, tail, oldText, fetch)
    }

    /// A file in memory.
    public convenience init(_ bytes: [UInt8], oldText: ((ArraySlice<UInt8>) -> String?)? = nil) {
        self.init(size: UInt64(bytes.count), head: bytes, oldText: oldText) { _, _ in [] }
    }

    /// A part of this file that was decoded.
    func part(_ bytes: [UInt8]) -> SoundSource { SoundSource(bytes, oldText: oldText) }

    /// A text that does not state its encoding, or says that it is Latin-1.
    func text(_ bytes: ArraySlice<UInt8>) -> String {
        guard let oldText, bytes.contains(where: { $0 > 0x7F }) else { return bytes.latinText }
        return oldText(bytes) ?? bytes.latinText
    }

    /// At most `count` bytes from a position; fewer at the end of the file.
    func bytes(_ place: UInt64, _ count: Int) -> ArraySlice<UInt8> {
        guard place < size, count > 0 else { return [] }
        let count = Int(min(UInt64(min(count, Self.limit)), size - place))
        if place + UInt64(count) <= UInt64(head.count) { return head[Int(place)..<Int(place) + count] }
        let start = size - UInt64(tail.count)
        if place >= start { return tail[Int(place - start)..<Int(place - start) + count] }
        return fetch(place, count)[...]
    }

    func starts(_ place: UInt64, with text: StaticString) -> Bool {
        bytes(place, text.utf8CodeUnitCount).elementsEqual(
            UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}

/// Reads bytes from front to back. After the end it returns zeros.
struct Bytes {
    var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var count: Int { rest.count }
    var isEmpty: Bool { rest.isEmpty }

    mutating func take(_ count: Int) -> ArraySlice<UInt8> {
        let taken = rest.prefix(max(0, count))
        rest = rest.dropFirst(taken.count)
        return taken
    }

    mutating func skip(_ count: Int) { rest = rest.dropFirst(max(0, count)) }
    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }
    mutating func little(_ count: Int) -> UInt64 { take(count).reversed().reduce(0) { $0 << 8 | UInt64($1) } }
    mutating func big(_ count: Int) -> UInt64 { take(count).number }
}

extension Sequence<UInt8> {
    /// The big-endian number in these bytes.
    var number: UInt64 { reduce(0) { $0 << 8 | UInt64($1) } }
    /// A number with seven bits in each byte, as ID3 writes sizes.
    var syncsafe: Int { reduce(0) { $0 << 7 | Int($1 & 0x7F) } }
    var utf8Text: String { String(decoding: Array(self), as: UTF8.self) }
    var latinText: String { String(String.UnicodeScalarView(map { UnicodeScalar($0) })) }
}

extension ArraySlice<UInt8> {
    func littleNumber(_ place: Int, _ count: Int) -> UInt64 {
        dropFirst(place).prefix(count).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    func bigNumber(_ place: Int, _ count: Int) -> UInt64 { dropFirst(place).prefix(count).number }
    /// The UTF-16 text in this byte order. A byte order mark at the start is removed.
    func utf16Text(isBig: Bool) -> String {
        var isBig = isBig
        var rest = self
        switch Array(rest.prefix(2)) {
        case [0xFF, 0xFE]: (isBig, rest) = (false, rest.dropFirst(2))
        case [0xFE, 0xFF]: (isBig, rest) = (true, rest.dropFirst(2))
        default: break
        }
        var units: [UInt16] = []
        units.reserveCapacity(rest.count / 2)
        var index = rest.startIndex
        while index + 1 < rest.endIndex {
            let (one, two) = (UInt16(rest[index]), UInt16(rest[index + 1]))
            units.append(isBig ? one << 8 | two : two << 8 | one)
            index += 2
        }
        return String(decoding: units, as: UTF16.self)
    }
}
