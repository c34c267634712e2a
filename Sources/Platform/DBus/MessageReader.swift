import CDBus
import Glibc

/// Reads the values of a message that libdbus has validated.
struct MessageReader {
    /// A 100 MB message of bytes would be gigabytes of values: more than a million is refused.
    static let valueLimit = 1 << 20

    /// Bytes of one text of a call, and of all of them: names, paths and addresses are shorter, and handling longer ones
    /// would delay others. Answers and signals may be longer.
    static let textLimit = 64 << 10
    static let textsLimit = 4 << 20

    private var count = 0
    private var bytes = 0
    private let isCall: Bool

    /// - Parameter isCall: whether somebody else wants the values handled.
    init(isCall: Bool = false) { self.isCall = isCall }

    /// Reads all values from the iterator on, at its level.
    mutating func values(_ iterator: UnsafeMutablePointer<DBusMessageIter>) throws(Failure) -> [Value] {
        var values: [Value] = []
        var code = UInt8(truncatingIfNeeded: dbus_message_iter_get_arg_type(iterator))
        while code != TypeCode.invalid {
            values.append(try value(iterator, code))
            dbus_message_iter_next(iterator)
            code = UInt8(truncatingIfNeeded: dbus_message_iter_get_arg_type(iterator))
        }
        return values
    }

    private mutating func value(
        _ iterator: UnsafeMutablePointer<DBusMessageIter>, _ code: UInt8
    ) throws(Failure) -> Value {
        count += 1
        guard count <= Self.valueLimit else { throw .limitsExceeded("Too many values in one message") }
        switch code {
        case TypeCode.byte: return .byte(basic(iterator, 0))
        case TypeCode.bool: return .bool(basic(iterator, dbus_bool_t(0)) != 0)
        case TypeCode.int16: return .int16(basic(iterator, 0))
        case TypeCode.uint16: return .uint16(basic(iterator, 0))
        case TypeCode.int32: return .int32(basic(iterator, 0))
        case TypeCode.uint32: return .uint32(basic(iterator, 0))
        case TypeCode.int64: return .int64(basic(iterator, 0))
        case TypeCode.uint64: return .uint64(basic(iterator, 0))
        case TypeCode.double: return .double(basic(iterator, 0))
        case TypeCode.string: return .string(try text(iterator))
        case TypeCode.objectPath: return .objectPath(try text(iterator))
        case TypeCode.signature: return .signature(try text(iterator))
        case TypeCode.array: return try array(iterator)
        case TypeCode.structure:
            var inner = DBusMessageIter()
            dbus_message_iter_recurse(iterator, &inner)
            return .structure(try values(&inner))
        case TypeCode.variant:
            var inner = DBusMessageIter()
            dbus_message_iter_recurse(iterator, &inner)
            let type = UInt8(truncatingIfNeeded: dbus_message_iter_get_arg_type(&inner))
            return .variant(try value(&inner, type))
        case TypeCode.fileDescriptor:
            // A duplicate of libdbus's own, which is closed with the message.
            let number = basic(iterator, Int32(-1))
            guard number >= 0 else { throw .limitsExceeded("This process has no file descriptor left") }
            return .fileDescriptor(FileDescriptor(owning: number))
        default: throw .invalidArgs("A type that D-Bus does not have")
        }
    }

    private mutating func array(_ iterator: UnsafeMutablePointer<DBusMessageIter>) throws(Failure) -> Value {
        let element = UInt8(truncatingIfNeeded: dbus_message_iter_get_element_type(iterator))
        var inner = DBusMessageIter()
        dbus_message_iter_recurse(iterator, &inner)
        if element == TypeCode.dictionaryEntry { return try dictionary(iterator, &inner) }
        let type = Self.letter(element) ?? String(Self.signature(iterator).dropFirst())
        return .array(of: type, try values(&inner))
    }

    private mutating func dictionary(
        _ array: UnsafeMutablePointer<DBusMessageIter>, _ iterator: UnsafeMutablePointer<DBusMessageIter>
    ) throws(Failure) -> Value {
        var types: (key: String, value: String)?
        var entries: [DictionaryEntry] = []
        while dbus_message_iter_get_arg_type(iterator) != 0 {
            var pair = DBusMessageIter()
            dbus_message_iter_recurse(iterator, &pair)
            let keyCode = UInt8(truncatingIfNeeded: dbus_message_iter_get_arg_type(&pair))
            let key = try value(&pair, keyCode)
            dbus_message_iter_next(&pair)
            let valueCode = UInt8(truncatingIfNeeded: dbus_message_iter_get_arg_type(&pair))
            if types == nil, let keyLetter = Self.letter(keyCode), let valueLetter = Self.letter(valueCode) {
                types = (keyLetter, valueLetter)
            }
            entries.append(DictionaryEntry(key: key, value: try value(&pair, valueCode)))
            dbus_message_iter_next(iterator)
        }
        if let types { return .dictionary(key: types.key, value: types.value, entries) }
        // `a{kV…}`: a key is always one letter.
        let inside = Self.signature(array).dropFirst(2).dropLast()
        return .dictionary(key: String(inside.prefix(1)), value: String(inside.dropFirst()), entries)
    }

    /// The whole signature of a type of one letter; nil for containers. It avoids a call of libdbus, which allocates
    /// memory.
    private static func letter(_ code: UInt8) -> String? {
        TypeCode.isBasic(code) || code == TypeCode.variant ? String(UnicodeScalar(code)) : nil
    }

    private static func signature(_ iterator: UnsafeMutablePointer<DBusMessageIter>) -> String {
        guard let text = dbus_message_iter_get_signature(iterator) else { return "" }
        defer { dbus_free(text) }
        return String(cString: text)
    }

    private func basic<Number: BitwiseCopyable>(_ iterator: UnsafeMutablePointer<DBusMessageIter>, _ zero: Number)
        -> Number
    {
        var number = zero
        dbus_message_iter_get_basic(iterator, &number)
        return number
    }

    private mutating func text(_ iterator: UnsafeMutablePointer<DBusMessageIter>) throws(Failure) -> String {
        var pointer: UnsafePointer<CChar>?
        dbus_message_iter_get_basic(iterator, &pointer)
        guard let pointer else { return "" }
        if isCall {
            let length = strlen(pointer)
            bytes += length
            guard length <= Self.textLimit, bytes <= Self.textsLimit else {
                throw .longText
            }
        }
        return String(cString: pointer)
    }
}
