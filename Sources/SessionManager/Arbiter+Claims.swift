import PluginAPI

/// Interruptions, waiting and claims (rules R1 to R12).
extension Arbiter {
    mutating func setState(_ x: Int, _ state: SessionState, at now: Instant) {
        guard sessions[x].standing.state != state else { return }
        if sessions[x].ignoredSince != nil {
            sessions[x].ignoredSince = nil
            sessions[x].standing.changes.insert(.ignored)
        }
        if sessions[x].lackCause != nil { sessions[x].lackCause = nil }
        sessions[x].standing.state = state
        sessions[x].since = now
        sessions[x].standing.changes.insert(.state)
    }

    /// R1, R2: the session becomes silent and inactive first, then gets its signal, once per interruption.
    mutating func begin(
        _ x: Int, _ reason: InterruptionReason, by: SessionID?, _ name: String, away: [AwayOutput] = [],
        at now: Instant,
        rule: Rule, _ effects: inout Effects
    ) {
        lastOrder += 1
        let interruption = Interruption(
            reason: reason, by: by, byName: name, since: now, rule: rule, order: lastOrder,
            microphoneMuted: reason == .builtInMicMuted, away: away)
        sessions[x].interruption = interruption
        setState(x, .interrupted, at: now)
        sessions[x].cause = Cause(.interrupted, rule, at: now, by: by, name)
        sessions[x].standing.changes.insert(.interruptionReason)
        effects.restrict(.interruptionBegan(sessions[x].id, interruption))
    }

    /// A session that others waited for has left. Removes these waits, and reports the interruptions that end.
    mutating func leave(
        _ gone: [Leaver], _ kind: Cause.Kind, at now: Instant, rule: Rule, _ effects: inout Effects
    ) {
        guard !gone.isEmpty else { return }
        var released: [Int] = []
        // Only interrupted sessions wait.
        for leaver in gone {
            let spoiler = leaver.recommends ? nil : Cause(kind, rule, at: now, by: leaver.id, leaver.name)
            stopWaiting(for: leaver.id, spoiler) { released.append($0) }
        }
        // If several sessions left together, any of them may count as the one that released the waiting session; use
        // the last.
        end(released, by: gone.last, at: now, rule: rule, &effects)
    }

    /// Ends a wait between two sessions that no longer conflict, without the should-resume hint (§1).
    mutating func dissolveWaits(
        of x: Int, at now: Instant, rule: Rule = .category, _ effects: inout Effects
    ) {
        var released: [Int] = []
        let place = sessions[x].standing.place
        let spoiler = Cause(.dissolved, rule, at: now, by: sessions[x].id, sessions[x].name)
        stopWaiting(
            for: sessions[x].id, spoiler, where: { !$0.standing.conflicts(with: place) }, { released.append($0) })
        if sessions[x].standing.state == .interrupted {
            let isFreed = sessions[x].interruption?.microphoneMuted == true && !obeysMutedMicrophone(x)
            if isFreed { sessions[x].interruption?.microphoneMuted = false }
            var isDissolved = false
            for id in sessions[x].waitingFor {
                guard let other = index(of: id), !sessions[x].standing.conflicts(with: sessions[other].standing.place)
                else { continue }
                isDissolved = true
                sessions[x].waitingFor.remove(id)
                sessions[x].standing.changes.insert(.waitingFor)
                spoil(x, Cause(.dissolved, rule, at: now, by: id, sessions[other].name))
            }
            if isFreed, !isDissolved { spoil(x, Cause(.dissolved, rule, at: now)) }
            if isFreed || isDissolved, isOver(x) { released.append(x) }
        }
        end(released, by: nil, at: now, rule: rule, &effects)
    }

    /// R6: claims that expired.
    mutating func expireClaims(at now: Instant, _ effects: inout Effects) {
        var expired: [Leaver] = []
        for x in sessions.indices {
            guard let expiry = sessions[x].standing.claimExpires, expiry <= now else { continue }
            sessions[x].standing.claimExpires = nil
            sessions[x].ended = nil
            sessions[x].resumeOrder = nil
            sessions[x].cause = Cause(.ranOut, .grace, at: now)
            expired.append(Leaver(sessions[x], recommends: false))
            effects.append(.claimDropped(sessions[x].id, rule: .grace))
        }
        leave(expired, .ranOut, at: now, rule: .grace, &effects)
        // A session without waits is usually released at once. The exception is a session whose last wait a restart
        // left out.
        let waitless = sessions.indices.filter { sessions[$0].standing.state == .interrupted && isOver($0) }
        end(waitless, by: nil, at: now, rule: .vanished, &effects)
    }

    /// Ends the interruption, the waits and the grace period of a session, and sets its state.
    mutating func dropClaim(_ x: Int, _ state: SessionState, at now: Instant) {
        if sessions[x].interruption != nil { sessions[x].standing.changes.insert(.interruptionReason) }
        if !sessions[x].waitingFor.isEmpty { sessions[x].standing.changes.insert(.waitingFor) }
        sessions[x].interruption = nil
        sessions[x].ended = nil
        // A session that waited once may wait again: keep its memory.
        sessions[x].waitingFor.empty()
        sessions[x].resumeOrder = nil
        sessions[x].standing.claimExpires = nil
        setState(x, state, at: now)
    }

    /// The session got `began`, but its streams still played at the server after its deadline.
    mutating func ignored(_ x: Int, at now: Instant, _ effects: inout Effects) {
        guard sessions[x].standing.state == .interrupted, sessions[x].ignoredSince == nil else { return }
        sessions[x].ignoredSince = now
        sessions[x].standing.changes.insert(.ignored)
        effects.append(.interruptionIgnored(sessions[x].id))
    }

    /// A muted microphone interrupts the sessions that record from it, most recently active first (§4); unmuting releases
    /// them (§2, §5).
    mutating func microphoneMuted(_ muted: Bool, at now: Instant, _ effects: inout Effects) {
        guard isMicrophoneMuted != muted else { return }
        isMicrophoneMuted = muted
        remembersMore = true
        if muted {
            let victims = sessions.indices.filter {
                sessions[$0].standing.isActive && obeysMutedMicrophone($0) && mayRecordFromBuiltIn(sessions[$0])
            }
            for x in victims.sorted(by: { sessions[$0].standing.activation > sessions[$1].standing.activation }) {
                begin(x, .builtInMicMuted, by: nil, "", at: now, rule: .microphone, &effects)
            }
            return
        }
        var released: [Int] = []
        for x in sessions.indices where sessions[x].interruption?.microphoneMuted == true {
            sessions[x].interruption?.microphoneMuted = false
            if isOver(x) { released.append(x) }
        }
        end(released, by: nil, at: now, rule: .microphone, &effects)
    }

    /// Whether it has no other microphone.
    private func mayRecordFromBuiltIn(_ session: Session) -> Bool {
        let inputs = route(of: session).inputs
        return inputs.isEmpty || inputs.contains { $0.type == .microphoneBuiltIn }
    }

    private func obeysMutedMicrophone(_ x: Int) -> Bool {
        let configuration = sessions[x].standing.configuration
        return sessions[x].standing.sessionClass == .app && configuration.category.hasInput
            && !configuration.options.contains(.overrideMutedMicrophoneInterruption)
    }

    /// Last interrupted first (R10), each once; then each has its grace period to come back (R6).
    mutating func end(
        _ released: [Int], by leaver: Leaver?, at now: Instant, rule: Rule, _ effects: inout Effects
    ) {
        var released = released
        if released.count > 1 {
            released.sort { sessions[$0].interruption?.order ?? 0 > sessions[$1].interruption?.order ?? 0 }
        }
        for x in released {
            guard let interruption = sessions[x].interruption else { continue }
            let duration = now.since(interruption.since)
            let isFresh = settings.maxAge <= 0 || now <= interruption.since.advanced(bySeconds: settings.maxAge)
            sessions[x].interruption = nil
            sessions[x].ended = interruption
            sessions[x].cause = Cause(.released, rule, at: now, by: leaver?.id, leaver?.name ?? "")
            sessions[x].standing.claimExpires = now.advanced(bySeconds: settings.grace)
            setState(x, .inactive, at: now)
            sessions[x].resumeOrder = interruption.mayResume && isFresh ? lastOrder : nil
            sessions[x].standing.changes.insert(.interruptionReason)
            effects.grant(
                .interruptionEnded(
                    sessions[x].id, shouldResume: sessions[x].mayResume, microseconds: duration,
                    reason: interruption.reason, rule: rule))
        }
    }

    func isOver(_ x: Int) -> Bool {
        guard let interruption = sessions[x].interruption else { return false }
        return sessions[x].waitingFor.isEmpty && !interruption.microphoneMuted && interruption.endsByItself
            && !(isAsleep && interruption.reason == .appWasSuspended)
    }

    /// Removes the waits for sessions that `matches`. `over`: the sessions that have no wait left.
    ///
    /// R8: a session should resume only if all sessions that it waited for recommended it. The first that did not is
    /// kept as the reason.
    private mutating func stopWaiting(
        for gone: SessionID, _ spoiler: Cause?, where matches: (Session) -> Bool = { _ in true },
        _ over: (Int) -> Void
    ) {
        var waiters: SessionSet = []
        // Only interrupted sessions wait.
        for x in sessions.indices where sessions[x].standing.state == .interrupted {
            guard sessions[x].waitingFor.contains(gone), matches(sessions[x]) else { continue }
            sessions[x].waitingFor.remove(gone)
            sessions[x].standing.changes.insert(.waitingFor)
            if let spoiler { spoil(x, spoiler) }
            if isOver(x) { over(x) } else { waiters.insert(sessions[x].id) }
        }
        if !waiters.isEmpty {
            waitChanges.append(WaitChange(owner: gone, waiters: waiters, isOver: true, spoiler: spoiler))
        }
    }

    mutating func spoil(_ x: Int, _ spoiler: Cause) {
        if sessions[x].interruption?.spoiler == nil { sessions[x].interruption?.spoiler = spoiler }
    }
}

/// A session for which others may have waited, and which no longer blocks them.
struct Leaver {
    let id: SessionID
    let name: String
    let recommends: Bool

    init(_ session: Session, recommends: Bool) {
        id = session.id
        name = session.name
        self.recommends = recommends
    }
}
