// The optimized build takes timespec from the header of libpulse, which includes that of the C library.
import CPulse
import Glibc

/// CLOCK_MONOTONIC in microseconds: the only clock that is used for timing.
public enum MonotonicClock {
    /// Microseconds since the machine booted, without the time asleep.
    public static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) &* 1_000_000 &+ UInt64(time.tv_nsec) / 1_000
    }

    /// The same in seconds.
    public static var seconds: Double { Double(now()) / 1_000_000 }

    /// Seconds as microseconds: never negative, at most a century, 0 for NaN.
    public static func microseconds(_ seconds: Double) -> UInt64 {
        seconds > 0 ? UInt64(min(seconds, 3.15e9) * 1_000_000) : 0
    }
}

/// Fires once per arming, from the loop. Dropping it cancels it.
///
/// On a timerfd rather than the loop's own timers, because those follow the wall clock and this one must not.
public final class Timer {
    private let queue: TimerQueue
    private let handler: () -> Void
    /// When it fires; 0: it is not armed.
    private(set) var due: UInt64 = 0

    /// Not armed yet; fires by calling the handler from the loop.
    public init(on loop: EventLoop, _ handler: @escaping () -> Void) {
        queue = loop.timers
        self.handler = handler
    }

    deinit { if due != 0 { queue.remove(self) } }

    /// Whether it will fire.
    public var isArmed: Bool { due != 0 }

    /// Fires after that many seconds; at once if they are not positive. Replaces an earlier arming.
    public func arm(after seconds: Double) {
        arm(at: MonotonicClock.now() &+ max(1, MonotonicClock.microseconds(seconds)))
    }

    /// Fires when ``MonotonicClock`` reaches `instant`; at once if it has. Replaces an earlier arming.
    public func arm(at instant: UInt64) {
        let before = due
        due = min(max(1, instant), Timer.latest)
        if before == 0 { queue.add(self) } else { queue.changed(self, from: before) }
    }

    /// It does not fire until it is armed again, even if it is due already.
    public func disarm() {
        guard due != 0 else { return }
        queue.remove(self)
        due = 0
    }

    func fire() {
        disarm()
        handler()
    }

    /// Later than any machine runs, but accepted by the kernel.
    private static let latest = UInt64(1) << 52
}
