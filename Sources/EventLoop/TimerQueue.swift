import CLinux
import CPulse
import Glibc

/// All timers of a loop on one timerfd: a timer more costs no file descriptor, and so can never fail.
final class TimerQueue {
    private let api: UnsafeMutablePointer<pa_mainloop_api>
    private let descriptor: Int32
    private var event: OpaquePointer?
    /// Those that are armed; each takes itself out before it goes. A handful: a search is cheaper than an order.
    private var armed: [Unmanaged<Timer>] = []
    /// What the kernel was told last; 0: nothing.
    private var set: UInt64 = 0
    private var isFiring = false

    /// Ends the process where file descriptors are exhausted: a loop is made at a program's start.
    init(_ api: UnsafeMutablePointer<pa_mainloop_api>) {
        self.api = api
        descriptor = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_NONBLOCK | TFD_CLOEXEC))
        guard descriptor >= 0 else { fatalError("timerfd_create: out of file descriptors") }
        event = api.pointee.io_new(
            api, descriptor, PA_IO_EVENT_INPUT,
            { _, _, _, _, context in
                guard let context else { return }
                let queue = Unmanaged<TimerQueue>.fromOpaque(context).takeUnretainedValue()
                withExtendedLifetime(queue) { queue.fire() }
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit { close(descriptor) }

    /// To be called before the loop goes, by the loop: timers may outlive it.
    func detach() {
        if let event { api.pointee.io_free(event) }
        event = nil
    }

    func add(_ timer: Timer) {
        armed.append(.passUnretained(timer))
        if !isFiring, set == 0 || timer.due < set { tell(timer.due) }
    }

    /// The timer of an armed one that was changed.
    func changed(_ timer: Timer, from before: UInt64) {
        guard !isFiring else { return }
        if timer.due < set { tell(timer.due) } else if before == set, timer.due != before { settle() }
    }

    func remove(_ timer: Timer) {
        let pointer = Unmanaged.passUnretained(timer).toOpaque()
        guard let index = armed.firstIndex(where: { $0.toOpaque() == pointer }) else { return }
        armed.swapAt(index, armed.count - 1)
        armed.removeLast()
        if !isFiring, timer.due == set { settle() }
    }

    private func fire() {
        var expirations: UInt64 = 0
        // Nothing to read: it was disarmed or re-armed between firing and now.
        guard read(descriptor, &expirations, 8) == 8 else { return }
        isFiring = true
        let now = MonotonicClock.now()
        var due = armed.map { $0.takeUnretainedValue() }.filter { $0.due <= now }
        if due.count > 1 { due.sort { $0.due < $1.due } }
        // One that an earlier one disarmed, or armed anew for later, is not due any more.
        for timer in due where timer.due != 0 && timer.due <= now { timer.fire() }
        isFiring = false
        set = 0
        settle()
    }

    private func settle() {
        var next = UInt64.max
        for timer in armed { next = min(next, timer._withUnsafeGuaranteedRef { $0.due }) }
        let instant = armed.isEmpty ? 0 : next
        if instant != set { tell(instant) }
    }

    /// 0: not at all.
    private func tell(_ instant: UInt64) {
        set = instant
        var value = itimerspec()
        value.it_value.tv_sec = Int(clamping: instant / 1_000_000)
        value.it_value.tv_nsec = Int(instant % 1_000_000) * 1_000
        timerfd_settime(descriptor, Int32(TFD_TIMER_ABSTIME), &value, nil)
    }
}
