import DBus
import EventLoop
import Glibc
import PluginAPI
import Processes
import SessionBus

/// A plugin process (player, recorder or effects) started here, and its object on the bus. Ends with this process.
final class PluginProcess {
    /// It is on the bus and ready.
    var onReady: () -> Void = {}
    /// Its properties changed: their names and values.
    var onChanged: ([String: Value]) -> Void = { _ in }
    var onFinished: (Bool) -> Void = { _ in }
    var onFailed: (String) -> Void = { _ in }
    /// The recorder paused and will not resume automatically; the message gives the reason.
    var onPaused: (String) -> Void = { _ in }
    /// The player skipped an item; the message gives the reason.
    var onItemFailed: (String) -> Void = { _ in }
    /// A sound has ended: its number, and whether it was played to its end.
    var onCompleted: (UInt32, Bool) -> Void = { _, _ in }
    /// The user closed the window of a film.
    var onClosed: () -> Void = {}
    /// It exited unexpectedly.
    var onGone: () -> Void = {}

    let process: pid_t
    private let kind: PluginKind
    private let service: Service
    /// The prefix of its names.
    private let busName: String
    /// Its unique name; empty until it is known. Another process may have taken the well-known name first.
    private var place = ""
    /// Signals received before that.
    private var unheard: [Message] = []
    private static let unheardLimit = 256
    private var subscriptions: [Subscription] = []
    private var childWatch: SignalWatch?
    private var isReady = false
    private var isGone = false

    init(_ kind: PluginKind, _ arguments: [String], _ service: Service) throws {
        self.kind = kind
        self.service = service
        let program = try Self.find(kind.program)
        guard let null = Optional(open("/dev/null", O_RDWR | O_CLOEXEC)), null >= 0 else {
            throw Complaint.refused("/dev/null: \(String(cString: strerror(errno)))")
        }
        defer { close(null) }
        // Its own process group: ctrl-C reaches only this process, which ends it cleanly. Its standard output is not
        // used.
        process = try Spawn.launch(
            program, arguments + (service.bus.isSystem ? ["--system"] : []) + ["--die-with-parent"],
            descriptors: [(from: null, to: 0), (from: null, to: 1)])
        busName = "\(kind.busName).instance\(process)"
        subscriptions = [
            service.connection.watchOwners(below: kind.busName) { [unowned self] name, owner in
                if !owner.isEmpty { consider(name, owner) }
            },
            service.connection.subscribe(path: kind.objectPath) { [unowned self] in heard($0) },
        ]
        childWatch = service.loop.watch(signal: SIGCHLD) { [unowned self] in reap() }
        // It may have been faster than the subscription.
        service.connection.askBus("ListNames") { [weak self] answer in
            for name in (try? answer.get())?.first?.stringsValue ?? [] { self?.find(name) }
        }
    }

    private func find(_ name: String) {
        guard isOwn(name) else { return }
        service.connection.askBus("GetNameOwner", [.string(name)]) { [weak self] answer in
            if let owner = (try? answer.get())?.first?.stringValue { self?.consider(name, owner) }
        }
    }

    /// Whether it may own that name: if the first one is taken, it uses a similar one.
    private func isOwn(_ name: String) -> Bool { name == busName || name.hasPrefix(busName + "_") }

    /// It is ready if it owns one of its names and, according to the bus, the owner has our user.
    private func consider(_ name: String, _ owner: String) {
        guard !isReady, isOwn(name) else { return }
        service.connection.credentials(of: owner) { [weak self] answer in
            guard let self, case .success(let credentials) = answer, credentials.userID == geteuid() else { return }
            ready(owner)
        }
    }

    static func isInstalled(_ kind: PluginKind) -> Bool { (try? find(kind.program)) != nil }

    /// Next to this program, in libexec, or in PATH.
    private static func find(_ name: String) throws -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        if count > 0 {
            let own = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let folder = own.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
            for place in [folder + "/" + name, folder + "/../libexec/sessiond/" + name] where access(place, X_OK) == 0 {
                return place
            }
        }
        do {
            return try Spawn.find(name)
        } catch {
            throw Complaint.refused("\(name) is not installed: it is neither next to sessionctl nor in PATH")
        }
    }

    // MARK: Requests

    /// The interface that ``call(_:_:_:)``, ``get(_:_:)`` and ``set(_:_:)`` use: a movie player is controlled as a player.
    private var interface: String {
        kind.interfaces.contains(BusName.player) ? BusName.player : kind.interface
    }

    /// Calls a method of its object; answers from the loop.
    func call(
        _ member: String, _ arguments: [Value] = [], _ reply: @escaping (Result<[Value], Failure>) -> Void = { _ in }
    ) {
        call(member, arguments, of: interface, at: kind.objectPath, reply)
    }

    /// Calls a method of another of its objects or interfaces.
    func call(
        _ member: String, _ arguments: [Value], of interface: String, at path: String,
        _ reply: @escaping (Result<[Value], Failure>) -> Void = { _ in }
    ) {
        service.connection.call(place, path, interface, member, arguments, reply)
    }

    /// One of its properties, without the variant; nil if it does not answer.
    func get(_ property: String, _ reply: @escaping (Value?) -> Void) {
        get(property, of: interface, at: kind.objectPath, reply)
    }

    func get(_ property: String, of interface: String, at path: String, _ reply: @escaping (Value?) -> Void) {
        service.connection.call(
            place, path, StandardName.properties, "Get", [.string(interface), .string(property)],
            timeout: Service.timeout
        ) { reply(try? $0.get().first?.unwrapped) }
    }

    func set(_ property: String, _ value: Value) { set(property, value, of: interface) }

    func set(_ property: String, _ value: Value, of interface: String) {
        service.connection.call(
            place, kind.objectPath, StandardName.properties, "Set",
            [.string(interface), .string(property), .variant(value)]
        ) { _ in }
    }

    /// Watches changes of another of its objects.
    func watch(_ path: String, _ handler: @escaping ([String: Value]) -> Void) {
        subscriptions.append(
            service.connection.subscribe(
                path: path, interface: StandardName.properties, member: "PropertiesChanged"
            ) { [unowned self] message in
                // Its name is not known yet when this is called.
                guard isReady, message.sender == place else { return }
                service.connection.readChanges(message) { handler($1) }
            })
    }

    /// Hears the signals of another of its objects: their names and values.
    func listen(_ path: String, _ interface: String, _ handler: @escaping (String, [Value]) -> Void) {
        subscriptions.append(
            service.connection.subscribe(path: path, interface: interface) { [unowned self] message in
                guard isReady, message.sender == place, let member = message.member,
                    let values = try? message.arguments()
                else { return }
                handler(member, values)
            })
    }

    /// The names of the sessions that its session waits for.
    func interrupters(_ reply: @escaping ([String]) -> Void) {
        service.call("ListSessions", []) { [process] answer in
            let sessions = ((try? answer.get().first?.arrayValue) ?? []).compactMap(SessionInfo.init)
            let mine = sessions.first { $0.processID == UInt32(process) && $0.state == .interrupted }
            reply((mine?.waitingFor ?? []).compactMap { path in sessions.first { $0.path == path }?.name.escaped })
        }
    }

    // MARK: Process

    private func ready(_ owner: String) {
        guard !isReady else { return }
        isReady = true
        place = owner
        onReady()
        let unheard = unheard
        self.unheard = []
        for message in unheard { heard(message) }
    }

    private func heard(_ message: Message) {
        guard isReady else {
            if unheard.count < Self.unheardLimit { unheard.append(message) }
            return
        }
        guard message.sender == place else { return }
        guard let values = try? message.arguments() else { return }
        switch message.member {
        case "Finished": onFinished(values.first?.boolValue ?? false)
        case "Failed": onFailed(values.first?.stringValue ?? "")
        case "Paused": onPaused(values.first?.stringValue ?? "")
        case "PlaybackDidFinish": if values.first?.stringValue == "user-exited" { onClosed() }
        case "ItemFailed": onItemFailed(values.last?.stringValue ?? "")
        case "Completed":
            if values.count == 3, let playing = values[1].uint32Value {
                onCompleted(playing, values[2].boolValue ?? false)
            }
        case "PropertiesChanged": service.connection.readChanges(message) { [weak self] in self?.onChanged($1) }
        default: break
        }
    }

    private func reap() {
        guard !isGone, ChildChange.next(of: process)?.isEnd == true else { return }
        isGone = true
        onGone()
    }

    /// Asks it to exit, and makes sure that it does.
    func end() {
        guard !isGone else { return }
        isGone = true
        kill(process, SIGTERM)
        kill(process, SIGCONT)
        let end = MonotonicClock.now() + 2_000_000
        while MonotonicClock.now() < end {
            if ChildChange.next(of: process)?.isEnd == true { return }
            usleep(2_000)
        }
        kill(process, SIGKILL)
    }
}
