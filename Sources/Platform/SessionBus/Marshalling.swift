public import DBus
public import PluginAPI

// How the types of PluginAPI are written on the bus; defined only here.

extension Value {
    /// A port: type s, name s, uid s, channels u, available b.
    public init(_ port: Port) {
        self = .properties([
            ("type", .string(port.type.rawValue)), ("name", .string(port.name)), ("uid", .string(port.uid)),
            ("channels", .uint32(port.channels)), ("available", .bool(port.isAvailable)),
        ])
    }

    /// Ports: aa{sv}.
    public init(_ ports: [Port]) { self = .array(of: "a{sv}", ports.map { Value($0) }) }

    /// A route: inputs aa{sv}, outputs aa{sv}.
    public init(_ route: Route) {
        self = .properties([("inputs", Value(route.inputs)), ("outputs", Value(route.outputs))])
    }

    /// A session's path, `/` for none.
    public init(_ session: SessionID?) { self = .objectPath(session.map(ObjectPath.session) ?? ObjectPath.none) }

    /// Reads a port as written above; `available` may be missing. Nil for anything else.
    public var port: Port? {
        guard let fields = asProperties, let type = fields["type"]?.stringValue.flatMap(PortType.init(rawValue:)),
            let name = fields["name"]?.stringValue, let uid = fields["uid"]?.stringValue,
            let channels = fields["channels"]?.uint32Value
        else { return nil }
        return Port(
            type: type, name: name, uid: uid, channels: channels, isAvailable: fields["available"]?.boolValue ?? true)
    }

    /// The elements of an array that are ports.
    public var ports: [Port] { arrayValue?.compactMap(\.port) ?? [] }

    /// Reads a route as written above; missing parts are empty. Nil if it is not an a{sv}.
    public var route: Route? {
        guard let fields = asProperties else { return nil }
        return Route(inputs: fields["inputs"]?.ports ?? [], outputs: fields["outputs"]?.ports ?? [])
    }
}

extension Failure {
    /// A refusal as a bus error.
    public init(_ error: SessionError) {
        self.init(name: BusName.errorPrefix + error.code.rawValue, message: error.message)
    }

    /// Whether no daemon owns the name, and the bus cannot start one.
    public var isDaemonMissing: Bool { name == Name.serviceUnknown || name == Name.nameHasNoOwner }

    /// The refusal in a bus error; nil for any other error.
    public var refusal: SessionError.Code? {
        name.hasPrefix(BusName.errorPrefix)
            ? SessionError.Code(rawValue: String(name.dropFirst(BusName.errorPrefix.count))) : nil
    }
}

extension SessionError {
    /// The refusal in a bus error; any other error becomes `MediaServicesFailed`, because no daemon decides.
    public init(_ failure: Failure) {
        if failure.isDaemonMissing {
            self.init(.mediaServicesFailed, "sessiond is not running, and the bus cannot start it: install or start it")
            return
        }
        let code = failure.refusal ?? .mediaServicesFailed
        // The daemon has appended the platform's number to its message.
        let number = " (\(code.platformCode))"
        let message =
            failure.message.hasSuffix(number) ? String(failure.message.dropLast(number.count)) : failure.message
        self.init(code, message)
    }
}

/// Reads a caller's options: all keys must be known and all values of the right type; an error names the key.
///
/// A missing option reads nil; one of another type throws `InvalidArgs`. Only known keys may be read.
public struct OptionReader {
    private var values: [String: Value]
    private let known: [String]

    /// - Throws: `InvalidArgs` if it is not an a{sv}, `BadParameter` for an unknown key.
    public init(_ dictionary: Value, known: [String]) throws(Failure) {
        guard let values = dictionary.asProperties else {
            throw .invalidArgs("the options must be a dictionary a{sv}")
        }
        for key in values.keys.sorted() where !known.contains(key) {
            let names = known.isEmpty ? "there are none" : "use any of " + known.joined(separator: ", ")
            throw Failure(.badParameter("unknown option \(quoted(key)); \(names)"))
        }
        self.values = values
        self.known = known
    }

    /// Whether it is known and there.
    public func has(_ key: String) -> Bool { values[key] != nil }

    public func string(_ key: String) throws(Failure) -> String? { try read(key, "s", \.stringValue) }
    /// One of the words of an enumeration.
    /// - Throws: `BadParameter`, naming the words, for another one.
    public func word<Word: RawRepresentable<String> & CaseIterable>(_ key: String) throws(Failure) -> Word? {
        guard let text = try string(key) else { return nil }
        guard let word = Word(rawValue: text) else {
            let names = Word.allCases.map(\.rawValue).joined(separator: ", ")
            throw Failure(.badParameter("'\(key)' must be one of \(names), not \(quoted(text))"))
        }
        return word
    }
    public func bool(_ key: String) throws(Failure) -> Bool? { try read(key, "b", \.boolValue) }
    public func uint32(_ key: String) throws(Failure) -> UInt32? { try read(key, "u", \.uint32Value) }
    public func uint64(_ key: String) throws(Failure) -> UInt64? { try read(key, "t", \.uint64Value) }
    public func double(_ key: String) throws(Failure) -> Double? { try read(key, "d", \.doubleValue) }
    /// An a{ss}, in the order of the wire.
    public func texts(_ key: String) throws(Failure) -> [(name: String, value: String)]? {
        try read(key, "a{ss}") { value in
            guard value.signature == "a{ss}" else { return nil }
            return value.dictionaryValue?.compactMap { entry in
                guard let name = entry.key.stringValue, let text = entry.value.stringValue else { return nil }
                return (name, text)
            }
        }
    }
    public func strings(_ key: String) throws(Failure) -> [String]? {
        try read(key, "as") { $0.signature == "as" ? $0.arrayValue?.compactMap(\.stringValue) : nil }
    }

    /// Two numbers in a structure.
    public func doubles(_ key: String) throws(Failure) -> (Double, Double)? {
        try read(key, "(dd)") { value in
            guard let fields = value.structureValue, fields.count == 2, let first = fields[0].doubleValue,
                let second = fields[1].doubleValue
            else { return nil }
            return (first, second)
        }
    }
    public func uint32s(_ key: String) throws(Failure) -> (UInt32, UInt32)? {
        try read(key, "(uu)") { value in
            guard let fields = value.structureValue, fields.count == 2, let first = fields[0].uint32Value,
                let second = fields[1].uint32Value
            else { return nil }
            return (first, second)
        }
    }
    /// The texts of an a{sv}.
    public func textProperties(_ key: String) throws(Failure) -> [String: String]? {
        try read(key, "a{sv}") { value in
            guard let fields = value.asProperties else { return nil }
            let texts = fields.compactMapValues(\.stringValue)
            return texts.count == fields.count ? texts : nil
        }
    }

    private func read<T>(_ key: String, _ type: String, _ cast: (Value) -> T?) throws(Failure) -> T? {
        precondition(known.contains(key), "an option that is read must be known")
        guard let value = values[key] else { return nil }
        guard let typed = cast(value) else {
            throw .invalidArgs("option '\(key)' must have type '\(type)', not '\(value.signature)'")
        }
        return typed
    }
}
