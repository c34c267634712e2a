import EventLoop
import PluginAPI

/// Lets the server keep the now-playing session's sound from other outputs when its own is unplugged (behaviour §7):
/// prepared in advance, and released as soon as the paused sessions are silent.
final class OutputGuard {
    private let backend: any AudioBackend
    private let loop: EventLoop
    private var timer: Timer?
    /// When the held sound is released in any case; nil: none is held.
    private var limit: UInt64?
    /// Since when no paused session plays; nil: one does.
    private var silence: UInt64?

    init(_ backend: any AudioBackend, on loop: EventLoop) {
        self.backend = backend
        self.loop = loop
        timer = Timer(on: loop) { backend.releaseOutput() }
    }

    /// The most seconds for which other sound waits. Enforcement ends it earlier, because held streams do not play.
    private static let patience = 2.0
    /// The most seconds for the cleanup at exit.
    private static let farewell = 0.5

    /// `isSilent`: whether no paused session plays; called while sound is held.
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

    /// Restores the server, but does not wait for one that does not answer.
    func dismiss(_ done: @escaping () -> Void) {
        timer = Timer(on: loop, done)
        timer?.arm(after: OutputGuard.farewell)
        backend.removeGuard { _ in done() }
    }
}
