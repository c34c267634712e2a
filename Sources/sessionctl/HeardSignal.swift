import DBus
import PluginAPI
import SessionBus

/// A signal of the daemon, and its text.
struct HeardSignal {
    let path: String
    let interface: String
    let member: String
    let arguments: [Value]

    struct Line {
        let subject: String
        let text: String
        var style = Style.plain
    }

    /// The arguments by their names in the interface description.
    var named: Value {
        let names: [String]
        switch member {
        case "InterruptionBegan": names = ["reason", "details"]
        case "InterruptionEnded": names = ["should_resume", "details"]
        case "RouteChanged": names = ["reason", "previous", "current"]
        case "SilenceSecondaryAudioHint": names = ["begin"]
        case "DuckingChanged": names = ["ducked", "gain_db"]
        case "PropertiesChanged": names = ["interface_name", "changed_properties", "invalidated_properties"]
        case "InterfacesAdded": names = ["object_path", "interfaces_and_properties"]
        case "InterfacesRemoved": names = ["object_path", "interfaces"]
        case "StateChanged": names = ["id", "state", "message"]
        default: names = []
        }
        return .properties(
            arguments.enumerated().map { ($0 < names.count ? names[$0] : "argument\($0)", $1) })
    }

    /// The session in InterfacesAdded.
    var addedSession: SessionInfo? {
        guard arguments.count == 2, let path = arguments[0].objectPathValue,
            let entry = arguments[1].dictionaryValue?.first(where: { $0.key.stringValue == BusName.session }),
            case .dictionary(let key, let value, let entries) = entry.value
        else { return nil }
        let listed = DictionaryEntry(key: .string("path"), value: .variant(.objectPath(path)))
        return SessionInfo(.dictionary(key: key, value: value, entries + [listed]))
    }

    /// The lines for the user; none if another signal has the same information.
    func lines(_ names: Names) -> [Line] {
        let subject = ObjectPath.sessionID(path) == nil ? "sessiond" : names[path]
        switch (member, arguments.count) {
        case ("InterfacesAdded", 2):
            guard let session = addedSession else { return [] }
            return [
                Line(
                    subject: session.name.escaped,
                    text: "created: \(Wording.exactKind(session)), pid \(session.processID)")
            ]
        case ("InterfacesRemoved", 2):
            return [Line(subject: names[arguments[0].objectPathValue ?? ""], text: "closed", style: .dim)]
        case ("PropertiesChanged", 3):
            let values = (arguments[1].dictionaryValue ?? []).compactMap { entry in
                propertyLine(entry.key.stringValue ?? "", entry.value.unwrapped, subject, names)
            }
            // With many sessions, the property is sent without its value.
            let isLong = arguments[2].stringsValue?.contains("WaitingFor") == true
            return values + (isLong ? [Line(subject: subject, text: "waits for many sessions", style: .dim)] : [])
        default:
            guard let line = eventLine(subject) else { return [] }
            return [line]
        }
    }

    private func eventLine(_ subject: String) -> Line? {
        if member == "RouteChanged", arguments.count == 3, let previous = arguments[1].route,
            let current = arguments[2].route
        {
            let reason = arguments[0].uint32Value ?? 0
            let text = Wording.routeChange(reason, from: previous, to: current)
            guard subject == "sessiond" else { return Line(subject: subject, text: text) }
            return Wording.isOfSessions(reason) ? nil : Line(subject: "Route", text: text)
        }
        switch (member, arguments.count) {
        case ("InterruptionBegan", 2):
            let details = arguments[1].asProperties ?? [:]
            let by = details["by"]?.objectPathValue == ObjectPath.none ? nil : details["by-name"]?.stringValue?.escaped
            let reason = arguments[0].stringValue.flatMap(InterruptionReason.init(rawValue:))
            return Line(subject: subject, text: Wording.interruption(reason, by: by), style: .warning)
        case ("InterruptionEnded", 2):
            let length = arguments[1].asProperties?["duration-usec"]?.uint64Value ?? 0
            let resumes = arguments[0].boolValue ?? false
            return Line(
                subject: subject,
                text: "interruption over after \(Wording.duration(length)): "
                    + (resumes ? "should resume" : "without the should-resume hint"),
                style: resumes ? .good : .plain)
        case ("DuckingChanged", 2):
            let isDucked = arguments[0].boolValue ?? false
            return Line(
                subject: subject,
                text: isDucked ? "ducked \(Wording.decibels(arguments[1].doubleValue ?? 0))" : "no longer ducked")
        case ("SilenceSecondaryAudioHint", 1):
            return Line(
                subject: subject,
                text: arguments[0].boolValue ?? false
                    ? "should keep secondary audio silent: another session plays"
                    : "may play secondary audio: no other session plays")
        case ("ServicesLost", _): return Line(subject: subject, text: "the sound server is disconnected", style: .bad)
        case ("ServicesReset", _): return Line(subject: subject, text: "the sound server is connected", style: .good)
        case ("StateChanged", 3):
            let state = arguments[1].stringValue ?? ""
            let message = arguments[2].stringValue ?? ""
            return Line(
                subject: arguments[0].stringValue?.escaped ?? "",
                text: "plugin \(state.escaped)" + (message.isEmpty ? "" : ": " + message.escaped),
                style: Wording.pluginStyle(state))
        // A newer service sent it.
        default: return Line(subject: subject, text: "\(member) \(JSON.text(.structure(arguments)))")
        }
    }

    private func propertyLine(_ name: String, _ value: Value, _ subject: String, _ names: Names) -> Line? {
        func line(_ text: String, _ style: Style = .plain) -> Line { Line(subject: subject, text: text, style: style) }
        let isOn = value.boolValue ?? false
        switch name {
        case "State":
            switch value.stringValue.flatMap(SessionState.init(rawValue:)) {
            case .active: return line("active", .good)
            case .inactive: return line("inactive", .dim)
            // InterruptionBegan reports this, with the reason.
            case .interrupted: return nil
            case nil: return line("state \(value.stringValue?.escaped ?? "?")")
            }
        case "WaitingFor":
            let others = (value.objectPathsValue ?? []).map { names[$0] }
            return line(others.isEmpty ? "waits for nobody" : "waits for \(Wording.list(others))", .dim)
        case "Muted": return line(isOn ? "muted" : "no longer muted", isOn ? .warning : .plain)
        case "Foreground": return line(isOn ? "in the foreground" : "in the background")
        case "Category", "Mode": return line("\(name.lowercased()) \(value.stringValue?.escaped ?? "")")
        case "Options":
            let options = value.stringsValue ?? []
            return line("options " + (options.isEmpty ? "none" : options.map(\.escaped).joined(separator: ", ")))
        case "PreferredInput":
            let uid = value.stringValue ?? ""
            return line(uid.isEmpty ? "prefers no input" : "prefers the input \(uid.escaped)")
        case "SilentMode": return line("silent switch \(isOn ? "on" : "off")", isOn ? .warning : .plain)
        case "ScreenLocked": return line("screen \(isOn ? "locked" : "unlocked")")
        case "NowPlaying":
            let path = value.objectPathValue ?? ObjectPath.none
            return line(path == ObjectPath.none ? "nothing is now playing" : "now playing: \(names[path])")
        case "AvailableOutputs": return line("outputs: \(Wording.ports(value.ports))", .dim)
        // The inputs of a session are some of those of the service.
        case "AvailableInputs":
            return ObjectPath.sessionID(path) == nil ? line("inputs: \(Wording.ports(value.ports))", .dim) : nil
        // The process that plays for the client, such as the command of `sessionctl run`.
        case "ProcessId":
            let process = value.uint32Value ?? 0
            return line(process == 0 ? "its program has ended" : "now of process \(process)", .dim)
        case "Ducking":
            let gain = value.asProperties?["gain"]?.doubleValue ?? 0
            return line("settings: ducks by \(Wording.decibels(gain))", .dim)
        case "ServerName":
            let server = value.stringValue ?? ""
            return server.isEmpty ? nil : line("connected to \(server.escaped)")
        case "Neighbours":
            let others = (value.arrayValue ?? []).compactMap { $0.asProperties?["name"]?.stringValue?.escaped }
            return line(others.isEmpty ? "no neighbours" : "neighbours: \(Wording.list(others))", .dim)
        case "IgnoredInterruption":
            return isOn ? line(Wording.ignored, .warning) : nil
        // These follow from the route, for each active session; the volume changes many times a second.
        case "IOBufferDuration", "OutputLatency", "InputLatency", "OutputVolume": return nil
        // Separate signals report these, with reasons.
        case "InterruptionReason", "Ducked", "DuckGain", "CurrentRoute", "ServerConnected", "SampleRate",
            "SecondaryAudioShouldBeSilencedHint":
            return nil
        // The lines of the other sessions show this.
        case "OtherAudioPlaying": return nil
        // A newer service sent it.
        default: return line("\(name) \(JSON.text(value))", .dim)
        }
    }
}
