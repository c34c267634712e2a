import EventLoop
import PluginAPI
import SessionManager

/// Has the server keep the now-playing session's sound from other outputs when its own goes (behaviour §7): prepared
/// while there is something to keep, let go as soon as whoever was paused has fallen silent.
final class OutputGuard {
    private let backend: any AudioBackend
    private let loop: EventLoop
    private var deadline: Timer?
    private var isHeld = false

    init(_ backend: any AudioBackend, on loop: EventLoop) {
        self.backend = backend
        self.loop = loop
        deadline = Timer(on: loop) { backend.releaseOutput() }
    }

    /// Seconds that others stand still at most. Enforcement ends it sooner: what it stops does not sound.
    private static let patience = 2.0
    /// Seconds that leaving may take.
    private static let farewell = 0.5

    /// `sounding` are the sessions whose streams play.
    func follow(_ arbiter: Arbiter, sounding: Set<SessionID>) {
        backend.guardsOutput = arbiter.guardsOutput
        guard backend.snapshot.isOutputHeld else {
            if isHeld { deadline?.disarm() }
            isHeld = false
            return
        }
        let isSilent = !sounding.contains { id in
            arbiter.session(id)?.interruption?.reason == .routeDisconnected
        }
        if isSilent {
            deadline?.disarm()
            backend.releaseOutput()
        } else if !isHeld {
            deadline?.arm(after: OutputGuard.patience)
        }
        isHeld = true
    }

    /// Leaves the server as it was, and waits for no server that does not answer.
    func dismiss(_ done: @escaping () -> Void) {
        deadline = Timer(on: loop, done)
        deadline?.arm(after: OutputGuard.farewell)
        backend.removeGuard { _ in done() }
    }
}
