/// The player for the media keys (contract: `org.mpris.MediaPlayer2.sessiond`; rules §5, "media keys").
///
/// A player may say that it plays without any sound here: a headset that registers as a player, a phone, a page that was
/// closed. So a player that is heard comes first, and one that was never heard comes last.
public struct FrontPlayer<Player: Hashable & Sendable>: Sendable {
    /// A candidate.
    public struct Candidate: Sendable, Hashable {
        public let player: Player
        public let status: PlaybackStatus
        public let sound: Sound
        /// Whether its sound belongs to the now-playing session.
        public let isNowPlaying: Bool
        /// When it last started or stopped playing, or appeared: higher is later; different for each player.
        public let order: UInt64

        public init(
            _ player: Player, _ status: PlaybackStatus, _ sound: Sound, isNowPlaying: Bool = false, order: UInt64
        ) {
            self.player = player
            self.status = status
            self.sound = sound
            self.isNowPlaying = isNowPlaying
            self.order = order
        }

        /// Greater is better: the group, and the place in it.
        fileprivate var rank: (group: Int, UInt64, UInt64, UInt64) {
            switch sound {
            case .heard(let since): (isNowPlaying ? 3 : 2, since, order, 0)
            // Several that were silenced together: the one that started last.
            case .ended(let since, let end, let isSilenced) where status == .paused || status == .playing && isSilenced:
                (1, end, since, order)
            case .ended, .never: (0, statusRank, order, 0)
            }
        }

        private var statusRank: UInt64 {
            switch status {
            case .playing: 2
            case .paused: 1
            case .stopped: 0
            }
        }
    }

    /// Whether a candidate is heard here. Times are in microseconds.
    public enum Sound: Sendable, Hashable {
        /// Not since it appeared.
        case never
        /// Its sound began then.
        case heard(since: UInt64)
        /// Its sound ended. `isSilenced`: it plays on, and the daemon holds or mutes it.
        case ended(since: UInt64, end: UInt64, isSilenced: Bool)
    }

    /// The player of the now-playing session, if it is heard; else the heard one that started last; else the one that was
    /// paused last and was heard; else the newest of those that play, are paused or stopped.
    public static func choose(_ candidates: some Sequence<Candidate>) -> Player? {
        candidates.max { $0.rank < $1.rank }?.player
    }
}
