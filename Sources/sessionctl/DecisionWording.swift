import DBus
import PluginAPI
import SessionBus

// The text for an event of the history and its effects.

extension Wording {
    /// The event of the session, in the past tense.
    static func event(_ decision: PastDecision) -> String {
        let text = eventText(decision)
        guard decision.error != nil else { return text }
        return "\(text): refused, \(forPeople(decision.message).escaped)"
    }

    private static func eventText(_ decision: PastDecision) -> String {
        let step = decision.step.split(separator: " ")
        return switch decision.event {
        case "create": "created"
        case "set-category": "changed its category"
        case "activate": "activated"
        case "deactivate": "deactivated"
        case "override-output": "changed its output"
        case "set-preferred-input": "chose its input"
        case "set-preferences": "set its preferences"
        case "close": "closed"
        case "set-foreground": step.first == "background" ? "went to the background" : "came to the foreground"
        case "set-silent-mode": "silent switch \(step.last == "on" ? "on" : "off")"
        case "set-screen-locked": "screen \(step.last == "on" ? "locked" : "unlocked")"
        case "client-vanished": "a program's connection ended"
        case "services-reset": "the sound server is connected"
        case "services-lost": "the sound server is disconnected"
        case "route-changed": "the route changed"
        case "ports-changed": "the ports changed"
        case "sounding-changed": "other streams play or record"
        case "microphone-muted": "microphone \(step.last == "muted" ? "muted" : "no longer muted")"
        case "settings-changed": "settings reloaded"
        case "interruption-ignored": "played on although it was interrupted"
        case "sleep": "the machine goes to sleep"
        case "wake": "the machine is awake"
        case "client-hangs": "did not answer, and is inactive now"
        case "claim-expired": "its grace period ended"
        default: decision.event.escaped
        }
    }

    /// The effects on other sessions, and effects on this session that the event does not imply.
    static func consequences(_ decision: PastDecision, _ names: Names) -> [String] {
        let all: [String] = decision.effects.compactMap { effect($0, of: decision, names) }
            .reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
        // The changes of all sessions' routes and of the global one have the same text, which is printed once.
        let routes = all.filter { $0.includes(" → ") }
        return all.filter { line in !routes.contains { line.hasSuffix(" " + $0) } }
    }

    /// The requests to the sound server after the decision, one on each line.
    static func requests(_ decision: PastDecision, _ names: Names) -> [String] {
        decision.requests.compactMap { fields in
            func text(_ key: String) -> String { fields[key]?.stringValue?.escaped ?? "" }
            let program = text("program").isEmpty ? "a program" : text("program")
            switch fields["request"]?.stringValue ?? "" {
            case "hold-stream": return "→ stream of \(program) held"
            case "mute-stream": return "→ stream of \(program) muted"
            case "duck-stream":
                return "→ stream of \(program) ducked \(decibels(fields["gain-db"]?.doubleValue ?? 0))"
            case "restore-stream": return "→ stream of \(program) restored"
            case "select-output": return "→ output \(text("uid")) requested"
            case "select-input": return "→ input \(text("uid")) requested"
            case "restore-output": return "→ former output requested"
            case "restore-input": return "→ former input requested"
            case "hands-free":
                return text("uid").isEmpty
                    ? "→ no headset needs its hands-free profile any more"
                    : "→ hands-free profile of \(text("uid")) requested"
            case "move-recording": return "→ recording moved to \(text("uid"))"
            case "pause-player": return "→ player \(text("player")) paused"
            case "resume-player": return "→ player \(text("player")) resumed"
            case "release-output": return "→ guard released"
            case let other: return "→ " + other.escaped
            }
        }
    }

    private static func effect(_ fields: [String: Value], of decision: PastDecision, _ names: Names) -> String? {
        let path = fields["session"]?.objectPathValue ?? ObjectPath.none
        let isSubject = path == decision.session
        let who = isSubject ? "" : names[path] + " "
        let rule = fields["rule"]?.stringValue.map { " (\($0.escaped))" } ?? ""
        switch fields["effect"]?.stringValue ?? "" {
        case "created", "closed", "activated", "deactivated":
            // For the session itself, the name of the event already says this.
            return isSubject ? nil : who + (fields["effect"]?.stringValue ?? "")
        case "interruption-began":
            // For the session itself, the event already says this.
            if decision.event == "client-hangs" { return nil }
            if decision.event == "sleep" { return who + "paused" + rule }
            let reason = fields["reason"]?.stringValue.flatMap(InterruptionReason.init(rawValue:))
            let by = fields["by"]?.objectPathValue ?? ObjectPath.none
            let name = by == ObjectPath.none ? nil : fields["by-name"]?.stringValue?.escaped
            return who + interruption(reason, by: name == names[decision.session] ? nil : name) + rule
        case "interruption-ended":
            let resumes = fields["should-resume"]?.boolValue ?? false
            return who + "\(resumes ? "should resume" : "may come back, without the should-resume hint")" + rule
        case "interruption-ignored": return who + "silenced at the sound server" + rule
        case "claim-dropped": return who + "no longer waits to come back" + rule
        case "ducking-changed":
            guard fields["ducked"]?.boolValue ?? false else { return who + "no longer ducked" }
            return who + "ducked " + decibels(fields["gain-db"]?.doubleValue ?? 0)
        case "muted-changed": return who + (fields["muted"]?.boolValue ?? false ? "muted" : "no longer muted")
        case "silence-secondary-audio-hint":
            return who + "hint: other audio \(fields["begin"]?.boolValue ?? false ? "began" : "ended")"
        case "route-changed":
            guard let previous = fields["previous"]?.route, let current = fields["current"]?.route else { return nil }
            let reason = fields["reason"]?.uint32Value ?? 0
            let text = routeChange(reason, from: previous, to: current)
            guard path == ObjectPath.none else { return who + text }
            return isOfSessions(reason) ? nil : text
        case "services-lost", "services-reset": return nil
        case "select-output": return who + "plays on " + chosen(fields, "the output of the route")
        // Some versions wrote this in its place.
        case "override-changed":
            let isOn = fields["override"]?.stringValue == "speaker"
            return who + "plays on " + (isOn ? "the loudspeaker" : "the output of the route")
        case "select-input": return who + "records from " + chosen(fields, "the input of the route")
        case let other: return (who + other).escaped
        }
    }

    private static func chosen(_ fields: [String: Value], _ usual: String) -> String {
        guard let uid = fields["uid"]?.stringValue else { return "?" }
        return uid.isEmpty ? usual : uid.escaped
    }
}

extension PastDecision {
    /// Whether it changed something for somebody: a session's state, what is heard, or a setting of the user. A session that
    /// was only created or closed, and a hint, changed nothing.
    var changesSomething: Bool {
        guard error == nil, requests.isEmpty else { return true }
        switch event {
        case "set-silent-mode", "set-screen-locked", "services-lost", "services-reset", "settings-changed",
            "microphone-muted", "client-hangs":
            return true
        // A program that ended without closing its sessions may have been heard.
        case "client-vanished": return !effects.isEmpty
        case _: break
        }
        return effects.contains { fields in
            switch fields["effect"]?.stringValue {
            case "created", "closed", "silence-secondary-audio-hint": false
            case "route-changed":
                // New settings of the same ports change nothing that is heard.
                fields["previous"]?.route.map(Self.uids) != fields["current"]?.route.map(Self.uids)
            case _: true
            }
        }
    }

    private static func uids(_ route: Route) -> [[String]] { [route.outputs.map(\.uid), route.inputs.map(\.uid)] }
}
