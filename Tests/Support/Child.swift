import Foundation

/// A program that the test started. It is killed, with all its children, when this object is released or the tests end.
///
/// Its output is read whenever a member of this object is used. The pipes hold 1 MB, so the program seldom waits for
/// that.
public final class Child {
    /// How a program ended.
    public enum Exit: Equatable, Sendable {
        case code(Int32)
        case signal(Int32)
    }

    public let processID: Int32
    public let name: String
    /// The complete lines so far, without line endings.
    public private(set) var output: [String] = []
    public private(set) var errors: [String] = []
    private var exit: Exit?
    private var descriptors: [Int32]
    private var rests: [[UInt8]] = [[], []]
    private var input: Int32

    /// Starts `program` (a path, or a name in PATH). `environment` is its whole environment; `nil` means the
    /// environment of the tests.
    public init(
        _ program: String, _ arguments: [String] = [], environment: [String: String]? = nil, folder: String? = nil
    ) throws {
        name = URL(fileURLWithPath: program).lastPathComponent
        let reaper = Reaper.shared
        var pipes: [[Int32]] = []
        for _ in 0..<3 {
            guard let ends = closedPipe() else { throw SupportError("pipe: \(String(cString: strerror(errno)))") }
            pipes.append(ends)
        }
        var process: pid_t = 0
        let ours = ProcessInfo.processInfo.environment
        let status = spawn(
            &process, (folder.map { ["env", "-C", $0] } ?? []) + [Child.located(program)] + arguments,
            environment: (environment ?? [:]).merging(environment == nil ? ours : ours.filter(Child.isForSanitizer)) {
                given, _ in given
            },
            descriptors: [(pipes[0][0], 0), (pipes[1][1], 1), (pipes[2][1], 2)])
        close(pipes[0][0])
        close(pipes[1][1])
        close(pipes[2][1])
        processID = process
        input = pipes[0][1]
        descriptors = [pipes[1][0], pipes[2][0]]
        guard status == 0 else {
            exit = .code(127)
            throw SupportError("cannot start \(program): \(String(cString: strerror(status)))")
        }
        reaper.add(process: process)
        for descriptor in descriptors {
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            _ = fcntl(descriptor, 1031 /* F_SETPIPE_SZ */, 1 << 20)
        }
    }

    deinit {
        if exit == nil {
            Glibc.kill(-processID, SIGKILL)
            var status: Int32 = 0
            Reaper.shared.remove(process: processID)
            waitpid(processID, &status, 0)
        }
        for descriptor in descriptors + [input] where descriptor >= 0 { close(descriptor) }
    }

    /// The path of a sound server that Scripts/setup unpacked, or else the name, to be found in PATH.
    private static func located(_ program: String) -> String {
        let unpacked = unpackedServers + "/" + program
        return FileManager.default.isExecutableFile(atPath: unpacked) ? unpacked : program
    }

    public static func isInstalled(_ program: String) -> Bool {
        ([unpackedServers] + searchPath.split(separator: ":").map(String.init)).contains {
            FileManager.default.isExecutableFile(atPath: $0 + "/" + program)
        }
    }

    /// Whether a variable configures a sanitizer. Every program that is built with it needs such variables.
    private static func isForSanitizer(_ variable: (key: String, value: String)) -> Bool {
        ["ASAN_OPTIONS", "TSAN_OPTIONS"].contains(variable.key)
    }

    public var isRunning: Bool {
        pump(milliseconds: 0)
        return exit == nil
    }

    /// The standard output so far.
    public var text: String {
        pump(milliseconds: 0)
        return output.joined(separator: "\n")
    }

    /// Sends a signal to the program, not to its children.
    public func signal(_ number: Int32) {
        if exit == nil { Glibc.kill(processID, number) }
    }

    /// Sends SIGKILL to the program and all its children, and waits for its end.
    public func kill() {
        guard exit == nil else { return }
        Glibc.kill(-processID, SIGKILL)
        _ = wait(timeout: 10)
    }

    /// Sends SIGSTOP, and waits until the kernel reports the program as stopped.
    public func suspend() {
        signal(SIGSTOP)
        eventually(timeout: 5) { state == "T" }
    }

    public func resume() { signal(SIGCONT) }

    /// Writes a line to the standard input of the program.
    public func send(_ line: String) {
        var line = line + "\n"
        line.withUTF8 { _ = write(input, $0.baseAddress, $0.count) }
    }

    public func closeInput() {
        if input >= 0 { close(input) }
        input = -1
    }

    /// Waits for the end of the program and returns how it ended, or nil if it still runs after `timeout` seconds.
    public func wait(timeout: Double = 10) -> Exit? {
        let end = monotonicNow() + timeout
        while true {
            pump(milliseconds: 0)
            if let exit { return exit }
            if monotonicNow() >= end { return nil }
            pump(milliseconds: 5)
        }
    }

    /// Waits for the first line of output or errors that passes `test`. Returns nil if the program ends or `timeout` is
    /// over.
    public func line(timeout: Double = 10, where test: (String) -> Bool) -> String? {
        let end = monotonicNow() + timeout
        while true {
            pump(milliseconds: 0)
            if let found = output.first(where: test) ?? errors.first(where: test) { return found }
            if exit != nil || monotonicNow() >= end { return nil }
            pump(milliseconds: 5)
        }
    }

    /// Runs a program to its end and returns its output. Throws if it fails or takes longer than `timeout`.
    @discardableResult
    public static func run(
        _ program: String, _ arguments: [String] = [], environment: [String: String]? = nil, timeout: Double = 20
    ) throws -> String {
        let child = try Child(program, arguments, environment: environment)
        child.closeInput()
        guard let exit = child.wait(timeout: timeout) else {
            throw SupportError("\(program) \(arguments): no end after \(timeout) s")
        }
        guard exit == .code(0) else {
            throw SupportError("\(program) \(arguments): \(exit) \(child.errors.joined(separator: " "))")
        }
        return child.text
    }

    private var state: String? {
        guard let stat = try? String(contentsOfFile: "/proc/\(processID)/stat", encoding: .utf8),
            let end = stat.lastIndex(of: ")")
        else { return nil }
        return stat[end...].split(separator: " ").dropFirst().first.map(String.init)
    }

    private func pump(milliseconds: Int32) {
        var polls = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        if milliseconds > 0 {
            if descriptors.allSatisfy({ $0 < 0 }) { usleep(1_000) } else { poll(&polls, 2, milliseconds) }
        }
        var ended = exit != nil
        if !ended {
            // WNOWAIT does not reap the process, so its id cannot be reused before the reaper has forgotten it.
            var info = siginfo_t()
            if waitid(P_PID, id_t(processID), &info, WEXITED | WNOHANG | WNOWAIT) == 0, info.si_signo == SIGCHLD {
                ended = true
            }
        }
        drain(0)
        drain(1)
        guard ended, exit == nil else { return }
        Reaper.shared.remove(process: processID)
        var status: Int32 = 0
        waitpid(processID, &status, 0)
        exit = status & 0x7f == 0 ? .code((status >> 8) & 0xff) : .signal(status & 0x7f)
    }

    private func drain(_ which: Int) {
        guard descriptors[which] >= 0 else { return }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptors[which], &buffer, buffer.count)
            if count > 0 {
                rests[which] += buffer[..<count]
            } else {
                if count == 0 {
                    close(descriptors[which])
                    descriptors[which] = -1
                    if let last = rests[which].last, last != 10 { rests[which].append(10) }
                }
                break
            }
        }
        while let end = rests[which].firstIndex(of: 10) {
            let line = String(decoding: rests[which][..<end], as: UTF8.self)
            rests[which].removeSubrange(...end)
            if which == 0 { output.append(line) } else { errors.append(line) }
        }
    }
}
