/// An `a{sv}` as bytes of the wire: for properties that are sent more often than they change.
public final class EncodedProperties: Sendable, Hashable {
    /// Entries; each part begins at a multiple of 8, behind the padding of the one before.
    let parts: [[UInt8]]

    private init(parts: [[UInt8]]) { self.parts = parts }

    /// Throws what ``Message/failure`` would be.
    public convenience init(_ properties: [(String, Value)]) throws(Failure) {
        var writer = WireWriter(reserving: 1_024)
        try writer.append(.properties(properties))
        // Without the length and its padding, which the writer of the message adds.
        self.init(parts: properties.isEmpty ? [] : [Array(writer.bytes[8...])])
    }

    /// The properties of this, then those of the other. No bytes are copied.
    public func followed(by other: EncodedProperties) -> EncodedProperties {
        EncodedProperties(parts: parts + other.parts)
    }

    public static func == (one: EncodedProperties, two: EncodedProperties) -> Bool { one.parts == two.parts }

    public func hash(into hasher: inout Hasher) { hasher.combine(parts) }
}
