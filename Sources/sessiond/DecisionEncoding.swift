import DBus
import PluginAPI
import Scenario
import SessionBus
import SessionManager

// The form of a decision on the bus: History, and Explain.

extension Value {
    init(_ decision: Decision) {
        var fields: [(String, Value)] = [
            ("sequence", .uint64(decision.sequence)), ("time-usec", .uint64(decision.time.microseconds)),
            ("event", .string(decision.event.name)), ("session", Value(decision.session ?? decision.created)),
            ("name", .string(decision.name)), ("rule", .string(decision.rule.rawValue)),
            ("step", .string(Transcript.step(of: decision))),
            ("effects", .array(of: "a{sv}", decision.effects.compactMap { Value(effect: $0, of: decision) })),
        ]
        if let refusal = decision.refusal {
            fields.append(("error", .string(BusName.errorPrefix + refusal.code.rawValue)))
            fields.append(("message", .string(refusal.message)))
        }
        self = .properties(fields)
    }

    init(_ explanation: Explanation) {
        var fields: [(String, Value)] = [
            ("rule", .string(explanation.rule.rawValue)), ("cause", .string(explanation.cause)),
            ("since-usec", .uint64(explanation.since.microseconds)), ("text", .string(explanation.text)),
            ("session", Value(explanation.session)), ("by", Value(explanation.by)),
        ]
        if let until = explanation.until { fields.append(("until-usec", .uint64(until.microseconds))) }
        if let error = explanation.error { fields.append(("error", .string(BusName.errorPrefix + error.rawValue))) }
        self = .properties(fields)
    }

    /// Nil for effects that only say which properties changed.
    private init?(effect: Effect, of decision: Decision) {
        let rule = Value.string(decision.rule(of: effect).rawValue)
        func fields(_ name: String, _ id: SessionID?, _ more: [(String, Value)] = []) -> Value {
            .properties([("effect", .string(name)), ("session", Value(id))] + more + [("rule", rule)])
        }
        switch effect {
        case .created(let id): self = fields("created", id)
        case .activated(let id): self = fields("activated", id)
        case .deactivated(let id): self = fields("deactivated", id)
        case .closed(let id): self = fields("closed", id)
        case .interruptionBegan(let id, let interruption):
            self = fields(
                "interruption-began", id,
                [
                    ("reason", .string(interruption.reason.rawValue)), ("by", Value(interruption.by)),
                    ("by-name", .string(interruption.byName)),
                ])
        case .interruptionEnded(let id, let shouldResume, let duration, let reason, _):
            self = fields(
                "interruption-ended", id,
                [
                    ("should-resume", .bool(shouldResume)), ("duration-usec", .uint64(duration)),
                    ("reason", .string(reason.rawValue)),
                ])
        case .claimDropped(let id, _): self = fields("claim-dropped", id)
        case .interruptionIgnored(let id): self = fields("interruption-ignored", id)
        case .duckingChanged(let id, let ducked, let gain):
            self = fields("ducking-changed", id, [("ducked", .bool(ducked)), ("gain-db", .double(gain))])
        case .mutedChanged(let id, let muted): self = fields("muted-changed", id, [("muted", .bool(muted))])
        case .silenceSecondaryAudioHint(let id, let begin):
            self = fields("silence-secondary-audio-hint", id, [("begin", .bool(begin))])
        case .routeChanged(let id, let reason, let previous, let current):
            self = fields(
                "route-changed", id,
                [("reason", .uint32(reason.rawValue)), ("previous", Value(previous)), ("current", Value(current))])
        case .servicesLost: self = fields("services-lost", nil)
        case .servicesReset: self = fields("services-reset", nil)
        case .selectOutput(let id, let uid): self = fields("select-output", id, [("uid", .string(uid ?? ""))])
        case .selectInput(let id, let uid): self = fields("select-input", id, [("uid", .string(uid ?? ""))])
        case .propertiesChanged, .waitsChanged, .managerPropertiesChanged: return nil
        }
    }
}
