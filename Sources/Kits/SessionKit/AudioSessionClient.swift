public import DBus
import EventLoop
public import PluginAPI
public import SessionBus

/// A session for a program with its own loop: created when there is a daemon, and again after the daemon restarts.
///
/// Everything happens on the connection's loop. A restarted daemon knows its sessions: the session continues, requests
/// made in the meantime are sent again, and missed events are reported. A daemon without its state gets the session
/// again: always the category, and an activation if the session was active.
public final class AudioSessionClient {
    /// Events of the session and of the daemon.
    public enum Event: Sendable, Hashable {
        case session(SessionEvent)
        case servicesLost
        case servicesReset
        /// The daemon is gone; the rules are not applied until it returns.
        case daemonLost
        /// The daemon has the session now, for the first time or again.
        case registered(path: String)
        /// The daemon refused the session; the message tells what to do.
        case refused(Failure)
    }

    /// Called once, on the loop's thread. Called before the method returns if the daemon need not be asked.
    public typealias Reply = (Result<Void, Failure>) -> Void

    /// The parameters of the session, with all later changes that were not refused.
    public private(set) var description: Description
    /// The state last reported by the daemon, or implied by its answers; `.inactive` when the daemon counts as lost.
    public private(set) var state = SessionState.inactive
    /// Whether the session is ducked, as last reported by the daemon; false when the daemon counts as lost.
    public private(set) var isDucked = false
    /// Decibels, 0 when not ducked.
    public private(set) var duckGain = 0.0
    /// Whether the silent switch or the screen lock mutes the session, as last reported; false when the daemon is lost.
    public private(set) var isMuted = false
    /// Seconds after which an absent daemon counts as lost.
    private static let patience = 3.0
    /// The daemon's settings for ducking; up to date while the session is ducked.
    public private(set) var ducking = DuckingDescription(gain: -12, attack: 0.08, release: 0.4, hold: 0.25)
    /// Nil while the daemon does not have the session.
    public var path: String? { proxy?.path }

    /// How long the daemon has been away.
    private enum Absence {
        /// It is there, or was not there yet.
        case none
        /// It left, and may be restarting. The timer fires when it counts as lost.
        case short(Timer)
        /// It counts as lost. `state`: the state of the session before the loss. `notifyOthers`: the option of a
        /// deactivation that was requested meanwhile; nil: none was.
        case lost(state: SessionState, notifyOthers: Bool?)
    }

    private let connection: Connection
    /// Gets all events, on the loop.
    public var onEvent: (Event) -> Void
    private var proxy: SessionProxy?
    private var isRegistering = false
    /// Whether to activate again when the daemon returns.
    private var wasActive = false
    /// The preferences, for a daemon that has lost its state.
    private var preferences: Preferences?
    private var preferredInput = ""
    private var waiting: [Reply] = []
    /// Requests that a daemon did not answer before it went: sent again when it is back.
    private var retries: [(again: () -> Void, give: (Failure) -> Void)] = []
    /// Present while the session is ducked.
    private var duckingWatch: Subscription?
    private var absence = Absence.none
    /// The unique name of the daemon; empty: there is none, or it is not known yet.
    private var owner = ""
    private var subscriptions: [Subscription] = []

    /// Creates the session now, and again whenever a daemon starts; reported to `onEvent`, on the loop.
    public init(_ description: Description, on connection: Connection, _ onEvent: @escaping (Event) -> Void) {
        self.description = description
        self.connection = connection
        self.onEvent = onEvent
        subscriptions = [
            connection.subscribe(
                path: ObjectPath.root, interface: BusName.manager, member: nil, sender: BusName.service
            ) { [unowned self] message in managerSaid(message) }
        ]
        if description.isHosted { return }
        subscriptions.append(connection.watchOwner(of: BusName.service) { [unowned self] in ownerChanged($0) })
        register()
    }

    deinit { giveUp() }

    /// Fails the requests that still wait for the daemon.
    private func giveUp() {
        let (waiting, retries) = (waiting, retries)
        (self.waiting, self.retries) = ([], [])
        for reply in waiting { reply(.failure(.disconnected)) }
        for retry in retries { retry.give(.disconnected) }
    }

    /// Activates the session. Fails with the daemon's refusal, or the bus's error if there is no daemon.
    public func activate(_ reply: @escaping Reply) {
        if description.isHosted {
            settle(.active)
            return reply(.success(()))
        }
        ask({ $0.activate($1) }) { [weak self] result in
            if case .success = result {
                self?.noteDeactivation(nil)
                self?.settle(.active)
            }
            reply(result)
        }
    }

    /// Deactivates the session; with `notifyOthers`, those that waited get the should-resume hint. If the daemon does
    /// not have the session, there is nothing to do, and it succeeds. If the daemon is lost, this fails, and the next
    /// daemon that has the session deactivates it.
    public func deactivate(notifyOthers: Bool, _ reply: @escaping Reply = { _ in }) {
        wasActive = false
        if description.isHosted { settle(.inactive) }
        guard proxy != nil else { return reply(.success(())) }
        ask({ $0.deactivate(notifyOthers: notifyOthers, $1) }) { [weak self] result in
            switch result {
            case .success: self?.settle(.inactive)
            case .failure(let failure):
                if Self.isAbsence(failure) { self?.noteDeactivation(notifyOthers) }
            }
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

    /// Sets those that are not nil; the others stay unchanged.
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

    /// Until the next route change; only in `.playAndRecord`.
    public func overrideOutput(_ override: OutputOverride, _ reply: @escaping Reply) {
        ask({ $0.overrideOutput(override, $1) }, reply)
    }

    /// Closes the session; no further requests are allowed.
    public func close(_ reply: @escaping Reply) {
        subscriptions = []
        duckingWatch = nil
        if case .short = absence { absence = .none }
        wasActive = false
        giveUp()
        guard let proxy else { return reply(.success(())) }
        proxy.close(reply)
    }

    /// All properties of the session, by their names on the bus.
    public func properties(_ reply: @escaping (Result<[String: Value], Failure>) -> Void) {
        withProxy({ if case .failure(let failure) = $0 { reply(.failure(failure)) } }) { $0.properties(reply) }
    }

    // MARK: - Daemon restarts

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
            absence = .none
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

    /// Activates again as before the restart; a refusal is reported as an interruption.
    private func reactivated(_ result: Result<Void, Failure>) {
        guard case .failure(let failure) = result else { return }
        wasActive = false
        onEvent(.refused(failure))
        heard(.interruptionBegan(reason: .default, by: ObjectPath.none, byName: "", sequence: 0))
    }

    private func ownerChanged(_ owner: String) {
        self.owner = owner
        if owner.isEmpty {
            if !isLost { expectReturn() }
        } else {
            if case .short = absence { absence = .none }
            if proxy == nil { register() } else { rejoin() }
        }
    }

    /// Looks for the session at a restarted daemon: unchanged, or missing.
    private func rejoin() {
        let asked = owner
        proxy?.properties { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let fields) where fields["Owner"]?.stringValue == connection.uniqueName: rejoined(fields)
            // It went before it answered, so the next one has the session. One that is only slow is asked again.
            case .failure(let failure) where Self.isAbsence(failure):
                if failure.name == Failure.Name.noReply, owner == asked { rejoin() }
            case .success, .failure:
                let wasActive = wasActive
                if !isLost { lose() }
                self.wasActive = wasActive
                absence = .none
                proxy = nil
                register()
            }
        }
    }

    /// The daemon has the session as before.
    private func rejoined(_ fields: [String: Value]) {
        var deactivation: Bool?
        if case .lost(let before, let notifyOthers) = absence {
            absence = .none
            deactivation = notifyOthers
            state = before
            if let path { onEvent(.registered(path: path)) }
        }
        catchUp(fields)
        readDucking()
        askAgain()
        if let deactivation, state != .inactive { deactivate(notifyOthers: deactivation) }
    }

    /// Reports the events that the daemon could not send.
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

    /// The daemon has been away for too long: the rules are not applied, and pending requests fail.
    private func lose() {
        absence = .lost(state: state, notifyOthers: nil)
        let wanted = wasActive
        settle(.inactive)
        wasActive = wanted
        release()
        onEvent(.daemonLost)
        let pending = retries
        retries = []
        for retry in pending { retry.give(.noReply("sessiond is not running; start it again")) }
    }

    private func askAgain() {
        let pending = retries
        retries = []
        for retry in pending { retry.again() }
    }

    /// Sends a request; if the daemon goes before it answers, sends it to the next one. All these requests can be
    /// repeated.
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
                if case .none = self.absence { self.expectReturn() }
            }
        }
    }

    /// Whether the daemon went before it could answer.
    private func isAbsence(_ failure: Failure) -> Bool {
        !isLost && Self.isAbsence(failure)
    }

    private static func isAbsence(_ failure: Failure) -> Bool {
        [Failure.Name.noReply, Failure.Name.serviceUnknown, Failure.Name.nameHasNoOwner].contains(failure.name)
    }

    private func expectReturn() {
        let timer = Timer(on: connection.loop) { [unowned self] in lose() }
        timer.arm(after: AudioSessionClient.patience)
        absence = .short(timer)
    }

    private var isLost: Bool { if case .lost = absence { true } else { false } }

    /// Remembers, while the daemon is lost, that the next one must deactivate the session.
    private func noteDeactivation(_ notifyOthers: Bool?) {
        if case .lost(let state, _) = absence { absence = .lost(state: state, notifyOthers: notifyOthers) }
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

    /// A session that is created while the silent switch is on is muted at once; no signal reports that.
    private func readMuted() {
        proxy?.properties { [weak self] result in
            guard let self, case .success(let fields) = result else { return }
            if let muted = fields["Muted"]?.boolValue, muted != isMuted { heard(.mutedChanged(muted)) }
        }
    }

    /// While the session is ducked, subscribes to changes: of the ramp times, and of the gain. Other clients do not
    /// subscribe to the manager, so its signals do not wake them.
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
        // Changes before the subscription was ready.
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

    /// Reads a property of the manager; does not answer on failure.
    package func readManager(_ property: String, _ body: @escaping (Value) -> Void) {
        connection.call(
            BusName.service, ObjectPath.root, StandardName.properties, "Get",
            [.string(BusName.manager), .string(property)]
        ) { result in
            if case .success(let values) = result, let value = values.first?.unwrapped { body(value) }
        }
    }

    /// Calls it now, or when the daemon has answered; fails if the daemon refuses the session.
    private func withProxy(_ fail: @escaping Reply, _ body: @escaping (SessionProxy) -> Void) {
        if let proxy { return body(proxy) }
        if description.isHosted { return fail(.failure(.failed("the session belongs to another program"))) }
        waiting.append { [weak self] result in
            switch result {
            case .failure(let failure): fail(.failure(failure))
            case .success: if let proxy = self?.proxy { body(proxy) }
            }
        }
        register()
    }
}
