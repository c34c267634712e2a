/// A message between a program and its worker: a name and values.
///
/// Both sides check every message when they decode it: a worker reads untrusted files, and a decoder that such a file
/// controls may write anything.
public struct WorkerMessage: Sendable, Hashable {
    /// The value of a field.
    public enum Field: Sendable, Hashable {
        case flag(Bool)
        case whole(Int64)
        case number(Double)
        case text(String)
        case bytes([UInt8])
        case list([WorkerMessage])
    }

    public var name: String
    public var fields: [String: Field]

    public init(_ name: String, _ fields: [String: Field] = [:]) {
        self.name = name
        self.fields = fields
    }

    /// Nil for a field of another type, and for a missing field.
    public func flag(_ key: String) -> Bool? { if case .flag(let value) = fields[key] { value } else { nil } }
    public func whole(_ key: String) -> Int64? { if case .whole(let value) = fields[key] { value } else { nil } }
    public func number(_ key: String) -> Double? { if case .number(let value) = fields[key] { value } else { nil } }
    public func text(_ key: String) -> String? { if case .text(let value) = fields[key] { value } else { nil } }
    public func bytes(_ key: String) -> [UInt8]? { if case .bytes(let value) = fields[key] { value } else { nil } }
    public func list(_ key: String) -> [WorkerMessage]? {
        if case .list(let value) = fields[key] { value } else { nil }
    }
}

// MARK: Bytes

extension WorkerMessage {
    /// The largest message in bytes: a picture of the largest size.
    static let limit = 64 << 20
    /// The largest depth of messages in messages.
    private static let depthLimit = 4

    /// The bytes of the message, after their count in four bytes.
    var frame: [UInt8] {
        var bytes: [UInt8] = [0, 0, 0, 0]
        write(to: &bytes)
        let count = UInt32(clamping: bytes.count - 4)
        for index in 0..<4 { bytes[index] = UInt8(truncatingIfNeeded: count >> (8 * index)) }
        return bytes
    }

    private func write(to bytes: inout [UInt8]) {
        Self.write(name, to: &bytes)
        Self.write(UInt64(fields.count), to: &bytes)
        for (key, field) in fields.sorted(by: { $0.key < $1.key }) {
            Self.write(key, to: &bytes)
            switch field {
            case .flag(let flag):
                bytes.append(0)
                bytes.append(flag ? 1 : 0)
            case .whole(let number):
                bytes.append(1)
                Self.write(UInt64(bitPattern: number), to: &bytes)
            case .number(let number):
                bytes.append(2)
                Self.write(number.bitPattern, to: &bytes)
            case .text(let text):
                bytes.append(3)
                Self.write(text, to: &bytes)
            case .bytes(let content):
                bytes.append(4)
                Self.write(UInt64(content.count), to: &bytes)
                bytes += content
            case .list(let messages):
                bytes.append(5)
                Self.write(UInt64(messages.count), to: &bytes)
                for message in messages { message.write(to: &bytes) }
            }
        }
    }

    private static func write(_ number: UInt64, to bytes: inout [UInt8]) {
        for index in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
    }

    private static func write(_ text: String, to bytes: inout [UInt8]) {
        write(UInt64(text.utf8.count), to: &bytes)
        bytes += text.utf8
    }

    /// Decodes the bytes of one message, without their count; nil if they are not exactly one message.
    init?(_ bytes: ArraySlice<UInt8>) {
        var reader = Reader(rest: bytes)
        guard let message = reader.message(depth: 0), reader.rest.isEmpty else { return nil }
        self = message
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>

        mutating func message(depth: Int) -> WorkerMessage? {
            guard depth <= WorkerMessage.depthLimit, let name = text(), let count = count() else { return nil }
            var message = WorkerMessage(name)
            for _ in 0..<count {
                guard let key = text(), let field = field(depth) else { return nil }
                message.fields[key] = field
            }
            return message
        }

        private mutating func field(_ depth: Int) -> Field? {
            switch rest.popFirst() {
            case 0: return rest.popFirst().map { .flag($0 != 0) }
            case 1: return number().map { .whole(Int64(bitPattern: $0)) }
            case 2: return number().map { .number(Double(bitPattern: $0)) }
            case 3: return text().map { .text($0) }
            case 4: return count().flatMap { content($0) }.map { .bytes(Array($0)) }
            case 5:
                guard let count = count() else { return nil }
                var messages: [WorkerMessage] = []
                for _ in 0..<count {
                    guard let message = message(depth: depth + 1) else { return nil }
                    messages.append(message)
                }
                return .list(messages)
            default: return nil
            }
        }

        private mutating func number() -> UInt64? {
            guard let bytes = content(8) else { return nil }
            return bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }

        /// A count of elements that each need at least one byte.
        private mutating func count() -> Int? {
            guard let count = number().flatMap(Int.init(exactly:)), count <= rest.count else { return nil }
            return count
        }

        private mutating func text() -> String? {
            count().flatMap { content($0) }.map { String(decoding: $0, as: UTF8.self) }
        }

        private mutating func content(_ count: Int) -> ArraySlice<UInt8>? {
            guard count <= rest.count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
    }
}

/// Splits a stream of bytes into messages.
struct FrameReader {
    private var bytes: [UInt8] = []

    /// The stream is damaged: no message can follow.
    struct Damage: Error {}

    mutating func append(_ more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

    /// The next complete message; nil: more bytes are needed.
    mutating func next() throws(Damage) -> WorkerMessage? {
        guard bytes.count >= 4 else { return nil }
        let count = bytes[..<4].reversed().reduce(0) { $0 << 8 | Int($1) }
        guard count <= WorkerMessage.limit else { throw Damage() }
        guard bytes.count >= 4 + count else { return nil }
        guard let message = WorkerMessage(bytes[4..<(4 + count)]) else { throw Damage() }
        bytes.removeSubrange(..<(4 + count))
        return message
    }
}
