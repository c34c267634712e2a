import DBus
import Decider
import Enforcement
import PluginAPI
import Scenario
import SessionBus
import SessionManager

// The form of a decision on the bus: History, and Explain; and of a stream: ListStreams.

extension Value {
    init(_ entry: History.Entry) {
        let decision = entry.decision
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
        if !entry.requests.isEmpty {
            fields.append(("requests", .array(of: "a{sv}", entry.requests.map { Value($0) })))
        }
        self = .properties(fields)
    }

    private init(_ request: History.Request) {
        self = .properties(
            [
                ("request", .string(request.name)), ("session", Value(request.session)),
                ("time-usec", .uint64(request.time.microseconds)),
            ] + request.fields.map { ($0.name, Value($0.value)) })
    }

    init(_ explanation: Explanation) {
        var fields: [(String, Value)] = [
            ("rule", .string(explanation.rule.rawValue)), ("cause", .string(explanation.cause)),
            ("since-usec", .uint64(explanation.since.microseconds)), ("text", .string(explanation.text)),
            ("session", Value(explanation.session)), ("by", Value(explanation.by)),
        ]
        if let until = explanation.until { fields.append(("until-usec", .uint64(until.microseconds))) }
        if !explanation.byName.isEmpty { fields.append(("by-name", .string(explanation.byName))) }
        if let error = explanation.error {
            fields.append(("error", .string(BusName.errorPrefix + error.code.rawValue)))
            fields.append(("message", .string(error.message)))
        }
        self = .properties(fields)
    }

    init(_ listed: ListedStream) {
        let stream = listed.stream
        var fields: [(String, Value)] = [
            ("direction", .string(stream.direction == .playback ? "playback" : "record")),
            ("number", .uint32(stream.id.number)), ("program", .string(listed.program.prefix(bytes: 255))),
            ("process", .uint32(stream.processID ?? 0)), ("role", .string(stream.role?.prefix(bytes: 255) ?? "")),
            ("device", .string(stream.deviceName.prefix(bytes: 255))), ("running", .bool(!stream.isCorked)),
            ("sessions", .objectPaths(listed.sessions.map(ObjectPath.session))),
        ]
        if let reason = listed.reason {
            fields.append(("reason", .string(reason.rawValue)))
            fields.append(("text", .string(reason.text(program: listed.program.prefix(bytes: 255)))))
        }
        self = .properties(fields)
    }

    /// Nil for effects that only list changed properties.
    private init?(effect: Effect, of decision: Decision) {
        guard !effect.kind.traits.contains(.isProperty) else { return nil }
        self = .properties(
            [("effect", .string(effect.kind.rawValue)), ("session", Value(effect.session))]
                + effect.fields.map { ($0.name, Value($0.value)) }
                + [("rule", .string(decision.rule(of: effect).rawValue))])
    }

    private init(_ field: Effect.Field) {
        self =
            switch field {
            case .text(let text): .string(text)
            case .flag(let flag): .bool(flag)
            case .session(let id): Value(id)
            case .microseconds(let duration): .uint64(duration)
            case .decibels(let gain): .double(gain)
            case .number(let number): .uint32(number)
            case .route(let route): Value(route)
            }
    }
}
