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

/// The most that a message of one name may have. A worker that sends more is killed: reading it would delay everybody
/// whom the plugin serves.
public struct MessageLimit: Sendable, Hashable {
    /// The number of fields, including those of messages in it, and of these messages.
    public var fields: Int
    /// The bytes of all texts and names.
    public var text: Int
    /// The bytes of all fields of bytes.
    public var data: Int

    public init(fields: Int, text: Int = 1_024, data: Int = 0) {
        (self.fields, self.text, self.data) = (fields, text, data)
    }

    /// The bytes of the largest message: each field has a name, a type and a length or a number.
    var frame: Int { 16 + 32 * fields + text + data }

    /// A request of the plugin, which is trusted.
    static let request = MessageLimit(fields: 1 << 20, text: 32 << 20, data: 32 << 20)
}

/// The limits of the answers of a worker, by the names of the messages. A message of another name is a violation.
public struct AnswerLimits: Sendable {
    private let limits: [String: MessageLimit]

    /// `ready` is always allowed.
    public init(_ limits: [String: MessageLimit]) {
        self.limits = limits.merging(["ready": MessageLimit(fields: 0)]) { $1 }
    }

    public subscript(name: String) -> MessageLimit? { limits[name] }
}

extension WorkerMessage {
    /// Whether it is within the limit.
    public func fits(_ limit: MessageLimit) -> Bool {
        var sizes = (fields: 0, text: 0, data: 0)
        count(&sizes)
        return sizes.fields <= limit.fields && sizes.text <= limit.text && sizes.data <= limit.data
    }

    private func count(_ sizes: inout (fields: Int, text: Int, data: Int)) {
        sizes.text += name.utf8.count
        for (key, field) in fields {
            sizes.fields += 1
            sizes.text += key.utf8.count
            switch field {
            case .flag, .whole, .number: break
            case .text(let text): sizes.text += text.utf8.count
            case .bytes(let bytes): sizes.data += bytes.count
            case .list(let messages):
                sizes.fields += messages.count
                for message in messages { message.count(&sizes) }
            }
        }
    }
}

// MARK: Bytes

extension WorkerMessage {
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

    /// Decodes the bytes of one message, without their count; nil if they are not exactly one message within the limit.
    init?(_ bytes: ArraySlice<UInt8>, _ limit: MessageLimit) {
        var reader = Reader(rest: bytes, left: limit)
        guard let message = reader.message(depth: 0), reader.rest.isEmpty else { return nil }
        self = message
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>
        /// What may still come.
        var left: MessageLimit

        mutating func message(depth: Int) -> WorkerMessage? {
            guard depth <= WorkerMessage.depthLimit, let name = text(), let count = elements() else { return nil }
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
            case 4:
                guard let count = count(), take(count, of: \.data) else { return nil }
                return content(count).map { .bytes(Array($0)) }
            case 5:
                guard let count = elements() else { return nil }
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

        private mutating func elements() -> Int? { count().flatMap { take($0, of: \.fields) ? $0 : nil } }

        /// False if that is more than may still come.
        private mutating func take(_ count: Int, of part: WritableKeyPath<MessageLimit, Int>) -> Bool {
            guard count <= left[keyPath: part] else { return false }
            left[keyPath: part] -= count
            return true
        }

        private mutating func text() -> String? {
            guard let count = count(), take(count, of: \.text) else { return nil }
            return content(count).map { String(decoding: $0, as: UTF8.self) }
        }

        private mutating func content(_ count: Int) -> ArraySlice<UInt8>? {
            guard count <= rest.count else { return nil }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
    }
}

/// Splits a stream of bytes into messages.
///
/// The name of a message is known before most of its bytes have come, so a message that is too large is refused at
/// once.
struct FrameReader {
    /// The longest name in bytes.
    private static let nameLimit = 32

    /// The limit of the messages of a name; nil: there is no such message.
    private let limit: (String) -> MessageLimit?
    private var bytes: [UInt8] = []
    /// The bytes at the beginning that belong to messages which were read.
    private var begin = 0

    /// The stream is damaged: no message can follow.
    struct Damage: Error {}

    init(_ limit: @escaping (String) -> MessageLimit?) { self.limit = limit }

    mutating func append(_ more: some Sequence<UInt8>) {
        bytes.removeSubrange(..<begin)
        begin = 0
        bytes.append(contentsOf: more)
    }

    /// The next complete message; nil: more bytes are needed.
    mutating func next() throws(Damage) -> WorkerMessage? {
        let rest = bytes[begin...]
        guard rest.count >= 12 else { return nil }
        let count = Self.number(rest.prefix(4))
        let name = Self.number(rest.dropFirst(4).prefix(8))
        guard name <= Self.nameLimit else { throw Damage() }
        guard rest.count >= 12 + name else { return nil }
        guard let limit = limit(String(decoding: rest.dropFirst(12).prefix(name), as: UTF8.self)), count <= limit.frame
        else { throw Damage() }
        guard rest.count >= 4 + count else { return nil }
        guard let message = WorkerMessage(rest.dropFirst(4).prefix(count), limit) else { throw Damage() }
        begin += 4 + count
        return message
    }

    /// Numbers that are too large become the largest.
    private static func number(_ bytes: ArraySlice<UInt8>) -> Int {
        Int(clamping: bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
