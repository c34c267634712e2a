import DBus
import EventLoop
import Glibc
import HTTP
import LoopbackHTTP
import MediaCache
import MediaValues
public import PluginAPI
public import PluginKit
import Processes
import SessionBus

/// Media of the web for players, on the bus as `org.sessiond1.AssetCache`: a player reads an address on this machine, and
/// every byte is fetched once.
public final class CachePlugin: Plugin {
    /// What one call of `Open` has opened.
    final class Opening {
        let number: UInt64
        let token: String
        let owner: String
        let isDetached: Bool
        /// Whether its readers are sent to the server for what has no known size.
        let redirectsLive: Bool
        let resource: CachedResource
        var readers = 0
        var expiry: Timer?

        init(_ number: UInt64, _ token: String, owner: String, _ options: Options, _ resource: CachedResource) {
            (self.number, self.token, self.owner, isDetached) = (number, token, owner, options.isDetached)
            (redirectsLive, self.resource) = (options.redirectsLive && options.headers.isEmpty, resource)
        }
    }

    /// What a caller may set.
    struct Options {
        var headers: [HTTPField] = []
        var keeps = true
        var isDetached = false
        /// What has no known size is read at the server itself, unless it needs headers.
        var redirectsLive = false
    }

    /// Seconds without a reader after which a detached opening is closed.
    private static let lifetime = 900.0
    /// Seconds after the start or the last reader, until memory is returned.
    private static let settlingTime = 1.0
    /// The most open resources, and the least limit in bytes.
    private static let most = 1_000
    static let leastLimit: UInt64 = 10_000_000

    private let host: PluginHost
    private let loop: EventLoop
    private let client: HTTPClient
    let callers: FreeCallers
    let folder: CacheFolder?
    private let jobs: Jobs
    private let rules: CacheRules
    private(set) var limit: UInt64
    private let silence: Double
    private lazy var server = LoopbackServer(on: loop) { [unowned self] in serve($0) }
    private(set) var resources: [String: CachedResource] = [:]
    private(set) var openings: [UInt64: Opening] = [:]
    private var tokens: [String: UInt64] = [:]
    private var prefetches: [UInt64: (job: Job, resource: CachedResource)] = [:]
    private var lastOpening: UInt64 = 0
    /// Returns memory when nobody reads.
    private var settling: Timer?
    private lazy var owned = OwnedObjects(on: host.connection) { [unowned self] in close($0) }

    /// Whether missing parts may be fetched ahead of players: not on a metered network.
    public var mayFill = true {
        didSet {
            guard mayFill != oldValue else { return }
            for resource in resources.values { resource.mayFill(mayFill || isPrefetched(resource)) }
        }
    }

    public convenience init(_ host: PluginHost, _ settings: Settings.Cache) {
        // Each stream has a block: after many readers at once, the heap would keep those of all of them.
        Footprint.returnLargeBlocks()
        self.init(host, settings, home: UserFolder.cache.path, silence: OriginRequest.silence)
        settling = Timer(on: loop) { [unowned self] in
            // The start of libcurl and of its cipher library needs more code than all reading later.
            if openings.values.allSatisfy({ $0.readers == 0 }) { Footprint.releaseStartUp() }
        }
        settling?.arm(after: Self.settlingTime)
    }

    /// - Parameters:
    ///   - home: the folder for caches of the user.
    ///   - silence: the longest time without a byte of a server, in seconds.
    init(_ host: PluginHost, _ settings: Settings.Cache, home: String?, silence: Double) {
        (self.host, loop, self.silence) = (host, host.loop, silence)
        client = HTTPClient(on: host.loop)
        callers = FreeCallers(on: host.connection)
        folder = CacheFolder(in: home) { host.complain($0) }
        jobs = Jobs(.cache, on: host.connection, host.loop)
        limit = UInt64(settings.size * 1e9)
        var rules = CacheRules()
        (rules.fills, rules.isBounded) = (settings.fill, settings.bounded)
        self.rules = rules
        jobs.onBusyChanged = { [unowned self] _ in settleBusy() }
        host.connection.objects.export(self, at: PluginKind.cache.objectPath, interfaces: [CachePlugin.interface])
        _ = folder?.makeRoom(for: 0, limit: limit, besides: [])
    }

    public func end(_ done: @escaping () -> Void) {
        jobs.cancelAll()
        for number in Array(openings.keys) { close(number) }
        host.connection.flush()
        done()
    }

    private func settleBusy() { host.isBusy = !openings.isEmpty || jobs.isBusy }

    // MARK: Openings

    /// - Throws: `BadParameter`, `LimitsExceeded`, `ResourceNotAvailable`, `AccessDenied`.
    func open(_ url: String, _ options: Options, for caller: String) throws(Failure) -> (address: String, id: UInt64) {
        try callers.require(caller, to: "read the web through the cache")
        let address = try Self.address(url)
        guard openings.count < Self.most else {
            throw .limitsExceeded("\(openings.count) resources are open already; close some of them")
        }
        guard let server else {
            throw Failure(SessionError(.resourceNotAvailable, "no socket can be opened on 127.0.0.1"))
        }
        let resource = resource(address, options)
        lastOpening += 1
        let opening = Opening(
            lastOpening, Self.token(), owner: caller, options, resource)
        openings[opening.number] = opening
        tokens[opening.token] = opening.number
        if options.isDetached {
            opening.expiry = Timer(on: loop) { [unowned self] in close(opening.number) }
            opening.expiry?.arm(after: Self.lifetime)
        } else {
            owned.add(opening.number, of: caller)
        }
        settleBusy()
        if let path = resource.completePath {
            folder?.touch(resource.name)
            return (FileURI.uri(path), opening.number)
        }
        // What a playlist names is relative to its own address.
        if Self.isPlaylist(address), options.headers.isEmpty { return (address.text, opening.number) }
        resource.want(true)
        return (
            CacheAddress.text(port: server.port, token: opening.token, name: Self.name(of: address)), opening.number
        )
    }

    private static func address(_ url: String) throws(Failure) -> WebAddress {
        guard let address = WebAddress(url) else {
            throw Failure(
                .badParameter(
                    "'url' must be an address that begins with http:// or https:// and names a host; a file needs no cache"
                ))
        }
        return address
    }

    /// 128 random bits.
    private static func token() -> String {
        (0..<2).map { _ in
            let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    private static func lastPart(of address: WebAddress) -> Substring {
        let path = address.shown.split(separator: "/", omittingEmptySubsequences: false).dropFirst(3)
        return path.last ?? ""
    }

    /// The last part of the path: players show it, and recognize formats by its ending.
    private static func name(of address: WebAddress) -> String {
        let name = lastPart(of: address)
        return name.isEmpty ? "media" : String(name.suffix(200))
    }

    private static func isPlaylist(_ address: WebAddress) -> Bool {
        let name = lastPart(of: address).lowercased()
        return [".m3u8", ".m3u", ".mpd", ".pls", ".xspf", ".ism/manifest"].contains { name.hasSuffix($0) }
    }

    /// The open resource, or a new one. Callers with other headers do not share: they may see something else.
    private func resource(_ address: WebAddress, _ options: Options) -> CachedResource {
        let headers = options.headers.map { "\($0.name.lowercased()): \($0.value)" }.sorted()
        let key = SHA256.hex(([address.text] + headers).joined(separator: "\n") + (options.keeps ? "" : "\n\n"))
        if let open = resources[key] { return open }
        var rules = rules
        rules.keeps = options.keeps
        rules.limit = limit
        let resource = CachedResource(key, address, options.headers, rules, in: folder, client, silence: silence)
        resources[key] = resource
        resource.mayFill(mayFill)
        resource.hasRoom = { [unowned self] more in
            folder?.makeRoom(for: more, limit: limit, besides: Set(resources.keys)) ?? false
        }
        resource.onProgress = { [unowned self, unowned resource] in progressed(resource) }
        resource.onStalled = { [unowned self, unowned resource] isStalled in
            tell(resource, "Stalled") { id in [.uint64(id), .bool(isStalled)] }
        }
        resource.onComplete = { [unowned self, unowned resource] path in
            tell(resource, "Completed") { id in [.uint64(id), .string(path)] }
            for (job, _) in jobs(of: resource) { job.finish() }
            _ = folder?.makeRoom(for: 0, limit: limit, besides: Set(resources.keys))
        }
        resource.onFullDisk = { [unowned self, unowned resource] in
            host.complain("\(Self.fullDisk(folder?.path ?? "")): \(resource.address.shown) is not kept")
        }
        resource.onTrouble = { [unowned self, unowned resource] in failed(resource, $0) }
        return resource
    }

    func close(_ number: UInt64) {
        guard let opening = openings.removeValue(forKey: number) else { return }
        tokens[opening.token] = nil
        opening.expiry = nil
        owned.remove(number, of: opening.owner)
        release(opening.resource)
        settleBusy()
    }

    /// Closes a resource that nobody has open any more.
    private func release(_ resource: CachedResource) {
        guard !openings.values.contains(where: { $0.resource === resource }), !isPrefetched(resource),
            resources[resource.name] === resource
        else { return }
        resources[resource.name] = nil
        resource.close()
        folder?.touch(resource.name)
    }

    /// - Throws: `NotFound`.
    func remove(_ url: String) throws(Failure) {
        let shown = WebAddress(url)?.shown ?? url
        let entries = folder?.entries.filter { $0.record.shown == shown }.map(\.name) ?? []
        let open = resources.values.filter { $0.address.shown == shown }
        guard !entries.isEmpty || !open.isEmpty else {
            throw Failure(SessionError(.notFound, "nothing is kept of \(quoted(shown)); see List"))
        }
        for resource in open { remove(resource) }
        for name in entries { folder?.remove(name) }
    }

    private func remove(_ resource: CachedResource) {
        resource.remove()
        for (job, _) in jobs(of: resource) { job.cancel() }
        for opening in openings.values where opening.resource === resource { close(opening.number) }
        resources[resource.name] = nil
    }

    func clear() {
        // An address that somebody has asked for, and that nobody reads, keeps nothing.
        for resource in resources.values where !isPrefetched(resource) {
            let all = openings.values.filter { $0.resource === resource }
            guard all.allSatisfy({ $0.isDetached && $0.readers == 0 }) else { continue }
            remove(resource)
        }
        for entry in folder?.entries ?? [] where resources[entry.name] == nil { folder?.remove(entry.name) }
    }

    func setLimit(_ limit: UInt64) throws(Failure) {
        guard limit >= Self.leastLimit else {
            throw Failure(.badParameter("'Limit' must be at least \(Self.leastLimit) bytes, not \(limit)"))
        }
        self.limit = limit
        _ = folder?.makeRoom(for: 0, limit: limit, besides: Set(resources.keys))
    }

    // MARK: Prefetching

    func prefetch(_ url: String, _ options: Options, for caller: String) throws(Failure) -> String {
        try callers.require(caller, to: "fetch from the web")
        let address = try Self.address(url)
        guard folder != nil else {
            throw Failure(SessionError(.notSupported, "nothing can be kept; see the messages of the plugin"))
        }
        do throws(SessionError) {
            let job = try jobs.add(
                "prefetch", name: Self.name(of: address), for: caller, isDetached: options.isDetached,
                JobStatus(.bytes, canPause: true))
            let resource = resource(address, options)
            prefetches[job.number] = (job, resource)
            let number = job.number
            job.onCancel = { [unowned self] in end(number) }
            job.onPause = { [unowned self] in
                let isOpen = openings.values.contains { $0.resource === resource }
                if !isOpen { resource.want(false) }
            }
            job.onResume = { resource.want(true) }
            job.begin()
            if resource.completePath != nil {
                job.progressed(done: resource.cache.size ?? 0, total: resource.cache.size ?? 0)
                end(number)
                job.finish()
                return job.path
            }
            resource.fetchAll()
            resource.mayFill(true)
            resource.want(true)
            return job.path
        } catch {
            throw Failure(error)
        }
    }

    private func jobs(of resource: CachedResource) -> [(job: Job, number: UInt64)] {
        let found = prefetches.values.filter { $0.resource === resource }.map { ($0.job, $0.job.number) }
        for (_, number) in found { loop.later { [weak self] in self?.end(number) } }
        return found
    }

    private func isPrefetched(_ resource: CachedResource) -> Bool {
        prefetches.values.contains { $0.resource === resource }
    }

    private func end(_ prefetch: UInt64) {
        guard let (_, resource) = prefetches.removeValue(forKey: prefetch) else { return }
        resource.mayFill(mayFill || isPrefetched(resource))
        release(resource)
    }

    // MARK: Signals

    private func tell(_ resource: CachedResource, _ member: String, _ arguments: (UInt64) -> [Value]) {
        for opening in openings.values where opening.resource === resource && !opening.owner.isEmpty {
            host.connection.objects.emit(
                path: PluginKind.cache.objectPath, interface: PluginKind.cache.interface, member: member,
                arguments(opening.number), to: opening.owner)
        }
    }

    private func progressed(_ resource: CachedResource) {
        let size = resource.cache.size ?? 0
        tell(resource, "Progressed") { [.uint64($0), Self.value(resource.cache.ranges), .uint64(size)] }
        for (job, owner) in prefetches.values where owner === resource {
            job.progressed(done: Self.count(resource.cache.ranges), total: size)
            guard resource.cache.passes else { continue }
            job.fail(
                resource.isDiskFull
                    ? SessionError(
                        .diskFull,
                        Self.fullDisk(folder?.path ?? "")
                            + ": free some space, for example with: sessionctl cache clear")
                    : SessionError(
                        .notSupported,
                        "\(resource.address.host) does not allow to keep it, does not tell its size, or it is larger than the cache"
                    ))
            loop.later { [weak self] in self?.end(job.number) }
        }
    }

    private static func fullDisk(_ folder: String) -> String {
        "the disk of \(folder) is full, or less than a twentieth of it is free"
    }

    private func failed(_ resource: CachedResource, _ trouble: MediaCache.Trouble) {
        let error = trouble.error(resource.address.host)
        tell(resource, "Failed") {
            [.uint64($0), .string(BusName.errorPrefix + error.code.rawValue), .string(error.message)]
        }
        for (job, _) in jobs(of: resource) { job.fail(error) }
    }

    static func value(_ ranges: RangeSet<UInt64>) -> Value {
        .array(of: "(tt)", ranges.ranges.map { .structure([.uint64($0.lowerBound), .uint64($0.upperBound)]) })
    }

    static func count(_ ranges: RangeSet<UInt64>) -> UInt64 {
        ranges.ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
    }

    // MARK: Players

    private func serve(_ exchange: LoopbackExchange) {
        let parts = exchange.path.split(separator: "/", omittingEmptySubsequences: false)
        // Whoever does not know a token gets the same answer to everything.
        guard parts.count >= 2, let number = tokens[String(parts[1])], let opening = openings[number] else {
            return exchange.answer(LoopbackAnswer(404))
        }
        opening.readers += 1
        opening.expiry?.disarm()
        folder?.touch(opening.resource.name)
        opening.resource.read(exchange, redirectsLive: opening.redirectsLive)
        let before = exchange.onEnd
        exchange.onEnd = { [weak self, weak opening] in
            before()
            self?.settling?.arm(after: Self.settlingTime)
            guard let opening else { return }
            opening.readers -= 1
            if opening.readers == 0 { opening.expiry?.arm(after: Self.lifetime) }
        }
    }
}

extension MediaCache.Trouble {
    /// For programs and people.
    func error(_ host: String) -> SessionError {
        switch self {
        case .timedOut:
            SessionError(.timedOut, "\(host) sent nothing for too long, twice: check the network, or try again later")
        case .status(404), .status(410): SessionError(.notFound, "\(host) does not have it: check the address")
        case .status(let status):
            SessionError(.networkFailed, "\(host) answered with HTTP status \(status)")
        case .changed:
            SessionError(.invalidSource, "it has changed at \(host) while it was read: play it from the beginning")
        case .contradiction(let text): SessionError(.invalidSource, "the answer of \(host) is wrong: \(text)")
        case .network(let text): SessionError(.networkFailed, text)
        }
    }
}
