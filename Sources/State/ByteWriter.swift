/// Writes values one after the other, little-endian, strings with their length: the state file's alphabet.
struct ByteWriter {
    private(set) var bytes: [UInt8]

    init() {
        bytes = []
        // A step of one session, or two.
        bytes.reserveCapacity(512)
    }

    mutating func integer<T: FixedWidthInteger>(_ value: T) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func bool(_ value: Bool) { bytes.append(value ? 1 : 0) }
    mutating func double(_ value: Double) { integer(value.bitPattern) }

    mutating func string(_ value: String) {
        integer(UInt32(clamping: value.utf8.count))
        bytes.append(contentsOf: value.utf8)
    }

    mutating func optional<T>(_ value: T?, _ write: (inout ByteWriter, T) -> Void) {
        bool(value != nil)
        if let value { write(&self, value) }
    }

    mutating func array<T>(_ values: [T], _ write: (inout ByteWriter, T) -> Void) {
        integer(UInt32(clamping: values.count))
        for value in values { write(&self, value) }
    }
}
