import Foundation

/// A PulseAudio server of the test's own, with null sinks. Nothing it does reaches the machine's sound.
public final class PrivatePulse: PrivateServer {
    public let folder: PrivateFolder
    private let modules: [String]
    private let more: [String: String]
    private var server: Child?

    /// Starts it with those null sinks (the first is the default) and modules, and waits until it answers.
    /// `modules` are lines as for `pactl load-module`; `start: false` leaves the server absent until ``restart()``.
    /// `environment` is what the server gets beside the usual.
    public init(
        sinks: [String] = ["speaker"], modules: [String] = [], start: Bool = true, environment: [String: String] = [:]
    ) throws {
        folder = try PrivateFolder()
        more = environment
        self.modules = sinks.map { "module-null-sink sink_name=\($0) rate=48000" } + modules
        try PrivatePulse.furnish(folder)
        if start { try restart() }
    }

    /// Where the server looks for modules beside its own.
    var moduleFolder: String { folder.path + "/modules" }
    public var processID: Int32 { server?.processID ?? 0 }
    public var isRunning: Bool { server?.isRunning ?? false }
    /// What the server wrote to its standard error.
    public var log: String { server?.errors.joined(separator: "\n") ?? "" }

    /// Stops it where it runs and starts it again at the same socket, with the modules of the beginning.
    public func restart() throws {
        kill()
        var arguments = [
            "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no", "--high-priority=no", "--realtime=no",
            "--log-target=stderr",
        ]
        for module in modules { arguments += ["-L", module] }
        // Last, so that who connects finds everything there.
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

    /// SIGTERM; waits for its end.
    public func stop() {
        server?.signal(SIGTERM)
        if server?.wait(timeout: 10) == nil { server?.kill() }
        server = nil
    }

    /// SIGKILL: the socket stays behind, and nobody listens.
    public func kill() {
        server?.kill()
        server = nil
    }

    public func suspend() { server?.suspend() }
    public func resume() { server?.resume() }
}
