public import CPulse
import Glibc

/// The event loop of one thread, on libpulse's `pa_mainloop`: file descriptors, timers, signals and deferred work.
///
/// All waiting in a process (for libdbus, libpulse, the GStreamer bus and children) happens here, on one thread. It is
/// not thread-safe. The caller owns watches and timers: releasing one cancels it.
public final class EventLoop {
    private let loop: OpaquePointer
    /// The C vtable for libraries that use the loop directly (`pa_context_new`). Valid while the loop exists.
    public let api: UnsafeMutablePointer<pa_mainloop_api>
    private var hasQuit = false
    private var work = RecentWork()
    let timers: TimerQueue
    let signals: SignalQueue

    /// Ends the process if file descriptors or memory are exhausted.
    public init() {
        // pa_mainloop_new fails only if memory or pipes are exhausted: then nothing can run.
        guard let loop = pa_mainloop_new() else { fatalError("pa_mainloop_new: out of file descriptors or memory") }
        self.loop = loop
        api = pa_mainloop_get_api(loop)
        timers = TimerQueue(api)
        signals = SignalQueue(api)
    }

    deinit {
        timers.detach()
        signals.detach()
        pa_mainloop_free(loop)
    }

    /// Runs until ``quit(_:)``; returns its code (`pa_mainloop_run`, with each wake-up counted).
    @discardableResult
    public func run() -> Int32 {
        while pa_mainloop_prepare(loop, -1) >= 0, pa_mainloop_poll(loop) >= 0 {
            work.wokeUp(at: MonotonicClock.now(), processor: EventLoop.processorTime)
            guard pa_mainloop_dispatch(loop) >= 0 else { break }
        }
        return pa_mainloop_get_retval(loop)
    }

    /// What ``run()`` did in the last minute: how often it woke up, and the microseconds of a processor that the process
    /// used.
    public var recentWork: (wakeUps: UInt64, processor: UInt64) {
        work.used(until: MonotonicClock.now(), processor: EventLoop.processorTime())
    }

    /// The processor time that the process has used, in microseconds.
    private static func processorTime() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) &* 1_000_000 &+ UInt64(time.tv_nsec) / 1_000
    }

    /// Dispatches all events that are ready; waits for one first if `blocking` (`pa_mainloop_iterate`). False after
    /// ``quit(_:)``.
    @discardableResult
    public func iterate(blocking: Bool = true) -> Bool {
        // pa_mainloop_iterate aborts the process on a loop that was quit.
        if hasQuit { return false }
        return pa_mainloop_iterate(loop, blocking ? 1 : 0, nil) >= 0
    }

    /// Iterates until `condition` is true; false if `timeout` seconds have passed before.
    @discardableResult
    public func iterate(timeout: Double, until condition: () -> Bool) -> Bool {
        let end = MonotonicClock.now() &+ MonotonicClock.microseconds(timeout)
        // The timer ends the last wait: it must not fire too early, nor be freed before it fires.
        let deadline = Timer(on: self) {}
        deadline.arm(at: end)
        return withExtendedLifetime(deadline) {
            while !condition() {
                if MonotonicClock.now() >= end || !iterate() { return condition() }
            }
            return true
        }
    }

    /// Ends ``run()`` with that code after the current dispatch.
    public func quit(_ code: Int32 = 0) {
        hasQuit = true
        pa_mainloop_quit(loop, code)
    }

    /// Calls `handler` once, from the loop, as soon as it is idle.
    public func later(_ handler: @escaping () -> Void) {
        let context = Unmanaged.passRetained(Deferred(handler)).toOpaque()
        let event = api.pointee.defer_new(
            api,
            { api, event, context in
                guard let api, let event, let context else { return }
                // The event is freed only at the next turn of the loop, which may be much later: the handler is
                // released now.
                let handler = Unmanaged<Deferred>.fromOpaque(context).takeUnretainedValue().take()
                api.pointee.defer_free(event)
                handler?()
            }, context)
        api.pointee.defer_set_destroy(event) { _, _, context in
            guard let context else { return }
            Unmanaged<Deferred>.fromOpaque(context).release()
        }
    }

    /// Calls `handler` from the loop whenever the process gets the signal.
    public func watch(signal: Int32, _ handler: @escaping () -> Void) -> SignalWatch {
        SignalWatch(signal: signal, on: self, handler)
    }

    private final class Deferred {
        private var handler: (() -> Void)?
        init(_ handler: @escaping () -> Void) { self.handler = handler }

        func take() -> (() -> Void)? {
            defer { handler = nil }
            return handler
        }
    }
}
