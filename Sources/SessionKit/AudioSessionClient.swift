public import DBus
public import PluginAPI
public import SessionBus

/// A session as a program on its own loop holds it: created when the daemon is there, created again when it returns.
///
/// Everything happens on the connection's loop. What is asked for while the daemon is away is remembered and asked
/// for again when it is back: the category always, the activation where the session was active.
public final class AudioSessionClient {
    /// What a session is told, and what befalls the daemon.
    public enum Event: Sendable, Hashable {
        case session(SessionEvent)
        case servicesLost
        case servicesReset
        /// The daemon went; the sound is nobody's to arbitrate until it returns.
        case daemonLost
        /// There is a session at the daemon now, for the first time or again.
        case registered(path: String)
        /// The daemon does not want it: what to do is in the message.
        case refused(Failure)
    }

    /// What the session is created with.
    public struct Description: Sendable {
        public var name: String
        public var category: Category
        public var mode: Mode
        public var options: Options
        public var sessionClass: SessionClass
        public var desktopEntry: String
        /// A process that acts for this one; nil: this one.
        public var processID: UInt32?
        public var notifiesOnExit: Bool

        public init(
            name: String, category: Category = .soloAmbient, mode: Mode = .default, options: Options = [],
            sessionClass: SessionClass = .app, desktopEntry: String = "", processID: UInt32? = nil,
            notifiesOnExit: Bool = false
        ) {
            self.name = name
            self.category = category
            self.mode = mode
            self.options = options
            self.sessionClass = sessionClass
            self.desktopEntry = desktopEntry
            self.processID = processID
            self.notifiesOnExit = notifiesOnExit
        }

        var wireOptions: [(String, Value)] {
            var values: [(String, Value)] = [
                ("category", .string(category.rawValue)), ("mode", .string(mode.rawValue)),
                ("options", .strings(options.names.filter { category != .ambient || $0 != "mix-with-others" })),
                ("class", .string(sessionClass.rawValue)), ("notify-on-exit", .bool(notifiesOnExit)),
            ]
            if !desktopEntry.isEmpty { values.append(("desktop-entry", .string(desktopEntry))) }
            if let processID { values.append(("pid", .uint32(processID))) }
            return values
        }
    }

    public typealias Reply = (Result<Void, Failure>) -> Void

    public private(set) var description: Description
    /// As the daemon last said, or as it follows from what it answered.
    public private(set) var state = SessionState.inactive
    public private(set) var isDucked = false
    /// Decibels, 0 when not lowered.
    public private(set) var duckGain = 0.0
    public private(set) var isMuted = false
    /// How to lower itself, as the daemon is configured.
    public private(set) var ducking = DuckingDescription(gain: -12, attack: 0.08, release: 0.4, hold: 0.25)
    /// Nil while there is no session at the daemon.
    public var path: String? { proxy?.path }

    private let connection: Connection
    /// Hears everything, from the loop.
    public var onEvent: (Event) -> Void
    private var proxy: SessionProxy?
    private var isRegistering = false
    /// Whether it wants the sound back when the daemon returns.
    private var wasActive = false
    private var waiting: [Reply] = []
    private var subscriptions: [Subscription] = []

    public init(_ description: Description, on connection: Connection, _ onEvent: @escaping (Event) -> Void) {
        self.description = description
        self.connection = connection
        self.onEvent = onEvent
        subscriptions = [
            connection.subscribe(
                path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus", member: "NameOwnerChanged",
                sender: "org.freedesktop.DBus", arg0: BusName.service
            ) { [unowned self] message in ownerChanged(message) },
            connection.subscribe(
                path: ObjectPath.root, interface: BusName.manager, member: nil, sender: BusName.service
            ) { [unowned self] message in managerSaid(message) },
        ]
        register()
    }

    /// Asks for the sound. Fails with the daemon's refusal, or the bus's word that there is no daemon.
    public func activate(_ reply: @escaping Reply) {
        withProxy(reply) { [unowned self] proxy in
            proxy.activate { [weak self] result in
                if case .success = result { self?.settle(.active) }
                reply(result)
            }
        }
    }

    /// Gives the sound back; `notifyOthers` recommends to those who waited that they resume.
    public func deactivate(notifyOthers: Bool, _ reply: @escaping Reply = { _ in }) {
        wasActive = false
        guard proxy != nil else { return reply(.success(())) }
        withProxy(reply) { [unowned self] proxy in
            proxy.deactivate(notifyOthers: notifyOthers) { [weak self] result in
                if case .success = result { self?.settle(.inactive) }
                reply(result)
            }
        }
    }

    /// Sets all three, or none and fails.
    public func setCategory(
        _ category: Category, mode: Mode = .default, options: Options = [], _ reply: @escaping Reply
    ) {
        withProxy(reply) { proxy in
            proxy.setCategory(category, mode: mode, options: options) { [weak self] result in
                if case .success = result {
                    self?.description.category = category
                    self?.description.mode = mode
                    self?.description.options = options
                }
                reply(result)
            }
        }
    }

    public func setPreferences(_ preferences: Preferences, _ reply: @escaping Reply) {
        withProxy(reply) { $0.setPreferences(preferences, reply) }
    }

    public func setPreferredInput(uid: String, _ reply: @escaping Reply) {
        withProxy(reply) { $0.setPreferredInput(uid: uid, reply) }
    }

    public func overrideOutput(_ override: OutputOverride, _ reply: @escaping Reply) {
        withProxy(reply) { $0.overrideOutput(override, reply) }
    }

    /// Every property of the session, by its name on the bus.
    public func properties(_ reply: @escaping (Result<[String: Value], Failure>) -> Void) {
        withProxy({ if case .failure(let failure) = $0 { reply(.failure(failure)) } }) { $0.properties(reply) }
    }

    // MARK: - The daemon comes and goes

    private func register() {
        guard proxy == nil, !isRegistering else { return }
        isRegistering = true
        connection.call(
            BusName.service, ObjectPath.root, BusName.manager, "CreateSession",
            [.string(description.name), .properties(description.wireOptions)]
        ) { [weak self] result in
            self?.registered(result)
        }
    }

    private func registered(_ result: Result<[Value], Failure>) {
        isRegistering = false
        let replies = waiting
        waiting = []
        switch result {
        case .failure(let failure):
            onEvent(.refused(failure))
            for reply in replies { reply(.failure(failure)) }
        case .success(let values):
            let path = values.first?.objectPathValue ?? ObjectPath.none
            proxy = SessionProxy(path, on: connection) { [weak self] event in self?.heard(event) }
            readDucking()
            readMuted()
            onEvent(.registered(path: path))
            if wasActive { activate { [weak self] in self?.reactivated($0) } }
            for reply in replies { reply(.success(())) }
        }
    }

    /// The sound it had before the daemon went: refused now, it is an interruption like any other.
    private func reactivated(_ result: Result<Void, Failure>) {
        guard case .failure(let failure) = result else { return }
        wasActive = false
        onEvent(.refused(failure))
        heard(.interruptionBegan(reason: .default, by: ObjectPath.none, byName: "", sequence: 0))
    }

    private func ownerChanged(_ message: Message) {
        guard let values = try? message.arguments(), values.count == 3, let owner = values[2].stringValue else {
            return
        }
        if proxy != nil || !owner.isEmpty {
            let hadSession = proxy != nil
            proxy = nil
            state = .inactive
            release()
            if hadSession { onEvent(.daemonLost) }
        }
        if !owner.isEmpty { register() }
    }

    private func release() {
        if isDucked { heard(.duckingChanged(isDucked: false, gain: 0)) }
        if isMuted { heard(.mutedChanged(false)) }
    }

    private func managerSaid(_ message: Message) {
        switch message.member {
        case "ServicesLost": onEvent(.servicesLost)
        case "ServicesReset": onEvent(.servicesReset)
        default: break
        }
    }

    private func heard(_ event: SessionEvent) {
        switch event {
        case .interruptionBegan: settle(.interrupted)
        case .interruptionEnded: settle(.inactive)
        case .duckingChanged(let ducked, let gain): (isDucked, duckGain) = (ducked, gain)
        case .mutedChanged(let muted): isMuted = muted
        case .routeChanged, .silenceSecondaryAudioHint: break
        }
        onEvent(.session(event))
    }

    private func settle(_ state: SessionState) {
        self.state = state
        wasActive = state == .active
    }

    /// A session that begins under the silent switch is muted before anybody could hear of it.
    private func readMuted() {
        proxy?.properties { [weak self] result in
            guard let self, case .success(let fields) = result else { return }
            if let muted = fields["Muted"]?.boolValue, muted != isMuted { heard(.mutedChanged(muted)) }
        }
    }

    private func readDucking() {
        connection.call(
            BusName.service, ObjectPath.root, "org.freedesktop.DBus.Properties", "Get",
            [.string(BusName.manager), .string("Ducking")]
        ) { [weak self] result in
            guard case .success(let values) = result, let fields = values.first?.unwrapped.asProperties else { return }
            self?.ducking = DuckingDescription(
                gain: fields["gain"]?.doubleValue ?? -12, attack: fields["attack"]?.doubleValue ?? 0.08,
                release: fields["release"]?.doubleValue ?? 0.4, hold: fields["hold"]?.doubleValue ?? 0.25)
        }
    }

    /// Now, or once the daemon has answered; fails where it will not have the session.
    private func withProxy(_ fail: @escaping Reply, _ body: @escaping (SessionProxy) -> Void) {
        if let proxy { return body(proxy) }
        waiting.append { [weak self] result in
            switch result {
            case .failure(let failure): fail(.failure(failure))
            case .success: if let proxy = self?.proxy { body(proxy) }
            }
        }
        register()
    }
}
