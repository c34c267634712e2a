/// A specialisation of the category (AVAudioSession.Mode). The raw value is the name on the wire.
public enum Mode: String, CaseIterable, Sendable, Hashable {
    case `default`
    case voiceChat = "voice-chat"
    case gameChat = "game-chat"
    case videoChat = "video-chat"
    case videoRecording = "video-recording"
    case measurement
    case moviePlayback = "movie-playback"
    case spokenAudio = "spoken-audio"
    case voicePrompt = "voice-prompt"

    /// The categories the mode is legal with (behaviour §2).
    public var legalCategories: Set<Category> {
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

    /// The options that come with the mode.
    public var impliedOptions: Options {
        switch self {
        case .voiceChat, .gameChat: .allowBluetoothHFP
        case .videoChat: [.allowBluetoothHFP, .defaultToSpeaker]
        case .default, .videoRecording, .measurement, .moviePlayback, .spokenAudio, .voicePrompt: []
        }
    }
}
