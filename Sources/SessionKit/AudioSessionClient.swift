public import DBus
import EventLoop
public import PluginAPI
public import SessionBus

/// A session as a program on its own loop holds it: created when the daemon is there, created again when it returns.
///
/// Everything happens on the connection's loop. A daemon that restarts knows its sessions: the one here goes on as it
/// was, what was asked for meanwhile is asked for again, and what could not be told is told. A daemon that comes back
/// without its memory gets the session anew: the category always, the activation where the session was active.
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

    /// Called once, on the loop's thread; from inside the call where the daemon need not be asked.
    public typealias Reply = (Result<Void, Failure>) -> Void

    /// As it was made, with what was set since and not refused.
    public private(set) var description: Description
    /// As the daemon last said, or as it follows from what it answered; `.inactive` once the daemon counts as lost.
    public private(set) var state = SessionState.inactive
    /// Lowered for somebody who speaks over it, as the daemon last said; not once that counts as lost.
    public private(set) var isDucked = false
    /// Decibels, 0 when not lowered.
    public private(set) var duckGain = 0.0
    /// Under the silent switch or the screen lock, in a category that heeds them, as the daemon last said; likewise.
    public private(set) var isMuted = false
    /// How long a daemon may be away before it counts as lost, in seconds.
    private static let patience = 3.0
    /// How to lower itself, as the daemon is configured; as it is now while it is lowered.
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
    /// What a daemon without memory is told again.
    private var preferences: Preferences?
    private var preferredInput = ""
    private var waiting: [Reply] = []
    /// What was asked of a daemon that went before it answered: asked again when it is back.
    private var retries: [(again: () -> Void, give: (Failure) -> Void)] = []
    private var lostTimer: Timer?
    /// Present while it is lowered.
    private var duckingWatch: Subscription?
    private var isLost = false
    private var subscriptions: [Subscription] = []

    /// Asks for the session at once, and again whenever a daemon comes; `onEvent` hears of it, from the loop.
    public init(_ description: Description, on connection: Connection, _ onEvent: @escaping (Event) -> Void) {
        self.description = description
        self.connection = connection
        self.onEvent = onEvent
        subscriptions = [
            connection.watchOwner(of: BusName.service) { [unowned self] owner in ownerChanged(owner) },
            connection.subscribe(
                path: ObjectPath.root, interface: BusName.manager, member: nil, sender: BusName.service
            ) { [unowned self] message in managerSaid(message) },
        ]
        register()
    }

    /// Asks for the sound. Fails with the daemon's refusal, or the bus's word that there is no daemon.
    public func activate(_ reply: @escaping Reply) {
        ask({ $0.activate($1) }) { [weak self] result in
            if case .success = result { self?.settle(.active) }
            reply(result)
        }
    }

    /// Gives the sound back; `notifyOthers` recommends to those who waited that they resume. Without a session at the
    /// daemon there is nothing to give back, and it succeeds.
    public func deactivate(notifyOthers: Bool, _ reply: @escaping Reply = { _ in }) {
        wasActive = false
        guard proxy != nil else { return reply(.success(())) }
        ask({ $0.deactivate(notifyOthers: notifyOthers, $1) }) { [weak self] result in
            if case .success = result { self?.settle(.inactive) }
            reply(result)
        }
    }

    /// Sets all three, or none and fails.
    public func setCategory(
        _ category: Category, mode: Mode = .default, options: Options = [], _ reply: @escaping Reply
    ) {
        ask({ $0.setCategory(category, mode: mode, options: options, $1) }) { [weak self] result in
            if case .success = result {
                self?.description.category = category
                self?.description.mode = mode
                self?.description.options = options
            }
            reply(result)
        }
    }

    /// Sets all of them; what is nil stays as it was.
    public func setPreferences(_ preferences: Preferences, _ reply: @escaping Reply) {
        ask({ $0.setPreferences(preferences, $1) }) { [weak self] result in
            if case .success = result { self?.preferences = preferences }
            reply(result)
        }
    }

    /// Empty: no preference.
    public func setPreferredInput(uid: String, _ reply: @escaping Reply) {
        ask({ $0.setPreferredInput(uid: uid, $1) }) { [weak self] result in
            if case .success = result { self?.preferredInput = uid }
            reply(result)
        }
    }

    /// Until the next change of the route; in `.playAndRecord` alone.
    public func overrideOutput(_ override: OutputOverride, _ reply: @escaping Reply) {
        ask({ $0.overrideOutput(override, $1) }, reply)
    }

    /// Ends the session, and gives the sound back; nothing may be asked of it later.
    public func close(_ reply: @escaping Reply) {
        subscriptions = []
        duckingWatch = nil
        lostTimer = nil
        wasActive = false
        guard let proxy else { return reply(.success(())) }
        proxy.close(reply)
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
            if let preferences { proxy?.setPreferences(preferences) { _ in } }
            if !preferredInput.isEmpty { proxy?.setPreferredInput(uid: preferredInput) { _ in } }
            onEvent(.registered(path: path))
            askAgain()
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

    private func ownerChanged(_ owner: String) {
        if owner.isEmpty {
            expectReturn()
        } else {
            lostTimer = nil
            if proxy == nil { register() } else { rejoin() }
        }
    }

    /// Finds the session at a daemon that has just come: as it is, or not at all.
    private func rejoin() {
        proxy?.properties { [weak self] result in
            guard let self else { return }
            if case .success(let fields) = result, fields["Owner"]?.stringValue == connection.uniqueName {
                isLost = false
                catchUp(fields)
                readDucking()
                askAgain()
            } else {
                let wasActive = wasActive
                if !isLost { lose() }
                self.wasActive = wasActive
                isLost = false
                proxy = nil
                register()
            }
        }
    }

    /// Hears what the daemon did not get to tell.
    private func catchUp(_ fields: [String: Value]) {
        let now = fields["State"]?.stringValue.flatMap(SessionState.init(rawValue:)) ?? .inactive
        switch (state, now) {
        case (.active, .interrupted), (.inactive, .interrupted):
            let reason = fields["InterruptionReason"]?.stringValue.flatMap(InterruptionReason.init(rawValue:))
            heard(.interruptionBegan(reason: reason ?? .default, by: ObjectPath.none, byName: "", sequence: 0))
        case (.interrupted, .inactive): heard(.interruptionEnded(shouldResume: false, microseconds: 0, sequence: 0))
        case (.active, .inactive), (.inactive, .active), (.interrupted, .active): settle(now)
        case (.active, .active), (.inactive, .inactive), (.interrupted, .interrupted): break
        }
        let ducked = fields["Ducked"]?.boolValue ?? false
        if ducked != isDucked {
            heard(.duckingChanged(isDucked: ducked, gain: fields["DuckGain"]?.doubleValue ?? 0))
        }
        let muted = fields["Muted"]?.boolValue ?? false
        if muted != isMuted { heard(.mutedChanged(muted)) }
    }

    /// It has been away for too long: nobody arbitrates, and what was asked of it fails.
    private func lose() {
        lostTimer = nil
        isLost = true
        let wanted = wasActive
        settle(.inactive)
        wasActive = wanted
        release()
        onEvent(.daemonLost)
        let pending = retries
        retries = []
        for retry in pending { retry.give(.noReply("sessiond has gone; start it again")) }
    }

    private func askAgain() {
        let pending = retries
        retries = []
        for retry in pending { retry.again() }
    }

    /// Asks the daemon; where it goes before it answers, asks the next one. Everything asked here may be asked twice.
    private func ask(
        _ request: @escaping (SessionProxy, @escaping Reply) -> Void, _ reply: @escaping Reply
    ) {
        withProxy(reply) { [weak self] proxy in
            request(proxy) { result in
                guard let self, case .failure(let failure) = result, self.isAbsence(failure) else {
                    return reply(result)
                }
                self.retries.append(
                    (again: { [weak self] in self?.ask(request, reply) }, give: { reply(.failure($0)) }))
                if self.lostTimer == nil { self.expectReturn() }
            }
        }
    }

    /// Whether the daemon went before it could answer, as opposed to an answer.
    private func isAbsence(_ failure: Failure) -> Bool {
        !isLost
            && [Failure.Name.noReply, Failure.Name.serviceUnknown, Failure.Name.nameHasNoOwner].contains(failure.name)
    }

    private func expectReturn() {
        let timer = Timer(on: connection.loop) { [unowned self] in lose() }
        timer.arm(after: AudioSessionClient.patience)
        lostTimer = timer
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
        case .duckingChanged(let ducked, let gain):
            (isDucked, duckGain) = (ducked, gain)
            watchDucking(ducked)
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

    /// While it is lowered it hears how that changes: other times, and by its own signal another gain. Nobody else is
    /// woken up by what the manager says.
    private func watchDucking(_ isDucked: Bool) {
        guard isDucked != (duckingWatch != nil) else { return }
        duckingWatch = nil
        guard isDucked else { return }
        duckingWatch = connection.subscribe(
            path: ObjectPath.root, interface: StandardName.properties, member: "PropertiesChanged",
            sender: BusName.service, arg0: BusName.manager
        ) { [weak self] message in
            guard let values = try? message.arguments(), values.count == 3,
                values[1].asProperties?["Ducking"] != nil || values[2].stringsValue?.contains("Ducking") == true
            else { return }
            self?.readDucking()
        }
        // What changed before anybody listened.
        readDucking()
    }

    private func readDucking() {
        readManager("Ducking") { [weak self] value in
            guard let fields = value.asProperties else { return }
            self?.ducking = DuckingDescription(
                gain: fields["gain"]?.doubleValue ?? -12, attack: fields["attack"]?.doubleValue ?? 0.08,
                release: fields["release"]?.doubleValue ?? 0.4, hold: fields["hold"]?.doubleValue ?? 0.25)
        }
    }

    /// How a property of the manager's reads; says nothing where nobody answers.
    package func readManager(_ property: String, _ body: @escaping (Value) -> Void) {
        connection.call(
            BusName.service, ObjectPath.root, StandardName.properties, "Get",
            [.string(BusName.manager), .string(property)]
        ) { result in
            if case .success(let values) = result, let value = values.first?.unwrapped { body(value) }
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
