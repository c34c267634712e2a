/// The data is too short, or has another type than expected.
public struct ByteError: Error {}

/// Reads what ``ByteWriter`` wrote. Never reads beyond the end, and never reserves more memory than the data has.
struct ByteReader {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    var isAtEnd: Bool { position == bytes.endIndex }

    mutating func integer<T: FixedWidthInteger>(_: T.Type = T.self) throws(ByteError) -> T {
        var value: T = 0
        let slice = try take(MemoryLayout<T>.size)
        withUnsafeMutableBytes(of: &value) { $0.copyBytes(from: slice) }
        return T(littleEndian: value)
    }

    mutating func bool() throws(ByteError) -> Bool {
        switch try integer(UInt8.self) {
        case 0: return false
        case 1: return true
        default: throw ByteError()
        }
    }

    mutating func double() throws(ByteError) -> Double { Double(bitPattern: try integer()) }

    mutating func string() throws(ByteError) -> String {
        let slice = try take(Int(try integer(UInt32.self)))
        guard let text = String(validating: slice, as: UTF8.self) else { throw ByteError() }
        return text
    }

    /// A word of a closed list, by its raw value.
    mutating func word<Word: RawRepresentable<String>>(_: Word.Type = Word.self) throws(ByteError) -> Word {
        guard let word = Word(rawValue: try string()) else { throw ByteError() }
        return word
    }

    mutating func optional<T>(_ read: (inout ByteReader) throws(ByteError) -> T) throws(ByteError) -> T? {
        try bool() ? try read(&self) : nil
    }

    mutating func array<T>(_ read: (inout ByteReader) throws(ByteError) -> T) throws(ByteError) -> [T] {
        let count = try integer(UInt32.self)
        var values: [T] = []
        for _ in 0..<count { values.append(try read(&self)) }
        return values
    }

    /// Reads entries with their lengths, as ``ByteWriter/entries(_:_:)`` writes them. An entry that cannot be read is
    /// skipped without affecting the others.
    ///
    /// `lost` gets the bytes of each skipped entry.
    mutating func entries<T>(
        lost: (ArraySlice<UInt8>) -> Void = { _ in }, _ read: (inout ByteReader) throws(ByteError) -> T
    ) throws(ByteError) -> [T] {
        let count = try integer(UInt32.self)
        var values: [T] = []
        for _ in 0..<count {
            let bytes = try take(Int(try integer(UInt32.self)))
            var reader = ByteReader(bytes)
            guard let value = try? read(&reader), reader.isAtEnd else {
                lost(bytes)
                continue
            }
            values.append(value)
        }
        return values
    }

    mutating func take(_ count: Int) throws(ByteError) -> ArraySlice<UInt8> {
        guard count >= 0, bytes.endIndex - position >= count else { throw ByteError() }
        defer { position += count }
        return bytes[position..<position + count]
    }
}
