import DBus
import EventLoop
import PluginAPI
import SessionBus

/// What `sessionctl monitor` tells people: one sentence for what they would hear, and nothing about the rest.
///
/// It knows the state of each session, because the end of a call, for example, arrives as a dozen signals.
struct MonitorStory {
    private struct Actor {
        var name: String
        var kind: Kind
        var state: SessionState
        /// When it became active, in microseconds; nil: it is not, or was so before this program started.
        var activeSince: UInt64?
        /// It was interrupted, and has not been active since.
        var wasInterrupted = false
        /// The end of that interruption has been reported.
        var isReleased = false
    }

    /// What a session does while it is active.
    private enum Kind {
        case call, alert, prompt, recording, chat, sound

        init(_ session: SessionInfo) {
            switch session.sessionClass {
            case .call: self = .call
            case .alert: self = .alert
            case .app, nil:
                switch Mode(rawValue: session.mode) {
                case .voicePrompt: self = .prompt
                case .voiceChat, .videoChat, .gameChat: self = .chat
                case .videoRecording: self = .recording
                case .spokenAudio, .moviePlayback, .measurement, .default, nil:
                    self = session.category == "record" ? .recording : session.isDucker ? .prompt : .sound
                }
            }
        }
    }

    private var actors: [String: Actor] = [:]

    /// A session as it is now.
    mutating func learn(_ session: SessionInfo) {
        let state = session.state ?? .inactive
        actors[session.path] = Actor(
            name: session.programName.escaped, kind: Kind(session), state: state,
            activeSince: state == .active && session.since > 0 ? session.since : nil,
            wasInterrupted: state == .interrupted)
    }

    mutating func forgetAll() { actors = [:] }

    /// The sentences for a signal that arrived at that time, in microseconds of the daemon's clock.
    mutating func lines(_ signal: HeardSignal, _ names: Names, at now: UInt64) -> [HeardSignal.Line] {
        switch (signal.member, signal.arguments.count) {
        case ("InterfacesAdded", 2):
            guard let session = signal.addedSession else { return [] }
            learn(session)
            // An adopted session may be active from its beginning.
            return session.state == .active ? actors[session.path].map { [began($0)] } ?? [] : []
        case ("InterfacesRemoved", 2): return removed(signal.arguments[0].objectPathValue ?? "", now)
        case ("PropertiesChanged", 3): return changed(signal, names, now)
        case ("InterruptionBegan", 2): return interrupted(signal)
        case ("InterruptionEnded", 2):
            actors[signal.path]?.isReleased = true
            guard let actor = actors[signal.path], signal.arguments[0].boolValue == false else { return [] }
            return [line("\(actor.name) may resume, but was not asked to")]
        case ("DuckingChanged", 2):
            guard let actor = actors[signal.path] else { return [] }
            return signal.arguments[0].boolValue ?? false
                ? [line("\(actor.name) is ducked \(Wording.decibels(signal.arguments[1].doubleValue ?? 0))")]
                : [line("\(actor.name) is no longer ducked")]
        case ("RouteChanged", 3):
            // The signals of the sessions say the same.
            return ObjectPath.sessionID(signal.path) == nil ? signal.lines(names).map { whole($0) } : []
        case ("ServicesLost", _): return signal.lines(names).map { line($0.text, $0.style) }
        case ("StateChanged", 3):
            let state = signal.arguments[1].stringValue ?? ""
            guard Wording.pluginStyle(state) == .bad else { return [] }
            return signal.lines(names).map { whole($0) }
        default: return []
        }
    }

    // MARK: One kind of signal after the other

    private mutating func removed(_ path: String, _ now: UInt64) -> [HeardSignal.Line] {
        guard let actor = actors.removeValue(forKey: path) else { return [] }
        switch actor.state {
        case .active: return [ended(actor, now)]
        case .interrupted: return [line("\(actor.name) ended while it waited", .dim)]
        case .inactive: return []
        }
    }

    private func interrupted(_ signal: HeardSignal) -> [HeardSignal.Line] {
        guard let actor = actors[signal.path] else { return [] }
        let details = signal.arguments[1].asProperties ?? [:]
        let by = details["by"]?.objectPathValue ?? ObjectPath.none
        let name = by == ObjectPath.none ? nil : details["by-name"]?.stringValue?.escaped
        let reason = signal.arguments[0].stringValue.flatMap(InterruptionReason.init(rawValue:))
        return [line("\(actor.name) is \(Wording.interruption(reason, by: name))", .warning)]
    }

    private mutating func changed(_ signal: HeardSignal, _ names: Names, _ now: UInt64) -> [HeardSignal.Line] {
        var lines: [HeardSignal.Line] = []
        for entry in signal.arguments[1].dictionaryValue ?? [] {
            let value = entry.value.unwrapped
            let isOn = value.boolValue ?? false
            switch entry.key.stringValue {
            case "State":
                guard let state = value.stringValue.flatMap(SessionState.init(rawValue:)) else { continue }
                lines += entered(state, signal.path, now)
            case "Muted":
                guard let actor = actors[signal.path] else { continue }
                lines.append(line("\(actor.name) is \(isOn ? "muted" : "no longer muted")", isOn ? .warning : .plain))
            case "IgnoredInterruption":
                guard isOn, let actor = actors[signal.path] else { continue }
                lines.append(line("\(actor.name) \(Wording.ignored)", .warning))
            case "SilentMode": lines.append(line("silent switch \(isOn ? "on" : "off")", isOn ? .warning : .plain))
            case "ScreenLocked": lines.append(line("screen \(isOn ? "locked" : "unlocked")"))
            case "ServerName":
                let server = ServerLabel(value.stringValue ?? "").text
                if !server.isEmpty { lines.append(line("connected to \(server.escaped)", .good)) }
            case "Name": actors[signal.path]?.name = value.stringValue?.escaped ?? ""
            case _: continue
            }
        }
        return lines
    }

    private mutating func entered(_ state: SessionState, _ path: String, _ now: UInt64) -> [HeardSignal.Line] {
        guard var actor = actors[path], actor.state != state else { return [] }
        let before = actor.state
        var lines: [HeardSignal.Line] = []
        switch state {
        case .active:
            lines = [actor.wasInterrupted ? line("\(actor.name) \(goesOn(actor))", .good) : began(actor)]
            (actor.activeSince, actor.wasInterrupted, actor.isReleased) = (now, false, false)
        case .interrupted: (actor.wasInterrupted, actor.isReleased) = (true, false)
        case .inactive:
            if before == .active {
                lines = [ended(actor, now)]
                (actor.activeSince, actor.wasInterrupted) = (nil, false)
            } else if !actor.isReleased {
                lines = [line("\(actor.name) no longer waits", .dim)]
                actor.wasInterrupted = false
            }
        }
        actor.state = state
        actors[path] = actor
        return lines
    }

    // MARK: Sentences

    private func line(_ text: String, _ style: Style = .plain) -> HeardSignal.Line {
        HeardSignal.Line(subject: "", text: text, style: style)
    }

    private func whole(_ other: HeardSignal.Line) -> HeardSignal.Line {
        line("\(other.subject): \(other.text)", other.style)
    }

    private func began(_ actor: Actor) -> HeardSignal.Line {
        let text =
            switch actor.kind {
            case .call: "\(actor.name)'s call began"
            case .alert: "\(actor.name) plays an alert"
            case .prompt: "\(actor.name) speaks"
            case .recording: "\(actor.name) records"
            case .chat: "\(actor.name)'s chat began"
            case .sound: "\(actor.name) plays"
            }
        return line(text, .good)
    }

    private func goesOn(_ actor: Actor) -> String {
        switch actor.kind {
        case .call: "continues its call"
        case .alert: "continues its alert"
        case .prompt: "continues to speak"
        case .recording: "continues to record"
        case .chat: "continues its chat"
        case .sound: "resumes"
        }
    }

    private func ended(_ actor: Actor, _ now: UInt64) -> HeardSignal.Line {
        let what =
            switch actor.kind {
            case .call: "\(actor.name)'s call ended"
            case .chat: "\(actor.name)'s chat ended"
            case .alert, .prompt, .recording, .sound: "\(actor.name) stopped"
            }
        return line(what + (actor.activeSince.map { " after " + Wording.age($0, now) } ?? ""), .dim)
    }
}
