import Glibc

/// Writes values and header fields as bytes of the wire, little-endian. Refuses values for which the bus would
/// disconnect the sender.
///
/// libdbus's iterators are not used: for an `a{sv}` they take thirty times as long, because they read the signature
/// again with each value. The tests and the fuzzer compare the result with libdbus's own reader.
struct WireWriter {
    /// The bus disconnects the sender of a message above 128 MiB. This leaves room for the header, whose texts have at
    /// most 255 bytes.
    static let byteLimit = (128 << 20) - (64 << 10)
    /// The same for the elements of an array.
    static let arrayLimit = 64 << 20
    /// The depth of containers, as libdbus counts it when it validates a body.
    static let depthLimit = 64

    private(set) var bytes: [UInt8]

    /// Alignment counts from the start of `bytes`: a body begins at a multiple of 8.
    init(reserving capacity: Int) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    mutating func append(_ value: Value, depth: Int = 0) throws(Failure) {
        guard bytes.count <= Self.byteLimit else { throw .limitsExceeded("The message is too large") }
        guard depth <= Self.depthLimit else { throw .limitsExceeded("Values are nested too deeply") }
        switch value {
        case .byte(let number): bytes.append(number)
        case .bool(let flag): integer(UInt32(flag ? 1 : 0))
        case .int16(let number): integer(number)
        case .uint16(let number): integer(number)
        case .int32(let number): integer(number)
        case .uint32(let number): integer(number)
        case .int64(let number): integer(number)
        case .uint64(let number): integer(number)
        case .double(let number): integer(number.bitPattern)
        case .string(let text): try append(text)
        case .objectPath(let path):
            guard Syntax.isPath(path) else { throw .invalidArgs("Not an object path") }
            try append(path)
        case .signature(let signature):
            guard Syntax.isSignature(signature) else { throw .invalidArgs("Not a signature") }
            append(signature: signature)
        case .fileDescriptor: throw .invalidArgs("File descriptors are not sent")
        case .array(let element, let values):
            guard Syntax.isElement(element) else { throw .invalidArgs("Not the type of an array's elements") }
            try array(alignment: Self.alignment(element)) { writer throws(Failure) in
                for value in values {
                    guard value.hasSignature(element) else {
                        throw .invalidArgs("An array of \(element) cannot hold a \(value.signature)")
                    }
                    try writer.append(value, depth: depth + 1)
                }
            }
        case .dictionary(let key, let value, let entries):
            try append(entries, key: key, value: value, depth: depth)
        case .encoded(let properties):
            try array(alignment: 8) { writer throws(Failure) in
                for part in properties.parts {
                    writer.align(8)
                    writer.bytes.append(contentsOf: part)
                }
            }
        case .structure(let fields):
            guard !fields.isEmpty else { throw .invalidArgs("A structure without fields") }
            // Its signature is valid unless it is too long or too deep.
            guard Syntax.isType(value.signature) else { throw .limitsExceeded("A structure too large") }
            align(8)
            for field in fields { try append(field, depth: depth + 1) }
        case .variant(let content):
            let signature = content.signature
            guard Syntax.isType(signature) else {
                throw .invalidArgs("Not a valid type: \(Syntax.shortened(signature))")
            }
            append(signature: signature)
            try append(content, depth: depth + 1)
        }
    }

    private mutating func append(
        _ entries: [DictionaryEntry], key: String, value: String, depth: Int
    ) throws(Failure) {
        guard key == "s" && value == "v" || Syntax.isElement("{" + key + value + "}") else {
            throw .invalidArgs("Not the type of a dictionary")
        }
        try array(alignment: 8) { writer throws(Failure) in
            for entry in entries {
                guard entry.key.hasSignature(key), entry.value.hasSignature(value) else {
                    throw .invalidArgs(
                        "A dictionary of {\(key)\(value)} cannot hold {\(entry.key.signature)\(entry.value.signature)}")
                }
                writer.align(8)
                try writer.append(entry.key, depth: depth + 2)
                try writer.append(entry.value, depth: depth + 2)
            }
        }
    }

    /// A string or a path. It ends at a NUL, as for C.
    mutating func append(_ text: String) throws(Failure) {
        guard text.utf8.count <= Self.byteLimit else { throw .limitsExceeded("The message is too large") }
        align(4)
        let start = bytes.count
        integer(UInt32(0))
        var text = text
        text.withUTF8 { utf8 in
            guard let first = utf8.baseAddress else { return }
            // In C: a debug build would need a dozen calls for each of a hundred million bytes.
            let length = memchr(first, 0, utf8.count).map { UnsafeRawPointer($0) - UnsafeRawPointer(first) }
            bytes.append(contentsOf: utf8[..<(length ?? utf8.count)])
        }
        patch(UInt32(bytes.count - start - 4), at: start)
        bytes.append(0)
        guard bytes.count <= Self.byteLimit else { throw .limitsExceeded("The message is too large") }
    }

    /// At most 255 bytes; the caller must check that.
    mutating func append(signature: String) {
        bytes.append(UInt8(signature.utf8.count))
        bytes.append(contentsOf: signature.utf8)
        bytes.append(0)
    }

    mutating func integer<Number: FixedWidthInteger>(_ number: Number) {
        align(MemoryLayout<Number>.size)
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func align(_ alignment: Int) {
        while bytes.count & (alignment - 1) != 0 { bytes.append(0) }
    }

    /// Overwrites an integer that was written before its value was known.
    mutating func patch(_ number: UInt32, at position: Int) {
        for index in 0..<4 { bytes[position + index] = UInt8(truncatingIfNeeded: number >> (8 * index)) }
    }

    /// The length of an array includes neither itself nor the padding before the first element, which is there even in
    /// an empty array.
    mutating func array(
        alignment: Int, _ elements: (inout WireWriter) throws(Failure) -> Void
    ) throws(Failure) {
        align(4)
        let start = bytes.count
        integer(UInt32(0))
        align(alignment)
        let first = bytes.count
        try elements(&self)
        guard bytes.count - first <= Self.arrayLimit else { throw .limitsExceeded("An array is too large") }
        patch(UInt32(bytes.count - first), at: start)
    }

    /// The alignment of an element, from its signature.
    private static func alignment(_ signature: String) -> Int {
        switch signature.utf8.first ?? 0 {
        case TypeCode.int16, TypeCode.uint16: 2
        case TypeCode.bool, TypeCode.int32, TypeCode.uint32, TypeCode.string, TypeCode.objectPath, TypeCode.array: 4
        case TypeCode.int64, TypeCode.uint64, TypeCode.double, TypeCode.structureBegin, TypeCode.entryBegin: 8
        default: 1
        }
    }
}
