import CLinux
import EventLoop
import Glibc
import Synchronization

/// A thread with an ``EventLoop`` that also executes actors: their jobs and the loop's events run one after the other.
///
/// One per process, started at its first use; it ends with the process.
// SAFETY: `jobs` is protected by its lock. `descriptor` and `thread` are set before the thread can read them.
// Everything else is used only on the thread.
final class LoopExecutor: SerialExecutor, @unchecked Sendable {
    static let shared = LoopExecutor()

    /// Only for code that runs on the thread.
    let loop = EventLoop()
    private let jobs = Mutex<[UnownedJob]>([])
    /// An eventfd instead of `pa_mainloop_wakeup`, which is lost if the loop is not waiting yet.
    private let descriptor: Int32
    private var watch: IOWatch?
    private let isRunning = Atomic<Bool>(false)
    private var thread = pthread_t()

    private init() {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
        precondition(descriptor >= 0, "eventfd: out of file descriptors")
        watch = IOWatch(on: loop, descriptor: descriptor, events: .readable) { [unowned self] _ in runJobs() }
        // Signals belong to the program: this thread must not get any.
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        let status = pthread_create(
            &thread, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<LoopExecutor>.fromOpaque(context).takeUnretainedValue().loop.run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        precondition(status == 0, "pthread_create: \(String(cString: strerror(status)))")
        pthread_sigmask(SIG_SETMASK, &before, nil)
        isRunning.store(true, ordering: .releasing)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    func checkIsolated() {
        precondition(isIsolatingCurrentContext() == true, "not on the thread of the audio session")
    }

    func isIsolatingCurrentContext() -> Bool? {
        isRunning.load(ordering: .acquiring) && pthread_equal(pthread_self(), thread) != 0
    }

    private func runJobs() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
        let due = jobs.withLock { jobs in
            defer { jobs.removeAll(keepingCapacity: true) }
            return jobs
        }
        for job in due { job.runSynchronously(on: asUnownedSerialExecutor()) }
    }
}
