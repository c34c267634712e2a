/// What a player says it is doing; the names are MPRIS's.
public enum PlaybackStatus: String, Sendable, Hashable, CaseIterable {
    case playing = "Playing"
    case paused = "Paused"
    case stopped = "Stopped"
}
