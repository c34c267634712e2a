/// The state that a player reports; the names are those of MPRIS.
public enum PlaybackStatus: String, Sendable, Hashable, CaseIterable {
    case playing = "Playing"
    case paused = "Paused"
    case stopped = "Stopped"
}
