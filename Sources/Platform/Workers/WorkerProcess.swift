import CIsolation
import CLinux
import EventLoop
import Glibc

/// The worker's side. A worker is a process that reads untrusted files, and has few rights in case such a file takes
/// control of it.
public final class WorkerProcess {
    /// The largest memory that it may map, in bytes.
    private static let largestMemory: UInt64 = 2 << 30

    private let socket: Int32
    private let answers: AnswerLimits
    private var reader = FrameReader { _ in .request }
    private var descriptors: [Int32] = []

    /// Must be the first call of the program. The process ends with its parent, and has the lowest priority.
    /// - Parameters:
    ///   - socket: the last argument of the program.
    ///   - answers: the limits that the plugin checks.
    public init(socket: Int32, _ answers: AnswerLimits) {
        (self.socket, self.answers) = (socket, answers)
        ParentProcess.endWithIt(signal: SIGKILL)
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        // Exceeding a file size limit must fail the task, and not end this process.
        signal(SIGXFSZ, SIG_IGN)
        // The plugin stops reading what a worker prints when it is too much.
        signal(SIGPIPE, SIG_IGN)
        nice(10)
    }

    /// Limits the memory of the process and disables core dumps. To be called after all libraries are loaded: a library
    /// that does not fit into the memory would look damaged.
    public func limit() { isolation_limit(rlim_t(Self.largestMemory)) }

    /// The parts of the isolation.
    public struct Isolation: OptionSet, Sendable {
        public let rawValue: Int32
        public init(rawValue: Int32) { self.rawValue = rawValue }

        /// The process can write only to the files that it gets, and has no network (namespaces).
        public static let namespaces = Isolation(rawValue: Int32(isolation_namespaces.rawValue))
        /// It can use only the system calls of a table (seccomp): none that reaches another process, opens a connection
        /// or a file for writing, or starts a program.
        public static let calls = Isolation(rawValue: Int32(isolation_calls.rawValue))
        /// It cannot write to the file system or inspect other processes (Landlock).
        public static let files = Isolation(rawValue: Int32(isolation_files.rawValue))
    }

    /// Isolates the process, for the rest of its life.
    ///
    /// Must be called before another thread exists, and after all code that writes its own files.
    /// - Returns: the parts that the kernel supports and allows.
    @discardableResult public static func isolate() -> Isolation { Isolation(rawValue: isolation_isolate()) }

    /// The parts that a process of this user would have; tried in a child.
    public static func probe() -> Isolation { Isolation(rawValue: isolation_probe()) }

    /// Forks, for work on one untrusted file. The child is in a new session without a controlling terminal, in user and
    /// process namespaces of its own where the kernel allows it, and is killed when this process ends. This process waits
    /// for it, and ends with its code.
    ///
    /// Must be called before another thread exists.
    /// - Returns: in the child; in this process, only if it could not fork.
    public static func continueInChild() {
        let child = isolation_fork()
        guard child > 0 else { return }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        _exit(status & 0x7F == 0 ? status >> 8 & 0xFF : 1)
    }

    /// Reports that it is ready, and does tasks until the parent closes the socket.
    ///
    /// The worker owns the descriptors of a task, and closes them after the task.
    public func serve(_ perform: (_ request: WorkerMessage, _ descriptors: [Int32]) -> WorkerMessage) {
        send(WorkerMessage("ready"))
        while let request = next() {
            let own = descriptors
            descriptors = []
            let answer = perform(request, own)
            send(fits(answer) ? answer : WorkerMessage("failed", ["message": .text("the file states too much")]))
            for descriptor in own { close(descriptor) }
        }
    }

    /// Whether the plugin accepts the message.
    public func fits(_ message: WorkerMessage) -> Bool { answers[message.name].map(message.fits) ?? false }

    /// Sends a part of an answer. Ends the process if the parent has closed the socket.
    public func send(_ message: WorkerMessage) {
        let frame = message.frame
        var rest = frame[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { _exit(0) }
        }
    }

    private func next() -> WorkerMessage? {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            do throws(FrameReader.Damage) {
                if let message = try reader.next() { return message }
            } catch {
                return nil
            }
            var received = [Int32](repeating: -1, count: 8)
            var number: Int32 = 0
            let count = shim_receive_with_descriptors(socket, &chunk, chunk.count, &received, &number)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            descriptors += received.prefix(Int(number))
            reader.append(chunk[..<count])
        }
    }
}
