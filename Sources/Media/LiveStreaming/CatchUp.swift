/// How a live stream that is watched stays near its newest picture.
///
/// A value without a clock. The owner tells it several times in a second how far what is heard or seen is behind the newest
/// that has arrived, and carries out what it answers. Rules:
///
/// - The delay is that distance and the time since something arrived: a server that sends in pieces makes the first one jump,
///   and the sum stays.
/// - A delay of half the target more for a whole second is too long: it plays at 1.1 × until the delay is the target again.
/// - What is more than 5 s behind, or twice the target if that is longer, is left out.
/// - After the stream came too late, it needs a longer delay than the target: that is not shortened for 10 s, and then bit by
///   bit. If that was too early, it is kept for twice as long the next time, for up to some minutes: otherwise the sound
///   would break off again and again. A machine that is too slow to show what has arrived gets 0.2 s: more would not
///   help it, and each stumble makes the delay longer.
/// - Nothing has arrived for half a second, and all that has arrived was shown, or nothing moves: it is stalled.
public struct CatchUp: Sendable, Hashable {
    public enum Action: Sendable, Hashable {
        /// Play at this rate from now on.
        case play(rate: Double)
        /// Leave out what is older than the target.
        case skip
    }

    /// What is seen of the stream at one moment.
    public struct Observation: Sendable, Hashable {
        /// How far what is shown is behind the newest that has arrived, in seconds.
        public var behind: Double
        /// Seconds since something arrived.
        public var silence: Double
        /// How often something came too late to be heard or seen at its time.
        public var late: Int
        /// How often something came in time and was not shown in time: this machine was slow.
        public var slow: Int

        public init(behind: Double, silence: Double, late: Int = 0, slow: Int = 0) {
            (self.behind, self.silence, self.late, self.slow) = (max(0, behind), max(0, silence), late, slow)
        }

        /// How far what is shown is behind what is sent, in seconds.
        public var delay: Double { behind + silence }
    }

    public static let fast = 1.1
    /// Seconds behind that are not caught up, but left out.
    public static let limit = 5.0
    /// Seconds that a slow machine may need: a longer delay does not help it.
    public static let slowness = 0.2
    /// The range of the target in seconds.
    public static let targets = 0.05...60.0

    /// The delay that the network has needed, when it did, and for how long that is kept, in microseconds.
    private struct Need: Sendable, Hashable {
        var delay = 0.0
        var time: UInt64 = 0
        var hold = Need.holds.lowerBound

        static let holds: ClosedRange<UInt64> = 10_000_000...320_000_000
        /// Then it is shortened by a tenth in each time as long as that.
        static let parts: UInt64 = 10

        func delay(at now: UInt64) -> Double {
            let times = Double(now - min(now, time)) / Double(hold)
            return times <= 1 ? delay : delay * max(0, 1 - (times - 1) / Double(Need.parts))
        }

        mutating func grow(to delay: Double, at now: UInt64) {
            let passed = now - min(now, time)
            if passed > (Need.parts + 1) * hold {
                hold = Need.holds.lowerBound
            } else if passed > hold {
                hold = min(2 * hold, Need.holds.upperBound)
            }
            (self.delay, time) = (delay, now)
        }
    }

    /// The wanted delay in seconds.
    public var target: Double
    public private(set) var rate = 1.0
    public private(set) var isStalled = false
    private var need = Need()
    private var late = 0
    private var slow = 0
    /// At the last observation, and for how many the same.
    private var behind = 0.0
    private var still = 0
    /// Since when the delay was too long without a break, in microseconds; nil: it is not.
    private var tooLongSince: UInt64?

    public init(target: Double) { self.target = target }

    /// The delay that is aimed at: the target, or what the network needs.
    public func aim(at now: UInt64) -> Double { max(target, need.delay(at: now)) }

    /// - Parameter now: in microseconds, as of `MonotonicClock`.
    public mutating func observe(_ seen: Observation, at now: UInt64) -> Action? {
        let wasStalled = isStalled
        // The clock of the sound may stand before all of the pictures were shown.
        still = seen.silence >= 0.5 && abs(seen.behind - behind) < 0.01 ? still + 1 : 0
        behind = seen.behind
        isStalled = seen.silence >= 0.5 && (seen.behind < 0.1 || still >= 3)
        // After a break, all is late.
        if wasStalled { (late, slow) = (seen.late, seen.slow) }
        if seen.late != late || seen.slow != slow {
            let most = seen.late != late ? CatchUp.limit : CatchUp.slowness
            need.grow(to: max(aim(at: now), min(seen.delay, most)), at: now)
            (late, slow) = (seen.late, seen.slow)
        }
        let aim = aim(at: now)
        if seen.behind > max(CatchUp.limit, 2 * aim) {
            tooLongSince = nil
            rate = 1
            return .skip
        }
        if rate > 1 {
            guard seen.delay <= aim || seen.behind < 0.05 else { return nil }
            rate = 1
            return .play(rate: 1)
        }
        guard seen.delay > 1.5 * aim, seen.behind > aim else {
            tooLongSince = nil
            return nil
        }
        let since = tooLongSince ?? now
        tooLongSince = since
        guard now >= since + 1_000_000 else { return nil }
        tooLongSince = nil
        rate = CatchUp.fast
        return .play(rate: rate)
    }

    /// It was joined again, or what was old is being left out. What came too late until then does not count.
    public mutating func beganAnew(late: Int, slow: Int = 0) {
        (rate, tooLongSince, self.late, self.slow) = (1, nil, late, slow)
    }
}
