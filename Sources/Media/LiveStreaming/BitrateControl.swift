/// The bit rate of the pictures of a live stream, which follows what its network carries.
///
/// If more than a second of the stream waits to be sent, it falls to 0.8 of what it is, at most once a second: a change
/// needs that long until the queue shows it. After each five seconds without that it rises by a twentieth of what is
/// wanted, up to it.
public struct BitrateControl: Sendable, Hashable {
    /// Bits per second.
    public private(set) var wanted: Int
    public private(set) var current: Int
    /// Whether it follows the network; otherwise it stays at what is wanted.
    public let isAdaptive: Bool
    private var lastFall: UInt64?
    private var cleanSince: UInt64?

    /// Below this, pictures show nothing any more; bits per second.
    public static let least = 64_000
    private static let longQueue = 1.0
    private static let fallTime: UInt64 = 1_000_000
    private static let riseTime: UInt64 = 5_000_000

    public init(_ wanted: Int, isAdaptive: Bool = true) {
        self.wanted = max(wanted, Self.least)
        (current, self.isAdaptive) = (self.wanted, isAdaptive)
    }

    /// It falls no lower: to an eighth of what is wanted.
    public var floor: Int { max(Self.least, wanted / 8) }

    /// The user wants another one, which applies at once.
    public mutating func want(_ bitrate: Int) {
        wanted = max(bitrate, Self.least)
        current = wanted
        (lastFall, cleanSince) = (nil, nil)
    }

    /// How much of the stream waits, in seconds, at a time of `MonotonicClock`.
    /// - Returns: the new bit rate if it changes.
    public mutating func observe(queued: Double, at now: UInt64) -> Int? {
        guard isAdaptive else { return nil }
        let before = current
        if queued > Self.longQueue {
            cleanSince = now
            if let lastFall, now < lastFall + Self.fallTime { return nil }
            lastFall = now
            current = max(floor, current * 4 / 5)
        } else if let since = cleanSince {
            guard now >= since + Self.riseTime else { return nil }
            cleanSince = now
            current = min(wanted, current + wanted / 20)
        } else {
            cleanSince = now
        }
        return current == before ? nil : current
    }
}
