import DBus
import HTTP
import MediaCache
import PluginAPI
import PluginKit
import SessionBus

// Implements `org.sessiond1.AssetCache`.

extension CachePlugin {
    private static let headers = (count: 64, bytes: 32 << 10)
    /// The cache sets these itself.
    private static let own = ["accept-encoding", "connection", "host", "if-range", "range", "te", "transfer-encoding"]

    private static func options(_ value: Value, _ known: [String]) throws(Failure) -> Options {
        let reader = try OptionReader(value, known: known)
        var options = Options()
        let pairs = try reader.texts("headers") ?? []
        guard pairs.count <= headers.count,
            pairs.reduce(0, { $0 + $1.name.utf8.count + $1.value.utf8.count }) <= headers.bytes
        else {
            throw .invalidArgs("'headers' may have at most \(headers.count) entries and \(headers.bytes >> 10) KiB")
        }
        for pair in pairs {
            // The value may be a credential, so the error message does not contain it.
            guard let field = HTTPField(pair.name, pair.value) else {
                throw Failure(
                    .badParameter(
                        "the header \(quoted(pair.name)) cannot be sent: remove line ends and other control characters")
                )
            }
            guard !own.contains(pair.name.lowercased()) else {
                throw Failure(.badParameter("the cache sets the header \(quoted(pair.name)) itself; leave it out"))
            }
            options.headers.append(field)
        }
        if known.contains("keep") { options.keeps = try reader.bool("keep") ?? true }
        if known.contains("redirect-live") { options.redirectsLive = try reader.bool("redirect-live") ?? false }
        options.isDetached = try reader.bool("detached") ?? false
        return options
    }

    /// The opening of a caller.
    private func opening(_ number: UInt64, for caller: String) throws(Failure) -> Opening {
        guard let opening = openings[number] else {
            throw Failure(SessionError(.notFound, "\(number) is not open"))
        }
        guard opening.isDetached || opening.owner == caller else {
            throw Failure(SessionError(.notOwner, "another program has opened \(number)"))
        }
        if opening.owner != caller { try callers.require(caller, to: "use what other programs have opened") }
        return opening
    }

    private func fields(_ resource: CachedResource) -> [(String, Value)] {
        [
            ("url", .string(resource.address.shown)), ("size", .uint64(resource.cache.size ?? 0)),
            ("ranges", CachePlugin.value(resource.cache.ranges)), ("complete", .bool(resource.completePath != nil)),
            ("path", .string(resource.completePath ?? "")), ("kept", .bool(!resource.cache.passes)),
            ("fetched", .uint64(resource.fetched)), ("served", .uint64(resource.served)),
        ]
    }

    private var list: [Value] {
        let entries = folder?.entries ?? []
        let stored = entries.map { entry -> Value in
            let times: [(String, Value)] = [
                ("stored", .uint64(entry.bytes)), ("last-used", .uint64(UInt64(max(0, entry.used / 1_000)))),
            ]
            if let open = resources[entry.name] { return .properties(fields(open) + times + [("open", .bool(true))]) }
            return .properties(
                [
                    ("url", .string(entry.record.shown)), ("size", .uint64(entry.record.size)),
                    ("ranges", CachePlugin.value(entry.record.ranges)), ("complete", .bool(entry.isComplete)),
                    ("path", .string(entry.isComplete ? folder?.path(of: entry) ?? "" : "")),
                    ("kept", .bool(true)), ("fetched", .uint64(0)), ("served", .uint64(0)),
                ] + times + [("open", .bool(false))])
        }
        let known = Set(entries.map(\.name))
        let others = resources.values.filter { !known.contains($0.name) }.sorted { $0.name < $1.name }
        return stored
            + others.map {
                .properties(
                    fields($0) + [("stored", .uint64(0)), ("last-used", .uint64(0)), ("open", .bool(true))])
            }
    }

    private static func method(
        _ name: String, _ signature: String, _ body: @escaping (CachePlugin, Invocation) throws(Failure) -> [Value]
    ) -> Interface<CachePlugin>.Method {
        .init(name, signature) { cache, call in
            do throws(Failure) {
                call.reply(try body(cache, call))
            } catch {
                call.fail(error)
            }
        }
    }

    static let interface = Interface<CachePlugin>(
        name: PluginKind.cache.interface, introspection: PluginXML.assetCache,
        methods: [
            method("Open", "sa{sv}") { (cache, call) throws(Failure) in
                let options = try options(call.arguments[1], ["headers", "keep", "redirect-live", "detached"])
                let (address, id) = try cache.open(call.arguments[0].stringValue ?? "", options, for: call.sender)
                return [.string(address), .uint64(id)]
            },
            method("Close", "t") { (cache, call) throws(Failure) in
                cache.close(try cache.opening(call.arguments[0].uint64Value ?? 0, for: call.sender).number)
                return []
            },
            method("Prefetch", "sa{sv}") { (cache, call) throws(Failure) in
                let options = try options(call.arguments[1], ["headers", "detached"])
                return [
                    .objectPath(try cache.prefetch(call.arguments[0].stringValue ?? "", options, for: call.sender))
                ]
            },
            method("Info", "t") { (cache, call) throws(Failure) in
                let resource = try cache.opening(call.arguments[0].uint64Value ?? 0, for: call.sender).resource
                return [.properties(cache.fields(resource) + [("stalled", .bool(resource.isStalled))])]
            },
            method("List", "") { (cache, call) throws(Failure) in
                try cache.callers.require(call.sender, to: "list what is cached")
                return [.array(of: "a{sv}", cache.list)]
            },
            method("Remove", "s") { (cache, call) throws(Failure) in
                try cache.callers.require(call.sender, to: "remove what is cached")
                try cache.remove(call.arguments[0].stringValue ?? "")
                return []
            },
            method("Clear", "") { (cache, call) throws(Failure) in
                try cache.callers.require(call.sender, to: "remove what is cached")
                cache.clear()
                return []
            },
        ],
        properties: [
            .init("Size", "t", get: { .uint64($0.folder?.size ?? 0) }, emitsChanged: false),
            .init(
                "Limit", "t", get: { .uint64($0.limit) },
                set: { (cache, value) throws(Failure) in try cache.setLimit(value.uint64Value ?? 0) }),
            .init("Folder", "s", get: { .string($0.folder?.path ?? "") }),
        ])
}
