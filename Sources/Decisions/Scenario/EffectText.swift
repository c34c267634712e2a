import PluginAPI
import SessionManager

// An effect as text: for users, and in a fixed form for programs.

extension Story {
    /// Nil for effects that only list changed properties.
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
}

extension Transcript {
    /// The fixed form; it can be compared, and must not change.
    mutating func text(of effect: Effect, rule: Rule) -> String {
        switch effect {
        case .created(let id): "\(name(id)) created \(rule.rawValue)"
        case .activated(let id): "\(name(id)) activated \(rule.rawValue)"
        case .deactivated(let id): "\(name(id)) deactivated \(rule.rawValue)"
        case .closed(let id): "\(name(id)) closed \(rule.rawValue)"
        case .interruptionBegan(let id, let interruption):
            "\(name(id)) began \(interruption.reason.rawValue) by \(interruption.by.map(name) ?? "nobody") "
                + "\(written(hideName(interruption.byName))) \(rule.rawValue)"
        case .interruptionEnded(let id, let shouldResume, let microseconds, let reason, _):
            "\(name(id)) ended \(shouldResume ? "resume" : "stay") after \(writtenTime(microseconds)) "
                + "\(reason.rawValue) \(rule.rawValue)"
        case .claimDropped(let id, _): "\(name(id)) claim-dropped \(rule.rawValue)"
        case .interruptionIgnored(let id): "\(name(id)) ignored \(rule.rawValue)"
        case .duckingChanged(let id, let ducked, let gain):
            "\(name(id)) \(ducked ? "lowered" : "raised") \(gain) \(rule.rawValue)"
        case .mutedChanged(let id, let isMuted): "\(name(id)) \(isMuted ? "muted" : "unmuted") \(rule.rawValue)"
        case .silenceSecondaryAudioHint(let id, let begin):
            "\(name(id)) hint \(begin ? "begin" : "end") \(rule.rawValue)"
        case .routeChanged(let id, let reason, let previous, let current):
            "\(id.map(name) ?? "everybody") routed \(reason.name) from \(describe(previous)) to \(describe(current)) "
                + rule.rawValue
        case .servicesLost: "server-lost \(rule.rawValue)"
        case .servicesReset: "server-reset \(rule.rawValue)"
        case .selectOutput(let id, let uid): "\(name(id)) output \(uid.map(written) ?? "any") \(rule.rawValue)"
        case .selectInput(let id, let uid): "\(name(id)) input \(uid.map(written) ?? "any") \(rule.rawValue)"
        case .propertiesChanged(let id, let properties):
            "\(name(id)) changed \(properties.words.joined(separator: ","))"
        case .waitsChanged(let change):
            "\(names(change.waiters)) \(change.isOver ? "no longer wait" : "wait") for \(name(change.owner))"
                + "\(change.spoiler == nil ? "" : " spoiled") \(rule.rawValue)"
        case .managerPropertiesChanged(let properties): "changed \(properties.words.joined(separator: ","))"
        }
    }
}
