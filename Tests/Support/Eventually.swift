import Foundation

/// Waits until `condition` is true. Returns false if that takes more than `timeout` seconds.
///
/// This is for events in other processes and threads. For events on a loop, use `EventLoop.iterate(timeout:until:)`.
@discardableResult
public func eventually(timeout: Double = 10, _ condition: () throws -> Bool) rethrows -> Bool {
    let start = monotonicNow()
    while true {
        let begin = monotonicNow()
        if try condition() { return true }
        let now = monotonicNow()
        if now >= start + timeout { return false }
        // The longer it takes, the less often it asks: a question must not take the processor from what it waits for. One that
        // takes long, such as pactl, rests three times as long.
        let rest = max(min((now - start) / 10, 0.01), min(3 * (now - begin), 0.1), 0.001)
        usleep(UInt32(rest * 1e6))
    }
}

/// CLOCK_MONOTONIC in seconds.
public func monotonicNow() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
