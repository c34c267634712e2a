import CGStreamer
import EventLoop

/// The thread for calls of GStreamer that may have to wait for the sound server.
///
/// pulsesink and pulsesrc wait for the server's answer inside a change of state and inside a seek, and a server that is
/// stopped never answers. The loop waits for this thread only as long as a healthy server may need. Then it continues:
/// the call counts as done, and further calls are queued behind it. All are carried out in order when the server
/// responds again or ends.
final class ServerThread: @unchecked Sendable {
    // SAFETY: the jobs and the counts are used only under the lock. A job runs on the thread and uses only C objects
    // that any thread may use. The loop does not use the captured objects before the job has ended.
    static let shared = ServerThread()

    private let lock = UnsafeMutablePointer<GMutex>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<GCond>.allocate(capacity: 1)
    private var jobs: [() -> Void] = []
    private var asked = 0
    private var done = 0
    /// The loop stopped waiting, and some calls since then are not carried out yet.
    private var isLate = false

    /// In microseconds: a busy machine opens a device faster, and the user does not wait longer for a pause.
    private static let patience = 500_000

    private final class Outcome<Answer> {
        var answer: Answer?
        var isAwaited = true
    }

    private init() {
        g_mutex_init(lock)
        g_cond_init(changed)
        let context = Unmanaged.passRetained(self).toOpaque()
        // The thread runs as long as the process.
        let thread = g_thread_new(
            "sound-server",
            { context in
                if let context { Unmanaged<ServerThread>.fromOpaque(context).takeUnretainedValue().work() }
                return nil
            }, context)
        g_thread_unref(thread)
    }

    /// Carries it out after all earlier calls.
    /// - Parameter late: called on the thread with the result, if the loop stopped waiting.
    /// - Returns: nil if it is not done yet.
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
