import DBus
import EventLoop
import PluginAPI
import SessionBus

/// An app's client of a plugin: a separate connection, on the thread of the sessions.
actor PluginClient {
    nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    /// The process of the plugin.
    enum Source: Sendable {
        /// The daemon starts the plugin for all programs.
        case shared(uri: String)
        /// This program starts the plugin for itself, with these arguments. The plugin ends with this program.
        case own(arguments: [String], environment: [String: String])
    }

    enum News: Sendable {
        /// The plugin was found, for the first time or again.
        case found
        case signal(member: String, values: [Value])
        case changed(interface: String, properties: [String: Value])
        case lost
    }

    /// The argument for a plugin that sounds in the session of this program.
    static let hosted = "--hosted"
    /// The time limit for an answer of the plugin, in seconds.
    static let patience = 60.0
    /// The time between two tries to find a plugin that has ended, in seconds, and the number of tries.
    private static let (pause, tries) = (1.0, 60)

    private let kind: PluginKind
    private let bus: BusAddress
    private let source: Source
    private var connection: Connection?
    private var place: String?
    private var search: Task<Result<String, SessionError>, Never>?
    private var subscriptions: [Subscription] = []
    private var process: OwnProcess?
    /// Gets the events, on the thread of the loop.
    private var tell: (@Sendable (News) -> Void)?

    init(_ kind: PluginKind, on bus: BusAddress, _ source: Source) {
        (self.kind, self.bus, self.source) = (kind, bus, source)
    }

    isolated deinit { close() }

    /// Finds the plugin, and reports its events from now on. If the daemon starts the plugin, it is found again after
    /// it has ended. Only the first call has an effect.
    func follow(_ tell: @escaping @Sendable (News) -> Void) async {
        guard self.tell == nil else { return }
        self.tell = tell
        _ = try? await found()
    }

    /// Also reports the signals of an interface of further objects of the plugin, or of one of them.
    func listen(to interface: String, at path: String? = nil) async throws(SessionError) {
        let owner = try await found()
        guard let connection else { return }
        subscriptions.append(
            connection.subscribe(path: path, interface: interface, sender: owner) { [weak self] message in
                guard let member = message.member, let values = try? message.arguments() else { return }
                self?.assumeIsolated { $0.tell?(.signal(member: member, values: values)) }
            })
    }

    /// Ends the plugin if this program started it. A later call starts a new one.
    func close() {
        subscriptions = []
        process?.end()
        process = nil
        place = nil
        connection?.close()
        connection = nil
    }

    // MARK: Calls

    /// Calls a method of the plugin's object, or of another object of the plugin.
    @discardableResult
    func ask(
        _ member: String, _ arguments: [Value] = [], of interface: String? = nil, at path: String? = nil,
        timeout: Double = PluginClient.patience
    ) async throws(SessionError) -> [Value] {
        let place = try await found()
        guard let connection else { throw SessionError(Failure.disconnected) }
        return try await connection.ask(
            place, path ?? kind.objectPath, interface ?? kind.interface, member, arguments, timeout: timeout)
    }

    func get(
        _ property: String, of interface: String? = nil, at path: String? = nil
    ) async throws(SessionError) -> Value {
        let answer = try await ask(
            "Get", [.string(interface ?? kind.interface), .string(property)], of: StandardName.properties, at: path)
        return answer.first?.unwrapped ?? .bool(false)
    }

    func set(_ property: String, _ value: Value, of interface: String? = nil) async throws(SessionError) {
        _ = try await ask(
            "Set", [.string(interface ?? kind.interface), .string(property), .variant(value)],
            of: StandardName.properties)
    }

    func properties(of interface: String? = nil, at path: String? = nil) async throws(SessionError) -> [String: Value] {
        let answer = try await ask(
            "GetAll", [.string(interface ?? kind.interface)], of: StandardName.properties, at: path)
        return answer.first?.asProperties ?? [:]
    }

    // MARK: Finding the plugin

    /// The unique name of the plugin; starts it if it does not run.
    @discardableResult
    func found() async throws(SessionError) -> String {
        if let place { return place }
        let search = search ?? Task { await find() }
        self.search = search
        return try await search.value.get()
    }

    private func find() async -> Result<String, SessionError> {
        defer { search = nil }
        do throws(SessionError) {
            let connection = try connect()
            let owner: String
            switch source {
            case .shared(let uri): owner = try await connection.open(kind, uri)
            case .own(let arguments, let environment): owner = try await start(arguments, environment, connection)
            }
            place = owner
            let signals = kind.interfaces.map { interface in
                connection.subscribe(interface: interface, sender: owner) { [weak self] message in
                    guard let member = message.member, let values = try? message.arguments() else { return }
                    self?.assumeIsolated { $0.tell?(.signal(member: member, values: values)) }
                }
            }
            subscriptions =
                signals + [
                    connection.subscribe(interface: StandardName.properties, member: "PropertiesChanged", sender: owner)
                    {
                        [weak self] message in
                        connection.readChanges(message) { interface, properties in
                            self?.assumeIsolated { $0.tell?(.changed(interface: interface, properties: properties)) }
                        }
                    },
                    connection.watchName(owner) { [weak self] in self?.assumeIsolated { $0.lost() } },
                ]
            tell?(.found)
            return .success(owner)
        } catch {
            return .failure(error)
        }
    }

    private func connect() throws(SessionError) -> Connection {
        if let connection, connection.isOpen { return connection }
        do throws(Failure) {
            let new = try Connection(bus, loop: LoopExecutor.shared.loop)
            new.onDisconnect = { [weak self] in self?.assumeIsolated { $0.lost() } }
            connection = new
            return new
        } catch {
            throw SessionError(error)
        }
    }

    private func lost() {
        guard place != nil else { return }
        place = nil
        subscriptions = []
        process = nil
        tell?(.lost)
        if tell != nil, case .shared = source { Task { [weak self] in await self?.findAgain() } }
    }

    private func findAgain() async {
        for _ in 0..<Self.tries {
            try? await Task.sleep(for: .seconds(Self.pause))
            guard place == nil, connection?.isOpen == true else { return }
            if (try? await found()) != nil { return }
        }
    }

    // MARK: A plugin for this program alone

    private func start(
        _ arguments: [String], _ environment: [String: String], _ connection: Connection
    ) async throws(SessionError) -> String {
        var (arguments, environment) = (arguments + ["--die-with-parent"], environment)
        switch bus {
        case .session, .starter: break
        case .system: arguments.append("--system")
        case .custom(let address): environment["DBUS_SESSION_BUS_ADDRESS"] = address
        }
        let process = try OwnProcess(kind.program, arguments, environment)
        self.process = process
        let name = arguments.contains(Self.hosted) ? kind.hostedName(onSystemBus: bus.isSystem) : kind.busName
        do throws(SessionError) {
            return try await process.owner(below: name, on: connection)
        } catch {
            process.end()
            throw error
        }
    }
}

extension Connection {
    /// Calls a method and waits for its answer, on an actor of the loop.
    func ask(
        _ place: String, _ path: String, _ interface: String, _ member: String, _ arguments: [Value], timeout: Double,
        isolation: isolated (any Actor)? = #isolation
    ) async throws(SessionError) -> [Value] {
        let answer = await withCheckedContinuation { continuation in
            call(place, path, interface, member, arguments, timeout: timeout) { continuation.resume(returning: $0) }
        }
        switch answer {
        case .success(let values): return values
        case .failure(let failure): throw SessionError(failure)
        }
    }

    /// Asks the daemon to open a plugin; returns its unique name.
    func open(
        _ kind: PluginKind, _ uri: String, isolation: isolated (any Actor)? = #isolation
    ) async throws(SessionError) -> String {
        // The daemon needs this many seconds at most to start a plugin.
        let patience = 30.0
        let opened = try await ask(
            BusName.service, ObjectPath.root, BusName.plugins, "Open", [.string(kind.word), .string(uri)],
            timeout: patience)
        guard let name = opened.first?.stringValue else {
            throw SessionError(.resourceNotAvailable, "the service did not open a plugin")
        }
        let owner = try await ask(
            StandardName.bus, StandardName.busPath, StandardName.bus, "GetNameOwner", [.string(name)],
            timeout: patience)
        return owner.first?.stringValue ?? name
    }
}
