import PluginAPI
public import SessionManager

/// Effects and states of a run as text; names are those of the file, so they are safe to print.
public enum Story {
    /// The state of a session in a few words.
    public static func state(of session: Session, _ run: Run) -> String {
        var words = [session.state.rawValue]
        if let interruption = session.interruption {
            if let by = interruption.by { words.append("by \(run.label(by))") }
            if interruption.reason != .default { words.append("(\(interruption.reason.rawValue))") }
            words.append(
                "and waits for "
                    + (session.waitingFor.isEmpty
                        ? "nobody" : session.waitingFor.map(run.label).joined(separator: ", ")))
        }
        if session.claimExpires != nil { words.append("and may return") }
        if session.isDucked { words.append("and ducked") }
        if session.isMuted { words.append("and muted") }
        return words.joined(separator: " ")
    }

    /// The same for a narrow column.
    public static func shortState(of session: Session?) -> String {
        guard let session else { return "gone" }
        var word =
            switch session.state {
            case .active: "active"
            case .interrupted: "interrupted"
            case .inactive: session.claimExpires == nil ? "–" : "may return"
            }
        if session.isDucked { word += ", ducked" }
        if session.isMuted { word += ", muted" }
        return word
    }

    /// All effects of a decision, each with its rule.
    public static func events(of decision: Decision, _ run: Run) -> [String] {
        let refusal = decision.refusal.map { "refused: \($0) (\(decision.rule.rawValue))" }
        return (refusal.map { [$0] } ?? []) + decision.effects.compactMap { event($0, of: decision, run) }
    }

    /// The same for effects that are sent to clients; nil for those that only confirm the step.
    static func told(_ effect: Effect, of decision: Decision, _ run: Run) -> String? {
        effect.kind.traits.contains(.isNotified) ? event(effect, of: decision, run) : nil
    }
}
