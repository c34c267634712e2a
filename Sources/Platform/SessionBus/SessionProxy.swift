public import DBus
public import PluginAPI

/// A typed client for one session's interface; its methods fail with the daemon's refusals.
///
/// It only holds a subscription to the signals: the session stays when this object is released.
public final class SessionProxy {
    public let path: String
    private let connection: Connection
    private var subscriptions: [Subscription] = []

    /// Seconds after which a call fails.
    public static let timeout = 25.0

    /// Gets the session's signals while this object exists.
    public init(_ path: String, on connection: Connection, _ onEvent: @escaping (SessionEvent) -> Void) {
        self.path = path
        self.connection = connection
        let hear = { (message: Message) in if let event = SessionEvent(message) { onEvent(event) } }
        subscriptions = [
            connection.subscribe(path: path, interface: BusName.session, member: nil, sender: BusName.service, hear),
            connection.subscribe(
                path: path, interface: StandardName.properties, member: "PropertiesChanged",
                sender: BusName.service, hear),
        ]
    }

    /// Called once, from the loop.
    public typealias Reply = (Result<Void, Failure>) -> Void

    public func setCategory(_ category: Category, mode: Mode, options: Options, _ reply: @escaping Reply) {
        call(
            "SetCategory",
            [.string(category.rawValue), .string(mode.rawValue), .strings(options.names)], reply)
    }

    public func activate(_ reply: @escaping Reply) { call("Activate", [.properties([])], reply) }

    public func deactivate(notifyOthers: Bool, _ reply: @escaping Reply) {
        call("Deactivate", [.properties([("notify-others", .bool(notifyOthers))])], reply)
    }

    public func overrideOutput(_ override: OutputOverride, _ reply: @escaping Reply) {
        call("OverrideOutput", [.string(override.rawValue)], reply)
    }

    /// Empty: no preference.
    public func setPreferredInput(uid: String, _ reply: @escaping Reply) {
        call("SetPreferredInput", [.string(uid)], reply)
    }

    /// Nil values are not sent and stay unchanged.
    public func setPreferences(_ preferences: Preferences, _ reply: @escaping Reply) {
        var values: [(String, Value)] = [
            ("interrupt-on-route-disconnect", .bool(preferences.interruptsOnRouteDisconnect)),
            ("no-interruptions-from-alerts", .bool(preferences.noInterruptionsFromAlerts)),
        ]
        if let rate = preferences.sampleRate { values.append(("sample-rate", .double(rate))) }
        if let duration = preferences.ioBufferDuration { values.append(("io-buffer-duration", .double(duration))) }
        call("SetPreferences", [.properties(values)], reply)
    }

    public func close(_ reply: @escaping Reply) { call("Close", [], reply) }

    /// All properties, by their names on the bus.
    public func properties(_ reply: @escaping (Result<[String: Value], Failure>) -> Void) {
        connection.call(
            BusName.service, path, StandardName.properties, "GetAll", [.string(BusName.session)]
        ) { result in
            reply(result.map { $0.first?.asProperties ?? [:] })
        }
    }

    private func call(_ member: String, _ arguments: [Value], _ reply: @escaping Reply) {
        connection.call(BusName.service, path, BusName.session, member, arguments) { reply($0.map { _ in }) }
    }
}

extension Connection {
    /// A method call; the answer or failure is reported once.
    public func call(
        _ destination: String, _ path: String, _ interface: String, _ member: String, _ arguments: [Value],
        timeout: Double = SessionProxy.timeout, _ reply: @escaping (Result<[Value], Failure>) -> Void
    ) {
        do throws(Failure) {
            let message = try Message.methodCall(
                destination: destination, path: path, interface: interface, member: member)
            message.append(arguments)
            call(message, timeout: timeout, reply)
        } catch {
            reply(.failure(error))
        }
    }

    /// A blocking call: for programs that have nothing else to do.
    public func callAndWait(
        _ destination: String, _ path: String, _ interface: String, _ member: String, _ arguments: [Value],
        timeout: Double = SessionProxy.timeout
    ) throws(Failure) -> [Value] {
        let message = try Message.methodCall(
            destination: destination, path: path, interface: interface, member: member)
        message.append(arguments)
        return try callAndWait(message, timeout: timeout)
    }
}
