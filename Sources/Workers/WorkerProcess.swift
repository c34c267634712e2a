import CLinux
import EventLoop
import Glibc

/// The worker's side. A worker is a process that reads untrusted files, and has few rights in case such a file takes
/// control of it.
public final class WorkerProcess {
    /// The largest memory that it may map, in bytes.
    private static let largestMemory: UInt64 = 2 << 30

    private let socket: Int32
    private var reader = FrameReader()
    private var descriptors: [Int32] = []

    /// Must be the first call of the program. The process ends with its parent, and has the lowest priority.
    /// - Parameter socket: the last argument of the program.
    public init(socket: Int32) {
        self.socket = socket
        ParentProcess.endWithIt(signal: SIGKILL)
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        // Exceeding a file size limit must fail the task, and not end this process.
        signal(SIGXFSZ, SIG_IGN)
        nice(10)
    }

    /// Limits the memory of the process and disables core dumps. To be called after all libraries are loaded: a library
    /// that does not fit into the memory would look damaged.
    public func limit() { shim_limit_worker(rlim_t(Self.largestMemory)) }

    /// Isolates the process. Afterwards it cannot open a connection, start a program or send a signal. Where the kernel
    /// allows it, it also cannot inspect other processes (Landlock), and can write only to the files that it gets
    /// (`unshare`).
    ///
    /// Must be called before another thread exists, and after all code that writes its own files.
    /// - Returns: whether the kernel allows it. Then no file can be opened for writing any more.
    @discardableResult public static func isolate() -> Bool { shim_isolate() & (1 | 4) != 0 }

    /// Reports that it is ready, and does tasks until the parent closes the socket.
    ///
    /// The worker owns the descriptors of a task, and closes them after the task.
    public func serve(_ perform: (_ request: WorkerMessage, _ descriptors: [Int32]) -> WorkerMessage) {
        send(WorkerMessage("ready"))
        while let request = next() {
            let own = descriptors
            descriptors = []
            send(perform(request, own))
            for descriptor in own { close(descriptor) }
        }
    }

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
