extension Node {
    /// The value that was written as this tree. Throws what is missing or wrong, and where.
    func value<Value: Decodable>(_: Value.Type = Value.self) throws(NodeError) -> Value {
        do {
            return try NodeDecoder(node: self, codingPath: []).decode()
        } catch let error as DecodingError {
            throw NodeError(error)
        } catch {
            throw NodeError(message: "it cannot be read: \(error)")
        }
    }
}

/// Why a tree is not the value that is wanted.
struct NodeError: Error {
    let message: String

    init(message: String) { self.message = message }

    fileprivate init(_ error: DecodingError) {
        func text(_ path: [any CodingKey]) -> String { path.map(\.stringValue).joined(separator: "/") }
        switch error {
        case .keyNotFound(let key, let context): message = "\(text(context.codingPath + [key])) is missing"
        case .valueNotFound(_, let context): message = "\(text(context.codingPath)) is missing"
        case .typeMismatch(_, let context), .dataCorrupted(let context):
            message = "\(text(context.codingPath)): \(context.debugDescription)"
        @unknown default: message = "it cannot be read"
        }
    }
}

/// Reads a value from a ``Node``.
private struct NodeDecoder: Decoder {
    let node: Node
    let codingPath: [any CodingKey]
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func decode<T: Decodable>(_: T.Type = T.self) throws -> T {
        guard let type = T.self as? any NodeText.Type else { return try T(from: self) }
        guard case .text(let text) = node, let value = type.init(nodeText: text) as? T else {
            throw DecodingError.typeMismatch(
                T.self,
                DecodingError.Context(
                    codingPath: codingPath, debugDescription: "not a \(T.self), or too large; export the history again")
            )
        }
        return value
    }

    private func parts() throws -> [String: Node] {
        guard case .parts(let parts) = node else {
            throw DecodingError.typeMismatch(
                [String: String].self,
                DecodingError.Context(codingPath: codingPath, debugDescription: "a text where parts are expected"))
        }
        return parts
    }

    func container<Key: CodingKey>(keyedBy _: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Keyed<Key>(parts: try parts(), codingPath: codingPath))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { List(parts: try parts(), codingPath: codingPath) }

    func singleValueContainer() -> any SingleValueDecodingContainer { Single(decoder: self) }

    private struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let parts: [String: Node]
        let codingPath: [any CodingKey]
        var allKeys: [Key] { parts.keys.compactMap { Key(stringValue: $0) } }

        private func decoder(_ key: some CodingKey) throws -> NodeDecoder {
            guard let node = parts[key.stringValue] else {
                throw DecodingError.keyNotFound(
                    key, DecodingError.Context(codingPath: codingPath, debugDescription: ""))
            }
            return NodeDecoder(node: node, codingPath: codingPath + [key])
        }

        func contains(_ key: Key) -> Bool { parts[key.stringValue] != nil }
        func decodeNil(forKey key: Key) -> Bool { parts[key.stringValue] == nil }
        func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try decoder(key).decode() }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> { try decoder(key).container(keyedBy: type) }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try decoder(key).unkeyedContainer()
        }

        func superDecoder() throws -> any Decoder { throw noSuper }
        func superDecoder(forKey key: Key) throws -> any Decoder { try decoder(key) }

        private var noSuper: DecodingError {
            DecodingError.dataCorrupted(DecodingError.Context(codingPath: codingPath, debugDescription: "no class"))
        }
    }

    private struct List: UnkeyedDecodingContainer {
        let parts: [String: Node]
        let codingPath: [any CodingKey]
        var currentIndex = 0
        var count: Int? { parts.count }
        var isAtEnd: Bool { currentIndex >= parts.count }

        private mutating func next() throws -> NodeDecoder {
            let key = Place(intValue: currentIndex)
            guard let node = parts[key.stringValue] else {
                throw DecodingError.keyNotFound(
                    key, DecodingError.Context(codingPath: codingPath, debugDescription: ""))
            }
            currentIndex += 1
            return NodeDecoder(node: node, codingPath: codingPath + [key])
        }

        mutating func decodeNil() -> Bool { false }
        mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try next().decode() }

        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type
        ) throws -> KeyedDecodingContainer<Nested> { try next().container(keyedBy: type) }

        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
            try next().unkeyedContainer()
        }

        mutating func superDecoder() throws -> any Decoder { try next() }
    }

    private struct Single: SingleValueDecodingContainer {
        let decoder: NodeDecoder
        var codingPath: [any CodingKey] { decoder.codingPath }

        func decodeNil() -> Bool { false }
        func decode<T: Decodable>(_ type: T.Type) throws -> T { try decoder.decode() }
    }

    private struct Place: CodingKey {
        let number: Int
        var stringValue: String { String(number) }
        var intValue: Int? { number }

        init(intValue: Int) { number = intValue }

        init?(stringValue: String) {
            guard let number = Int(stringValue) else { return nil }
            self.number = number
        }
    }
}
