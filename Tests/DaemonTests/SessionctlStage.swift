import DBus
import Foundation
import SessionBus
import TestSupport

/// Runs `sessionctl` with a daemon of its own, as a user does.
final class SessionctlStage {
    let daemon: DaemonStage
    let environment: [String: String]

    /// The output and exit code of a command.
    struct Outcome {
        let code: Int32
        let output: [String]
        let errors: [String]

        var text: String { output.joined(separator: "\n") }
        var complaint: String { errors.joined(separator: "\n") }
    }

    init(pulse: (any PrivateServer)? = nil, settings: String? = nil) throws {
        daemon = try DaemonStage(pulse: pulse, settings: settings)
        environment = try SessionctlStage.environment(on: daemon.bus, pulse)
    }

    /// With a daemon that is connected to that sound server.
    convenience init(on pulse: any PrivateServer) throws {
        try self.init(pulse: pulse)
        guard daemon.waitForServer() else { throw SupportError("the daemon found no sound server") }
    }

    func file(_ name: String) -> String { daemon.bus.folder.path + "/" + name }

    /// A file of that many seconds at 8 kHz, mono, 16 bits.
    func tone(_ name: String, seconds: Double) throws -> String {
        try WaveFile.write(WaveFile.sines([(440, seconds)], rate: 8_000), rate: 8_000, to: file(name))
    }

    static func environment(on bus: PrivateBus, _ pulse: (any PrivateServer)? = nil) throws -> [String: String] {
        let folder = bus.folder.path
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return [
            "PATH": path, "HOME": folder, "TERM": "xterm", "LC_ALL": "C.UTF-8",
            "PULSE_SERVER": "unix:\(folder)/absent",
        ]
        .merging(pulse?.environment ?? [:]) { $1 }.merging(bus.environment) { $1 }
    }

    /// An environment with the programs of this package in its PATH.
    func programs() throws -> [String: String] {
        let folder = URL(fileURLWithPath: try builtProduct(named: "sessionctl")).deletingLastPathComponent().path
        return environment.merging(["PATH": folder + ":" + (environment["PATH"] ?? "")]) { $1 }
    }

    func start(_ arguments: [String], more: [String: String] = [:]) throws -> Child {
        try Child(try builtProduct(named: "sessionctl"), arguments, environment: environment.merging(more) { $1 })
    }

    @discardableResult
    func run(_ arguments: [String], more: [String: String] = [:], timeout: Double = 20) throws -> Outcome {
        try SessionctlStage.outcome(of: try start(arguments, more: more), arguments, timeout)
    }

    static func outcome(of child: Child, _ arguments: [String], _ timeout: Double = 20) throws -> Outcome {
        guard let exit = child.wait(timeout: timeout) else {
            throw SupportError("sessionctl \(arguments) did not end: \(child.output) \(child.errors)")
        }
        guard case .code(let code) = exit else {
            throw SupportError("sessionctl \(arguments): \(exit) \(child.errors)")
        }
        return Outcome(code: code, output: child.output, errors: child.errors)
    }

    /// Runs a command with `--json` and returns its only line.
    func json(_ arguments: [String]) throws -> [String: Any] {
        let outcome = try run(arguments + ["--json"])
        guard outcome.code == 0, outcome.output.count == 1 else {
            throw SupportError("sessionctl \(arguments): \(outcome)")
        }
        return try SessionctlStage.object(outcome.text)
    }

    static func object(_ line: String) throws -> [String: Any] {
        guard let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
            throw SupportError("no JSON object: \(line)")
        }
        return object
    }

    /// The properties of the session with that name.
    func session(_ name: String) throws -> [String: Value]? {
        try daemon.manager("ListSessions").first?.arrayValue?.compactMap(\.asProperties)
            .first { $0["Name"]?.stringValue == name }
    }

    /// Starts `sessionctl run`, waits until its session is active, and returns it with the command's process id.
    func guarded(_ name: String, _ options: [String] = [], _ command: [String]) throws -> (Child, Int32) {
        let child = try start(["run", "--name", name] + options + ["--"] + command)
        guard try eventually({ try session(name)?["State"]?.stringValue == "active" }),
            let process = try session(name)?["ProcessId"]?.uint32Value
        else { throw SupportError("no active session: \(child.errors)") }
        return (child, Int32(process))
    }

    /// Whether the process is stopped (`T`).
    static func isStopped(_ process: Int32) -> Bool {
        guard let stat = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let end = stat.lastIndex(of: ")")
        else { return false }
        return stat[end...].split(separator: " ").dropFirst().first == "T"
    }
}
