/// The purpose of a session's sound (AVAudioSession.Category).
///
/// The raw value is the name on the wire, in files and on the command line.
public enum Category: String, CaseIterable, Sendable, Hashable, Codable {
    /// Background sound, always mixable; muted by the silent switch and the screen lock.
    case ambient
    /// Like ambient, but never mixable; the default of a new session, unless its class is alert.
    case soloAmbient = "solo-ambient"
    /// Sound that is the purpose of the app: it continues with the silent switch on, with the screen locked and in the
    /// background.
    case playback
    /// Input only, never mixable.
    case record
    /// Input and output, as in a call; uses the receiver if there is one, unless an option or override changes that.
    case playAndRecord = "play-and-record"
    /// Input and output; in AVAudioSession, for several devices at once.
    case multiRoute = "multi-route"
    /// Neither input nor output, never mixable: sound is processed but not heard.
    case audioProcessing = "audio-processing"

    /// The category of a new session for which none is given: an alarm must be heard with the silent switch on.
    public static func initial(of sessionClass: SessionClass) -> Category {
        switch sessionClass {
        case .alert: .playback
        case .app, .call: .soloAmbient
        }
    }

    /// Whether the category may use input hardware.
    public var hasInput: Bool {
        switch self {
        case .record, .playAndRecord, .multiRoute: true
        case .ambient, .soloAmbient, .playback, .audioProcessing: false
        }
    }

    /// Whether the category may use output hardware.
    public var hasOutput: Bool {
        switch self {
        case .ambient, .soloAmbient, .playback, .playAndRecord, .multiRoute: true
        case .record, .audioProcessing: false
        }
    }

    /// Whether the silent switch and the screen lock mute it.
    public var obeysSilentSwitch: Bool {
        switch self {
        case .ambient, .soloAmbient: true
        case .playback, .record, .playAndRecord, .multiRoute, .audioProcessing: false
        }
    }

    /// Whether a player can prepare and play in this category: `(prepare, play)`.
    public var playerMay: (prepare: Bool, play: Bool) {
        switch self {
        case .ambient, .soloAmbient, .playback, .playAndRecord, .multiRoute: (true, true)
        case .record: (true, false)
        case .audioProcessing: (false, false)
        }
    }
}
