/// The state that a player reports; the names are those of MPRIS.
public enum PlaybackStatus: String, Sendable, Hashable, CaseIterable, Codable {
    case playing = "Playing"
    case paused = "Paused"
    case stopped = "Stopped"
}
