import DBus
import EventLoop
import PluginAPI
import SessionBus
import State
import TestSupport

/// The real daemon on a private bus, without a sound server unless one is given.
final class DaemonStage {
    let loop = EventLoop()
    let bus: PrivateBus
    private(set) var daemon: Child
    /// A connection without sessions. It reads properties and lists, and calls the manager's methods.
    let observer: Connection
    private let environment: [String: String]
    private let arguments: [String]

    init(
        pulse: (any PrivateServer)? = nil, arguments: [String] = [], settings: String? = nil, crash: String? = nil,
        services: [String] = [], environment more: [String: String] = [:]
    ) throws {
        bus = try PrivateBus(services: services)
        var environment = bus.environment
        environment["PULSE_SERVER"] = "unix:\(bus.folder.path)/absent"
        environment["XDG_RUNTIME_DIR"] = bus.folder.path
        if let pulse { environment.merge(pulse.environment) { $1 } }
        environment.merge(bus.environment.filter { $0.key.hasPrefix("DBUS") }) { $1 }
        environment.merge(more) { $1 }
        var arguments = arguments
        if let settings { arguments += ["--config", try bus.folder.file("sessiond.conf", settings)] }
        self.environment = environment
        self.arguments = arguments
        observer = try Connection(.custom(bus.address), loop: loop)
        // The crash point of a debug build. `restart()` starts the daemon without it.
        let armed = environment.merging(crash.map { ["SESSIOND_CRASH": $0] } ?? [:]) { $1 }
        daemon = try Child(try builtProduct(named: "sessiond"), arguments, environment: armed)
        if crash != nil { return }
        guard eventually({ isServing || !daemon.isRunning }), isServing else {
            throw SupportError("sessiond did not come up: \(daemon.errors)")
        }
    }

    var isServing: Bool { (try? manager("History", [.uint32(0)])) != nil }

    /// Handles the messages that arrived before a reply. Waiting for a reply reads them but does not handle them, so a
    /// test on a slow machine would miss them.
    func handleWhatWasRead(by connection: Connection) {
        _ = eventually {
            loop.iterate(blocking: false)
            return !connection.hasBacklog
        }
    }

    /// Waits until the daemon has found the sound server.
    func waitForServer() -> Bool {
        eventually { (try? property("ServerConnected"))?.boolValue == true }
    }

    func client() throws -> Client { try Client(self) }

    @discardableResult
    func manager(_ member: String, _ arguments: [Value] = [], timeout: Double = 5) throws -> [Value] {
        try observer.callAndWait(
            BusName.service, ObjectPath.root, BusName.manager, member, arguments, timeout: timeout)
    }

    /// A property of the manager, or of the session at `path`.
    func property(_ name: String, of path: String? = nil) throws -> Value {
        let values = try observer.callAndWait(
            BusName.service, path ?? ObjectPath.root, StandardName.properties, "Get",
            [.string(path == nil ? BusName.manager : BusName.session), .string(name)], timeout: 5)
        return values[0].unwrapped
    }

    /// The folder of the state files.
    var stateFolder: String { (environment["XDG_RUNTIME_DIR"] ?? "") + "/sessiond" }

    /// Starts the daemon again, once the one before has ended. One that is to die at a point may do so at once.
    func restart(crash: String? = nil) throws {
        _ = daemon.wait()
        daemon = try start(crash: crash)
        guard eventually({ isServing || !daemon.isRunning }), isServing || crash != nil else {
            throw SupportError("sessiond did not come up again: \(daemon.errors)")
        }
    }

    /// Another daemon takes the name; the one before ends by itself.
    func replace() throws {
        let before = daemon
        daemon = try start(["--replace"])
        guard before.wait() == .code(0), eventually({ isServing }) else {
            throw SupportError("sessiond was not replaced: \(before.errors) \(daemon.errors)")
        }
    }

    /// Every session as D-Bus shows it, by path. A restart of the daemon must not change them.
    func sessions() throws -> [String: [String: Value]] {
        let listed = try manager("ListSessions")[0].arrayValue?.compactMap(\.asProperties) ?? []
        return Dictionary(uniqueKeysWithValues: listed.map { ($0["path"]?.objectPathValue ?? "", $0) })
    }

    /// The text of that cause in the explanation of the session; empty: it has no such cause.
    func explanation(_ cause: String, of path: String) throws -> String {
        let causes = try manager("Explain", [.objectPath(path)])[0].arrayValue?.compactMap(\.asProperties)
        return causes?.first { $0["cause"]?.stringValue == cause }?["text"]?.stringValue ?? ""
    }

    /// Starts another daemon, while this one runs or after it ended.
    func start(_ more: [String] = [], crash: String? = nil) throws -> Child {
        let armed = environment.merging(crash.map { ["SESSIOND_CRASH": $0] } ?? [:]) { $1 }
        return try Child(try builtProduct(named: "sessiond"), arguments + more, environment: armed)
    }
}

extension StateRecord.Entry {
    /// The client that owns the session.
    var client: StateRecord.Client {
        get {
            guard case .client(let client) = owner else { preconditionFailure("an adopted program") }
            return client
        }
        set { owner = .client(newValue) }
    }
}

/// A client that uses only the D-Bus contract: one connection, its sessions, and every signal it received, in order.
final class Client {
    let connection: Connection
    private let stage: DaemonStage
    private(set) var events: [String] = []
    private var subscriptions: [Subscription] = []

    init(_ stage: DaemonStage) throws {
        self.stage = stage
        connection = try Connection(.custom(stage.bus.address), loop: stage.loop)
    }

    /// Creates a session and subscribes to its signals.
    func session(
        _ name: String, category: String = "playback", mode: String = "default", options: [String] = [],
        class sessionClass: String = "app", more: [(String, Value)] = [], hears: Bool = true
    ) throws -> String {
        let values = try connection.callAndWait(
            BusName.service, ObjectPath.root, BusName.manager, "CreateSession",
            [
                .string(name),
                .properties(
                    [
                        ("category", .string(category)), ("mode", .string(mode)), ("options", .strings(options)),
                        ("class", .string(sessionClass)),
                    ] + more),
            ], timeout: 5)
        let path = values[0].objectPathValue ?? ""
        if hears { hear(name, path) }
        return path
    }

    /// A call that has begun. No session may refuse it.
    @discardableResult
    func beginCall(_ name: String) throws -> String {
        let path = try session(name, category: "play-and-record", class: "call")
        if let refusal = activate(path) { throw SupportError("the call \(name) was refused: \(refusal)") }
        return path
    }

    /// Subscribes to the signals of that session.
    func hear(_ name: String, _ path: String) {
        subscriptions.append(
            connection.subscribe(path: path, interface: BusName.session, sender: BusName.service) {
                [weak self] message in
                guard let values = try? message.arguments() else { return }
                self?.events.append(Client.describe(name, message.member ?? "", values))
            })
    }

    /// Returns nil on success, otherwise the error's name.
    @discardableResult
    func call(_ path: String, _ member: String, _ arguments: [Value] = []) -> String? {
        do throws(Failure) {
            _ = try connection.callAndWait(BusName.service, path, BusName.session, member, arguments, timeout: 5)
            return nil
        } catch {
            return error.name
        }
    }

    @discardableResult
    func activate(_ path: String) -> String? { call(path, "Activate", [.properties([])]) }

    @discardableResult
    func deactivate(_ path: String, notify: Bool = false) -> String? {
        call(path, "Deactivate", [.properties([("notify-others", .bool(notify))])])
    }

    func state(_ path: String) -> String { (try? stage.property("State", of: path))?.stringValue ?? "gone" }

    /// Receives everything that the daemon has sent so far. Returns the signals since the last call, and forgets them.
    func heard() throws -> [String] {
        _ = try connection.callAndWait(
            BusName.service, ObjectPath.root, "org.freedesktop.DBus.Peer", "Ping", [], timeout: 5)
        stage.handleWhatWasRead(by: connection)
        defer { events = [] }
        return events
    }

    /// Waits for `count` signals that contain `what`, and returns them. They may come one by one. Forgets all other
    /// signals.
    func heard(_ count: Int, of what: String) -> [String] {
        var all: [String] = []
        _ = eventually {
            all += ((try? self.heard()) ?? []).filter { $0.contains(what) }
            return all.count >= count
        }
        return all
    }

    private static func describe(_ name: String, _ member: String, _ values: [Value]) -> String {
        switch member {
        case "InterruptionBegan":
            let by = values[1].asProperties?["by-name"]?.stringValue ?? ""
            return "\(name) began \(values[0].stringValue ?? "") by \(by)"
        case "InterruptionEnded": return "\(name) ended \(values[0].boolValue == true ? "resume" : "stay")"
        case "DuckingChanged": return "\(name) ducked \(values[1].doubleValue ?? 0)"
        case "SilenceSecondaryAudioHint": return "\(name) hint \(values[0].boolValue == true)"
        case "RouteChanged": return "\(name) route \(values[0].uint32Value ?? 0)"
        default: return "\(name) \(member)"
        }
    }
}
