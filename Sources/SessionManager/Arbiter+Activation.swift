public import PluginAPI

/// Creating, activating, changing and deactivating sessions (rules §1–§4).
extension Arbiter {
    mutating func create(_ new: NewSession, at now: Instant, _ effects: inout Effects) throws(SessionError) {
        guard sessions.count < settings.maxSessions else {
            throw SessionError(
                .resourceNotAvailable,
                "there are \(settings.maxSessions) sessions already; close some, or raise limits.sessions")
        }
        let own = sessions.indices.reduce(0) { sessions[$1].client == new.client ? $0 + 1 : $0 }
        guard own < settings.maxSessionsPerClient else {
            throw SessionError(
                .resourceNotAvailable,
                "this client has \(own) sessions already; close some, or raise limits.sessions-per-client")
        }
        lastID += 1
        var session = Session(SessionID(lastID), new, at: now)
        session.standing.isHeard = sounding?.sessions.contains(session.id) == true
        sessions.append(session)
        effects.append(.created(SessionID(lastID)))
    }

    mutating func activate(_ x: Int, at now: Instant, _ effects: inout Effects) throws(SessionError) {
        guard !sessions[x].standing.isActive else { return }
        let victims = try judge(x, as: sessions[x].standing.configuration)
        let cause = activation(of: x, at: now)
        ruling = cause.rule
        interrupt(victims, by: x, at: now, rule: cause.rule == .comesBack ? .matrix : cause.rule, &effects)
        dropClaim(x, .active, at: now)
        sessions[x].cause = cause
        effects.grant(.activated(sessions[x].id))
        claimPrecedence(x)
        tellLack([x], at: now, &effects)
    }

    private func activation(of x: Int, at now: Instant) -> Cause {
        let session = sessions[x]
        if session.sessionClass != .app { return Cause(.activated, .classes, at: now) }
        if session.state == .interrupted { return Cause(.tookBack, .takesBack, at: now) }
        if session.claimExpires != nil { return Cause(.cameBack, .comesBack, at: now) }
        return Cause(.activated, .matrix, at: now)
    }

    mutating func setCategory(
        _ x: Int, _ configuration: Configuration, at now: Instant, _ effects: inout Effects
    ) throws(SessionError) {
        guard configuration != sessions[x].standing.configuration else { return }
        let victims = sessions[x].standing.isActive ? try judge(x, as: configuration) : []
        let previous = route(of: sessions[x])
        let previousInputs = availableInputs(of: sessions[x])
        // It lasts until the route changes, as that of an active session does now (§7).
        if sessions[x].standing.isActive || configuration.category != .playAndRecord { forgetOverride(x, &effects) }
        sessions[x].standing.changes.formUnion(
            SessionProperties(from: sessions[x].standing.configuration, to: configuration))
        sessions[x].standing.configuration = configuration
        forgetVanishedInput(x, &effects)
        if route(of: sessions[x]) != previous { sessions[x].standing.changes.insert(.route) }
        if availableInputs(of: sessions[x]) != previousInputs { sessions[x].standing.changes.insert(.availableInputs) }
        if sessions[x].standing.isActive {
            interrupt(victims, by: x, at: now, rule: .category, &effects)
            claimPrecedence(x)
            let current = route(of: sessions[x])
            effects.append(.routeChanged(sessions[x].id, .categoryChange, previous: previous, current: current))
            let route = audio?.route ?? .none
            effects.append(.routeChanged(nil, .categoryChange, previous: route, current: route))
            tellLack([x], at: now, &effects)
        }
        dissolveWaits(of: x, at: now, &effects)
    }

    /// Ends the activity or the claim of a session, and releases those that waited for it.
    mutating func deactivate(
        _ x: Int, recommends: Bool, at now: Instant, _ effects: inout Effects
    ) {
        guard sessions[x].standing.holdsClaim else { return }
        let before = sessions[x].standing.state
        let isPrivileged = sessions[x].standing.sessionClass != .app
        dropClaim(x, .inactive, at: now)
        let rule: Rule
        switch before {
        case .active:
            rule = isPrivileged ? .callEnded : .resume
            sessions[x].cause = Cause(.deactivated, .resume, at: now)
            effects.append(.deactivated(sessions[x].id))
        case .interrupted, .inactive:
            rule = before == .interrupted ? .leftWhileWaiting : .givesUp
            sessions[x].cause = Cause(.gaveUp, .givesUp, at: now)
            ruling = .givesUp
            effects.append(.claimDropped(sessions[x].id, rule: .givesUp))
        }
        // A call or an alert that deactivates always ends with notify-others (R5).
        let leaver = Leaver(sessions[x], recommends: recommends || isPrivileged)
        leave([leaver], .deactivated, at: now, rule: rule, &effects)
    }

    /// Closes sessions, as if each had deactivated; a session that closes with them gets no "ended".
    mutating func remove(_ indices: [Int], at now: Instant, rule: Rule, _ effects: inout Effects) {
        guard !indices.isEmpty else { return }
        let gone = indices.map { sessions[$0] }
        for index in indices.reversed() { sessions.remove(at: index) }
        for session in gone { effects.append(.closed(session.id)) }
        let leavers = gone.filter(\.holdsClaim).map { session in
            Leaver(session, recommends: session.notifiesOnExit || session.sessionClass != .app)
        }
        leave(leavers, rule == .vanished ? .vanished : .closed, at: now, rule: rule, &effects)
    }

    mutating func setForeground(_ x: Int, _ foreground: Bool) {
        guard sessions[x].standing.isForeground != foreground else { return }
        sessions[x].standing.isForeground = foreground
        sessions[x].standing.changes.insert(.foreground)
    }

    /// Whether `x` may be active as `configuration`, and which sessions that interrupts, most recently active first.
    private mutating func judge(_ x: Int, as configuration: Configuration) throws(SessionError) -> [Int] {
        let place = Place(sessions[x].standing.sessionClass, configuration)
        try judgeBackground(sessions[x], configuration, place)
        var victims: [Int] = []
        for other in sessions.indices where other != x && sessions[other].standing.isActive {
            switch Matrix.verdict(place.newcomer, over: sessions[other].standing.place.incumbent) {
            case .mix, .duck: break
            case .mixOutput:
                if configuration.category.hasInput { throw refusal(by: other, "uses the microphone") }
            case .refuse: throw refusal(by: other, "has priority")
            case .interrupt: if sessions[other].standing.conflicts(with: place) { victims.append(other) }
            }
        }
        if victims.count > 1 {
            victims.sort { sessions[$0].standing.activation > sessions[$1].standing.activation }
        }
        return victims
    }

    /// Whether its activation would be allowed.
    public func mayActivate(_ id: SessionID) -> Bool { victims(ofActivating: id) != nil }

    /// Whether its activation would be allowed and would interrupt no other session.
    public func isFreeToActivate(_ id: SessionID) -> Bool { victims(ofActivating: id)?.isEmpty ?? false }

    /// The sessions that its activation would interrupt; nil: it would be refused.
    private func victims(ofActivating id: SessionID) -> [Int]? {
        guard let x = index(of: id) else { return nil }
        var trial = self
        do throws(SessionError) {
            return try trial.judge(x, as: sessions[x].standing.configuration)
        } catch {
            return nil
        }
    }

    private func judgeBackground(
        _ session: Session, _ configuration: Configuration, _ place: Place
    ) throws(SessionError) {
        guard !session.isForeground, session.sessionClass == .app else { return }
        let comesBack = mayReturn(session, as: place)
        switch (configuration.category, configuration.isMixable) {
        case (.ambient, _), (.soloAmbient, _):
            throw SessionError(
                .cannotStartPlaying,
                "category '\(configuration.category.rawValue)' cannot start in the background; use 'playback'")
        case (.playAndRecord, true):
            guard !comesBack else { break }
            throw SessionError(
                .cannotStartRecording,
                "a 'play-and-record' that mixes cannot start in the background; wait until the session is in the "
                    + "foreground")
        case (_, true): break
        case (_, false):
            guard session.id != nowPlaying, !comesBack else { break }
            throw SessionError(
                .cannotInterruptOthers,
                "from the background, add 'mix-with-others' or wait until the session is in the foreground")
        }
    }

    /// Whether it was told to resume, and would interrupt no session that became active since: it may do so in the
    /// background, too.
    private func mayReturn(_ session: Session, as place: Place) -> Bool {
        guard let order = session.resumeOrder else { return false }
        return !sessions.contains { other in
            other.id != session.id && other.standing.isActive && other.standing.activation > order
                && other.standing.conflicts(with: place)
        }
    }

    private mutating func refusal(by other: Int, _ why: String) -> SessionError {
        let session = sessions[other]
        refuser = session.id
        return SessionError(
            .insufficientPriority,
            "\(quoted(session.name)) (\(session.sessionClass.rawValue)) \(why); try again when it has ended")
    }

    /// Makes the session the newest; sessions that are already interrupted, and that it would interrupt, also wait for
    /// it (R3).
    private mutating func claimPrecedence(_ x: Int) {
        lastOrder += 1
        sessions[x].standing.activation = lastOrder
        let id = sessions[x].id
        let place = sessions[x].standing.place
        var waiters: SessionSet = []
        for other in sessions.indices where other != x && sessions[other].standing.state == .interrupted {
            guard sessions[other].standing.conflicts(with: place), sessions[other].waitingFor.insert(id) else {
                continue
            }
            // The sessions interrupted just now are reported completely.
            if !sessions[other].standing.changes.contains(.state) { waiters.insert(sessions[other].id) }
            sessions[other].standing.changes.insert(.waitingFor)
        }
        if !waiters.isEmpty { waitChanges.append(WaitChange(owner: id, waiters: waiters, isOver: false)) }
    }

    private mutating func interrupt(
        _ victims: [Int], by x: Int, at now: Instant, rule: Rule, _ effects: inout Effects
    ) {
        for victim in victims {
            begin(victim, .default, by: sessions[x].id, sessions[x].name, at: now, rule: rule, &effects)
        }
    }
}
