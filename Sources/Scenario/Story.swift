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

    /// Nil for effects that only say which properties changed.
    static func event(_ effect: Effect, of decision: Decision, _ run: Run) -> String? {
        let rule = " (\(decision.rule(of: effect).rawValue))"
        let who = effect.session.map(run.label) ?? ""
        switch effect {
        case .created: return "\(who) created\(rule)"
        case .activated: return "\(who) activated\(rule)"
        case .deactivated: return "\(who) deactivated\(rule)"
        case .closed: return "\(who) closed\(rule)"
        case .interruptionBegan(_, let interruption):
            let by = interruption.by.map { " by \(run.label($0))" } ?? ""
            let reason = interruption.reason == .default ? "" : " \(interruption.reason.rawValue)"
            return "\(who) began\(by)\(reason)\(rule)"
        case .interruptionEnded(_, let shouldResume, _, _, _):
            return "\(who) ended \(shouldResume ? "resume" : "stay")\(rule)"
        case .claimDropped: return "\(who) claim-dropped\(rule)"
        case .interruptionIgnored: return "\(who) ignored its interruption\(rule)"
        case .duckingChanged(_, let ducked, let gain):
            return ducked ? "\(who) ducked \(gain) dB\(rule)" : "\(who) not ducked\(rule)"
        case .mutedChanged(_, let isMuted): return "\(who) \(isMuted ? "" : "not ")muted\(rule)"
        case .silenceSecondaryAudioHint(_, let begin): return "\(who) hint \(begin ? "begin" : "end")\(rule)"
        case .routeChanged(let id, let reason, _, _):
            return "\(id == nil ? "everybody" : who) routed \(reason.name)\(rule)"
        case .servicesLost: return "the sound server is disconnected\(rule)"
        case .servicesReset: return "the sound server is connected\(rule)"
        case .selectOutput(_, let uid): return "\(who) plays on \(uid.map(written) ?? "the route's output")\(rule)"
        case .selectInput(_, let uid): return "\(who) records from \(uid.map(written) ?? "the route's input")\(rule)"
        case .propertiesChanged, .waitsChanged, .managerPropertiesChanged: return nil
        }
    }

    /// The same for effects that are sent to clients; nil for those that only confirm the step.
    static func told(_ effect: Effect, of decision: Decision, _ run: Run) -> String? {
        effect.kind.traits.contains(.isNotified) ? event(effect, of: decision, run) : nil
    }
}
