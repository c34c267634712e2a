/// The state that a player last reported (`org.mpris.MediaPlayer2.Player`).
public struct PlayerFacts: Sendable, Hashable, Codable {
    public var status: PlaybackStatus
    public var track: Track
    /// MPRIS's CanPlay.
    public var canPlay: Bool
    /// MPRIS's CanPause. The daemon sends no commands to a player that cannot pause.
    public var canPause: Bool
    /// Whether it accepts requests at all.
    public var canControl: Bool

    /// A player that does not report what it can do is assumed to do everything.
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
