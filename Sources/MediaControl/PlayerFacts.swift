/// What a player last said of itself (`org.mpris.MediaPlayer2.Player`).
public struct PlayerFacts: Sendable, Hashable {
    public var status: PlaybackStatus
    public var track: Track
    /// MPRIS's CanPlay.
    public var canPlay: Bool
    /// MPRIS's CanPause; a player that cannot is left alone.
    public var canPause: Bool
    /// Whether it heeds requests at all.
    public var canControl: Bool

    /// A player that does not say what it can do can do everything.
    public init(
        _ status: PlaybackStatus = .stopped, track: Track = Track(), canPlay: Bool = true, canPause: Bool = true,
        canControl: Bool = true
    ) {
        self.status = status
        self.track = track
        self.canPlay = canPlay
        self.canPause = canPause
        self.canControl = canControl
    }
}
