import Foundation

/// A PulseAudio server of the test's own, with null sinks. Nothing it does reaches the machine's sound.
public final class PrivatePulse {
    public let folder: PrivateFolder
    private let modules: [String]
    private var server: Child?

    /// Starts it with those null sinks (the first is the default) and modules, and waits until it answers.
    /// `modules` are lines as for `pactl load-module`; `start: false` leaves the server absent until ``restart()``.
    public init(sinks: [String] = ["speaker"], modules: [String] = [], start: Bool = true) throws {
        folder = try PrivateFolder()
        self.modules = sinks.map { "module-null-sink sink_name=\($0) rate=48000" } + modules
        _ = try folder.folder("run/pulse")
        _ = try folder.folder("config/pulse")
        _ = try folder.folder("state")
        try folder.file("config/pulse/client.conf", "autospawn = no\n")
        if start { try restart() }
    }

    public var socket: String { folder.path + "/run/pulse/native" }
    /// As for PULSE_SERVER and `pa_context_connect`.
    public var serverString: String { "unix:" + socket }
    public var processID: Int32 { server?.processID ?? 0 }
    public var isRunning: Bool { server?.isRunning ?? false }
    /// What the server wrote to its standard error.
    public var log: String { server?.errors.joined(separator: "\n") ?? "" }

    /// What a program needs to find this server and no other.
    public var environment: [String: String] {
        [
            "PATH": searchPath, "HOME": folder.path, "XDG_RUNTIME_DIR": folder.path + "/run",
            "XDG_CONFIG_HOME": folder.path + "/config", "PULSE_RUNTIME_PATH": folder.path + "/run/pulse",
            "PULSE_STATE_PATH": folder.path + "/state", "PULSE_SERVER": serverString, "LC_ALL": "C.UTF-8",
        ]
    }

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

    /// Loads a module ("module-null-sink sink_name=x …") and returns its index.
    @discardableResult
    public func loadModule(_ line: String) throws -> UInt32 {
        let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
        let answer = try pactl(["load-module"] + parts)
        guard let index = UInt32(answer) else {
            throw SupportError("pactl load-module \(line): '\(answer)' is no index")
        }
        return index
    }

    public func unloadModule(_ index: UInt32) throws { try pactl(["unload-module", String(index)]) }

    /// Adds a null sink with those properties and returns its module.
    @discardableResult
    public func addSink(_ name: String, properties: [String: String] = [:], channels: Int = 2) throws -> UInt32 {
        // The quotes of the value and of the list are parsed one after the other.
        let list = properties.sorted { $0.key < $1.key }.map { "\($0.key)='\($0.value)'" }.joined(separator: " ")
        return try loadModule(
            "module-null-sink sink_name=\(name) rate=48000 channels=\(channels)"
                + (list.isEmpty ? "" : " sink_properties=\"\(list)\""))
    }

    /// Runs pactl on this server and returns what it wrote.
    @discardableResult
    public func pactl(_ arguments: [String], timeout: Double = 10) throws -> String {
        try Child.run("pactl", arguments, environment: environment, timeout: timeout)
    }

    /// Whether somebody listens at the socket.
    private func accepts() -> Bool {
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | 0o2000000, 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: socket.utf8.prefix(107)) }
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }
}
