import Foundation

/// A sound server of any kind for one test. Programs find it only by ``environment`` or ``serverString``. It does not
/// touch the sound of the machine.
public protocol PrivateServer: AnyObject {
    var folder: PrivateFolder { get }
    /// The process that speaks PulseAudio's protocol; 0 if it does not run.
    var processID: Int32 { get }
    var isRunning: Bool { get }
    /// The server's standard error.
    var log: String { get }
    /// The tests' own connection to the server.
    var control: ServerControl { get }

    /// Kills the server if it runs, and starts it again at the same socket, with the same sinks and modules as at
    /// first.
    func restart() throws
    /// Sends SIGTERM and waits for the end.
    func stop()
    /// Sends SIGKILL. The socket stays, without a listener.
    func kill()
    /// Sends SIGSTOP, and waits until the kernel reports the server as stopped.
    func suspend()
    func resume()
}

extension PrivateServer {
    public var socket: String { folder.path + "/run/pulse/native" }
    /// The address, in the form of PULSE_SERVER and of `pa_context_connect`.
    public var serverString: String { "unix:" + socket }

    /// The variables with which a program finds this server and no other.
    public var environment: [String: String] {
        [
            "PATH": searchPath, "HOME": folder.path, "XDG_RUNTIME_DIR": folder.path + "/run",
            "PIPEWIRE_RUNTIME_DIR": folder.path + "/run", "XDG_CONFIG_HOME": folder.path + "/config",
            "XDG_STATE_HOME": folder.path + "/state", "PULSE_RUNTIME_PATH": folder.path + "/run/pulse",
            "PULSE_STATE_PATH": folder.path + "/state", "PULSE_SERVER": serverString, "LC_ALL": "C.UTF-8",
        ]
    }

    /// Makes the folders that ``environment`` names, and a configuration that stops clients from starting servers.
    static func furnish(_ folder: PrivateFolder) throws {
        _ = try folder.folder("run/pulse")
        _ = try folder.folder("config/pulse")
        _ = try folder.folder("state")
        try folder.file("config/pulse/client.conf", "autospawn = no\n")
    }

    /// Loads a module ("module-null-sink sink_name=x …") and returns its index.
    @discardableResult
    public func loadModule(_ line: String) throws -> UInt32 {
        let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
        return try control.load(parts[0], parts.count > 1 ? parts[1] : "")
    }

    public func unloadModule(_ index: UInt32) throws { try control.unload(module: index) }

    /// Adds a null sink and returns the index of its module.
    @discardableResult
    public func addSink(_ name: String, properties: [String: String] = [:], channels: Int = 2) throws -> UInt32 {
        // The server parses first the quotes of the list, then those of the values.
        let list = properties.sorted { $0.key < $1.key }.map { "\($0.key)='\($0.value)'" }.joined(separator: " ")
        return try loadModule(
            "module-null-sink sink_name=\(name) rate=48000 channels=\(channels)"
                + (list.isEmpty ? "" : " sink_properties=\"\(list)\""))
    }

    /// Makes a source the default, and waits until it is. Servers differ in the default that they select: WirePlumber
    /// 0.5 prefers a monitor to a virtual microphone.
    public func setDefaultSource(_ source: String) throws {
        guard
            try eventually({
                // Before the session manager works, no default can be set, and a client that came before may never be
                // able to.
                control.close()
                _ = try? control.setDefaultSource(source)
                return try control.defaults().source == source
            })
        else { throw SupportError("\(source) does not become the default source: \(log)") }
    }

    /// Makes a source run for a moment, because a virtual device of PipeWire 1.4 forgets a volume and a mute switch
    /// that are set before it has run once.
    public func wake(_ source: String) throws {
        let program = try Child("parec", ["--device=" + source, "/dev/null"], environment: environment)
        guard
            try eventually({
                try pactl(["list", "short", "sources"]).split(separator: "\n").contains {
                    let fields = $0.split(separator: "\t")
                    return fields.dropFirst().first == source[...] && fields.last == "RUNNING"
                }
            })
        else { throw SupportError("\(source) does not run: \(program.errors) \(log)") }
        program.kill()
    }

    /// Moves a sink input like a user, and waits until it is there. PipeWire's server may lose a request for a stream
    /// that has only just begun, so the request is repeated.
    public func moveStream(_ index: UInt32, to sink: String) throws {
        for _ in 0..<5 {
            try control.move(stream: index, to: sink)
            let isThere = try eventually(timeout: 1) {
                try control.streams().first { $0.index == index }?.sink == sink
            }
            if isThere { return }
        }
        throw SupportError("stream \(index) was not moved to \(sink): \(log)")
    }

    /// Runs pactl on this server and returns its output.
    @discardableResult
    public func pactl(_ arguments: [String], timeout: Double = 10) throws -> String {
        try Child.run("pactl", arguments, environment: environment, timeout: timeout)
    }

    /// Whether a server listens at the socket.
    func accepts() -> Bool {
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
