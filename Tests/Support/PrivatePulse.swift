import Foundation

/// A PulseAudio server for one test, with null sinks. It does not touch the sound of the machine.
public final class PrivatePulse: PrivateServer {
    public let folder: PrivateFolder
    private let modules: [String]
    private let more: [String: String]
    private var server: Child?

    public private(set) lazy var control = ServerControl(server: serverString)

    /// Starts the server with null sinks (the first is the default) and modules, and waits until it answers. `modules`
    /// are lines as for `pactl load-module`. With `start: false`, the server starts only with ``restart()``.
    /// `environment` has additional variables for the server.
    public init(
        sinks: [String] = ["speaker"], modules: [String] = [], start: Bool = true, environment: [String: String] = [:]
    ) throws {
        folder = try PrivateFolder()
        more = environment
        self.modules = sinks.map { "module-null-sink sink_name=\($0) rate=48000" } + modules
        try PrivatePulse.furnish(folder)
        if start { try restart() }
    }

    /// The folder in which the server searches for additional modules.
    var moduleFolder: String { folder.path + "/modules" }
    public var processID: Int32 { server?.processID ?? 0 }
    public var isRunning: Bool { server?.isRunning ?? false }
    /// The server's standard error.
    public var log: String { server?.errors.joined(separator: "\n") ?? "" }

    /// Kills the server if it runs, and starts it again at the same socket, with the same modules as at first.
    public func restart() throws {
        kill()
        var arguments = [
            "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--high-priority=no", "--realtime=no",
            "--log-target=stderr",
        ]
        for module in modules { arguments += ["-L", module] }
        // This module comes last, so that everything exists when a client can connect.
        arguments += ["-L", "module-native-protocol-unix auth-anonymous=1 socket=\(socket)"]
        var environment = self.environment
        environment["PULSE_SERVER"] = nil
        environment["LTDL_LIBRARY_PATH"] = moduleFolder
        environment.merge(more) { $1 }
        let child = try Child("pulseaudio", arguments, environment: environment)
        server = child
        guard eventually(timeout: 15, { !child.isRunning || accepts() }), child.isRunning else {
            throw SupportError("pulseaudio did not start: \(log)")
        }
    }

    /// Sends SIGTERM and waits for the end.
    public func stop() {
        server?.signal(SIGTERM)
        if server?.wait(timeout: 10) == nil { server?.kill() }
        server = nil
        control.close()
    }

    /// Sends SIGKILL. The socket stays, without a listener.
    public func kill() {
        server?.kill()
        server = nil
        control.close()
    }

    public func suspend() { server?.suspend() }
    public func resume() { server?.resume() }
}
