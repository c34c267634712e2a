public import PluginAPI

/// A command for a stream at the sound server. Answered by ``Enforcement/answered(_:succeeded:at:)``.
public enum StreamCommand: Sendable, Hashable, Codable {
    case setVolume(AudioStream.ID, [UInt32])
    case setMuted(AudioStream.ID, Bool)
    case hold(AudioStream.ID)
    /// Move the stream back to this device; nil: to the default.
    case letGo(AudioStream.ID, to: String?)

    public var stream: AudioStream.ID {
        switch self {
        case .setVolume(let id, _), .setMuted(let id, _), .hold(let id), .letGo(let id, _): id
        }
    }

    /// Whether it moves the stream to another sink.
    var isMove: Bool {
        switch self {
        case .hold, .letGo: true
        case .setVolume, .setMuted: false
        }
    }
}
