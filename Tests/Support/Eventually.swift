import Foundation

/// Waits until `condition` is true. Returns false if that takes more than `timeout` seconds.
///
/// This is for events in other processes and threads. For events on a loop, use `EventLoop.iterate(timeout:until:)`.
@discardableResult
public func eventually(timeout: Double = 10, _ condition: () throws -> Bool) rethrows -> Bool {
    let end = monotonicNow() + timeout
    while true {
        let begin = monotonicNow()
        if try condition() { return true }
        let now = monotonicNow()
        if now >= end { return false }
        // A condition that starts a program, such as pactl, must not take the processor from what it waits for.
        usleep(UInt32(max(0.001, min(2 * (now - begin), 0.1)) * 1e6))
    }
}

/// CLOCK_MONOTONIC in seconds.
public func monotonicNow() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
