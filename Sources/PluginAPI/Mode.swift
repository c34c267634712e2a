/// A refinement of the category (AVAudioSession.Mode). The raw value is the name on the wire.
public enum Mode: String, CaseIterable, Sendable, Hashable, Codable {
    /// No refinement.
    case `default`
    /// A voice call over a network; a headset's microphone may be used.
    case voiceChat = "voice-chat"
    /// A voice chat in a game.
    case gameChat = "game-chat"
    /// A video call; uses the loudspeaker.
    case videoChat = "video-chat"
    /// Recording sound for a video.
    case videoRecording = "video-recording"
    /// No signal processing.
    case measurement
    /// The sound of a film.
    case moviePlayback = "movie-playback"
    /// Speech, such as a podcast: a spoken prompt interrupts it instead of ducking it.
    case spokenAudio = "spoken-audio"
    /// Short spoken prompts, such as directions.
    case voicePrompt = "voice-prompt"

    /// The categories with which the mode is allowed (rules §2).
    var legalCategories: Set<Category> {
        switch self {
        case .default: Set(Category.allCases)
        case .voiceChat, .gameChat, .videoChat: [.playAndRecord]
        case .videoRecording: [.record, .playAndRecord]
        case .measurement: [.playback, .record, .playAndRecord]
        case .moviePlayback: [.playback]
        case .spokenAudio: [.playback, .playAndRecord, .multiRoute]
        case .voicePrompt: [.playback, .playAndRecord, .ambient]
        }
    }

    /// The options that the mode implies.
    var impliedOptions: Options {
        switch self {
        case .voiceChat, .gameChat: .allowBluetoothHFP
        case .videoChat: [.allowBluetoothHFP, .defaultToSpeaker]
        case .default, .videoRecording, .measurement, .moviePlayback, .spokenAudio, .voicePrompt: []
        }
    }
}
