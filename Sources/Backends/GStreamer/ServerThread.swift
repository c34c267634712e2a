import CGStreamer
import EventLoop

/// The thread on which GStreamer is asked for what may wait for the sound server.
///
/// pulsesink and pulsesrc wait for the server's answer inside a change of state and inside a seek, and a server that is
/// stopped never answers. The loop waits for this thread as long as a server that is well may take, and then goes on
/// without it: what was asked for counts as done, and what is asked for next waits behind it. All of it is carried out in
/// its order when the server comes back, or has gone for good.
final class ServerThread: @unchecked Sendable {
    // SAFETY: the jobs and the counts are touched with the lock held alone. A job runs on the thread, and touches nothing
    // but C objects that can be used from any thread; the loop does not touch what it captures before it is done.
    static let shared = ServerThread()

    private let lock = UnsafeMutablePointer<GMutex>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<GCond>.allocate(capacity: 1)
    private var jobs: [() -> Void] = []
    private var asked = 0
    private var done = 0
    /// Somebody has waited in vain, and not everything is carried out since.
    private var isLate = false

    /// In microseconds: a busy machine opens a device in less, and who asks for a pause does not wait for longer.
    private static let patience = 500_000

    private final class Outcome<Answer> {
        var answer: Answer?
        var isAwaited = true
    }

    private init() {
        g_mutex_init(lock)
        g_cond_init(changed)
        let context = Unmanaged.passRetained(self).toOpaque()
        // It runs as long as the process.
        let thread = g_thread_new(
            "sound-server",
            { context in
                if let context { Unmanaged<ServerThread>.fromOpaque(context).takeUnretainedValue().work() }
                return nil
            }, context)
        g_thread_unref(thread)
    }

    /// Carries it out after all that was asked for before.
    /// - Parameter late: called on the thread, with what came of it, where nobody waited that long.
    /// - Returns: nil where it is not done yet.
    func run<Answer>(_ body: @escaping () -> Answer, late: ((Answer) -> Void)? = nil) -> Answer? {
        let outcome = Outcome<Answer>()
        g_mutex_lock(lock)
        defer { g_mutex_unlock(lock) }
        asked += 1
        let mine = asked
        jobs.append { [lock] in
            let answer = body()
            g_mutex_lock(lock)
            let isAwaited = outcome.isAwaited
            if isAwaited { outcome.answer = answer }
            g_mutex_unlock(lock)
            if !isAwaited { late?(answer) }
        }
        g_cond_broadcast(changed)
        let end = g_get_monotonic_time() + gint64(ServerThread.patience)
        while !isLate, done < mine {
            if g_cond_wait_until(changed, lock, end) == 0, done < mine { isLate = true }
        }
        outcome.isAwaited = false
        return outcome.answer
    }

    private func work() {
        while true {
            g_mutex_lock(lock)
            while jobs.isEmpty { g_cond_wait(changed, lock) }
            let job = jobs.removeFirst()
            g_mutex_unlock(lock)
            job()
            g_mutex_lock(lock)
            done += 1
            if done == asked { isLate = false }
            g_cond_broadcast(changed)
            g_mutex_unlock(lock)
        }
    }
}
