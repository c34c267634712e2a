/// The player for the media keys (contract: `org.mpris.MediaPlayer2.sessiond`).
public struct FrontPlayer<Player: Hashable & Sendable>: Sendable {
    /// A candidate.
    public struct Candidate: Sendable, Hashable {
        public let player: Player
        public let status: PlaybackStatus
        /// Whether its sound belongs to the now-playing session.
        public let isNowPlaying: Bool
        /// When it last started or stopped playing, or appeared: higher is later; different for each player.
        public let order: UInt64

        public init(_ player: Player, _ status: PlaybackStatus, isNowPlaying: Bool, order: UInt64) {
            self.player = player
            self.status = status
            self.isNowPlaying = isNowPlaying
            self.order = order
        }

        fileprivate var rank: (Int, Int, UInt64) {
            (isNowPlaying ? 1 : 0, status == .playing ? 1 : 0, order)
        }
    }

    /// The player of the now-playing session; else the one that plays; else the one that played last.
    public static func choose(_ candidates: some Sequence<Candidate>) -> Player? {
        candidates.max { $0.rank < $1.rank }?.player
    }
}
