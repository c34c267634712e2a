public import PluginAPI

/// One reason why a session is as it is.
public struct Explanation: Sendable, Hashable {
    public let rule: Rule
    /// One word for programs: `active`, `interrupted`, `waits-for`, `ducked`, `muted`, `refused`, `claim`, `inactive`.
    public let cause: String
    public let since: Instant
    /// A sentence for people.
    public let text: String
}

extension Arbiter {
    /// The chain of causes, from what is true of the session now back to who started it; empty where it is not there.
    public func explain(_ id: SessionID) -> [Explanation] {
        guard let session = session(id) else { return [] }
        var chain: [Explanation] = []
        var seen: Set<SessionID> = [id]
        switch session.state {
        case .active:
            chain.append(
                Explanation(rule: .matrix, cause: "active", since: session.since, text: "\(label(session)) is active"))
        case .inactive: explainInactive(session, &chain)
        case .interrupted: explainInterrupted(session, &chain, &seen)
        }
        if session.isDucked {
            let names = sessions.filter(\.standing.isDucker).map(label).joined(separator: ", ")
            chain.append(
                Explanation(
                    rule: .matrix, cause: "ducked", since: session.since,
                    text: "lowered by \(-settings.duckGain) dB while \(names) plays"))
        }
        if session.isMuted {
            let switches = [(isSilentMode, "the silent switch is on"), (isScreenLocked, "the screen is locked")]
            let why = switches.filter(\.0).map(\.1).joined(separator: " and ")
            chain.append(
                Explanation(
                    rule: .silentSwitch, cause: "muted", since: session.since,
                    text: "muted: \(why), and '\(session.configuration.category.rawValue)' obeys it"))
        }
        if let refusal = session.refusal {
            chain.append(
                Explanation(
                    rule: .matrix, cause: "refused", since: session.since,
                    text: "its last request was refused: \(refusal.message)"))
        }
        return chain
    }

    private func explainInactive(_ session: Session, _ chain: inout [Explanation]) {
        if session.claimExpires != nil {
            chain.append(
                Explanation(
                    rule: .grace, cause: "claim", since: session.since,
                    text: "its interruption has ended; it may come back within \(settings.grace) s"))
        } else {
            chain.append(
                Explanation(
                    rule: .matrix, cause: "inactive", since: session.since, text: "\(label(session)) is not active"))
        }
    }

    private func explainInterrupted(_ session: Session, _ chain: inout [Explanation], _ seen: inout Set<SessionID>) {
        guard let interruption = session.interruption else { return }
        let why =
            switch interruption.reason {
            case .default: "interrupted by \(quoted(interruption.byName))"
            case .appWasSuspended: "interrupted: its program was suspended"
            case .builtInMicMuted: "interrupted: the microphone is muted"
            case .routeDisconnected: "paused: the output it played on was disconnected"
            }
        chain.append(
            Explanation(
                rule: interruption.rule, cause: "interrupted", since: interruption.since,
                text: "\(label(session)) was \(why)"))
        for id in session.waitingFor where seen.insert(id).inserted {
            guard let other = self.session(id) else { continue }
            let state = other.claimExpires == nil ? other.state.rawValue : "may come back"
            chain.append(
                Explanation(
                    rule: .resume, cause: "waits-for", since: other.since,
                    text: "\(label(session)) waits for \(label(other)), which is \(state)"))
            if other.state == .interrupted { explainInterrupted(other, &chain, &seen) }
        }
    }

    private func label(_ session: Session) -> String {
        session.sessionClass == .app
            ? quoted(session.name) : "\(quoted(session.name)) (\(session.sessionClass.rawValue))"
    }
}
