/// Decides what playing an item means for the library: whether it was played or skipped, and its bookmark.
///
/// Times are seconds of a monotonic clock.
public struct Listening: Sendable, Hashable {
    /// A change to store.
    public enum Note: Sendable, Hashable {
        case played
        case skipped
        /// The position at which the item continues, in seconds.
        case bookmark(Double)
    }

    /// An item counts as played when it was heard for this many seconds, or for this share of its duration.
    private static let (enough, share) = (240.0, 0.9)
    /// An item that is left earlier than this many seconds was skipped.
    private static let skip = 20.0
    /// Podcasts and audiobooks must be longer than this, in seconds, to get a bookmark.
    private static let shortest = 600.0

    /// Seconds; 0: unknown.
    public let duration: Double
    private let keepsPlace: Bool
    private var heard = 0.0
    private var since: Double?
    private var isOver = false

    public init(duration: Double, type: ItemType) {
        self.duration = duration
        keepsPlace = type != .music && duration > Self.shortest
    }

    /// Whether the position must be read from time to time.
    public var wantsPosition: Bool { keepsPlace && since != nil }

    public mutating func plays(_ isPlaying: Bool, at now: Double) {
        if let since { heard += max(0, now - since) }
        since = isPlaying ? now : nil
    }

    /// - Parameter seconds: the position while it plays, or the position at which it was paused.
    public func isAt(_ seconds: Double) -> [Note] {
        guard keepsPlace, !isOver, seconds > 0, seconds < duration else { return [] }
        return [.bookmark(seconds)]
    }

    /// The item was played to its end.
    public mutating func finished(at now: Double) -> [Note] {
        plays(since != nil, at: now)
        guard !isOver else { return [] }
        isOver = true
        // A user who seeks to the end has not heard the item.
        return isEnough ? [.played] : keepsPlace ? [.bookmark(0)] : []
    }

    /// Another item, or none, has replaced this one.
    public mutating func left(at now: Double) -> [Note] {
        plays(false, at: now)
        guard !isOver else { return [] }
        isOver = true
        // A podcast that is heard in parts keeps its bookmark. It counts as played when it has ended.
        if keepsPlace { return [] }
        return isEnough ? [.played] : heard > 0 && heard < Self.skip ? [.skipped] : []
    }

    private var isEnough: Bool {
        heard >= Self.enough || duration > 0 && heard >= Self.share * duration || duration == 0 && heard >= Self.skip
            || keepsPlace
    }
}
