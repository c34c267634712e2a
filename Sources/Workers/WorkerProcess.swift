import CLinux
import EventLoop
import Glibc

/// The worker's end: a process that reads files of strangers, and has little it could do with what they make of it.
public final class WorkerProcess {
    /// The most bytes of memory that it may map.
    private static let largestMemory: UInt64 = 2 << 30

    private let socket: Int32
    private var reader = FrameReader()
    private var descriptors: [Int32] = []

    /// First in the program: it ends with its parent, and is last in turn.
    /// - Parameter socket: the last argument of the program.
    public init(socket: Int32) {
        self.socket = socket
        ParentProcess.endWithIt(signal: SIGKILL)
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        // A limit of the size of files is an error of the task, not the end of this process.
        signal(SIGXFSZ, SIG_IGN)
        nice(10)
    }

    /// From here on the process has little memory, and dumps no core. Not before libraries that it needs are there: one
    /// that does not fit would be taken for a broken one.
    public func limit() { shim_limit_worker(rlim_t(Self.largestMemory)) }

    /// From here on the process can open no connection, start no program and send no signal, and, where the kernel allows
    /// it, look into no other process (Landlock) and write to no file but those that it gets (`unshare`).
    ///
    /// Must be called before there is another thread, and after everything that writes files of its own.
    /// - Returns: whether the kernel allows it: no file can be opened for writing any more.
    @discardableResult public static func isolate() -> Bool { shim_isolate() & (1 | 4) != 0 }

    /// Says that it is ready, and does tasks until its parent closes the socket.
    ///
    /// The descriptors of a task are its own, and closed after it.
    public func serve(_ perform: (_ request: WorkerMessage, _ descriptors: [Int32]) -> WorkerMessage) {
        send(WorkerMessage("ready"))
        while let request = next() {
            let own = descriptors
            descriptors = []
            send(perform(request, own))
            for descriptor in own { close(descriptor) }
        }
    }

    /// A part of an answer. Ends the process if nobody hears it.
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
