/// Writes values one after the other, little-endian, strings with their length, as the state file has them.
///
/// It writes to its own memory, not to an array, to be fast: a step of a hundred sessions has thousands of values, and
/// must be written before the first signal is sent.
struct ByteWriter: ~Copyable {
    private var start: UnsafeMutableRawPointer
    private var capacity: Int
    private(set) var count = 0

    init() {
        // Enough for a step of one or two sessions.
        capacity = 1_024
        start = .allocate(byteCount: capacity, alignment: 8)
    }

    deinit { start.deallocate() }

    /// The written bytes from `place` on; valid during `body`.
    func withBytes<Result>(from place: Int = 0, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        body(UnsafeRawBufferPointer(start: start + place, count: count - place))
    }

    var bytes: [UInt8] { withBytes { Array($0) } }

    mutating func integer<T: FixedWidthInteger>(_ value: T) {
        reserve(MemoryLayout<T>.size)
        start.storeBytes(of: value.littleEndian, toByteOffset: count, as: T.self)
        count += MemoryLayout<T>.size
    }

    /// Overwrites an integer that was written before its value was known.
    func patch<T: FixedWidthInteger>(_ value: T, at place: Int) {
        precondition(place >= 0 && place + MemoryLayout<T>.size <= count)
        start.storeBytes(of: value.littleEndian, toByteOffset: place, as: T.self)
    }

    mutating func bool(_ value: Bool) { integer(UInt8(value ? 1 : 0)) }
    mutating func double(_ value: Double) { integer(value.bitPattern) }

    mutating func string(_ value: String) {
        var value = value
        value.withUTF8 { utf8 in
            integer(UInt32(clamping: utf8.count))
            reserve(utf8.count)
            if let text = utf8.baseAddress { (start + count).copyMemory(from: text, byteCount: utf8.count) }
            count += utf8.count
        }
    }

    mutating func optional<T>(_ value: T?, _ write: (inout ByteWriter, T) -> Void) {
        bool(value != nil)
        if let value { write(&self, value) }
    }

    mutating func array<T>(_ values: [T], _ write: (inout ByteWriter, T) -> Void) {
        integer(UInt32(clamping: values.count))
        for value in values { write(&self, value) }
    }

    /// The same, each after its length, so that a reader can skip one that it cannot read.
    mutating func entries<T>(_ values: [T], _ write: (inout ByteWriter, T) -> Void) {
        array(values) { writer, value in
            let length = writer.count
            writer.integer(UInt32(0))
            write(&writer, value)
            writer.patch(UInt32(clamping: writer.count - length - MemoryLayout<UInt32>.size), at: length)
        }
    }

    private mutating func reserve(_ more: Int) {
        guard count + more > capacity else { return }
        let larger = max(2 * capacity, count + more)
        let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 8)
        moved.copyMemory(from: start, byteCount: count)
        start.deallocate()
        start = moved
        capacity = larger
    }
}
