import CGStreamer
import EventLoop
import Glibc

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

    // Of pthreads, because ThreadSanitizer does not see the locks of GLib.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let changed = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var jobs: [() -> Void] = []
    private var asked = 0
    private var done = 0
    /// The loop stopped waiting, and some calls since then are not carried out yet.
    private var isLate = false

    /// In nanoseconds: a busy machine opens a device faster, and the user does not wait longer for a pause.
    private static let patience = 500_000_000

    private final class Outcome<Answer> {
        var answer: Answer?
        var isAwaited = true
    }

    private init() {
        pthread_mutex_init(lock, nil)
        var monotonic = pthread_condattr_t()
        pthread_condattr_init(&monotonic)
        pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC)
        pthread_cond_init(changed, &monotonic)
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
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        asked += 1
        let mine = asked
        jobs.append { [lock] in
            let answer = body()
            pthread_mutex_lock(lock)
            let isAwaited = outcome.isAwaited
            if isAwaited { outcome.answer = answer }
            pthread_mutex_unlock(lock)
            if !isAwaited { late?(answer) }
        }
        pthread_cond_broadcast(changed)
        var end = timespec()
        clock_gettime(CLOCK_MONOTONIC, &end)
        end.tv_nsec += ServerThread.patience
        end.tv_sec += end.tv_nsec / 1_000_000_000
        end.tv_nsec %= 1_000_000_000
        while !isLate, done < mine {
            if pthread_cond_timedwait(changed, lock, &end) == ETIMEDOUT, done < mine { isLate = true }
        }
        outcome.isAwaited = false
        return outcome.answer
    }

    private func work() {
        while true {
            pthread_mutex_lock(lock)
            while jobs.isEmpty { pthread_cond_wait(changed, lock) }
            let job = jobs.removeFirst()
            pthread_mutex_unlock(lock)
            job()
            pthread_mutex_lock(lock)
            done += 1
            if done == asked { isLate = false }
            pthread_cond_broadcast(changed)
            pthread_mutex_unlock(lock)
        }
    }
}
