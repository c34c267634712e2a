import DBus
import PluginAPI
import SessionBus

/// A stream at the sound server, as listed by the daemon.
struct StreamInfo {
    /// The unchanged properties, for JSON.
    let raw: Value
    private let properties: [String: Value]

    init?(_ value: Value) {
        guard let properties = value.asProperties else { return nil }
        raw = value
        self.properties = properties
    }

    var isPlayback: Bool { string("direction") == "playback" }
    var number: UInt32 { properties["number"]?.uint32Value ?? 0 }
    var program: String { string("program") }
    var process: UInt32 { properties["process"]?.uint32Value ?? 0 }
    var isRunning: Bool { properties["running"]?.boolValue ?? false }
    /// Why it has no session; nil: it has one.
    var reason: String? { properties["reason"]?.stringValue }

    /// Whether it has no session, and a user may expect one.
    var isStranger: Bool {
        switch reason {
        case nil, "own", "server", "meter", "soon": false
        case _?: isRunning
        }
    }

    /// Whether that is neither usual nor the user's will.
    var isSurprise: Bool { isStranger && ["no-device", "refused"].contains(reason) }

    /// "mpv plays and is not known to sessiond, because …".
    var sentence: String { "\(program.isEmpty ? "a program" : program) \(remark)" }

    var remark: String {
        let does = isPlayback ? isRunning ? "plays" : "is paused" : isRunning ? "records" : "pauses recording"
        return "\(does) and is not known to sessiond, because \(string("text"))"
    }

    private func string(_ property: String) -> String { properties[property]?.stringValue ?? "" }
}

extension [StreamInfo] {
    /// The streams without a session that belong to a program of that name, or to the process of that number.
    func strangers(named text: String) -> [StreamInfo] {
        let wanted = text.lowercased()
        return filter { stream in
            stream.reason != nil && !wanted.isEmpty
                && (stream.program.lowercased().includes(wanted)
                    || stream.process != 0 && String(stream.process) == text)
        }
    }
}
