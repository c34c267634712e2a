import CLinux
import EventLoop
import Glibc
import Processes

/// The process of a worker, the socket to it, and the pipe of what it prints.
final class WorkerLine {
    var onMessage: (WorkerMessage) -> Void = { _ in }
    /// Called when the process or the connection ends; at most once.
    var onEnd: () -> Void = {}
    /// Called with each line that it prints, not escaped.
    var onLine: (String) -> Void = { _ in }

    let process: Int32
    private let socket: Int32
    private var watch: IOWatch?
    private var reader: FrameReader
    private let loop: EventLoop
    private var outgoing: [UInt8] = []
    private var isOver = false
    /// -1: nothing is read any more.
    private var pipe: Int32
    private var pipeWatch: IOWatch?
    private var output = WorkerOutput()

    /// Nil if the process could not be started.
    init?(_ program: String, _ arguments: [String], _ answers: AnswerLimits, on loop: EventLoop) {
        self.loop = loop
        reader = FrameReader { answers[$0] }
        var ends: [Int32] = [-1, -1]
        var pipes: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            return nil
        }
        defer { close(ends[1]) }
        guard Glibc.pipe(&pipes) == 0 else {
            close(ends[0])
            return nil
        }
        defer { close(pipes[1]) }
        // The child inherits this descriptor. No other program can be started before it is closed again, because one
        // thread starts them all.
        _ = fcntl(ends[1], F_SETFD, 0)
        for descriptor in pipes { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        for descriptor in [ends[0], pipes[0]] { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }
        let started = try? Spawn.startConfined(
            program, arguments + [String(ends[1])], openFiles: nil, output: pipes[1], isApart: true)
        guard let started else {
            close(ends[0])
            close(pipes[0])
            return nil
        }
        (process, socket, pipe) = (started, ends[0], pipes[0])
        watch = IOWatch(on: loop, descriptor: socket, events: .readable) { [unowned self] in ready($0) }
        pipeWatch = IOWatch(on: loop, descriptor: pipe, events: .readable) { [unowned self] _ in readPipe() }
    }

    deinit {
        watch = nil
        close(socket)
        closePipe()
    }

    func signal(_ number: Int32) { Glibc.kill(-process, number) }

    /// Kills the process and all processes that it has started.
    func kill() {
        isOver = true
        watch = nil
        signal(SIGKILL)
        // Its last lines may say why.
        readPipe()
        if let line = output.end() { onLine(line) }
        closePipe()
    }

    func send(_ message: WorkerMessage, _ descriptors: [Int32]) {
        let frame = message.frame
        var sent = 0
        if outgoing.isEmpty {
            sent = max(0, shim_send_with_descriptors(socket, frame, frame.count, descriptors, Int32(descriptors.count)))
        }
        outgoing += frame[sent...]
        if !outgoing.isEmpty { watchSocket() }
    }

    private func ready(_ events: IOWatch.Events) {
        if events.contains(.writable) { write() }
        // While messages wait to be handled, nothing more is read, not even the end.
        guard !isBehind else { return }
        if events.contains(.readable) { read() } else if !events.isDisjoint(with: [.hangUp, .error]) { end() }
    }

    private func write() {
        let count = Glibc.send(socket, outgoing, outgoing.count, Int32(MSG_NOSIGNAL))
        if count > 0 { outgoing.removeFirst(count) }
        if outgoing.isEmpty { watchSocket() }
    }

    /// The most that is read in one turn of the loop: other clients of the plugin wait for the end of a turn.
    private static let turn = (bytes: 64 << 10, messages: 64)

    private func read() {
        var chunk = [UInt8](repeating: 0, count: Self.turn.bytes)
        let count = recv(socket, &chunk, chunk.count, 0)
        guard count > 0 else {
            if count == 0 || errno != EAGAIN && errno != EINTR { end() }
            return
        }
        reader.append(chunk[..<count])
        handle()
    }

    /// Handles some of the messages that have come; the others in later turns, before more are read.
    private func handle() {
        do throws(FrameReader.Damage) {
            for _ in 0..<Self.turn.messages {
                guard !isOver else { return }
                guard let message = try reader.next() else {
                    settle(isBehind: false)
                    return
                }
                onMessage(message)
            }
        } catch {
            return end()
        }
        settle(isBehind: true)
        loop.later { [weak self] in self?.handle() }
    }

    private var isBehind = false

    private func settle(isBehind: Bool) {
        guard !isOver, self.isBehind != isBehind else { return }
        self.isBehind = isBehind
        watchSocket()
    }

    private func watchSocket() {
        var events: IOWatch.Events = []
        if !isBehind { events.insert(.readable) }
        if !outgoing.isEmpty { events.insert(.writable) }
        watch?.events = events
    }

    /// Reads a part of what it has printed. What it prints after its last line has nowhere to go, and costs nothing.
    private func readPipe() {
        guard pipe >= 0 else { return }
        var chunk = [UInt8](repeating: 0, count: 4_096)
        let count = Glibc.read(pipe, &chunk, chunk.count)
        if count > 0 {
            for line in output.take(chunk[..<count]) { onLine(line) }
        } else if count == 0 || errno != EAGAIN && errno != EINTR {
            closePipe()
        }
        if output.isFull { closePipe() }
    }

    private func closePipe() {
        pipeWatch = nil
        if pipe >= 0 { close(pipe) }
        pipe = -1
    }

    private func end() {
        guard !isOver else { return }
        isOver = true
        watch = nil
        onEnd()
    }
}
