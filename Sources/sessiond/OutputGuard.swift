import EventLoop
import PluginAPI

/// Has the server keep the now-playing session's sound from other outputs when its own goes (behaviour §7): prepared
/// while there is something to keep, let go as soon as whoever was paused has fallen silent.
final class OutputGuard {
    private let backend: any AudioBackend
    private let loop: EventLoop
    private var timer: Timer?
    /// When what is held is let go in any case; nil: nothing is held.
    private var limit: UInt64?
    /// Since when nobody who was paused sounds; nil: somebody does.
    private var silence: UInt64?

    init(_ backend: any AudioBackend, on loop: EventLoop) {
        self.backend = backend
        self.loop = loop
        timer = Timer(on: loop) { backend.releaseOutput() }
    }

    /// Seconds that others stand still at most. Enforcement ends it sooner: what it stops does not sound.
    private static let patience = 2.0
    /// Seconds that leaving may take.
    private static let farewell = 0.5

    /// `isSilent`: whether nobody who was paused sounds; asked while something is held.
    func follow(guards: Bool, isSilent: () -> Bool) {
        backend.guardsOutput = guards
        guard backend.snapshot.isOutputHeld else {
            if limit != nil { timer?.disarm() }
            limit = nil
            silence = nil
            return
        }
        let now = MonotonicClock.now()
        let limit = limit ?? now &+ MonotonicClock.microseconds(OutputGuard.patience)
        self.limit = limit
        silence = isSilent() ? silence ?? now : nil
        let due = silence.map { $0 &+ MonotonicClock.microseconds(backend.snapshot.pauseDelay) } ?? limit
        if due > now {
            timer?.arm(at: min(due, limit))
        } else {
            timer?.disarm()
            backend.releaseOutput()
        }
    }

    /// Leaves the server as it was, and waits for no server that does not answer.
    func dismiss(_ done: @escaping () -> Void) {
        timer = Timer(on: loop, done)
        timer?.arm(after: OutputGuard.farewell)
        backend.removeGuard { _ in done() }
    }
}
