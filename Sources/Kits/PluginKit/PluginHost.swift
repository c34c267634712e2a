public import DBus
public import EventLoop
import Glibc
public import PluginAPI
import Processes
import SessionBus

/// The process of a plugin: its loop, its connection, its bus name, and the signals at which it exits.
///
/// One per process. A plugin program is this, an engine, and a ``PlayerPlugin`` or ``RecorderPlugin``:
///
///     let host = try PluginHost()
///     let player = PlayerPlugin(MyEngine(), .init(name: "Mine", category: .playback), on: host.connection, host.loop)
///     try host.claim("org.mpris.MediaPlayer2.mine.instance\(PluginHost.processID)")
///     host.register("org.example.mine", kind: .player, name: "Mine")
///     exit(host.run(player))
///
/// ``PluginProgram`` does all that, and reads the command line, for a program that others start.
public final class PluginHost {
    /// The loop of the engine and the plugin: they are called only on its thread.
    public let loop = EventLoop()
    /// The connection to the bus; ``run(_:)`` closes it.
    public let connection: Connection
    /// Where it is connected.
    public let bus: BusAddress
    private let name: String
    private var registration: PluginRegistration?
    private var isEnding = false
    /// What ``run(_:)`` runs.
    private var plugin: (any Plugin)?
    private lazy var signals = [SIGTERM, SIGINT].map { signal in
        loop.watch(signal: signal) { [unowned self] in if let plugin { quit(0, ending: plugin) } else { loop.quit(0) } }
    }

    /// The id of this process, for bus names that no other process may have.
    public static var processID: Int32 { getpid() }
    /// The user that this process runs as.
    static var userID: UInt32 { geteuid() }

    /// Connects to the bus.
    ///
    /// A plugin acts with the rights of its user, so on the system bus it accepts calls only from this user and root.
    /// - Parameters:
    ///   - name: the name of the program, printed before error messages.
    ///   - bus: the bus; default: that of the daemon that started the program, else the session bus.
    ///   - endsWithParent: whether the program exits, as on SIGTERM, when the one that started it exits.
    public init(name: String = "plugin", bus: BusAddress = .starter, endsWithParent: Bool = false) throws(Failure) {
        (self.name, self.bus) = (name, bus)
        FailedWrites.ignoreSignals()
        connection = try Connection(bus, loop: loop)
        isShared = bus.isSystem
        connection.objects.refuseLongTexts()
        if isShared { connection.servedUsers = [0, getuid()] }
        self.endsWithParent = endsWithParent
    }

    private let endsWithParent: Bool
    /// Whether several users share the bus.
    private let isShared: Bool

    /// Requests a bus name; fails if another connection owns it.
    public func claim(_ name: String) throws(Failure) {
        // Whoever sees the name may end this process. The signal waits for ``run(_:)`` then.
        _ = signals
        switch try connection.requestName(name) {
        case .owner: break
        case .taken(let owner): throw .failed("\(name) is already owned by \(owner ?? "another connection")")
        }
    }

    /// Requests a bus name, or a similar one if another connection owns it: on a bus of several users, any user may own
    /// it. There it also queues for `namespace`, because the policy of dbus-broker matches that name.
    func claim(_ name: String, in namespace: String) throws(Failure) {
        // Before the other name: clients that see the other name call at once, and would be refused. It does not matter
        // which connection owns this name, because clients do not call it.
        if isShared { connection.askBus("RequestName", [.string(namespace), .uint32(0)]) { _ in } }
        do throws(Failure) {
            try claim(name)
        } catch {
            guard isShared else { throw error }
            try claim("\(name)_\(UInt64.random(in: 0 ... .max))")
        }
    }

    /// Registers the plugin of that manifest with the daemon, and again with every later daemon.
    /// - Parameters:
    ///   - id: the id of the manifest, or another one for a plugin that is not installed.
    ///   - path: the path of its object, if it is not that of the kind.
    ///   - name: for display.
    public func register(_ id: String, kind: PluginKind, at path: String? = nil, name: String) {
        registration = PluginRegistration(
            id, kind: kind, path: path ?? kind.objectPath, name: name, isBusy: isBusy, on: connection)
    }

    /// Whether the plugin works for a client that may have left: the daemon does not stop a busy plugin as idle. Not
    /// needed while a session of the plugin is active or interrupted.
    public var isBusy = false {
        didSet { registration?.isBusy = isBusy }
    }

    /// Runs until ``quit(_:ending:)``, SIGTERM, SIGINT, or the end of the bus (69); returns the exit code.
    ///
    /// No call is answered before it, so the plugin's objects are there when the first one is.
    public func run(_ plugin: any Plugin) -> Int32 {
        self.plugin = plugin
        _ = signals
        plugin.serve()
        connection.onDisconnect = { [unowned self] in quit(69, ending: plugin) }
        // After the handlers are installed: the parent may already be gone.
        if endsWithParent { ParentProcess.endWithIt(signal: SIGTERM) }
        let code = loop.run()
        connection.flush()
        connection.close()
        return code
    }

    /// Writes a line to standard error.
    public func complain(_ text: String) { PluginHost.complain(printable(text), name: name) }

    /// Writes a refusal to standard error, with the name of the error.
    public func complain(_ failure: Failure) {
        let isMissing = failure.isDaemonMissing
        complain(isMissing ? "sessiond is not running: start it first" : "\(failure.name): \(failure.message)")
    }

    static func complain(_ text: String, name: String) {
        let bytes = Array("\(name): \(printableLines(text))\n".utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
    }

    /// Ends ``run(_:)`` with that code when the plugin has cleaned up; at once when called again.
    public func quit(_ code: Int32, ending plugin: any Plugin) {
        guard !isEnding else { return loop.quit(code) }
        isEnding = true
        // If the service ends, too, a call to it would start it again, and stop systemd from stopping it.
        connection.startsServices = false
        plugin.end { [loop] in loop.quit(code) }
    }
}

/// A plugin's registration, repeated whenever the daemon starts.
final class PluginRegistration {
    var isBusy: Bool {
        didSet { if isBusy != oldValue { register() } }
    }
    private let id: String
    private let kind: PluginKind
    private let path: String
    private let name: String
    private let connection: Connection
    private var subscription: Subscription?

    init(_ id: String, kind: PluginKind, path: String, name: String, isBusy: Bool, on connection: Connection) {
        (self.id, self.kind, self.path, self.name) = (id, kind, path, name)
        (self.isBusy, self.connection) = (isBusy, connection)
        subscription = connection.watchOwner(of: BusName.service) { [unowned self] owner in
            if owner != "" { register() }
        }
        register()
    }

    /// Registers with the daemon. Errors are ignored: the plugin also works without a daemon, or with one that does not
    /// have this interface.
    private func register() {
        var info: [(String, Value)] = [
            ("object", .objectPath(path)), ("kind", .string(kind.word)), ("name", .string(name)),
            ("interface", .uint32(UInt32(PluginManifest.supportedInterface))),
        ]
        if isBusy { info.append(("busy", .bool(true))) }
        connection.call(
            BusName.service, ObjectPath.root, BusName.plugins, "Register", [.string(id), .properties(info)]
        ) { _ in }
    }
}
