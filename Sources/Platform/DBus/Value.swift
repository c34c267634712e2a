/// A D-Bus value of any type.
///
/// Every value is checked before libdbus gets it: ``Message/append(_:)`` validates strings, paths, signatures, element
/// types, depth and size, because libdbus aborts the process on invalid input.
// Only the rare or large cases are boxed: an `a{sv}` costs one allocation for each variant and one for the dictionary.
public enum Value: Hashable, Sendable {
    case byte(UInt8)
    case bool(Bool)
    case int16(Int16)
    case uint16(UInt16)
    case int32(Int32)
    case uint32(UInt32)
    case int64(Int64)
    case uint64(UInt64)
    case double(Double)
    case string(String)
    case objectPath(String)
    case signature(String)
    /// From a received message. It cannot be sent: ``Message/append(_:)`` refuses it.
    case fileDescriptor(FileDescriptor)
    /// The signature of one element, and the elements.
    case array(of: String, [Value])
    /// The signatures of keys and values, and the entries in the order of the wire.
    indirect case dictionary(key: String, value: String, [DictionaryEntry])
    case structure([Value])
    indirect case variant(Value)
    /// An `a{sv}` that was encoded before. Only to be sent: no reader looks into it.
    case encoded(EncodedProperties)

    /// The complete type in D-Bus's notation, such as `a{sv}`.
    public var signature: String {
        switch self {
        case .array(let element, _): return "a" + element
        case .dictionary(let key, let value, _): return "a{" + key + value + "}"
        case .structure(let fields):
            var text = "("
            for field in fields { text += field.signature }
            return text + ")"
        case .encoded: return "a{sv}"
        case .byte, .bool, .int16, .uint16, .int32, .uint32, .int64, .uint64, .double, .string, .objectPath,
            .signature, .fileDescriptor, .variant:
            return String(UnicodeScalar(typeCode))
        }
    }

    /// The first letter of the signature; D-Bus calls it the type code (`DBUS_TYPE_STRUCT` differs: it is `r`).
    var typeCode: UInt8 {
        switch self {
        case .byte: return TypeCode.byte
        case .bool: return TypeCode.bool
        case .int16: return TypeCode.int16
        case .uint16: return TypeCode.uint16
        case .int32: return TypeCode.int32
        case .uint32: return TypeCode.uint32
        case .int64: return TypeCode.int64
        case .uint64: return TypeCode.uint64
        case .double: return TypeCode.double
        case .string: return TypeCode.string
        case .objectPath: return TypeCode.objectPath
        case .signature: return TypeCode.signature
        case .fileDescriptor: return TypeCode.fileDescriptor
        case .array, .dictionary, .encoded: return TypeCode.array
        case .structure: return TypeCode.structureBegin
        case .variant: return TypeCode.variant
        }
    }

    /// Whether this has exactly that type; does not build the value's signature.
    public func hasSignature(_ signature: String) -> Bool {
        var signature = signature
        return signature.withUTF8 { bytes in
            var position = 0
            return matches(bytes, &position) && position == bytes.count
        }
    }

    private func matches(_ expected: UnsafeBufferPointer<UInt8>, _ position: inout Int) -> Bool {
        func take(_ byte: UInt8) -> Bool {
            guard position < expected.count, expected[position] == byte else { return false }
            position += 1
            return true
        }
        func take(_ text: String) -> Bool {
            for byte in text.utf8 where !take(byte) { return false }
            return true
        }
        guard take(typeCode) else { return false }
        switch self {
        case .array(let element, _): return take(element)
        case .dictionary(let key, let value, _):
            return take(TypeCode.entryBegin) && take(key) && take(value) && take(TypeCode.entryEnd)
        case .encoded: return take(TypeCode.entryBegin) && take("sv") && take(TypeCode.entryEnd)
        case .structure(let fields):
            for field in fields where !field.matches(expected, &position) { return false }
            return take(TypeCode.structureEnd)
        case .byte, .bool, .int16, .uint16, .int32, .uint32, .int64, .uint64, .double, .string, .objectPath,
            .signature, .fileDescriptor, .variant:
            return true
        }
    }
}

/// One entry of a D-Bus dictionary.
public struct DictionaryEntry: Hashable, Sendable {
    public var key: Value
    public var value: Value

    public init(key: Value, value: Value) {
        self.key = key
        self.value = value
    }
}

extension Value {
    /// An `as`.
    public static func strings(_ strings: [String]) -> Value { .array(of: "s", strings.map(Value.string)) }

    /// An `ao`.
    public static func objectPaths(_ paths: [String]) -> Value { .array(of: "o", paths.map(Value.objectPath)) }

    /// An `a{sv}` in that order; each value is wrapped in a variant.
    public static func properties(_ properties: [(String, Value)]) -> Value {
        .dictionary(
            key: "s", value: "v",
            properties.map { DictionaryEntry(key: .string($0.0), value: .variant($0.1)) })
    }
}

extension Value {
    /// The value inside any number of variants: all readers below look at the value itself.
    public var unwrapped: Value {
        var value = self
        while case .variant(let inner) = value { value = inner }
        return value
    }

    /// Nil for any other type, also for an object path. The next properties are similar.
    public var stringValue: String? { if case .string(let value) = self { value } else { nil } }
    public var objectPathValue: String? { if case .objectPath(let value) = self { value } else { nil } }
    public var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }
    public var byteValue: UInt8? { if case .byte(let value) = self { value } else { nil } }
    public var int32Value: Int32? { if case .int32(let value) = self { value } else { nil } }
    public var uint32Value: UInt32? { if case .uint32(let value) = self { value } else { nil } }
    public var int64Value: Int64? { if case .int64(let value) = self { value } else { nil } }
    public var uint64Value: UInt64? { if case .uint64(let value) = self { value } else { nil } }
    public var fileDescriptorValue: FileDescriptor? { if case .fileDescriptor(let value) = self { value } else { nil } }
    public var doubleValue: Double? { if case .double(let value) = self { value } else { nil } }

    /// The elements of an array that is not a dictionary.
    public var arrayValue: [Value]? { if case .array(_, let elements) = self { elements } else { nil } }

    /// The fields of a structure.
    public var structureValue: [Value]? { if case .structure(let fields) = self { fields } else { nil } }

    /// The entries of a dictionary of any type, in the order of the wire.
    public var dictionaryValue: [DictionaryEntry]? {
        if case .dictionary(_, _, let entries) = self { entries } else { nil }
    }

    /// The strings of an `as`, nil for anything else.
    public var stringsValue: [String]? {
        guard case .array("s", let elements) = self else { return nil }
        return elements.compactMap(\.stringValue)
    }

    /// The paths of an `ao`, nil for anything else.
    public var objectPathsValue: [String]? {
        guard case .array("o", let elements) = self else { return nil }
        return elements.compactMap(\.objectPathValue)
    }

    /// An `a{sv}` with its values out of their variants; of a repeated key, the last value. Nil for any other type.
    public var asProperties: [String: Value]? {
        guard case .dictionary("s", "v", let entries) = self else { return nil }
        var properties = [String: Value](minimumCapacity: entries.count)
        for entry in entries {
            guard case .string(let key) = entry.key, case .variant(let value) = entry.value else { continue }
            properties[key] = value
        }
        return properties
    }
}
