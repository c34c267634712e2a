/// One header field of a request or a response.
public struct HTTPField: Sendable, Hashable {
    /// As written; names are compared without case.
    public let name: String
    public let value: String

    /// Nil if the name is not a token (RFC 9110, 5.6.2), or the value contains characters that would end the field.
    public init?(_ name: String, _ value: String) {
        guard !name.isEmpty, name.utf8.allSatisfy(HTTPField.isOfToken),
            value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
        else { return nil }
        self.name = name
        self.value = value
    }

    /// For names and values that are constants in the sources.
    package init(known name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Whether this is the field with that name, compared without case.
    public func isNamed(_ other: String) -> Bool {
        name.utf8.count == other.utf8.count
            && zip(name.utf8, other.utf8).allSatisfy { HTTPField.lowered($0) == HTTPField.lowered($1) }
    }

    private static func lowered(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte + 0x20 : byte }

    private static func isOfToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

extension [HTTPField] {
    /// The value of the first field with that name; nil: there is none.
    public subscript(name: String) -> String? { first { $0.isNamed(name) }?.value }
}
