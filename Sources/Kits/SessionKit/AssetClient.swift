import DBus
import EventLoop
import PluginAPI
import SessionBus

/// An app's client of the plugin for films: a separate connection, on the thread of the sessions.
actor AssetClient {
    nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    /// An event of a job.
    enum News: Sendable {
        /// The changed properties.
        case changed([String: Value])
        case image(requested: Double, actual: Double, path: String, error: String)
        case over(SessionError?)
    }

    /// The time limit for a file to wait for others and to be read, in seconds. The plugin has its own limits.
    private static let patience = 300.0

    private let bus: BusAddress
    private var connection: Connection?
    private var followers: [String: Follower] = [:]

    /// A job that is followed.
    private struct Follower {
        /// The unique name of the plugin's process: another one has other jobs with the same paths.
        let place: String
        let tell: @Sendable (News) -> Void
        let subscriptions: [Subscription]
    }

    init(_ bus: BusAddress) { self.bus = bus }

    isolated deinit { connection?.close() }

    /// Calls a method of the plugin that opens the file.
    func ask(_ uri: String, _ member: String, _ arguments: [Value]) async throws(SessionError) -> [Value] {
        let connection = try connect()
        return try await connection.ask(
            try await connection.open(.assets, uri), ObjectPath.assets, BusName.assets, member, arguments,
            timeout: Self.patience)
    }

    /// Starts a job and follows it. `tell` is called on the thread of the loop, with ``News/over(_:)`` as the last
    /// event. Returns the path of the job.
    func start(
        _ uri: String, _ member: String, _ arguments: [Value], _ tell: @escaping @Sendable (News) -> Void
    ) async throws(SessionError) -> String {
        let connection = try connect()
        let place = try await connection.open(.assets, uri)
        // Subscribed before the call, so that the first signals of the job are not missed.
        let early = Early(connection)
        let subscriptions = [
            connection.subscribe(interface: BusName.job, sender: place) { early.heard($0) },
            connection.subscribe(
                interface: StandardName.properties, member: "PropertiesChanged", sender: place, arg0: BusName.job
            ) { early.heard($0) },
            connection.subscribe(path: ObjectPath.assets, interface: BusName.assets, sender: place) { early.heard($0) },
            connection.watchName(place) {
                early.end(SessionError(.mediaServicesFailed, "the service for films has ended"))
            },
        ]
        let answer = try await connection.ask(
            place, ObjectPath.assets, BusName.assets, member, arguments, timeout: Self.patience)
        let path = answer.first?.objectPathValue ?? "/"
        followers[path] = Follower(place: place, tell: tell, subscriptions: subscriptions)
        early.begin(path) { [weak self] news in
            tell(news)
            if case .over = news { self?.assumeIsolated { _ = $0.followers.removeValue(forKey: path) } }
        }
        // The job may have ended before the subscription.
        let state = try? await connection.ask(
            place, path, StandardName.properties, "GetAll", [.string(BusName.job)], timeout: Self.patience)
        if let known = state?.first?.asProperties { early.learn(known) }
        return path
    }

    /// Cancels a job that is followed. Does nothing after its end.
    func cancel(_ job: String) async {
        guard let connection, let place = followers[job]?.place else { return }
        _ = try? await connection.ask(place, job, BusName.job, "Cancel", [], timeout: Self.patience)
    }

    private func connect() throws(SessionError) -> Connection {
        if let connection, connection.isOpen { return connection }
        do throws(Failure) {
            let new = try Connection(bus, loop: LoopExecutor.shared.loop)
            connection = new
            return new
        } catch {
            throw SessionError(error)
        }
    }
}

/// Collects the signals of a job before its path is known, and passes them on afterwards. To be used only on the thread
/// of the loop.
private final class Early {
    private let connection: Connection
    private var path = ""
    private var unheard: [Message] = []
    private var tell: (AssetClient.News) -> Void = { _ in }
    private var isOver = false
    private var error: SessionError?

    init(_ connection: Connection) { self.connection = connection }

    func begin(_ path: String, _ tell: @escaping (AssetClient.News) -> Void) {
        (self.path, self.tell) = (path, tell)
        if let error { return end(error) }
        let unheard = unheard
        self.unheard = []
        for message in unheard { heard(message) }
    }

    func heard(_ message: Message) {
        guard !path.isEmpty else { return unheard.append(message) }
        guard !isOver, let values = try? message.arguments() else { return }
        switch message.member {
        case "PropertiesChanged" where message.path == path:
            connection.readChanges(message) { [weak self] _, properties in self?.learn(properties) }
        case "Image" where values.first?.objectPathValue == path:
            guard values.count == 5, let requested = values[1].doubleValue, let actual = values[2].doubleValue else {
                return
            }
            tell(
                .image(
                    requested: requested, actual: actual, path: values[3].stringValue ?? "",
                    error: values[4].stringValue ?? ""))
        default: break
        }
    }

    func learn(_ properties: [String: Value]) {
        guard !isOver else { return }
        tell(.changed(properties))
        switch properties["State"]?.stringValue {
        case "finished": over(nil)
        case "failed", "cancelled":
            over(
                SessionError(
                    Failure(
                        name: properties["Error"]?.stringValue ?? "", message: properties["Message"]?.stringValue ?? "")
                ))
        default: break
        }
    }

    func end(_ error: SessionError) {
        guard !path.isEmpty else {
            self.error = error
            return
        }
        over(error)
    }

    private func over(_ error: SessionError?) {
        guard !isOver else { return }
        isOver = true
        tell(.over(error))
    }
}
