import DBus
import EventLoop
import Glibc
import PluginAPI
import Processes
import SessionBus

/// A plugin program that this program has started for itself. To be used only on the thread of the loop.
final class OwnProcess {
    private let program: String
    private let process: Int32
    private var watch: ProcessWatch?
    /// Set until the process has ended: its parent must read its exit code, and no other process can.
    private var keptAlive: OwnProcess?
    private var isOver = false
    private var killer: Timer?
    private var waiting: CheckedContinuation<Result<String, SessionError>, Never>?
    private var subscription: Subscription?
    private var deadline: Timer?

    /// The time limits for its start and for its end after a request, in seconds.
    private static let (startTime, endTime) = (15.0, 3.0)

    init(_ name: String, _ arguments: [String], _ environment: [String: String]) throws(SessionError) {
        program = name
        guard let path = Self.find(name, environment["PATH"]) else {
            throw SessionError(
                .resourceNotAvailable, "\(name) is not installed: it is neither next to this program nor in PATH")
        }
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { if null >= 0 { close(null) } }
        do throws(SpawnFailure) {
            process = try Spawn.start(
                path, arguments, environment: environment,
                descriptors: null >= 0 ? [(from: null, to: STDIN_FILENO), (from: null, to: STDOUT_FILENO)] : [],
                ownGroup: true)
        } catch {
            throw SessionError(.resourceNotAvailable, "\(path): \(error)")
        }
        keptAlive = self
        watch = ProcessWatch(UInt32(process), on: LoopExecutor.shared.loop) { [unowned self] in ended() }
        // It may have ended already.
        if watch == nil { ended() }
    }

    /// The name of this program, for display.
    static var programName: String {
        CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? "Music"
    }

    /// The folder from which relative paths start.
    static var workingFolder: String {
        guard let path = getcwd(nil, 0) else { return "" }
        defer { free(path) }
        return String(cString: path)
    }

    /// The path of a program: in the folder of this program, or in PATH.
    static func find(_ name: String, _ path: String?) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        let own = String(decoding: buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let beside = own.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        let folders = path ?? getenv("PATH").map { String(cString: $0) } ?? "/usr/local/bin:/usr/bin:/bin"
        return ([beside] + folders.split(separator: ":").map(String.init)).map { $0 + "/" + name }
            .first { access($0, X_OK) == 0 }
    }

    private func ended() {
        guard !isOver else { return }
        isOver = true
        _ = ChildChange.next(of: process)
        watch = nil
        killer = nil
        answer(.failure(SessionError(.mediaServicesFailed, "\(program) ended while it started")))
        keptAlive = nil
    }

    /// Asks the process to end, and kills it if it does not.
    func end() {
        guard !isOver else { return }
        kill(process, SIGTERM)
        kill(process, SIGCONT)
        killer = Timer(on: LoopExecutor.shared.loop) { [unowned self] in
            kill(process, SIGKILL)
        }
        killer?.arm(after: Self.endTime)
    }

    /// The unique name of its connection, when it owns a name below `namespace`.
    func owner(
        below namespace: String, on connection: Connection, isolation: isolated (any Actor)? = #isolation
    ) async throws(SessionError) -> String {
        let name = "\(namespace).instance\(process)"
        return try await withCheckedContinuation { continuation in
            waiting = continuation
            if isOver {
                return answer(.failure(SessionError(.mediaServicesFailed, "\(program) ended while it started")))
            }
            subscription = connection.watchOwners(below: namespace) { [unowned self] found, owner in
                // If another connection owns its name, it uses the name with a suffix.
                if !owner.isEmpty, found == name || found.hasPrefix(name + "_") { answer(.success(owner)) }
            }
            connection.askBus("GetNameOwner", [.string(name)]) { [weak self] result in
                if let owner = (try? result.get())?.first?.stringValue { self?.answer(.success(owner)) }
            }
            let timer = Timer(on: LoopExecutor.shared.loop) { [unowned self] in
                answer(.failure(SessionError(.timedOut, "\(program) did not start in time")))
            }
            timer.arm(after: Self.startTime)
            deadline = timer
        }.get()
    }

    private func answer(_ result: Result<String, SessionError>) {
        guard let waiting else { return }
        self.waiting = nil
        // The watch must not be released from its own handler.
        LoopExecutor.shared.loop.later { [self] in
            subscription = nil
            deadline = nil
        }
        waiting.resume(returning: result)
    }
}
