import DBus
import Glibc
import MediaLibrary
import MediaValues
import PluginAPI
import PluginKit
import SessionBus

// Implements `org.sessiond1.Library`.

extension LibraryPlugin {
    static let properties: [Announcement<LibraryPlugin>.Property] = [
        .init("Folders", "as") { .strings($0.folders.texts) },
        .init("Count", "u") { .uint32(UInt32(clamping: (try? $0.database.store.itemCount()) ?? 0)) },
        .init("Revision", "t") { .uint64($0.database.store.revision) },
        .init("LastScan", "t") { .uint64(UInt64(clamping: $0.database.store.meta("scanned") ?? 0)) },
        .init("Scanning", "b") { .bool($0.isScanning) },
        .init("Status", "a{sv}") { $0.status },
        .init("ContentRevision", "t") { .uint64($0.database.store.contents) },
    ]

    static let interface = Interface<LibraryPlugin>(
        name: PluginKind.library.interface, introspection: PluginXML.library,
        methods: [
            method("Items", "a{sv}uuas", LibraryPlugin.items),
            method("Collections", "sa{sv}uu", LibraryPlugin.collections),
            method("Search", "sa{sv}", LibraryPlugin.search),
            method("Uris", "a{sv}u", LibraryPlugin.uris),
            .init("Artwork", "tu") { library, call in
                do throws(Failure) {
                    let id = call.arguments[0].uint64Value ?? 0
                    let size = Int(call.arguments[1].uint32Value ?? 0)
                    try library.artwork(Int64(clamping: id), size: size, for: call.sender) { result in
                        switch result {
                        case .success(let uri): call.reply([.string(uri)])
                        case .failure(let failure): call.fail(failure)
                        }
                    }
                } catch {
                    call.fail(error)
                }
            },
            method("SetItem", "ta{sv}", LibraryPlugin.setItem),
            method("CreatePlaylist", "sat", LibraryPlugin.createPlaylist),
            method("SetPlaylist", "tat", LibraryPlugin.setPlaylist),
            method("RenamePlaylist", "ts", LibraryPlugin.renamePlaylist),
            method("DeletePlaylist", "t", LibraryPlugin.deletePlaylist),
            method("AddFolder", "sa{sv}", LibraryPlugin.addFolder),
            method("RemoveFolder", "s", LibraryPlugin.removeFolder),
            method("Scan", "asa{sv}", LibraryPlugin.scan),
            method("Failures", "u", LibraryPlugin.failures),
        ],
        properties: properties.map(\.exported))

    private static func method(
        _ name: String, _ signature: String,
        _ body: @escaping (LibraryPlugin) -> (Invocation) throws(Failure) -> [Value]
    ) -> Interface<LibraryPlugin>.Method {
        .init(name, signature) { library, call in
            do throws(Failure) {
                call.reply(try body(library)(call))
            } catch {
                call.fail(error)
            }
        }
    }

    /// The largest number of folders in one call of `Scan`.
    private static let pathLimit = 1_000
    private static let (itemLimit, uriLimit, listLimit) = (5_000, 10_000, 100_000)

    // MARK: Calls that read

    private static let usual = ["id", "uri", "title", "artist", "album", "duration"]

    private func items(_ call: Invocation) throws(Failure) -> [Value] {
        let query = try Query(call.arguments[0])
        let offset = Int(call.arguments[1].uint32Value ?? 0)
        let max = min(Int(call.arguments[2].uint32Value ?? 0), Self.itemLimit)
        let fields = try fields(call.arguments[3])
        let (count, rows) = try database.read { store throws(SQLError) in
            let found = try store.items(query, offset: offset, max: max)
            var rows: [Value] = []
            for item in found.items {
                var values: [(String, Value)] = []
                for field in fields {
                    if field == "artists" {
                        values.append((field, .strings(try store.names(of: item.id, role: 0))))
                    } else if let value = item.value(field) {
                        values.append((field, value))
                    }
                }
                rows.append(.properties(values))
            }
            return (found.count, rows)
        }
        return [.uint32(UInt32(clamping: count)), .array(of: "a{sv}", rows)]
    }

    /// The requested fields, without duplicates, in the order of the client.
    private func fields(_ value: Value) throws(Failure) -> [String] {
        var fields: [String] = []
        var seen: Set<String> = []
        for field in value.stringsValue ?? [] where seen.insert(field).inserted {
            guard Item.fields.contains(field) else {
                throw Failure(
                    .badParameter("unknown field \(quoted(field)); use \(Item.fields.joined(separator: ", "))"))
            }
            fields.append(field)
        }
        return fields.isEmpty ? Self.usual : fields
    }

    private func collections(_ call: Invocation) throws(Failure) -> [Value] {
        let query = try Query(call.arguments[1])
        let word = call.arguments[0].stringValue ?? ""
        guard let grouping = word.isEmpty ? query.preset?.grouping : Query.Grouping(rawValue: word) else {
            let names = Query.Grouping.allCases.map(\.rawValue).joined(separator: ", ")
            throw Failure(.badParameter("unknown grouping \(quoted(word)); use one of \(names)"))
        }
        let offset = Int(call.arguments[2].uint32Value ?? 0)
        let max = min(Int(call.arguments[3].uint32Value ?? 0), Self.itemLimit)
        let found = try database.read { store throws(SQLError) in
            try store.collections(grouping, query, offset: offset, max: max)
        }
        let rows = found.collections.map { collection in
            Value.properties([
                ("id", .uint64(UInt64(clamping: collection.id))), ("title", .string(collection.title)),
                ("artist", .string(collection.artist)), ("count", .uint32(UInt32(clamping: collection.count))),
                ("duration", .double(collection.duration)),
                ("representative", .uint64(UInt64(clamping: collection.representative))),
                ("year", .uint32(UInt32(clamping: collection.year))),
            ])
        }
        return [.uint32(UInt32(clamping: found.count)), .array(of: "a{sv}", rows)]
    }

    private func search(_ call: Invocation) throws(Failure) -> [Value] {
        let options = try OptionReader(call.arguments[1], known: ["kinds", "max", "artist", "album"])
        var kinds: Set<Store.Finding.Kind> = []
        for word in try options.strings("kinds") ?? [] {
            guard let kind = Store.Finding.Kind(rawValue: word) else {
                let names = Store.Finding.Kind.allCases.map(\.rawValue).joined(separator: ", ")
                throw Failure(.badParameter("unknown kind \(quoted(word)); use \(names)"))
            }
            kinds.insert(kind)
        }
        let max = min(Int(try options.uint32("max") ?? 20), 500)
        let (artist, album) = (try options.string("artist") ?? "", try options.string("album") ?? "")
        let text = call.arguments[0].stringValue ?? ""
        for (key, text) in [("text", text), ("artist", artist), ("album", album)] where text.utf8.count > 1_000 {
            throw Failure(.badParameter("'\(key)' is longer than 1000 bytes"))
        }
        let findings = try database.read { store throws(SQLError) in
            try store.search(text, kinds: kinds, artist: artist, album: album, max: max)
        }
        let rows = findings.map { finding in
            Value.properties([
                ("kind", .string(finding.kind.rawValue)), ("id", .uint64(UInt64(clamping: finding.id))),
                ("title", .string(finding.title)), ("artist", .string(finding.artist)),
                ("score", .double(finding.score)),
            ])
        }
        return [.array(of: "a{sv}", rows)]
    }

    private func uris(_ call: Invocation) throws(Failure) -> [Value] {
        let query = try Query(call.arguments[0])
        let wanted = Int(call.arguments[1].uint32Value ?? 0)
        let max = wanted == 0 ? Self.uriLimit : min(wanted, Self.uriLimit)
        let rows = try database.read { store throws(SQLError) in
            var rows: [Value] = []
            for item in try store.items(store.ids(query, max: max)[...]) {
                rows.append(
                    .properties(
                        ["id", "uri", "title", "artist", "album", "duration", "media-type", "bookmark"].compactMap {
                            key in
                            item.value(key).map { (key, $0) }
                        }))
            }
            return rows
        }
        return [.array(of: "a{sv}", rows)]
    }

    private func failures(_ call: Invocation) throws(Failure) -> [Value] {
        let max = min(Int(call.arguments[0].uint32Value ?? 0), Self.itemLimit)
        let files = try database.read { store throws(SQLError) in try store.failures(max: max) }
        return [
            .array(
                of: "(ss)",
                files.map { .structure([.string(String(decoding: $0.path, as: UTF8.self)), .string($0.reason)]) })
        ]
    }

    // MARK: Calls that change

    private func setItem(_ call: Invocation) throws(Failure) -> [Value] {
        try callers.require(call.sender, to: "change the library")
        let id = Int64(clamping: call.arguments[0].uint64Value ?? 0)
        let options = try OptionReader(
            call.arguments[1],
            known: ["rating", "bookmark", "media-type", "play-count", "skip-count", "played", "skipped"])
        var changes: [Store.KeptChange] = []
        if let rating = try options.uint32("rating") {
            guard rating <= 5 else { throw Failure(.badParameter("'rating' must be 0 to 5, not \(rating)")) }
            changes.append(.rating(Int(rating)))
        }
        if let seconds = try options.double("bookmark") {
            guard seconds >= 0, seconds < 1e7 else { throw Failure(.badParameter("'bookmark' must be seconds from 0")) }
            changes.append(.bookmark(seconds))
        }
        if let word = try options.string("media-type") {
            let type = ItemType(word: word)
            guard type != nil || word.isEmpty else { throw Failure(.badParameter(Self.typeMessage(word))) }
            changes.append(.mediaType(type))
        }
        if let count = try options.uint32("play-count") { changes.append(.plays(Int(count))) }
        if let count = try options.uint32("skip-count") { changes.append(.skips(Int(count))) }
        if try options.bool("played") == true { changes.append(.played(at: Int64(time(nil)))) }
        if try options.bool("skipped") == true { changes.append(.skipped) }
        guard try database.change({ store throws(SQLError) in try store.set(id, changes) }) else {
            throw Self.noItem(id)
        }
        news.add(changed: [id])
        return []
    }

    private static func typeMessage(_ word: String) -> String {
        "'media-type' must be \(ItemType.allCases.map(\.word).joined(separator: ", ")), not \(quoted(word))"
    }

    private static func noItem(_ id: Int64) -> Failure { Failure(SessionError(.notFound, "there is no item \(id)")) }

    private func name(_ value: Value) throws(Failure) -> String {
        let name = value.stringValue ?? ""
        guard !name.isEmpty, name.utf8.count <= 1_000 else {
            throw Failure(.badParameter("a playlist needs a name of at most 1000 bytes"))
        }
        return name
    }

    private func itemIDs(_ value: Value) throws(Failure) -> [Int64] {
        let items = (value.arrayValue ?? []).compactMap(\.uint64Value).map { Int64(clamping: $0) }
        guard items.count <= Self.listLimit else {
            throw Failure(
                SessionError(.resourceNotAvailable, "\(items.count) items; the limit is \(Self.listLimit)"))
        }
        return items
    }

    private func createPlaylist(_ call: Invocation) throws(Failure) -> [Value] {
        try callers.require(call.sender, to: "change the library")
        let name = try name(call.arguments[0])
        let items = try itemIDs(call.arguments[1])
        guard let id = try database.change({ store throws(SQLError) in try store.addList(name, items) }) else {
            throw Failure(SessionError(.notFound, "one of the items does not exist"))
        }
        return [.uint64(UInt64(clamping: id))]
    }

    /// The id of a playlist that can be changed.
    private func ownList(_ call: Invocation) throws(Failure) -> Int64 {
        try callers.require(call.sender, to: "change the library")
        let id = Int64(clamping: call.arguments[0].uint64Value ?? 0)
        guard let list = try database.use({ store throws(SQLError) in try store.list(id) }) else {
            throw Failure(SessionError(.notFound, "there is no playlist \(id)"))
        }
        guard list.isOwn else {
            throw Failure(SessionError(.notSupported, "\(quoted(list.name)) is a file: change the file"))
        }
        return id
    }

    private func setPlaylist(_ call: Invocation) throws(Failure) -> [Value] {
        let id = try ownList(call)
        let items = try itemIDs(call.arguments[1])
        guard try database.change({ store throws(SQLError) in try store.setList(id, items) }) else {
            throw Failure(SessionError(.notFound, "one of the items does not exist"))
        }
        return []
    }

    private func renamePlaylist(_ call: Invocation) throws(Failure) -> [Value] {
        let id = try ownList(call)
        let name = try name(call.arguments[1])
        try database.change { store throws(SQLError) in try store.renameList(id, name) }
        return []
    }

    private func deletePlaylist(_ call: Invocation) throws(Failure) -> [Value] {
        let id = try ownList(call)
        try database.change { store throws(SQLError) in try store.removeList(own: id) }
        return []
    }

    // MARK: Folders

    /// A normalised absolute path, as bytes. It may also be a `file:` URI, for names that are not UTF-8.
    private func path(_ text: String) throws(Failure) -> [UInt8] {
        let given = text.hasPrefix("/") ? Array(text.utf8) : FileURI.path(of: text) ?? []
        let path = given.count <= 4_096 ? FolderPath.plain(given) ?? [] : []
        guard path.first == UInt8(ascii: "/"), path.count > 1, path.count <= 4_096 else {
            throw Failure(.badParameter("a folder must be an absolute path, and not '/'; not \(quoted(text))"))
        }
        return path
    }

    private func addFolder(_ call: Invocation) throws(Failure) -> [Value] {
        try callers.require(call.sender, to: "change the library")
        let options = try OptionReader(call.arguments[1], known: ["media-type", "watch"])
        var type: ItemType?
        if let word = try options.string("media-type"), !word.isEmpty {
            type = ItemType(word: word)
            guard type != nil else { throw Failure(.badParameter(Self.typeMessage(word))) }
        }
        let isWatched = try options.bool("watch") ?? true
        try add(folder: path(call.arguments[0].stringValue ?? ""), type, isWatched: isWatched)
        return []
    }

    private func removeFolder(_ call: Invocation) throws(Failure) -> [Value] {
        try callers.require(call.sender, to: "change the library")
        try remove(folder: path(call.arguments[0].stringValue ?? ""))
        return []
    }

    private func scan(_ call: Invocation) throws(Failure) -> [Value] {
        try callers.require(call.sender, to: "scan folders")
        let options = try OptionReader(call.arguments[1], known: ["full"])
        let texts = call.arguments[0].stringsValue ?? []
        guard texts.count <= Self.pathLimit else {
            throw Failure.limitsExceeded(
                "\(texts.count) folders; the limit is \(Self.pathLimit): name the folder that contains them")
        }
        var paths: [[UInt8]] = []
        for text in texts { paths.append(try path(text)) }
        return [.objectPath(try startScan(paths, isFull: try options.bool("full") ?? false))]
    }
}
