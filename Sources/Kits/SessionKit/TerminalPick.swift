import DBus
import EventLoop
import Glibc
import PluginAPI
import Processes

/// Runs `sessionctl library pick` on the terminal of this program.
actor TerminalPick {
    nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    private let program: String
    private let arguments: [String]
    private let environment: [String: String]
    private var process: Int32 = 0
    private var watches: (output: IOWatch?, process: ProcessWatch?) = (nil, nil)
    private var output: [UInt8] = []
    private var isEnded = false

    /// - Throws: `ResourceNotAvailable` without a terminal, or without sessionctl.
    init(_ arguments: [String], _ bus: BusAddress) throws(SessionError) {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard terminal >= 0 else {
            throw SessionError(
                .resourceNotAvailable,
                "no plugin of the kind media-picker is installed, and this program has no terminal")
        }
        close(terminal)
        guard let program = OwnProcess.find("sessionctl", nil) else {
            throw SessionError(
                .resourceNotAvailable, "sessionctl is not installed: it is neither next to this program nor in PATH")
        }
        self.program = program
        switch bus {
        case .session, .starter: (self.arguments, environment) = (arguments, [:])
        case .system: (self.arguments, environment) = (arguments + ["--system"], [:])
        case .custom(let address): (self.arguments, environment) = (arguments, ["DBUS_SESSION_BUS_ADDRESS": address])
        }
    }

    /// The picked items; nil: cancelled.
    var uris: [String]? {
        get async throws(SessionError) {
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else {
                throw SessionError(.resourceNotAvailable, "pipe: \(String(cString: strerror(errno)))")
            }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            defer { close(ends[0]) }
            do throws(SpawnFailure) {
                defer { close(ends[1]) }
                // In the process group of this program, which owns the terminal.
                process = try Spawn.start(
                    program, arguments, environment: environment, descriptors: [(from: ends[1], to: STDOUT_FILENO)],
                    ownGroup: false)
            } catch {
                throw SessionError(.resourceNotAvailable, "\(program): \(error)")
            }
            await end(of: ends[0])
            guard case .exited(0) = ChildChange.next(of: process) else { return nil }
            let lines = output.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
            return lines.isEmpty ? nil : lines
        }
    }

    /// Returns when the process has ended. Reads its output meanwhile.
    private func end(of descriptor: Int32) async {
        await withCheckedContinuation { continuation in
            let loop = LoopExecutor.shared.loop
            watches.output = IOWatch(on: loop, descriptor: descriptor, events: .readable) { [weak self] _ in
                self?.assumeIsolated { $0.read(descriptor) }
            }
            watches.process = ProcessWatch(UInt32(process), on: loop) { [weak self] in
                guard let self else { return continuation.resume() }
                assumeIsolated { $0.read(descriptor) }
                continuation.resume()
            }
            if watches.process == nil { continuation.resume() }
        }
        isEnded = true
        watches = (nil, nil)
    }

    private func read(_ descriptor: Int32) {
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while poll(&waiting, 1, 0) > 0 {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else {
                watches.output = nil
                return
            }
            output += buffer[..<count]
        }
    }

    func cancel() { if process > 0, !isEnded { kill(process, SIGTERM) } }
}
