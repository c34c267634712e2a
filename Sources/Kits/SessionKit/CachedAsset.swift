public import DBus
import EventLoop
public import PluginAPI
import SessionBus

/// A film, a podcast or another file of the web that is kept while a player reads it (AVAssetResourceLoader, and a cache
/// behind it).
///
///     let asset = CachedAsset("https://example.org/film.mp4")
///     let player = AudioPlayer(try await asset.open())
///     for await event in asset.events { … }
///
/// Every byte is fetched once: seeking fetches only what is missing, and what is whole plays without the network. The
/// address is valid until ``close()``, or until this program ends.
public actor CachedAsset {
    /// The thread of the loop: messages from the bus and calls from tasks run on it, one after the other.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    public struct Options: Sendable, Hashable {
        /// May be credentials: they are sent only to the origin of the URL, and never stored or shown.
        public var headers: [String: String] = [:]
        /// Whether it is kept.
        public var isKept = true

        public init() {}
    }

    public enum Event: Sendable, Hashable {
        /// These bytes are here now (`loadedTimeRanges`); at most four times a second. The size is 0 while it is unknown.
        case progressed([Range<UInt64>], size: UInt64)
        /// A player has waited for bytes for a second, or goes on: show that it loads, or hide that.
        case stalled(Bool)
        /// All of it is in that file.
        case completed(path: String)
        /// The server cannot be read. What is here stays, and the next request of a player tries again. With
        /// `MediaServicesFailed`, the cache itself has ended, and the address is not valid any more.
        case failed(SessionError)
    }

    private let url: String
    private let options: Options
    private let bus: BusAddress
    private var connection: Connection?
    private var place = ""
    private var number: UInt64?
    /// What was told before the answer that has its number.
    private var early: [(number: UInt64, event: Event)] = []
    private var subscriptions: [Subscription] = []
    private let broadcast = Broadcast<Event>()

    /// Opens nothing yet.
    ///
    /// - Parameters:
    ///   - url: `http` or `https`.
    ///   - bus: the bus of the daemon.
    public init(_ url: String, options: Options = .init(), bus: BusAddress = .session) {
        (self.url, self.options, self.bus) = (url, options, bus)
    }

    isolated deinit {
        connection?.close()
        broadcast.finish()
    }

    /// Every event from now on, until ``close()``. Get this sequence before ``open()``: earlier events are not repeated.
    public nonisolated var events: AsyncStream<Event> { broadcast.stream() }

    /// Returns the address for a player: that of a file if all of it is here, otherwise one on this machine.
    /// - Throws: the reason why it is refused, such as `BadParameter`. A second call before ``close()`` throws `IsBusy`.
    public func open() async throws(SessionError) -> String {
        guard connection == nil else { throw SessionError(.isBusy, "the asset is open already; close it first") }
        do throws(Failure) {
            let connection = try Connection(bus, loop: LoopExecutor.shared.loop)
            self.connection = connection
            connection.onDisconnect = { [weak self] in self?.assumeIsolated { $0.lost() } }
            let opened = try await call(
                BusName.service, ObjectPath.root, BusName.plugins, "Open",
                [.string(PluginKind.cache.word), .string("https:")])
            // The signals come from the plugin's own connection.
            place = opened.first?.stringValue ?? ""
            subscriptions = [
                connection.subscribe(
                    path: PluginKind.cache.objectPath, interface: PluginKind.cache.interface, sender: place
                ) { [weak self] message in
                    guard let (number, event) = Self.read(message) else { return }
                    self?.assumeIsolated { $0.heard(number, event) }
                },
                connection.watchName(place) { [weak self] in self?.assumeIsolated { $0.lost() } },
            ]
            let headers = options.headers.sorted { $0.key < $1.key }.map {
                DictionaryEntry(key: .string($0.key), value: .string($0.value))
            }
            let answer = try await call(
                place, PluginKind.cache.objectPath, PluginKind.cache.interface, "Open",
                [
                    .string(url),
                    .properties([
                        ("headers", .dictionary(key: "s", value: "s", headers)), ("keep", .bool(options.isKept)),
                    ]),
                ])
            guard answer.count == 2, let address = answer[0].stringValue, let number = answer[1].uint64Value else {
                throw .failed("the cache answered something else")
            }
            self.number = number
            // A small file may be here before this task was told its number.
            let early = early
            self.early = []
            for (number, event) in early { heard(number, event) }
            return address
        } catch {
            close()
            throw SessionError(error)
        }
    }

    /// The address is not valid any more; what was fetched stays.
    public func close() {
        subscriptions = []
        connection?.close()
        (connection, number, early) = (nil, nil, [])
        broadcast.finish()
    }

    private func call(
        _ destination: String, _ path: String, _ interface: String, _ member: String, _ arguments: [Value]
    ) async throws(Failure) -> [Value] {
        let result = await withCheckedContinuation { (waiter: CheckedContinuation<Result<[Value], Failure>, Never>) in
            guard let connection else { return waiter.resume(returning: .failure(.disconnected)) }
            connection.call(destination, path, interface, member, arguments, timeout: 60) {
                waiter.resume(returning: $0)
            }
        }
        return try result.get()
    }

    private func lost() {
        broadcast.send(.failed(SessionError(.mediaServicesFailed, "the cache has ended; open the asset again")))
        close()
    }

    private func heard(_ number: UInt64, _ event: Event) {
        guard let own = self.number else { return early.append((number, event)) }
        if number == own { broadcast.send(event) }
    }

    /// A signal: the number of what was opened, and the event.
    private static func read(_ message: Message) -> (UInt64, Event)? {
        guard let values = try? message.arguments(), let number = values.first?.uint64Value else { return nil }
        switch (message.member, values.count) {
        case ("Progressed", 3):
            let ranges = (values[1].arrayValue ?? []).compactMap { value -> Range<UInt64>? in
                guard let ends = value.structureValue?.compactMap(\.uint64Value), ends.count == 2, ends[0] <= ends[1]
                else { return nil }
                return ends[0]..<ends[1]
            }
            return (number, .progressed(ranges, size: values[2].uint64Value ?? 0))
        case ("Stalled", 2): return (number, .stalled(values[1].boolValue ?? false))
        case ("Completed", 2): return (number, .completed(path: values[1].stringValue ?? ""))
        case ("Failed", 3):
            let failure = Failure(name: values[1].stringValue ?? "", message: values[2].stringValue ?? "")
            return (number, .failed(SessionError(failure)))
        default: return nil
        }
    }
}
