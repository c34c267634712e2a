public import PluginAPI

/// The rules: events in, effects out.
///
/// It is a value without a clock, a bus or a log. Every event goes through ``handle(_:at:)``, which changes the
/// requests. Then it computes the whole state that results from all requests and compares it with the previous state.
/// The difference is the list of effects. There is no undo list. The same event twice yields no effects.
///
/// Invariants, held after every event and checked by the tests:
/// - at most one non-mixable app session is active;
/// - a session is `interrupted` exactly while it has an ``Interruption``, and waits only for sessions holding a claim;
/// - no session is ducked without an active ducker, and calls and alerts are never ducked;
/// - `ended` follows a `began` of the same session, once.
public struct Arbiter: Sendable {
    /// The settings of the rules.
    public struct Settings: Sendable, Hashable, Codable {
        /// The grace period in seconds.
        public var grace = 5.0
        /// Seconds of interruption after which there is no should-resume hint; 0: no limit.
        public var maxAge = 0.0
        /// The gain of ducked sessions in decibels, at most 0.
        public var duckGain = -12.0
        /// Whether sessions that duck others also duck alerts.
        public var ducksAlerts = false
        /// Whether the now-playing session is paused when its output is unplugged.
        public var pausesOnUnplug = true
        /// Seconds within which a replug ends that pause with the should-resume hint; 0: never.
        public var replug = 30.0
        /// Whether apps are interrupted before the machine sleeps.
        public var pausesForSleep = true
        /// Whether they get the should-resume hint when it has woken up.
        public var resumesAfterSleep = false
        /// Most sessions at the same time.
        public var maxSessions = 1024
        /// Most sessions of one client.
        public var maxSessionsPerClient = 32

        public init() {}
    }

    /// The state of the sound server that clients were last notified of, also by the previous daemon.
    public enum Services: String, CaseIterable, Sendable, Hashable {
        /// Nothing is known of a server yet.
        case unknown
        case there
        /// It is gone, or was never there: its appearance will be reported.
        case lost
    }

    public internal(set) var settings: Settings
    /// Ascending by id, which is the order of creation.
    public internal(set) var sessions: [Session] = []
    /// The number of the latest decision.
    public internal(set) var sequence: UInt64 = 0
    public internal(set) var isSilentMode = false
    public internal(set) var isScreenLocked = false
    /// The route and ports of the server; nil while it is gone.
    public internal(set) var audio: Audio?
    /// Decides whether a loss of the server, or its return, is reported.
    public internal(set) var services = Services.unknown
    /// The non-mixable app session with an output that activated last among those that hold a claim (rules §4).
    public internal(set) var nowPlaying: SessionID?

    var lastID: UInt64 = 0
    /// Counts activations and interruptions, each in order.
    var lastOrder: UInt64 = 0
    var sounding: Sounding?
    var isMicrophoneMuted = false
    /// Whether the machine is about to sleep, or sleeps: what was interrupted for that is not released.
    public internal(set) var isAsleep = false
    /// The rule for the current event, if it is not the usual one of such events.
    var ruling: Rule?
    /// The session that caused the refusal of the current event.
    var refuser: SessionID?
    /// Whether the current event changed something that is not reported but must survive a restart.
    var remembersMore = false
    var changes: ManagerProperties = []
    /// The changes of waits by the current event, for sessions that were already interrupted.
    var waitChanges: [WaitChange] = []

    public init(settings: Settings = Settings()) { self.settings = settings }

    /// Handles one event. Events must come in order of time; a request for a missing session is refused.
    public mutating func handle(_ event: Event, at now: Instant) -> Decision {
        let subject = event.session.flatMap { session($0) }
        var effects = Effects()
        var refusal: SessionError?
        do throws(SessionError) {
            try apply(event, at: now, &effects)
            settle(at: now, &effects)
        } catch {
            refusal = error
            ruling = error.code.rule
        }
        note(refusal, of: event, at: now)
        defer {
            ruling = nil
            refuser = nil
            remembersMore = false
        }
        if !effects.list.isEmpty || refusal != nil { sequence += 1 }
        let name = if case .create(let new) = event { new.name } else { subject?.name ?? "" }
        return Decision(
            sequence: sequence, time: now, event: event, effects: effects.list, refusal: refusal,
            session: event.session,
            name: name, rule: ruling ?? event.rule, remembersMore: remembersMore)
    }

    /// When ``Event/timePassed`` is due next; nil: never.
    public var nextDeadline: Instant? {
        var earliest: Instant?
        for session in sessions.indices {
            guard let expiry = sessions[session].standing.claimExpires else { continue }
            if earliest.map({ expiry < $0 }) ?? true { earliest = expiry }
        }
        return earliest
    }

    /// The session, or nil if it is closed or never existed.
    public func session(_ id: SessionID) -> Session? { index(of: id).map { sessions[$0] } }

    /// The number of sessions that this one waits for.
    public func waitCount(of id: SessionID) -> Int { index(of: id).map { sessions[$0].waitingFor.count } ?? 0 }

    /// Whether a session with that number existed and is closed.
    public func isExpired(_ id: SessionID) -> Bool { id.number > 0 && id.number <= lastID && index(of: id) == nil }

    /// The part of the route that the session uses: the actual route, but with the preferred input if it records.
    public func route(of session: Session) -> Route {
        guard let audio else { return .none }
        var route = audio.route.limited(to: session.configuration.category)
        if let input = availableInputs(of: session).first(where: { $0.uid == session.preferredInput }) {
            route.inputs = [input]
        }
        return route
    }

    /// The inputs that the session may choose from: none if its category has no input, a Bluetooth headset's only if
    /// its options allow it.
    public func availableInputs(of session: Session) -> [Port] {
        session.configuration.category.hasInput ? audio?.inputs(fitting: session.configuration) ?? [] : []
    }

    func index(of id: SessionID) -> Int? {
        var low = 0
        var high = sessions.count
        while low < high {
            let middle = (low + high) / 2
            if sessions[middle].id < id { low = middle + 1 } else { high = middle }
        }
        return low < sessions.count && sessions[low].id == id ? low : nil
    }

    private mutating func apply(_ event: Event, at now: Instant, _ effects: inout Effects) throws(SessionError) {
        switch event {
        case .create(let new): try create(new, at: now, &effects)
        case .setCategory(let id, let configuration):
            try setCategory(require(id), configuration, at: now, &effects)
        case .activate(let id): try activate(require(id), at: now, &effects)
        case .deactivate(let id, let notify):
            deactivate(try require(id), recommends: notify, at: now, &effects)
        case .overrideOutput(let id, let override): try overrideOutput(require(id), override, &effects)
        case .setPreferredInput(let id, let uid): try setPreferredInput(require(id), uid, &effects)
        case .setPreferences(let id, let preferences):
            setPreferences(try require(id), preferences, at: now, &effects)
        case .close(let id): remove([try require(id)], at: now, rule: .resume, &effects)
        case .setForeground(let id, let foreground): setForeground(try require(id), foreground)
        case .setSilentMode(let on): set(\.isSilentMode, on, .silentMode)
        case .setScreenLocked(let on): set(\.isScreenLocked, on, .screenLocked)
        case .clientVanished(let client):
            remove(sessions.indices.filter { sessions[$0].client == client }, at: now, rule: .vanished, &effects)
        case .servicesReset(let audio): servicesReset(audio, at: now, &effects)
        case .servicesLost: servicesLost(&effects)
        case .routeChanged(let reason, let audio): routeChanged(reason, audio, at: now, &effects)
        case .portsChanged(let audio): portsChanged(audio, at: now, &effects)
        case .soundingChanged(let sounding): hear(sounding)
        case .microphoneMuted(let muted): microphoneMuted(muted, at: now, &effects)
        case .settingsChanged(let settings): settingsChanged(settings, &effects)
        case .interruptionIgnored(let id): ignored(try require(id), at: now, &effects)
        case .asleep(let isAsleep): isAsleep ? sleep(at: now, &effects) : wake(at: now, &effects)
        case .clientHangs(let id): clientHangs(try require(id), at: now, &effects)
        case .timePassed: expireClaims(at: now, &effects)
        }
    }

    /// Keeps the last refusal of a request until such a request succeeds.
    private mutating func note(_ refusal: SessionError?, of event: Event, at now: Instant) {
        guard let id = event.session, let x = index(of: id), let request = event.request else { return }
        if let refusal {
            let cause = Cause(
                .refused, refusal.code.rule, at: now, by: refuser,
                refuser.flatMap { session($0)?.name } ?? "")
            sessions[x].refused = RefusedRequest(request: request, error: refusal, cause: cause)
        } else if sessions[x].refused?.request == request {
            sessions[x].refused = nil
            remembersMore = true
        }
    }

    private func require(_ id: SessionID) throws(SessionError) -> Int {
        if let index = index(of: id) { return index }
        throw SessionError(.expiredSession, "session \(id) was closed; create a new one")
    }

    private mutating func settingsChanged(_ settings: Settings, _ effects: inout Effects) {
        let gain = self.settings.duckGain
        self.settings = settings
        guard settings.duckGain != gain else { return }
        for x in sessions.indices where sessions[x].standing.isDucked {
            sessions[x].standing.changes.insert(.duckGain)
            effects.restrict(.duckingChanged(sessions[x].id, ducked: true, gain: settings.duckGain))
        }
    }

    private mutating func set(_ path: WritableKeyPath<Arbiter, Bool>, _ value: Bool, _ property: ManagerProperties) {
        guard self[keyPath: path] != value else { return }
        self[keyPath: path] = value
        changes.insert(property)
    }
}
