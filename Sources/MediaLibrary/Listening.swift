/// What playing an item says about it: that it was played, or skipped, and where it goes on.
///
/// Times are seconds of a clock that does not go back.
public struct Listening: Sendable, Hashable {
    /// What is to be noted.
    public enum Note: Sendable, Hashable {
        case played
        case skipped
        /// Where it goes on.
        case bookmark(Double)
    }

    /// Heard for so long, or for this share of it, an item counts as played.
    private static let (enough, share) = (240.0, 0.9)
    /// Left before that, it was skipped.
    private static let skip = 20.0
    /// Podcasts and audiobooks of which the place is kept are longer.
    private static let shortest = 600.0

    /// Seconds; 0: not known.
    public let duration: Double
    private let keepsPlace: Bool
    private var heard = 0.0
    private var since: Double?
    private var isOver = false

    public init(duration: Double, type: ItemType) {
        self.duration = duration
        keepsPlace = type != .music && duration > Self.shortest
    }

    /// Whether its position is to be asked for from time to time.
    public var wantsPosition: Bool { keepsPlace && since != nil }

    public mutating func plays(_ isPlaying: Bool, at now: Double) {
        if let since { heard += max(0, now - since) }
        since = isPlaying ? now : nil
    }

    /// - Parameter seconds: where it is while it plays, or where it was paused.
    public func isAt(_ seconds: Double) -> [Note] {
        guard keepsPlace, !isOver, seconds > 0, seconds < duration else { return [] }
        return [.bookmark(seconds)]
    }

    /// It was played to its end.
    public mutating func finished(at now: Double) -> [Note] {
        plays(since != nil, at: now)
        guard !isOver else { return [] }
        isOver = true
        // Who jumps to the end has not heard it.
        return isEnough ? [.played] : keepsPlace ? [.bookmark(0)] : []
    }

    /// Another item, or none, is in its place.
    public mutating func left(at now: Double) -> [Note] {
        plays(false, at: now)
        guard !isOver else { return [] }
        isOver = true
        // The place of a podcast that is heard in parts is kept, and it is played when it has ended.
        if keepsPlace { return [] }
        return isEnough ? [.played] : heard > 0 && heard < Self.skip ? [.skipped] : []
    }

    private var isEnough: Bool {
        heard >= Self.enough || duration > 0 && heard >= Self.share * duration || duration == 0 && heard >= Self.skip
            || keepsPlace
    }
}
