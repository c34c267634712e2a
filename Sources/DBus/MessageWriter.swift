import CDBus
import Glibc

/// Appends values to a message, refusing what libdbus would abort on or a receiver would disconnect for.
struct MessageWriter {
    /// Below the 64 MiB of an array and the 128 MiB of a message, beyond which the bus disconnects the sender.
    static let byteLimit = 60 << 20
    /// Containers in containers, as libdbus counts them when it validates a body.
    static let depthLimit = 64

    private var bytes = 0

    init() {}

    mutating func append(
        _ value: Value, to iterator: UnsafeMutablePointer<DBusMessageIter>, depth: Int = 0
    ) throws(Failure) {
        // 16 covers padding, lengths and a variant's signature.
        bytes += 16
        guard bytes <= Self.byteLimit else { throw .limitsExceeded("The message is too large") }
        guard depth <= Self.depthLimit else { throw .limitsExceeded("Values are nested too deeply") }
        switch value {
        case .byte(let number): try fixed(number, TypeCode.byte, iterator)
        case .bool(let flag): try fixed(dbus_bool_t(flag ? 1 : 0), TypeCode.bool, iterator)
        case .int16(let number): try fixed(number, TypeCode.int16, iterator)
        case .uint16(let number): try fixed(number, TypeCode.uint16, iterator)
        case .int32(let number): try fixed(number, TypeCode.int32, iterator)
        case .uint32(let number): try fixed(number, TypeCode.uint32, iterator)
        case .int64(let number): try fixed(number, TypeCode.int64, iterator)
        case .uint64(let number): try fixed(number, TypeCode.uint64, iterator)
        case .double(let number): try fixed(number, TypeCode.double, iterator)
        case .string(let text): try append(text, TypeCode.string, iterator)
        case .objectPath(let path):
            guard Syntax.isPath(path) else { throw .invalidArgs("Not an object path") }
            try append(path, TypeCode.objectPath, iterator)
        case .signature(let signature):
            guard Syntax.isSignature(signature) else { throw .invalidArgs("Not a signature") }
            try append(signature, TypeCode.signature, iterator)
        case .array(let element, let values):
            guard Syntax.isElement(element) else { throw .invalidArgs("Not the type of an array's elements") }
            try container(TypeCode.array, element, iterator) { (writer, inner) throws(Failure) in
                for value in values {
                    guard value.hasSignature(element) else {
                        throw .invalidArgs("An array of \(element) cannot hold a \(value.signature)")
                    }
                    try writer.append(value, to: inner, depth: depth + 1)
                }
            }
        case .dictionary(let key, let value, let entries):
            try append(entries, key: key, value: value, to: iterator, depth: depth)
        case .structure(let fields):
            guard !fields.isEmpty else { throw .invalidArgs("A structure without fields") }
            // Its signature is valid as long as it is not too long or too deep.
            guard Syntax.isType(value.signature) else { throw .limitsExceeded("A structure too large") }
            try container(TypeCode.structure, nil, iterator) { (writer, inner) throws(Failure) in
                for field in fields { try writer.append(field, to: inner, depth: depth + 1) }
            }
        case .variant(let content):
            let signature = content.signature
            guard Syntax.isType(signature) else {
                throw .invalidArgs("Not a valid type: \(Syntax.shortened(signature))")
            }
            try container(TypeCode.variant, signature, iterator) { (writer, inner) throws(Failure) in
                try writer.append(content, to: inner, depth: depth + 1)
            }
        }
    }

    private mutating func append(
        _ entries: [DictionaryEntry], key: String, value: String,
        to iterator: UnsafeMutablePointer<DBusMessageIter>, depth: Int
    ) throws(Failure) {
        let type = "{" + key + value + "}"
        guard type == "{sv}" || Syntax.isElement(type) else { throw .invalidArgs("Not the type of a dictionary") }
        try container(TypeCode.array, type, iterator) { (writer, inner) throws(Failure) in
            for entry in entries {
                guard entry.key.hasSignature(key), entry.value.hasSignature(value) else {
                    throw .invalidArgs(
                        "A dictionary of \(type) cannot hold {\(entry.key.signature)\(entry.value.signature)}")
                }
                try writer.container(TypeCode.dictionaryEntry, nil, inner) { (writer, pair) throws(Failure) in
                    try writer.append(entry.key, to: pair, depth: depth + 2)
                    try writer.append(entry.value, to: pair, depth: depth + 2)
                }
            }
        }
    }

    private func fixed<Number: BitwiseCopyable>(
        _ number: Number, _ code: UInt8, _ iterator: UnsafeMutablePointer<DBusMessageIter>
    ) throws(Failure) {
        var number = number
        guard dbus_message_iter_append_basic(iterator, Int32(code), &number) != 0 else { throw .noMemory }
    }

    private mutating func append(
        _ text: String, _ code: UInt8, _ iterator: UnsafeMutablePointer<DBusMessageIter>
    ) throws(Failure) {
        bytes += text.utf8.count
        guard bytes <= Self.byteLimit else { throw .limitsExceeded("The message is too large") }
        // A string with a NUL in it ends there: C sees no more of it.
        let appended = text.withCString { pointer in
            var pointer: UnsafePointer<CChar>? = pointer
            return dbus_message_iter_append_basic(iterator, Int32(code), &pointer)
        }
        guard appended != 0 else { throw .noMemory }
    }

    private mutating func container(
        _ code: UInt8, _ signature: String?, _ iterator: UnsafeMutablePointer<DBusMessageIter>,
        _ body: (inout MessageWriter, UnsafeMutablePointer<DBusMessageIter>) throws(Failure) -> Void
    ) throws(Failure) {
        var inner = DBusMessageIter()
        let opened: dbus_bool_t
        if let signature {
            opened = signature.withCString { dbus_message_iter_open_container(iterator, Int32(code), $0, &inner) }
        } else {
            opened = dbus_message_iter_open_container(iterator, Int32(code), nil, &inner)
        }
        guard opened != 0 else { throw .noMemory }
        do throws(Failure) {
            try body(&self, &inner)
        } catch {
            dbus_message_iter_abandon_container_if_open(iterator, &inner)
            throw error
        }
        guard dbus_message_iter_close_container(iterator, &inner) != 0 else { throw .noMemory }
    }
}
