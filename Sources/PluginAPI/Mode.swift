/// A specialisation of the category (AVAudioSession.Mode). The raw value is the name on the wire.
public enum Mode: String, CaseIterable, Sendable, Hashable {
    /// As the category alone has it.
    case `default`
    /// Talking over a network; a headset's microphone may be used.
    case voiceChat = "voice-chat"
    /// The same from within a game.
    case gameChat = "game-chat"
    /// The same with a picture: out of the loudspeaker.
    case videoChat = "video-chat"
    /// Recording sound to a picture.
    case videoRecording = "video-recording"
    /// Nothing between the sound and the samples.
    case measurement
    /// The sound of a film.
    case moviePlayback = "movie-playback"
    /// Speech, such as a podcast: rather paused than lowered by a spoken prompt.
    case spokenAudio = "spoken-audio"
    /// Short spoken prompts, such as directions.
    case voicePrompt = "voice-prompt"

    /// The categories the mode is legal with (behaviour §2).
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

    /// The options that come with the mode.
    var impliedOptions: Options {
        switch self {
        case .voiceChat, .gameChat: .allowBluetoothHFP
        case .videoChat: [.allowBluetoothHFP, .defaultToSpeaker]
        case .default, .videoRecording, .measurement, .moviePlayback, .spokenAudio, .voicePrompt: []
        }
    }
}
