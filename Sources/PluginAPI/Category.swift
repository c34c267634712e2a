/// What a session does with sound (AVAudioSession.Category).
///
/// The raw value is the name on the wire, in files and on the command line.
public enum Category: String, CaseIterable, Sendable, Hashable {
    /// Sound that is not the point, always mixable; silent under the silent switch and the screen lock.
    case ambient
    /// The same, but never mixable; what a new session has.
    case soloAmbient = "solo-ambient"
    /// Sound that is the point: it goes on under the silent switch, with the screen locked and in the background.
    case playback
    /// Input alone, never mixable.
    case record
    /// Input and output, as in a call; out of the receiver where there is one, unless told otherwise.
    case playAndRecord = "play-and-record"
    /// Input and output; AVAudioSession's for several devices at once.
    case multiRoute = "multi-route"
    /// Neither, never mixable: sound is worked on and not heard.
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
