/// What a session does with sound (AVAudioSession.Category).
///
/// The raw value is the name on the wire, in files and on the command line.
public enum Category: String, CaseIterable, Sendable, Hashable {
    case ambient
    case soloAmbient = "solo-ambient"
    case playback
    case record
    case playAndRecord = "play-and-record"
    case multiRoute = "multi-route"
    case audioProcessing = "audio-processing"

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

    /// What a player's prepare and play answer in this category: `(prepare, play)`.
    public var playerMay: (prepare: Bool, play: Bool) {
        switch self {
        case .ambient, .soloAmbient, .playback, .playAndRecord, .multiRoute: (true, true)
        case .record: (true, false)
        case .audioProcessing: (false, false)
        }
    }
}
