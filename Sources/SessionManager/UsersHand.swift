/// Whether the user has started a program again whose session is interrupted (rules §5, "the user's hand"). One table for
/// players on the bus and for streams at the sound server. Times are in microseconds.
public enum UsersHand: Sendable, Hashable {
    /// The user started it: the program is heard.
    case started
    /// It may be an effect of the daemon's own Pause, for example with a player that toggles: it is paused once more.
    case pauseAgain
    /// It is an effect of the daemon or of the sound server, or the next track: the program stays silent.
    case none

    /// How a program begins to play while its session is interrupted.
    public enum Beginning: Sendable, Hashable {
        /// Its MPRIS player says that it plays. `afterPause`: since it was seen paused or stopped. `isSecond`: whether it
        /// was paused again in this interruption, and says for the second time that it plays.
        case player(afterPause: UInt64, isSecond: Bool)
        /// It continues a stream that it had paused. `afterMove`: since the daemon or the server last moved the stream;
        /// nil: never.
        case sameStream(afterMove: UInt64?)
        /// A stream plays for the first time. `afterSilence`: since the program had no stream that plays; nil: it has one.
        case newStream(afterSilence: UInt64?)
    }

    public init(_ beginning: Beginning) {
        switch beginning {
        case .player(_, isSecond: true): self = .started
        case .player(let afterPause, isSecond: false): self = afterPause > UsersHand.echo ? .started : .pauseAgain
        case .sameStream(let afterMove): self = afterMove.map { $0 >= UsersHand.move } ?? true ? .started : .none
        case .newStream(let afterSilence): self = afterSilence.map { $0 >= UsersHand.gap } ?? false ? .started : .none
        }
    }

    /// A player that plays within this time after its pause may have been started by the daemon's own Pause.
    public static let echo: UInt64 = 300_000
    /// How long what the server shows of a stream may be an effect of a move.
    public static let move: UInt64 = 500_000
    /// A new stream within this time after the last one is the next track.
    public static let gap: UInt64 = 500_000
    /// How long a player that was paused again may say that it plays before it is heard. The rules allow 1 s until then;
    /// the rest is for the bus and the sound server.
    public static let longestSilence: UInt64 = 800_000
}
