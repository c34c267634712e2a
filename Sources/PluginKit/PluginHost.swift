public import DBus
public import EventLoop
import Glibc
public import PluginAPI
import SessionBus

/// The program around a plugin: its loop, its connection, its name on the bus, the signals it ends at.
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
    /// Where the engine and the plugin live: they are called on its thread alone.
    public let loop = EventLoop()
    /// To the bus it serves; ``run(_:)`` closes it.
    public let connection: Connection
    private let name: String
    private var registration: PluginRegistration?
    private var isEnding = false

    /// This process's number, for names on the bus that another process must not have.
    public static var processID: Int32 { getpid() }

    /// Connects to the bus.
    ///
    /// A plugin does as it is told, with its user's rights: on the system bus it answers that user and root alone.
    /// - Parameters:
    ///   - name: the program's, in front of what it complains of.
    ///   - bus: the daemon's that started the program, unless given; the session bus where none did.
    ///   - endsWithParent: whether the program ends (as at SIGTERM) with the one that started it.
    public init(name: String = "plugin", bus: BusAddress = .starter, endsWithParent: Bool = false) throws(Failure) {
        self.name = name
        signal(SIGPIPE, SIG_IGN)
        // A file that may not grow any more is an error like a full disk, not the end.
        signal(SIGXFSZ, SIG_IGN)
        connection = try Connection(bus, loop: loop)
        isShared = bus.isSystem
        if isShared { connection.servedUsers = [0, getuid()] }
        self.endsWithParent = endsWithParent
    }

    private let endsWithParent: Bool
    /// Whether the bus is that of several users.
    private let isShared: Bool

    /// Takes a name on the bus; fails where somebody has it.
    public func claim(_ name: String) throws(Failure) {
        switch try connection.requestName(name) {
        case .owner: break
        case .taken(let owner): throw .failed("\(name) is owned by \(owner ?? "another connection") already")
        }
    }

    /// Takes a name on the bus, or one like it where somebody has it: on a bus of several users anybody may. Waits in
    /// line for `namespace` there, which is what a policy of dbus-broker knows it by.
    func claim(_ name: String, in namespace: String) throws(Failure) {
        do throws(Failure) {
            try claim(name)
        } catch {
            guard isShared else { throw error }
            try claim("\(name)_\(UInt64.random(in: 0 ... .max))")
        }
        // Whoever has it, or gets it: nobody is called by it.
        if isShared { connection.askBus("RequestName", [.string(namespace), .uint32(0)]) { _ in } }
    }

    /// Tells the daemon, and every one that comes after it, that the plugin of that manifest is up.
    /// - Parameters:
    ///   - id: the manifest's, or one of its own for a plugin that is not installed.
    ///   - name: for people.
    public func register(_ id: String, kind: PluginKind, name: String) {
        registration = PluginRegistration(id, kind: kind, name: name, isBusy: isBusy, on: connection)
    }

    /// Whether the plugin works for somebody who may be gone: the daemon does not end a busy one for being idle. A session
    /// that sounds or waits says so by itself.
    public var isBusy = false {
        didSet { registration?.isBusy = isBusy }
    }

    /// Runs until ``quit(_:ending:)``, SIGTERM, SIGINT, or the end of the bus (69); the exit code.
    public func run(_ plugin: any Plugin) -> Int32 {
        let signals = [SIGTERM, SIGINT].map { signal in
            loop.watch(signal: signal) { [unowned self] in quit(0, ending: plugin) }
        }
        connection.onDisconnect = { [unowned self] in quit(69, ending: plugin) }
        // After the handlers are there: the parent may be gone already.
        if endsWithParent { ParentProcess.endWithIt(signal: SIGTERM) }
        let code = loop.run()
        withExtendedLifetime(signals) {}
        connection.flush()
        connection.close()
        return code
    }

    /// Writes a line to the standard error.
    public func complain(_ text: String) { PluginHost.complain(text, name: name) }

    /// The same of what was refused, with the error's name.
    public func complain(_ failure: Failure) {
        let isMissing = failure.isDaemonMissing
        complain(isMissing ? "sessiond is not running: start it first" : "\(failure.name): \(failure.message)")
    }

    static func complain(_ text: String, name: String) {
        let bytes = Array("\(name): \(text)\n".utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
    }

    /// Ends ``run(_:)`` with that code once the plugin has given everything back; at once when asked again.
    public func quit(_ code: Int32, ending plugin: any Plugin) {
        guard !isEnding else { return loop.quit(code) }
        isEnding = true
        plugin.end { [loop] in loop.quit(code) }
    }
}

/// A plugin's entry in the daemon's list, made again whenever the daemon comes back.
final class PluginRegistration {
    var isBusy: Bool {
        didSet { if isBusy != oldValue { register() } }
    }
    private let id: String
    private let kind: PluginKind
    private let name: String
    private let connection: Connection
    private var subscription: Subscription?

    init(_ id: String, kind: PluginKind, name: String, isBusy: Bool, on connection: Connection) {
        (self.id, self.kind, self.name, self.isBusy, self.connection) = (id, kind, name, isBusy, connection)
        subscription = connection.watchOwner(of: BusName.service) { [unowned self] owner in
            if owner != "" { register() }
        }
        register()
    }

    /// A daemon without that interface, or none at all, is no reason not to serve.
    private func register() {
        var info: [(String, Value)] = [
            ("object", .objectPath(kind.objectPath)), ("kind", .string(kind.word)), ("name", .string(name)),
            ("interface", .uint32(UInt32(PluginManifest.supportedInterface))),
        ]
        if isBusy { info.append(("busy", .bool(true))) }
        connection.call(
            BusName.service, ObjectPath.root, BusName.plugins, "Register", [.string(id), .properties(info)]
        ) { _ in }
    }
}
