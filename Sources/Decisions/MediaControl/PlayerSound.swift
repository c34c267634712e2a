/// When a player was heard: since when, and since when not any more. Between two tracks it counts as heard. It is a value;
/// times are in microseconds.
public struct PlayerSound: Sendable, Hashable, Codable {
    /// When its sound began; nil: it was never heard.
    private var began: UInt64?
    /// When it ended; nil: it is heard, or never was.
    private var ended: UInt64?
    /// Whether it plays, and the daemon holds or mutes it.
    private var isSilenced = false

    /// How long it counts as heard after its sound has ended.
    static let gap: UInt64 = 2_000_000

    public init() {}

    /// `isHeard`: whether a stream of its program plays that the daemon neither holds nor mutes. `isSilenced`: whether one
    /// plays that it holds or mutes.
    public mutating func observe(isHeard: Bool, isSilenced: Bool, at now: UInt64) {
        self.isSilenced = isSilenced && !isHeard
        if isHeard {
            if began == nil || !isHeardStill(at: now) { began = now }
            ended = nil
        } else if began != nil, ended == nil {
            ended = now
        }
    }

    /// It was paused, and says that it plays again.
    public mutating func started(at now: UInt64) { if began != nil { began = now } }

    /// Its sound for the choice of the player in front.
    public func sound<Player>(at now: UInt64) -> FrontPlayer<Player>.Sound {
        guard let began else { return .never }
        guard let ended, !isHeardStill(at: now) else { return .heard(since: began) }
        return .ended(since: began, end: ended, isSilenced: isSilenced)
    }

    /// When it does not count as heard any more, if its sound has ended; nil: nothing changes by itself.
    public func deadline(at now: UInt64) -> UInt64? {
        ended.flatMap { isHeardStill(at: now) ? $0 + PlayerSound.gap : nil }
    }

    private func isHeardStill(at now: UInt64) -> Bool { ended.map { now < $0 + PlayerSound.gap } ?? true }
}
