public import PluginAPI

/// Programs that cannot play for a while: the machine sleeps, or a client hangs (rules §5).
extension Arbiter {
    /// Whether an app is active: then the machine must not sleep before it has been interrupted.
    public var hasActiveApp: Bool {
        sessions.contains { $0.standing.isActive && $0.standing.sessionClass == .app }
    }

    /// The machine is about to sleep: every active app is interrupted, the most recently active one first. Calls and
    /// alerts get no signal. What was interrupted before keeps its waits.
    mutating func sleep(at now: Instant, _ effects: inout Effects) {
        guard settings.pausesForSleep, !isAsleep else { return }
        isAsleep = true
        remembersMore = true
        let victims = sessions.indices.filter {
            sessions[$0].standing.isActive && sessions[$0].standing.sessionClass == .app
        }
        for x in victims.sorted(by: { sessions[$0].standing.activation > sessions[$1].standing.activation }) {
            begin(x, .appWasSuspended, by: nil, "", at: now, rule: .suspended, &effects)
        }
        guard !settings.resumesAfterSleep else { return }
        for x in sessions.indices
        where sessions[x].standing.state == .interrupted && sessions[x].standing.sessionClass == .app {
            spoil(x, Cause(.slept, .suspended, at: now))
        }
    }

    /// The machine has woken up: what was interrupted for its sleep, and waits for nobody, is released.
    mutating func wake(at now: Instant, _ effects: inout Effects) {
        guard isAsleep else { return }
        isAsleep = false
        remembersMore = true
        let slept = sessions.indices.filter { sessions[$0].interruption?.reason == .appWasSuspended && isOver($0) }
        end(slept, by: nil, at: now, rule: .suspended, &effects)
    }

    /// The client does not answer: its session becomes inactive, as if it had deactivated without notify-others, and is
    /// notified. Calls and alerts go on.
    mutating func clientHangs(_ x: Int, at now: Instant, _ effects: inout Effects) {
        guard sessions[x].standing.isActive, sessions[x].standing.sessionClass == .app else { return }
        lastOrder += 1
        let interruption = Interruption(
            reason: .appWasSuspended, by: nil, byName: "", since: now, rule: .suspended, order: lastOrder)
        dropClaim(x, .inactive, at: now)
        sessions[x].cause = Cause(.hung, .suspended, at: now)
        effects.restrict(.interruptionBegan(sessions[x].id, interruption))
        effects.restrict(.deactivated(sessions[x].id))
        leave([Leaver(sessions[x], recommends: false)], .hung, at: now, rule: .suspended, &effects)
    }

    /// Since when the active session lowers others without a break; nil: it lowers nobody.
    public func lowersSince(_ id: SessionID) -> Instant? {
        guard let x = index(of: id), sessions[x].standing.isDucker else { return nil }
        let lowered = sessions.indices.compactMap { sessions[$0].duckCause?.since }.min()
        return lowered.map { max($0, sessions[x].since) }
    }

    /// Since when the active session keeps others interrupted without a break; nil: nobody waits for it.
    public func interruptsSince(_ id: SessionID) -> Instant? {
        guard let x = index(of: id), sessions[x].standing.isActive else { return nil }
        let waiting = sessions.indices.compactMap { other in
            sessions[other].waitingFor.contains(id) ? sessions[other].interruption?.since : nil
        }
        return waiting.min().map { max($0, sessions[x].since) }
    }
}
