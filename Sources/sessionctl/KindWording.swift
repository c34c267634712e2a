import PluginAPI

// What a session is, for people and in the exact words.

extension Wording {
    /// The kind of a session in one or two words that everybody knows, such as `Call` or `Podcast`; `Call, guessed` if only
    /// its behaviour tells that it is one. ``exactKind(_:)`` has the exact words.
    static func kind(_ session: SessionInfo) -> String {
        let isGuessed = !session.evidence.isEmpty
        switch session.sessionClass {
        case .call: return isGuessed ? "Call, guessed" : "Call"
        case .alert: return "Alert"
        case .app, nil: break
        }
        switch Mode(rawValue: session.mode) {
        case .voicePrompt: return "Prompt"
        case .spokenAudio: return "Podcast"
        case .moviePlayback: return "Film"
        case .voiceChat, .videoChat, .gameChat: return "Chat"
        case .videoRecording: return "Recording"
        case .measurement: return "Measurement"
        case .default, nil: break
        }
        switch Category(rawValue: session.category) {
        case .playback: return session.isDucker ? "Prompt" : "Music"
        case .record: return "Recording"
        case .playAndRecord: return "Two-way sound"
        case .multiRoute: return "Many outputs"
        case .ambient, .soloAmbient: return "App sounds"
        case .audioProcessing: return "Processing"
        case nil: return "?"
        }
    }

    /// The kind of a session in the words of D-Bus: class, category, mode, and the options that affect others.
    static func exactKind(_ session: SessionInfo) -> String {
        var words: [String] = []
        switch session.sessionClass {
        case .app: break
        case .alert, .call:
            words.append((session.sessionClass?.rawValue ?? "") + (session.evidence.isEmpty ? "" : " (guessed)"))
        case nil: words.append("?")
        }
        words.append(session.category.escaped + (session.mode == "default" ? "" : "/" + session.mode.escaped))
        if session.isDucker {
            words.append("ducks others")
        } else if session.options.contains("mix-with-others"), session.category != "ambient" {
            words.append("mixes")
        }
        return words.joined(separator: ", ")
    }
}
