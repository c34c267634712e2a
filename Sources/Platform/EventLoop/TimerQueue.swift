import CLinux
import CPulse
import Glibc

/// All timers of a loop on one timerfd: another timer needs no file descriptor, and so cannot fail.
final class TimerQueue {
    private let api: UnsafeMutablePointer<pa_mainloop_api>
    private let descriptor: Int32
    private var event: OpaquePointer?
    /// The armed timers; each removes itself before it is freed. They are few, so searching is cheaper than sorting.
    private var armed: [Unmanaged<Timer>] = []
    /// When the kernel's timer fires; 0: it is not armed.
    private var set: UInt64 = 0
    private var isFiring = false

    /// Ends the process if file descriptors are exhausted: a loop is created at the start of a program.
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

    /// The loop must call this before it is freed: timers may outlive it.
    func detach() {
        if let event { api.pointee.io_free(event) }
        event = nil
    }

    func add(_ timer: Timer) {
        armed.append(.passUnretained(timer))
        if !isFiring, set == 0 || timer.due < set { tell(timer.due) }
    }

    /// An armed timer has been changed.
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
        // Nothing to read: it was disarmed or armed again since it fired.
        guard read(descriptor, &expirations, 8) == 8 else { return }
        isFiring = true
        let now = MonotonicClock.now()
        var due = armed.map { $0.takeUnretainedValue() }.filter { $0.due <= now }
        if due.count > 1 { due.sort { $0.due < $1.due } }
        // A timer that an earlier handler disarmed or armed for later is not due any more.
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

    /// Arms the kernel's timer; 0 disarms it.
    private func tell(_ instant: UInt64) {
        set = instant
        var value = itimerspec()
        value.it_value.tv_sec = Int(clamping: instant / 1_000_000)
        value.it_value.tv_nsec = Int(instant % 1_000_000) * 1_000
        timerfd_settime(descriptor, Int32(TFD_TIMER_ABSTIME), &value, nil)
    }
}
