extension Node {
    /// The value as a tree. The order of sets and dictionaries is fixed.
    init(_ value: some Encodable) {
        let encoder = NodeEncoder()
        encoder.encode(value)
        self = encoder.result
    }
}

/// Writes a value as a ``Node``. It cannot fail: all values that are written consist of numbers, texts, switches, lists and
/// parts.
private final class NodeEncoder: Encoder {
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    private var text: String?
    private var parts: [(name: String, encoder: NodeEncoder)] = []

    var result: Node {
        if let text { return .text(text) }
        return .parts(Dictionary(parts.map { ($0.name, $0.encoder.result) }) { $1 })
    }

    var count: Int { parts.count }

    func part(_ name: String) -> NodeEncoder {
        let part = NodeEncoder()
        parts.append((name, part))
        return part
    }

    func encode(_ value: some Encodable) {
        if let value = value as? any NodeText {
            text = value.nodeText
        } else if let value = value as? any Unordered {
            value.encodeSorted(to: self)
        } else {
            // No value throws: see above.
            try? value.encode(to: self)
        }
    }

    func container<Key: CodingKey>(keyedBy _: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(Keyed<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer { List(encoder: self) }

    func singleValueContainer() -> any SingleValueEncodingContainer { Single(encoder: self) }

    private struct Keyed<Key: CodingKey>: KeyedEncodingContainerProtocol {
        let encoder: NodeEncoder
        let codingPath: [any CodingKey] = []

        func encodeNil(forKey key: Key) {}

        func encode<T: Encodable>(_ value: T, forKey key: Key) { encoder.part(key.stringValue).encode(value) }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) -> KeyedEncodingContainer<Nested> { encoder.part(key.stringValue).container(keyedBy: type) }

        func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
            encoder.part(key.stringValue).unkeyedContainer()
        }

        func superEncoder() -> any Encoder { encoder.part("super") }
        func superEncoder(forKey key: Key) -> any Encoder { encoder.part(key.stringValue) }
    }

    private struct List: UnkeyedEncodingContainer {
        let encoder: NodeEncoder
        let codingPath: [any CodingKey] = []
        var count: Int { encoder.count }

        private func next() -> NodeEncoder { encoder.part(String(count)) }

        func encodeNil() { _ = next() }
        func encode<T: Encodable>(_ value: T) { next().encode(value) }

        func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
            next().container(keyedBy: type)
        }

        func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { next().unkeyedContainer() }
        func superEncoder() -> any Encoder { next() }
    }

    private struct Single: SingleValueEncodingContainer {
        let encoder: NodeEncoder
        let codingPath: [any CodingKey] = []

        func encodeNil() {}
        func encode<T: Encodable>(_ value: T) { encoder.encode(value) }
    }
}

/// A value that is one text.
protocol NodeText {
    /// Nil: not a text of such a value, or a number too large to be calculated with.
    init?(nodeText: String)
    var nodeText: String { get }
}

extension Bool: NodeText {
    init?(nodeText: String) {
        switch nodeText {
        case "on": self = true
        case "off": self = false
        default: return nil
        }
    }

    var nodeText: String { self ? "on" : "off" }
}

extension String: NodeText {
    init?(nodeText: String) { self = nodeText }
    var nodeText: String { self }
}

extension Double: NodeText {
    init?(nodeText: String) {
        guard let number = Double(nodeText), abs(number) <= 1e12 else { return nil }
        self = number
    }

    var nodeText: String { description }
}

extension NodeText where Self: FixedWidthInteger {
    init?(nodeText: String) {
        // Times and counters are added to each other.
        guard let number = Self(nodeText), Self.bitWidth < 64 || number.magnitude <= 1 << 62 else { return nil }
        self = number
    }

    var nodeText: String { description }
}

extension Int: NodeText {}
extension UInt64: NodeText {}
extension UInt32: NodeText {}
extension UInt16: NodeText {}
extension UInt8: NodeText {}

/// A collection whose order differs from run to run.
private protocol Unordered {
    func encodeSorted(to encoder: NodeEncoder)
}

extension Set: Unordered where Element: Encodable {
    fileprivate func encodeSorted(to encoder: NodeEncoder) {
        let sorted = map { (key: sortKey($0), value: $0) }.sorted { $0.key < $1.key }
        for (place, entry) in sorted.enumerated() { encoder.part(String(place)).encode(entry.value) }
    }
}

/// With texts as keys by these names, else as a list of keys and values, as the standard library reads it.
extension Dictionary: Unordered where Key: Encodable, Value: Encodable {
    fileprivate func encodeSorted(to encoder: NodeEncoder) {
        let sorted = map { (key: sortKey($0.key), entry: $0) }.sorted { $0.key < $1.key }
        for (place, item) in sorted.enumerated() {
            if let name = item.entry.key as? String {
                encoder.part(name).encode(item.entry.value)
            } else {
                encoder.part(String(2 * place)).encode(item.entry.key)
                encoder.part(String(2 * place + 1)).encode(item.entry.value)
            }
        }
    }
}

private func sortKey(_ value: some Encodable) -> String {
    Node.nothing.words(to: .parts(["": Node(value)])).joined(separator: " ")
}
