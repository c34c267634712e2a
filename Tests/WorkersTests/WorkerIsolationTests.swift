import Glibc
import Testing
import Workers

/// A suite of its own, because other tests leave children that have ended, which an exit test would wait for.
@Suite struct WorkerIsolationTests {
    /// What hostile code in a worker could try against other processes of its user.
    @Test func isolatedProcess_cannotReachOthers() async {
        await #expect(processExitsWith: .success) {
            func refused(_ result: Int) -> Bool { result == -1 && errno == EPERM }
            let other = getppid()
            var limit = rlimit(rlim_cur: 64, rlim_max: 64)
            var pair: [Int32] = [-1, -1]
            // A file that it got, as a worker of exports does.
            let path = "\(getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp")/isolation-\(getpid())"
            let file = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
            precondition(file >= 0 && unlink(path) == 0, "file")
            let isReadOnly = WorkerProcess.isolate()
            if isReadOnly {
                precondition(open("/proc/self/fd/\(file)", O_WRONLY | O_CLOEXEC) < 0, "opened again")
                precondition(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600) < 0, "new file")
            }
            precondition(write(file, "a", 1) == 1, "own file")
            precondition(refused(Int(kill(other, 0))), "signal")
            precondition(refused(Int(kill(-1, 0))), "signal to all")
            precondition(refused(Int(socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0))), "socket")
            precondition(refused(Int(socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &pair))), "datagrams")
            precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0, "streams")
            var argument: UnsafeMutablePointer<CChar>? = nil
            precondition(refused(Int(execve("/bin/true", &argument, &argument))), "program")
            // Itself it may limit, and it may have threads.
            precondition(setrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit) == 0, "own limit")
            var thread = pthread_t()
            precondition(pthread_create(&thread, nil, { _ in nil }, nil) == 0, "thread")
            pthread_join(thread, nil)
        }
    }
}
