public import DBus
public import EventLoop
import MediaValues
public import PluginAPI
import SessionBus

/// The places of media of the web in the cache (`org.sessiond1.AssetCache`), for a player that reads them there.
///
/// What is wanted is opened when it is located, and closed when it is not read any more. Without the cache, media are read
/// at their own addresses, and the log says why. A cache that ends while it is read is started again.
public final class CachedMedia: MediaLocator {
    private struct Place {
        let address: String
        let id: UInt64
    }

    /// Called for an address with http or https: whether the cache is wanted for it.
    public var isWanted: (String) -> Bool = { _ in false }
    private let connection: Connection
    private let loop: EventLoop
    private let complain: (String) -> Void
    /// The unique name of the cache; nil: it is not known yet, or it has ended.
    private var cache: String?
    private var watch: Subscription?
    private var places: [String: Place] = [:]
    /// Who waits for the place of an address.
    private var waiting: [String: [(String) -> Void]] = [:]
    /// Addresses that the cache has failed to serve, until they are not read any more.
    private var direct: Set<String> = []
    /// When a place that was lost was last replaced, in `MonotonicClock` seconds.
    private var replaced: [String: Double] = [:]
    /// Before that time, the cache is not asked again.
    private var absentUntil = 0.0

    /// Seconds for the start of the cache, and for its answers: a player that waits is silent.
    private static let patience = (start: 8.0, answer: 5.0, pause: 60.0)
    /// A cache that is lost twice in so many seconds is left alone.
    private static let interval = 10.0

    /// - Parameter complain: gets a line for the log.
    public init(_ connection: Connection, _ loop: EventLoop, complain: @escaping (String) -> Void) {
        (self.connection, self.loop, self.complain) = (connection, loop, complain)
    }

    // MARK: MediaLocator

    public func locate(_ uri: String, _ answer: @escaping (String) -> Void) {
        guard ["http://", "https://"].contains(where: uri.lowercased().hasPrefix), !CacheAddress.isOne(uri),
            !direct.contains(uri), isWanted(uri)
        else { return answer(uri) }
        if let place = places[uri] { return answer(place.address) }
        guard MonotonicClock.seconds >= absentUntil else { return answer(uri) }
        waiting[uri, default: []].append(answer)
        // Another question asks already.
        guard waiting[uri]?.count == 1 else { return }
        findCache { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let cache): open(uri, at: cache)
            case .failure(let failure): readDirectly(uri, failure)
            }
        }
    }

    public func relocate(
        _ uri: String, from place: String, hasPlayed: Bool, because reason: String,
        _ answer: @escaping (String?) -> Void
    ) {
        isAlive(uri, place) { [weak self] isAlive in
            guard let self else { return }
            let now = MonotonicClock.seconds
            if !isAlive {
                let isFirst = now >= (replaced[uri] ?? -.infinity) + CachedMedia.interval
                replaced[uri] = now
                places[uri] = nil
                guard isFirst else { return readDirectly(uri, reason, answer) }
                complain("\(FileURI.shown(uri)): the cache has ended, and is opened again")
                locate(uri, answer)
            } else if hasPlayed {
                // The cache says what is wrong with the server.
                answer(nil)
            } else {
                readDirectly(uri, reason, answer)
            }
        }
    }

    public func release(except uris: Set<String>) {
        direct.formIntersection(uris)
        replaced = replaced.filter { uris.contains($0.key) }
        for (uri, place) in places where !uris.contains(uri) {
            places[uri] = nil
            guard let cache else { continue }
            connection.call(
                cache, PluginKind.cache.objectPath, PluginKind.cache.interface, "Close", [.uint64(place.id)]
            ) { _ in }
        }
    }

    // MARK: The cache

    private func findCache(_ reply: @escaping (Result<String, Failure>) -> Void) {
        if let cache { return reply(.success(cache)) }
        connection.call(
            BusName.service, ObjectPath.root, BusName.plugins, "Open",
            [.string(PluginKind.cache.word), .string("https:")], timeout: CachedMedia.patience.start
        ) { [weak self] result in
            guard let self else { return }
            reply(
                result.flatMap { values in
                    guard let name = values.first?.stringValue else {
                        return .failure(.failed("the daemon answered something else"))
                    }
                    self.cache = name
                    watch = connection.watchName(name) { [weak self] in self?.lost(name) }
                    return .success(name)
                })
        }
    }

    private func lost(_ name: String) {
        guard cache == name else { return }
        (cache, watch) = (nil, nil)
        places = [:]
    }

    private func open(_ uri: String, at cache: String) {
        connection.call(
            cache, PluginKind.cache.objectPath, PluginKind.cache.interface, "Open",
            [.string(uri), .properties([("redirect-live", .bool(true))])], timeout: CachedMedia.patience.answer
        ) { [weak self] result in
            guard let self else { return }
            switch result {
            case .success(let values):
                guard values.count == 2, let address = values[0].stringValue, let id = values[1].uint64Value else {
                    return readDirectly(uri, .failed("the cache answered something else"))
                }
                places[uri] = Place(address: address, id: id)
                answer(uri, address)
            case .failure(let failure): readDirectly(uri, failure)
            }
        }
    }

    private func answer(_ uri: String, _ place: String) {
        for answer in waiting.removeValue(forKey: uri) ?? [] { answer(place) }
    }

    private func readDirectly(_ uri: String, _ failure: Failure) {
        // The next items do not wait for it, too.
        if failure.name == Failure.Name.noReply { absentUntil = MonotonicClock.seconds + CachedMedia.patience.pause }
        complain("\(FileURI.shown(uri)) is not kept: \(failure.isDaemonMissing ? "no sessiond" : failure.message)")
        answer(uri, uri)
    }

    private func readDirectly(_ uri: String, _ reason: String, _ answer: (String) -> Void) {
        direct.insert(uri)
        complain("\(FileURI.shown(uri)) is read without the cache: \(FileURI.withoutSecrets(reason))")
        answer(uri)
    }

    /// Whether the cache still serves a place. Its end may be noticed by a reader before the bus tells it.
    private func isAlive(_ uri: String, _ place: String, _ reply: @escaping (Bool) -> Void) {
        guard let cache, let known = places[uri], known.address == place else { return reply(false) }
        connection.call(
            cache, PluginKind.cache.objectPath, PluginKind.cache.interface, "Info", [.uint64(known.id)],
            timeout: CachedMedia.patience.answer
        ) { result in reply((try? result.get()) != nil) }
    }
}

extension PlayerPlugin {
    /// What reads media of the web through the cache: those that a setting includes, and everything that is spoken
    /// (the mode spoken-audio), if it includes anything.
    ///
    /// - Parameters:
    ///   - setting: read before the first of them.
    ///   - complain: gets a line for the log.
    public func cachedMedia(
        _ setting: @escaping () -> Settings.Player.Cached, complain: @escaping (String) -> Void
    ) -> CachedMedia {
        let media = CachedMedia(connection, loop, complain: complain)
        var known: Settings.Player.Cached?
        media.isWanted = { [unowned self] uri in
            let setting = known ?? setting()
            known = setting
            guard session.description.mode != .spokenAudio else { return setting != .only([]) }
            return setting.includes(spoken(uri))
        }
        return media
    }

    /// What the item is that plays, or plays next.
    private func spoken(_ uri: String) -> PlaylistEntry.Spoken? {
        [queue.current, queue.following].lazy.compactMap { $0?.entry }.first { $0.uri == uri }?.spoken
    }
}
