import CLinux
import Glibc

/// CLOCK_MONOTONIC in microseconds: the only clock anything here is timed by.
public enum MonotonicClock {
    /// Microseconds since the machine booted, sleep left out.
    public static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) &* 1_000_000 &+ UInt64(time.tv_nsec) / 1_000
    }

    /// The same in seconds.
    public static var seconds: Double { Double(now()) / 1_000_000 }

    /// Seconds as microseconds: never negative, a century at the most, 0 for NaN.
    public static func microseconds(_ seconds: Double) -> UInt64 {
        seconds > 0 ? UInt64(min(seconds, 3.15e9) * 1_000_000) : 0
    }
}

/// Fires once per arming, from the loop. Dropping it cancels it.
///
/// A timerfd rather than the loop's own timers, because those follow the wall clock and this one must not.
public final class Timer {
    private let descriptor: Int32
    private var watch: IOWatch?
    /// What the kernel was told last; disarming what is not armed, as after most events, then costs nothing.
    private var isArmed = false

    /// Not armed yet; fires by calling the handler from the loop.
    public init(on loop: EventLoop, _ handler: @escaping () -> Void) {
        descriptor = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_NONBLOCK | TFD_CLOEXEC))
        precondition(descriptor >= 0, "timerfd_create: out of file descriptors")
        let descriptor = descriptor
        watch = IOWatch(on: loop, descriptor: descriptor, events: .readable) { _ in
            var expirations: UInt64 = 0
            // Nothing to read: it was disarmed or re-armed between firing and now.
            guard read(descriptor, &expirations, 8) == 8 else { return }
            handler()
        }
    }

    deinit {
        watch = nil
        close(descriptor)
    }

    /// Fires after that many seconds; at once where they are not positive. Replaces an earlier arming.
    public func arm(after seconds: Double) {
        set(microseconds: max(1, MonotonicClock.microseconds(seconds)), absolute: false)
    }

    /// Fires when ``MonotonicClock`` reaches `instant`; at once where it has. Replaces an earlier arming.
    public func arm(at instant: UInt64) { set(microseconds: max(1, instant), absolute: true) }

    /// Nothing fires until it is armed again, also not what is due already.
    public func disarm() {
        if isArmed { set(microseconds: 0, absolute: false) }
    }

    private func set(microseconds: UInt64, absolute: Bool) {
        isArmed = microseconds > 0
        var value = itimerspec()
        value.it_value.tv_sec = Int(clamping: microseconds / 1_000_000)
        value.it_value.tv_nsec = Int(microseconds % 1_000_000) * 1_000
        timerfd_settime(descriptor, absolute ? Int32(TFD_TIMER_ABSTIME) : 0, &value, nil)
    }
}
