import PluginAPI
import SessionManager

/// The signals because of one event, without the order between different kinds.
enum Told: Hashable {
    case began(SessionID, InterruptionReason, by: SessionID?)
    case ended(SessionID, shouldResume: Bool, microseconds: UInt64, InterruptionReason)
    case ducked(SessionID, Bool)
    case muted(SessionID, Bool)
    case hint(SessionID, Bool)
    /// One session, or all of them if nil.
    case routed(SessionID?, RouteChangeReason)
}

/// A second, independent implementation of rules §1–§7. It follows the text rule by rule, and is slow and simple.
///
/// It stores only states, times, and edges "waiter waits for owner". Everything else (ducked, muted, hints, now
/// playing) is a function over all pairs.
struct ReferenceModel {
    enum Status: Hashable {
        case idle
        /// After `ended`, within the grace period.
        case released(until: Instant)
        case playing
        case interrupted(ModelInterruption)
    }

    /// From one `began` to its `ended`.
    struct ModelInterruption: Hashable {
        let number: Int
        let since: Instant
        let reason: InterruptionReason
        let by: SessionID?
        /// The unplugged output came back in time.
        var isOffered = false
        /// The unplugged outputs, if an unplug is the reason.
        var gone: Set<Port> = []
        /// Its outputs that were unplugged while it was interrupted, and are still away.
        var away: Set<Port> = []
        /// The machine has not woken up since.
        var sleeps = false
        /// A session that it waited for ended without a should-resume hint.
        var isSpoiled = false
    }

    struct ModelSession {
        let id: SessionID
        let client: ClientID
        let sessionClass: SessionClass
        let notifiesOnExit: Bool
        var configuration: Configuration
        var isForeground = true
        var preferences = Preferences()
        var status = Status.idle
        /// Whether its last interruption ended with the should-resume hint.
        var mayResume = false
        /// The number of activations when its last interruption ended.
        var activationsAtEnd = 0
        /// The number of the last activation; 0 if it was never active.
        var lastActive = 0

        var isPlaying: Bool { status == .playing }
        var interruption: ModelInterruption? {
            if case .interrupted(let interruption) = status { interruption } else { nil }
        }
        var deadline: Instant? { if case .released(let until) = status { until } else { nil } }
        var holdsClaim: Bool { status != .idle }
        var isPrivileged: Bool { sessionClass != .app }
        var category: Category { configuration.category }
        var mixes: Bool { category == .ambient || configuration.options.contains(.mixWithOthers) }
        var isNonMixable: Bool { isPrivileged || !mixes }
        var outputs: Bool { category != .record && category != .audioProcessing }
        var inputs: Bool { category == .record || category == .playAndRecord || category == .multiRoute }
    }

    struct Edge: Hashable {
        let waiter: SessionID
        let owner: SessionID
    }

    struct Outcome {
        var refusal: SessionError.Code?
        var interruptions: [Told] = []
        /// Ducking, muting and hints: one of each kind for a session, in no particular order.
        var others: Set<Told> = []
    }

    struct Refusal: Error {
        let code: SessionError.Code
    }

    var settings: Arbiter.Settings
    var sessions: [ModelSession] = []
    var edges: [Edge] = []
    var isSilent = false
    var isLocked = false
    var isAsleep = false
    var sounding: Sounding?
    var audio: Audio?
    private(set) var lastID: UInt64 = 0
    private var activations = 0
    private var interruptions = 0
    private var outcome = Outcome()
    private var now = Instant(microseconds: 0)

    init(settings: Arbiter.Settings = Arbiter.Settings()) { self.settings = settings }

    // MARK: Derived values

    func session(_ id: SessionID) -> ModelSession? { sessions.first { $0.id == id } }

    func waits(of id: SessionID) -> [SessionID] {
        edges.filter { $0.waiter == id }.map(\.owner).sorted()
    }

    /// §6: the silent switch and the screen lock mute the two ambient categories, whatever their state, and only of class
    /// `app`: "an alarm or a call is heard whatever its category".
    func isMuted(_ session: ModelSession) -> Bool {
        if session.isPrivileged { return false }
        return (session.category == .ambient || session.category == .soloAmbient) && (isSilent || isLocked)
    }

    /// §4: an app session with an output is ducked while another active session ducks, unless it ducks others itself.
    func isDucked(_ session: ModelSession) -> Bool {
        let isAlert = settings.ducksAlerts && session.sessionClass == .alert
        guard session.isPlaying, isAlert || !session.isPrivileged, session.outputs else { return false }
        guard !session.configuration.options.contains(.duckOthers) else { return false }
        return sessions.contains {
            $0.id != session.id && $0.isPlaying && $0.configuration.options.contains(.duckOthers)
        }
    }

    /// §6: whether a session sounds depends on its streams, or on its state without a server. An interrupted session is
    /// silent for the others.
    func sounds(_ session: ModelSession) -> Bool {
        if let sounding { return session.interruption == nil && sounding.sessions.contains(session.id) }
        return session.isPlaying && session.outputs && !isMuted(session)
    }

    func hearsOthers(_ session: ModelSession) -> Bool {
        if let sounding, sounding.others { return true }
        return sessions.contains { $0.id != session.id && sounds($0) }
    }

    func hint(_ session: ModelSession) -> Bool {
        sessions.contains { $0.id != session.id && $0.isNonMixable && sounds($0) }
    }

    /// §4: of the non-mixable app sessions with an output that still hold a claim, the one that was activated last.
    var nowPlaying: SessionID? {
        sessions.filter { !$0.isPrivileged && !$0.mixes && $0.outputs && $0.holdsClaim }
            .max { $0.lastActive < $1.lastActive }?.id
    }

    var nextDeadline: Instant? { sessions.compactMap(\.deadline).min() }

    func cell(_ new: ModelSession, over old: ModelSession) -> SpecMatrix.Cell {
        if new.sessionClass == .alert, !old.isPrivileged, old.preferences.noInterruptionsFromAlerts { return .mix }
        return SpecMatrix.cell(
            SpecMatrix.row(new.sessionClass, new.configuration), hasInput: new.inputs,
            over: SpecMatrix.column(old.sessionClass, old.configuration))
    }

    // MARK: Events

    mutating func handle(_ event: Event, at instant: Instant) -> Outcome {
        outcome = Outcome()
        now = instant
        let before = self
        do {
            try carryOut(event)
        } catch {
            self = before
            return Outcome(refusal: error.code)
        }
        var routed = self
        // The route is announced before an unplug pauses sessions.
        switch event {
        case .routeChanged, .portsChanged: routed.sessions = before.sessions
        default: break
        }
        outcome.others.formUnion(routed.routesTold(event, since: before))
        release()
        for session in sessions {
            guard let old = before.session(session.id) else { continue }
            if before.isDucked(old) != isDucked(session) {
                outcome.others.insert(.ducked(session.id, isDucked(session)))
            }
            if before.isMuted(old) != isMuted(session) { outcome.others.insert(.muted(session.id, isMuted(session))) }
            if before.hint(old) != hint(session), session.isPlaying, session.isForeground {
                outcome.others.insert(.hint(session.id, hint(session)))
            }
        }
        return outcome
    }

    private mutating func carryOut(_ event: Event) throws(Refusal) {
        switch event {
        case .create(let new):
            if sessions.count >= settings.maxSessions { throw Refusal(code: .resourceNotAvailable) }
            if sessions.filter({ $0.client == new.client }).count >= settings.maxSessionsPerClient {
                throw Refusal(code: .resourceNotAvailable)
            }
            lastID += 1
            sessions.append(
                ModelSession(
                    id: SessionID(lastID), client: new.client, sessionClass: new.sessionClass,
                    notifiesOnExit: new.notifiesOnExit, configuration: new.configuration))
        case .activate(let id): try activate(place(of: id))
        case .setCategory(let id, let configuration): try change(place(of: id), to: configuration)
        case .deactivate(let id, let notifyOthers):
            let place = try place(of: id)
            leave(id, recommends: notifyOthers)
            sessions[place].status = .idle
        case .close(let id):
            let place = try place(of: id)
            leave(id, recommends: sessions[place].notifiesOnExit)
            sessions.remove(at: place)
        case .clientVanished(let client):
            let theirs = sessions.filter { $0.client == client }
            for session in theirs { leave(session.id, recommends: session.notifiesOnExit) }
            sessions.removeAll { $0.client == client }
        case .setForeground(let id, let isForeground): sessions[try place(of: id)].isForeground = isForeground
        case .setPreferences(let id, let preferences):
            sessions[try place(of: id)].preferences = preferences
            dissolve(id)
        case .setSilentMode(let isOn): isSilent = isOn
        case .setScreenLocked(let isOn): isLocked = isOn
        case .soundingChanged(let new): sounding = new
        case .timePassed: expire()
        case .routeChanged(let reason, let new):
            // Without a server there is no route that could change.
            guard let old = audio else { break }
            audio = new
            comeBack(new.outputs, before: old.outputs)
            // "old-device-unavailable: one that was in the route went"; for other reasons, it did not.
            let isRouteLost = reason == .oldDeviceUnavailable
            let used = Set(old.route.outputs.map(\.uid))
            unplug((old.outputs + old.route.outputs).filter { isRouteLost || !used.contains($0.uid) }, old, new)
            if reason == .newDeviceAvailable { replug(old.route.outputs, new.route.outputs) }
        case .servicesReset(let new):
            comeBack(new.outputs, before: audio?.outputs ?? [])
            audio = new
        case .portsChanged(let new):
            guard let old = audio else { break }
            audio = new
            comeBack(new.outputs, before: old.outputs)
            unplug(old.outputs + old.route.outputs, old, new)
        case .asleep(true):
            // "Every active session of class `app` that is not interrupted gets `began` before the machine sleeps."
            if !settings.pausesForSleep || isAsleep { break }
            isAsleep = true
            let waiting = sessions.filter { $0.interruption != nil && !$0.isPrivileged }.map(\.id)
            let playing = sessions.filter { $0.isPlaying && !$0.isPrivileged }
            for session in playing.sorted(by: { $0.lastActive > $1.lastActive }) {
                stop(session.id, .appWasSuspended, by: nil)
                change(session.id) { $0.sleeps = true }
            }
            // "should-resume by `[sleep] resume`", "its hint is the AND with `[sleep] resume`".
            if settings.resumesAfterSleep { break }
            for id in waiting + playing.map(\.id) { change(id) { $0.isSpoiled = true } }
        case .asleep(false):
            isAsleep = false
            for session in sessions { change(session.id) { $0.sleeps = false } }
        case .clientHangs(let id):
            // "Its session becomes inactive as by Deactivate without notify-others and gets `began`."
            let place = try place(of: id)
            guard sessions[place].isPlaying, !sessions[place].isPrivileged else { break }
            stop(id, .appWasSuspended, by: nil)
            leave(id, recommends: false)
            sessions[place].status = .idle
        // This changes the sound of no session.
        case .interruptionIgnored(let id): _ = try place(of: id)
        case .overrideOutput, .setPreferredInput, .servicesLost, .microphoneMuted, .settingsChanged:
            fatalError("the model does not implement \(event.name)")
        }
    }

    private func place(of id: SessionID) throws(Refusal) -> Int {
        guard let place = sessions.firstIndex(where: { $0.id == id }) else { throw Refusal(code: .expiredSession) }
        return place
    }

    /// §4: checks first the background, then all active sessions.
    private func judge(_ new: ModelSession) throws(Refusal) {
        if !new.isPrivileged, !new.isForeground {
            if new.category == .ambient || new.category == .soloAmbient { throw Refusal(code: .cannotStartPlaying) }
            // "Who is told to come back may": in its grace time, "unless that would interrupt a session that became active
            // after its `ended`".
            let isOvertaken = sessions.contains { old in
                old.id != new.id && old.isPlaying && old.lastActive > new.activationsAtEnd
                    && cell(new, over: old) == .interrupt
            }
            let isToldToComeBack = new.deadline != nil && new.mayResume && !isOvertaken
            if new.category == .playAndRecord, new.mixes, !isToldToComeBack {
                throw Refusal(code: .cannotStartRecording)
            }
            if !new.mixes, nowPlaying != new.id, !isToldToComeBack { throw Refusal(code: .cannotInterruptOthers) }
        }
        for old in sessions where old.isPlaying && old.id != new.id {
            if cell(new, over: old) == .refused { throw Refusal(code: .insufficientPriority) }
        }
    }

    private mutating func activate(_ place: Int) throws(Refusal) {
        if sessions[place].isPlaying { return }
        try judge(sessions[place])
        take(place)
    }

    /// §1: an active session is judged like a new activation. The same category again changes nothing.
    private mutating func change(_ place: Int, to configuration: Configuration) throws(Refusal) {
        if sessions[place].configuration == configuration { return }
        var changed = sessions[place]
        changed.configuration = configuration
        if changed.isPlaying { try judge(changed) }
        sessions[place] = changed
        dissolve(changed.id)
        if changed.isPlaying { take(place) }
    }

    /// Ends the waits of and for this session if the two sessions no longer conflict.
    private mutating func dissolve(_ id: SessionID) {
        for edge in edges where edge.waiter == id || edge.owner == id {
            if let waiter = self.session(edge.waiter), let owner = self.session(edge.owner),
                cell(owner, over: waiter) != .interrupt
            {
                remove(edge, recommends: false)
            }
        }
    }

    /// Makes a session active, as the newest one. It interrupts all conflicting sessions, the most recently active one
    /// first. Sessions that were interrupted before also wait for it (R1, R3).
    private mutating func take(_ place: Int) {
        let new = sessions[place]
        let conflicting = sessions.filter { $0.id != new.id && cell(new, over: $0) == .interrupt }
        for victim in conflicting.filter(\.isPlaying).sorted(by: { $0.lastActive > $1.lastActive }) {
            stop(victim.id, .default, by: new.id)
        }
        for waiter in conflicting where self.session(waiter.id)!.interruption != nil {
            let edge = Edge(waiter: waiter.id, owner: new.id)
            if !edges.contains(edge) { edges.append(edge) }
        }
        edges.removeAll { $0.waiter == new.id }
        activations += 1
        sessions[place].status = .playing
        sessions[place].lastActive = activations
    }

    private mutating func stop(_ id: SessionID, _ reason: InterruptionReason, by: SessionID?) {
        let place = sessions.firstIndex { $0.id == id }!
        interruptions += 1
        sessions[place].status = .interrupted(
            ModelInterruption(number: interruptions, since: now, reason: reason, by: by))
        outcome.interruptions.append(.began(id, reason, by: by))
    }

    private mutating func change(_ id: SessionID, _ body: (inout ModelInterruption) -> Void) {
        let place = sessions.firstIndex { $0.id == id }!
        guard var interruption = sessions[place].interruption else { return }
        body(&interruption)
        sessions[place].status = .interrupted(interruption)
    }

    /// Ends the waits for a session, and its own claim (R5, R7, R11, R12). The end of a call or an alert always gives
    /// the should-resume hint.
    private mutating func leave(_ id: SessionID, recommends: Bool) {
        let isPrivileged = self.session(id)!.isPrivileged
        for edge in edges where edge.owner == id { remove(edge, recommends: recommends || isPrivileged) }
        edges.removeAll { $0.waiter == id }
    }

    private mutating func remove(_ edge: Edge, recommends: Bool) {
        edges.removeAll { $0 == edge }
        let place = sessions.firstIndex { $0.id == edge.waiter }!
        if !recommends, var interruption = sessions[place].interruption {
            interruption.isSpoiled = true
            sessions[place].status = .interrupted(interruption)
        }
    }

    /// R6: claims expire. The sessions that waited get no should-resume hint.
    private mutating func expire() {
        for session in sessions {
            guard let deadline = session.deadline, deadline <= now else { continue }
            for edge in edges where edge.owner == session.id { remove(edge, recommends: false) }
            sessions[sessions.firstIndex { $0.id == session.id }!].status = .idle
        }
    }

    /// §7, "whose output went": "a session's outputs are the ports that its streams were last heard on; the route's, where it
    /// never had a stream".
    private func outputs(of session: ModelSession, on route: Route) -> Set<String> {
        guard session.outputs else { return [] }
        return sounding?.outputs[session.id] ?? Set(route.outputs.map(\.uid))
    }

    /// "Of those whose output it was, the now-playing session and adopted players that can be paused over MPRIS are
    /// interrupted; calls, alerts and what mixes go on. All others are not touched." `ports` may be gone.
    private mutating func unplug(_ ports: [Port], _ old: Audio, _ new: Audio) {
        let here = new.outputs.filter(\.isAvailable)
        let gone = ports.filter { port in
            return port.isAvailable && !here.contains { isSame($0, port) }
        }
        let nowPlaying = nowPlaying
        for session in sessions.sorted(by: { $0.lastActive > $1.lastActive }) {
            let own = outputs(of: session, on: old.route)
            // A headset is one output, in whichever profile it was last heard.
            let radio: Set<PortType> = [.bluetoothA2DP, .bluetoothHFP]
            let lost = gone.filter { port in
                own.contains(port.uid)
                    || sounding?.outputs[session.id] != nil && radio.contains(port.type)
                        && own.contains { Port.device(of: $0) == port.device }
            }
            guard !lost.isEmpty else { continue }
            let place = sessions.firstIndex { $0.id == session.id }!
            if var interruption = session.interruption {
                // "Unplugged while interrupted".
                if interruption.reason != .routeDisconnected { interruption.away.formUnion(lost) }
                sessions[place].status = .interrupted(interruption)
                continue
            }
            guard settings.pausesOnUnplug, session.preferences.interruptsOnRouteDisconnect, !session.isPrivileged else {
                continue
            }
            // "Names that an unplug never pauses"; `unplug = all` "holds every program whose output went".
            if sounding?.exempt.contains(session.id) == true { continue }
            let isHeld = sounding?.holdable.contains(session.id) == true
            let isPausable = sounding?.pausable.contains(session.id) == true
            // The daemon itself has asked an adopted player to resume.
            let isResuming = session.deadline != nil && session.mayResume && isPausable && !isHeld
            guard isResuming || session.isPlaying && (isPausable || isHeld || session.id == nowPlaying) else {
                continue
            }
            stop(session.id, .routeDisconnected, by: nil)
            guard var interruption = sessions[place].interruption else { continue }
            interruption.gone = Set(lost)
            sessions[place].status = .interrupted(interruption)
        }
    }

    /// A headset that changes its profile is the same one.
    private func isSame(_ one: Port, _ other: Port) -> Bool {
        let radio: Set<PortType> = [.bluetoothA2DP, .bluetoothHFP]
        return one.uid == other.uid || radio.isSuperset(of: [one.type, other.type]) && one.device == other.device
    }

    /// "Output there again: as if it had never gone."
    private mutating func comeBack(_ outputs: [Port], before: [Port]) {
        let new = outputs.filter { port in
            port.isAvailable && !before.contains { $0.uid == port.uid && $0.isAvailable }
        }
        for place in sessions.indices {
            guard var interruption = sessions[place].interruption else { continue }
            interruption.away = interruption.away.filter { gone in !new.contains { isSame($0, gone) } }
            sessions[place].status = .interrupted(interruption)
        }
    }

    /// §7: the unplugged output is the output again, soon enough, and no other session prevents a resume.
    private mutating func replug(_ before: [Port], _ now: [Port]) {
        for place in sessions.indices {
            guard var interruption = sessions[place].interruption,
                !edges.contains(where: { $0.waiter == sessions[place].id })
            else { continue }
            let isInTime =
                settings.replug > 0
                && self.now.microseconds - interruption.since.microseconds <= UInt64(settings.replug * 1_000_000)
            // "Until its user starts it again or the output is back."
            guard isInTime || sounding?.holdable.contains(sessions[place].id) == true else { continue }
            let isBack = now.contains { port in
                interruption.gone.contains { isSame($0, port) } && !before.contains { $0.uid == port.uid }
            }
            guard isBack else { continue }
            interruption.isOffered = true
            sessions[place].status = .interrupted(interruption)
        }
    }

    /// R4, R5, R8, R10: sessions that no longer wait are notified, the last interrupted one first, and get the grace
    /// period.
    private mutating func release() {
        let free = sessions.filter { session in
            guard let interruption = session.interruption,
                interruption.reason != .routeDisconnected || interruption.isOffered
            else {
                return false
            }
            return !interruption.sleeps && !edges.contains { $0.waiter == session.id }
        }
        for session in free.sorted(by: { $0.interruption!.number > $1.interruption!.number }) {
            let interruption = session.interruption!
            let lasted = now.microseconds - interruption.since.microseconds
            let isTooOld = settings.maxAge > 0 && Double(lasted) > settings.maxAge * 1_000_000
            let mayResume = !interruption.isSpoiled && interruption.away.isEmpty && !isTooOld
            outcome.interruptions.append(
                .ended(session.id, shouldResume: mayResume, microseconds: lasted, interruption.reason))
            let place = sessions.firstIndex { $0.id == session.id }!
            sessions[place].mayResume = mayResume
            sessions[place].activationsAtEnd = activations
            let grace = UInt64(settings.grace * 1_000_000)
            sessions[place].status =
                .released(until: Instant(microseconds: now.microseconds + grace))
        }
    }
}
