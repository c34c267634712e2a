/// A request to a worker, as a struct that both sides share.
///
/// ``code(_:)`` names each field once, for writing and for reading, so the two cannot differ. A missing field, one of another
/// type and one that is not named are errors, never a default.
public protocol WorkerRequest: Sendable, Hashable {
    /// The name of its message.
    static var name: String { get }
    /// Any values: reading replaces all of them.
    init()
    /// Passes every field to the coder, in any order, and always the same fields.
    mutating func code(_ coder: inout RequestCoder) throws(BadRequest)
}

/// A message that is not the request that it says it is.
public struct BadRequest: Error, Sendable, Hashable {
    public let message: String

    init(_ message: String) { self.message = message }
}

/// Writes the fields of a request into a message, or reads them from one.
public struct RequestCoder {
    private var fields: [String: WorkerMessage.Field]
    private let isReading: Bool
    private let name: String

    fileprivate init(reading message: WorkerMessage) {
        (fields, isReading, name) = (message.fields, true, message.name)
    }

    fileprivate init(writing name: String) { (fields, isReading, self.name) = ([:], false, name) }

    public mutating func flag(_ key: String, _ value: inout Bool) throws(BadRequest) {
        try required(key, &value, { .flag($0) }, { if case .flag(let value) = $0 { value } else { nil } })
    }

    /// Fails for a number that is no `Int`.
    public mutating func whole(_ key: String, _ value: inout Int) throws(BadRequest) {
        try required(key, &value, { .whole(Int64($0)) }, Self.whole)
    }

    /// Nil: the field is not there.
    public mutating func whole(_ key: String, _ value: inout Int?) throws(BadRequest) {
        try optional(key, &value, { .whole(Int64($0)) }, Self.whole)
    }

    /// Nil: the field is not there.
    public mutating func number(_ key: String, _ value: inout Double?) throws(BadRequest) {
        try optional(key, &value, { .number($0) }, { if case .number(let value) = $0 { value } else { nil } })
    }

    public mutating func bytes(_ key: String, _ value: inout [UInt8]) throws(BadRequest) {
        try required(key, &value, { .bytes($0) }, { if case .bytes(let value) = $0 { value } else { nil } })
    }

    /// One word of an enumeration; fails for another one.
    public mutating func word<Word: RawRepresentable<String>>(_ key: String, _ value: inout Word) throws(BadRequest) {
        try required(key, &value, { .text($0.rawValue) }, { Self.text($0).flatMap(Word.init(rawValue:)) })
    }

    /// A text; nil: the field is not there.
    public mutating func text(_ key: String, _ value: inout String?) throws(BadRequest) {
        try optional(key, &value, { .text($0) }, Self.text)
    }

    /// Texts by their names, which the request does not know.
    public mutating func texts(_ key: String, _ value: inout [String: String]) throws(BadRequest) {
        try required(
            key, &value, { .list([WorkerMessage("", $0.mapValues { .text($0) })]) },
            { field in
                guard case .list(let list) = field, list.count == 1 else { return nil }
                let texts = list[0].fields.compactMapValues(Self.text)
                return texts.count == list[0].fields.count ? texts : nil
            })
    }

    /// Requests in this one.
    public mutating func list<Request: WorkerRequest>(_ key: String, _ value: inout [Request]) throws(BadRequest) {
        guard isReading else {
            fields[key] = .list(value.map { WorkerMessage($0) })
            return
        }
        guard case .list(let messages)? = fields.removeValue(forKey: key) else { throw isWrong(key) }
        value = []
        value.reserveCapacity(messages.count)
        for message in messages { value.append(try message.request()) }
    }

    /// The written fields; or fails if fields were not read.
    fileprivate func finish() throws(BadRequest) -> [String: WorkerMessage.Field] {
        if isReading, let key = fields.keys.min() { throw BadRequest("'\(name)' has an unknown field '\(key)'") }
        return fields
    }

    private mutating func required<Value>(
        _ key: String, _ value: inout Value, _ write: (Value) -> WorkerMessage.Field,
        _ read: (WorkerMessage.Field) -> Value?
    ) throws(BadRequest) {
        guard isReading else {
            fields[key] = write(value)
            return
        }
        guard let found = fields.removeValue(forKey: key).flatMap(read) else { throw isWrong(key) }
        value = found
    }

    private mutating func optional<Value>(
        _ key: String, _ value: inout Value?, _ write: (Value) -> WorkerMessage.Field,
        _ read: (WorkerMessage.Field) -> Value?
    ) throws(BadRequest) {
        guard isReading else {
            fields[key] = value.map(write)
            return
        }
        guard let field = fields.removeValue(forKey: key) else {
            value = nil
            return
        }
        guard let found = read(field) else { throw isWrong(key) }
        value = found
    }

    private func isWrong(_ key: String) -> BadRequest {
        BadRequest("'\(name)' has no field '\(key)' of the right type")
    }

    private static func whole(_ field: WorkerMessage.Field) -> Int? {
        if case .whole(let value) = field { Int(exactly: value) } else { nil }
    }

    private static func text(_ field: WorkerMessage.Field) -> String? {
        if case .text(let value) = field { value } else { nil }
    }
}

extension WorkerMessage {
    /// The message of a request.
    public init(_ request: some WorkerRequest) {
        var (request, coder) = (request, RequestCoder(writing: type(of: request).name))
        do throws(BadRequest) {
            try request.code(&coder)
            self.init(type(of: request).name, try coder.finish())
        } catch {
            preconditionFailure("writing cannot fail: \(error.message)")
        }
    }

    /// The request that the message is.
    /// - Throws: `BadRequest` for another name, and for a missing, a wrong or an unknown field.
    public func request<Request: WorkerRequest>(_: Request.Type = Request.self) throws(BadRequest) -> Request {
        guard name == Request.name else { throw BadRequest("'\(name)' is not '\(Request.name)'") }
        var (request, coder) = (Request(), RequestCoder(reading: self))
        try request.code(&coder)
        _ = try coder.finish()
        return request
    }
}
