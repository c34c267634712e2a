public import DBus
import Glibc
import MediaValues
import PluginAPI
import SessionBus

/// The music library as `org.gnome.UPnP.MediaServer2`. Rygel offers it to televisions and speakers, Grilo to programs.
///
/// The tree has the queries; in each query its collections, or for songs the items; and in a collection its items.
/// Nothing is cached: every answer is read from the library.
public final class MediaServer {
    /// A node of the tree.
    private enum Node: Equatable {
        case root
        case query(String)
        case collection(query: String, id: UInt64)
        indirect case item(UInt64, in: Node)
        /// The cover of an item, as an image.
        case cover(UInt64)
    }

    /// The queries in the tree, with their names for people and their groupings; "": no grouping.
    private static let queries: [(word: String, name: String, grouping: String)] = [
        ("albums", "Albums", "album"), ("artists", "Artists", "artist"), ("songs", "Songs", ""),
        ("genres", "Genres", "genre"), ("composers", "Composers", "composer"),
        ("compilations", "Compilations", "album"), ("playlists", "Playlists", "playlist"),
        ("podcasts", "Podcasts", "podcast"), ("audiobooks", "Audiobooks", "album"),
    ]
    private static let (object, container, media) = (
        "org.gnome.UPnP.MediaObject2", "org.gnome.UPnP.MediaContainer2", "org.gnome.UPnP.MediaItem2"
    )
    private static let fields = [
        "id", "uri", "title", "artist", "album", "genre", "year", "number", "duration", "artwork",
    ]
    /// The largest number of rows in an answer, and in a page of the library.
    private static let (limit, page) = (20_000, 5_000)
    private static let coverSize: UInt32 = 600
    /// The time limit of a call to the library, in seconds.
    private static let patience = 300.0

    private let connection: Connection
    /// The unique name of the library.
    private let library: String
    private let root: String
    private let name: String
    private var subscriptions: [Subscription] = []

    private typealias Answer = Result<[Value], Failure>
    private typealias Fields = [(String, Value)]

    /// - Parameters:
    ///   - library: the unique name of the library on the bus.
    ///   - name: the name that televisions show.
    ///   - suffix: the last part of the bus name and of the path; one program may own each.
    /// - Throws: `ResourceNotAvailable` if another program owns the name.
    public init(_ library: String, on connection: Connection, name: String, suffix: String) throws(Failure) {
        (self.library, self.connection, self.name) = (library, connection, name)
        root = "/org/gnome/UPnP/MediaServer2/" + suffix
        connection.objects.relay(below: root) { [unowned self] in handle($0) }
        subscriptions = [
            connection.subscribe(
                path: PluginKind.library.objectPath, interface: StandardName.properties, member: "PropertiesChanged",
                sender: library
            ) { [unowned self] in heard($0) }
        ]
        switch try connection.requestName("org.gnome.UPnP.MediaServer2." + suffix) {
        case .owner: break
        case .taken:
            throw Failure(
                SessionError(
                    .resourceNotAvailable, "the library is already shared: another program owns its name on the bus"))
        }
    }

    // MARK: Paths

    private func path(_ node: Node) -> String {
        switch node {
        case .root: root
        case .query(let word): "\(root)/\(word)"
        case .collection(let word, let id): "\(root)/\(word)/c\(id)"
        case .item(let id, let parent): "\(path(parent))/i\(id)"
        case .cover(let id): "\(root)/covers/i\(id)"
        }
    }

    private func node(_ path: String) -> Node? {
        guard path != root else { return .root }
        var node = Node.root
        for part in path.dropFirst(root.count + 1).split(separator: "/", omittingEmptySubsequences: false) {
            let id = UInt64(part.dropFirst())
            switch (node, part.first) {
            case (.root, _) where part == "covers": node = .query("covers")
            case (.root, _) where Self.queries.contains { $0.word == part }: node = .query(String(part))
            case (.query("covers"), "i"): node = .cover(id ?? 0)
            case (.query(let word), "c"): node = .collection(query: word, id: id ?? 0)
            case (.query, "i"), (.collection, "i"): node = .item(id ?? 0, in: node)
            default: return nil
            }
            if id == nil, node != .query(String(part)) { return nil }
        }
        // Each node has exactly one valid path.
        return node != .query("covers") && self.path(node) == path ? node : nil
    }

    private func parent(of node: Node) -> Node {
        switch node {
        case .root, .query, .cover: .root
        case .collection(let word, _): .query(word)
        case .item(_, let parent): parent
        }
    }

    private static func grouping(_ word: String) -> String { queries.first { $0.word == word }?.grouping ?? "" }

    // MARK: Calls

    private func handle(_ call: Invocation) {
        guard let node = node(call.path) else {
            return call.fail(.unknownObject("no object at '\(String(call.path.prefix(200)))'"))
        }
        switch (call.interface, call.member, call.arguments.count) {
        case (Self.container, "ListChildren", 3), ("", "ListChildren", 3): list(node, call, both: true, items: true)
        case (Self.container, "ListContainers", 3), ("", "ListContainers", 3):
            list(node, call, both: false, items: false)
        case (Self.container, "ListItems", 3), ("", "ListItems", 3): list(node, call, both: false, items: true)
        case (Self.container, "SearchObjects", 4), ("", "SearchObjects", 4):
            call.fail(Failure(SessionError(.notSupported, "this container cannot be searched: Searchable is false")))
        case (StandardName.properties, "GetAll", 1): properties(of: node, call, nil)
        case (StandardName.properties, "Get", 2): properties(of: node, call, call.arguments[1].stringValue ?? "")
        case (StandardName.introspectable, "Introspect", 0): call.reply([.string(introspection(of: node))])
        default: call.fail(.unknownMethod("no method \(call.member) with these arguments"))
        }
    }

    private func ask(_ member: String, _ arguments: [Value], _ reply: @escaping (Answer) -> Void) {
        connection.call(
            library, PluginKind.library.objectPath, PluginKind.library.interface, member, arguments,
            timeout: Self.patience, reply)
    }

    private static func wire(_ node: Node) -> [(String, Value)] {
        func equal(_ property: String, _ id: UInt64) -> (String, Value) {
            (
                "where",
                .array(of: "(ssv)", [.structure([.string(property), .string("is"), .variant(.uint64(id))])])
            )
        }
        switch node {
        case .root, .cover: return []
        case .query(let word): return [("preset", .string(word))]
        case .item(let id, _): return [equal("id", id), ("unavailable", .bool(true))]
        case .collection("playlists", let id): return [("playlist", .uint64(id))]
        case .collection(let word, let id):
            let property = ["artist": "artist-id", "genre": "genre-id", "composer": "composer-id"][grouping(word)]
            return [("preset", .string(word)), equal(property ?? "album-id", id)]
        }
    }

    // MARK: Lists

    private func list(_ node: Node, _ call: Invocation, both: Bool, items: Bool) {
        let offset = Int(call.arguments[0].uint32Value ?? 0)
        let wanted = Int(call.arguments[1].uint32Value ?? 0)
        let max = wanted == 0 ? Self.limit : min(wanted, Self.limit)
        let filter = Set(call.arguments[2].stringsValue ?? [])
        func reply(_ answer: Result<[Fields], Failure>) {
            switch answer {
            case .failure(let failure): call.fail(failure)
            case .success(let rows):
                let shown = rows.map { fields in
                    Value.properties(
                        filter.isEmpty || filter.contains("*") ? fields : fields.filter { filter.contains($0.0) })
                }
                call.reply([.array(of: "a{sv}", shown)])
            }
        }
        switch node {
        case .root:
            guard both || !items else { return reply(.success([])) }
            let shown = Self.queries.dropFirst(offset).prefix(max)
            describe(shown.map { .query($0.word) }, into: [], reply)
        case .query(let word) where !Self.grouping(word).isEmpty:
            guard both || !items else { return reply(.success([])) }
            collections(of: word, offset: offset, max: max, reply)
        case .query, .collection:
            guard both || items else { return reply(.success([])) }
            self.items(of: node, offset: offset, max: max, reply)
        case .item, .cover: call.fail(.unknownMethod("this is no container"))
        }
    }

    /// Describes the nodes one after the other.
    private func describe(_ nodes: [Node], into rows: [Fields], _ reply: @escaping (Result<[Fields], Failure>) -> Void)
    {
        guard let first = nodes.first else { return reply(.success(rows)) }
        facts(of: first) { [weak self] answer in
            switch answer {
            case .failure(let failure): reply(.failure(failure))
            case .success(let fields): self?.describe(Array(nodes.dropFirst()), into: rows + [fields], reply)
            }
        }
    }

    private func collections(
        of word: String, offset: Int, max: Int, _ reply: @escaping (Result<[Fields], Failure>) -> Void
    ) {
        pages(
            "Collections", offset: offset, max: max, into: [],
            { [.string(""), .properties(Self.wire(.query(word))), $0, $1] },
            { [unowned self] in collection($0, of: word) }, reply)
    }

    private func items(
        of node: Node, offset: Int, max: Int, _ reply: @escaping (Result<[Fields], Failure>) -> Void
    ) {
        pages(
            "Items", offset: offset, max: max, into: [],
            { [.properties(Self.wire(node)), $0, $1, .strings(Self.fields)] }, { [unowned self] in item($0, in: node) },
            reply)
    }

    /// Reads all pages, one after the other.
    /// - Parameters:
    ///   - arguments: the arguments of the method, for an offset and a number of rows.
    ///   - fields: the fields of a row to show.
    private func pages(
        _ member: String, offset: Int, max: Int, into rows: [Fields],
        _ arguments: @escaping (_ offset: Value, _ count: Value) -> [Value],
        _ fields: @escaping ([String: Value]) -> Fields, _ reply: @escaping (Result<[Fields], Failure>) -> Void
    ) {
        let count = min(max - rows.count, Self.page)
        ask(member, arguments(.uint32(UInt32(clamping: offset + rows.count)), .uint32(UInt32(count)))) {
            [weak self] answer in
            guard let self else { return }
            switch answer {
            case .failure(let failure): reply(.failure(failure))
            case .success(let values):
                let total = Int(values.first?.uint32Value ?? 0)
                let more = (values.last?.arrayValue ?? []).compactMap(\.asProperties)
                let all = rows + more.map(fields)
                guard !more.isEmpty, all.count < max, offset + all.count < total else { return reply(.success(all)) }
                pages(member, offset: offset, max: max, into: all, arguments, fields, reply)
            }
        }
    }

    // MARK: Facts

    private func basics(_ node: Node, _ type: String, _ name: String) -> Fields {
        [
            ("Parent", .objectPath(path(parent(of: node)))), ("Type", .string(type)),
            ("Path", .objectPath(path(node))), ("DisplayName", .string(name)),
        ]
    }

    private static func counts(_ count: UInt32, ofContainers: Bool) -> Fields {
        [
            ("ChildCount", .uint32(count)), ("ItemCount", .uint32(ofContainers ? 0 : count)),
            ("ContainerCount", .uint32(ofContainers ? count : 0)), ("Searchable", .bool(false)),
        ]
    }

    private func collection(_ row: [String: Value], of word: String) -> Fields {
        basics(
            .collection(query: word, id: row["id"]?.uint64Value ?? 0), "container", row["title"]?.stringValue ?? "")
            + Self.counts(row["count"]?.uint32Value ?? 0, ofContainers: false)
    }

    private func item(_ row: [String: Value], in parent: Node) -> Fields {
        let id = row["id"]?.uint64Value ?? 0
        let uri = row["uri"]?.stringValue ?? ""
        var fields = basics(.item(id, in: parent), "music", row["title"]?.stringValue ?? "")
        fields += [("URLs", .strings([uri])), ("MIMEType", .string(MediaType.of(uri) ?? "audio/mpeg"))]
        if let size = Self.size(uri) { fields.append(("Size", .int64(size))) }
        for (name, key) in [("Artist", "artist"), ("Album", "album"), ("Genre", "genre")] {
            if let text = row[key]?.stringValue, !text.isEmpty { fields.append((name, .string(text))) }
        }
        if let year = row["year"]?.uint32Value, year > 0 { fields.append(("Date", .string("\(year)-01-01"))) }
        if let seconds = row["duration"]?.doubleValue, seconds > 0, seconds < 1e9 {
            fields.append(("Duration", .int32(Int32(seconds.rounded()))))
        }
        if let number = row["number"]?.uint32Value, number > 0 {
            fields.append(("TrackNumber", .int32(Int32(clamping: number))))
        }
        if row["artwork"]?.boolValue == true { fields.append(("AlbumArt", .objectPath(path(.cover(id))))) }
        return fields
    }

    private static func size(_ uri: String) -> Int64? {
        guard let path = FileURI.path(of: uri) else { return nil }
        var status = stat()
        let isThere = (path + [0]).withUnsafeBytes {
            stat($0.baseAddress!.assumingMemoryBound(to: CChar.self), &status) == 0
        }
        return isThere ? Int64(status.st_size) : nil
    }

    /// All properties of a node.
    private func facts(of node: Node, _ reply: @escaping (Result<Fields, Failure>) -> Void) {
        let gone = Failure.unknownObject("there is no such object any more")
        switch node {
        case .root:
            reply(
                .success(
                    basics(.root, "container", name) + Self.counts(UInt32(Self.queries.count), ofContainers: true)))
        case .query(let word):
            let query = Self.queries.first { $0.word == word }
            let isGrouped = query?.grouping.isEmpty == false
            let wire = Value.properties(Self.wire(node))
            let arguments: [Value] =
                isGrouped
                ? [.string(""), wire, .uint32(0), .uint32(0)] : [wire, .uint32(0), .uint32(0), .strings([])]
            ask(isGrouped ? "Collections" : "Items", arguments) { [weak self] answer in
                guard let self else { return }
                reply(
                    answer.map { values in
                        self.basics(node, "container", query?.name ?? "")
                            + Self.counts(values.first?.uint32Value ?? 0, ofContainers: isGrouped)
                    })
            }
        case .collection(let word, let id):
            // The library has no method for a single collection.
            collections(of: word, offset: 0, max: Self.limit) { [weak self] answer in
                guard let self else { return }
                let path = Value.objectPath(path(.collection(query: word, id: id)))
                reply(
                    answer.flatMap { rows in
                        rows.first { $0.contains { $0.0 == "Path" && $0.1 == path } }.map { .success($0) }
                            ?? .failure(gone)
                    })
            }
        case .item(_, let parent):
            ask(
                "Items", [.properties(Self.wire(node)), .uint32(0), .uint32(1), .strings(Self.fields)]
            ) { [weak self] answer in
                guard let self else { return }
                reply(
                    answer.flatMap { values in
                        values.last?.arrayValue?.first?.asProperties.map { .success(self.item($0, in: parent)) }
                            ?? .failure(gone)
                    })
            }
        case .cover(let id):
            ask("Artwork", [.uint64(id), .uint32(Self.coverSize)]) { [weak self] answer in
                guard let self else { return }
                reply(
                    answer.flatMap { values in
                        guard let uri = values.first?.stringValue, !uri.isEmpty else { return .failure(gone) }
                        let type = uri.hasSuffix(".png") ? "image/png" : "image/jpeg"
                        return .success(
                            self.basics(node, "image", "Cover") + [
                                ("URLs", .strings([uri])), ("MIMEType", .string(type)),
                            ] + (Self.size(uri).map { [("Size", .int64($0))] } ?? []))
                    })
            }
        }
    }

    private static let objectNames: Set<String> = ["Parent", "Type", "Path", "DisplayName"]

    private func properties(of node: Node, _ call: Invocation, _ property: String?) {
        let interface = call.arguments[0].stringValue ?? ""
        facts(of: node) { answer in
            switch answer {
            case .failure(let failure): call.fail(failure)
            case .success(let fields):
                let own = fields.filter { field in
                    let isObject = Self.objectNames.contains(field.0)
                    return interface.isEmpty || isObject == (interface == Self.object)
                }
                guard let property else { return call.reply([.properties(own)]) }
                guard let value = own.first(where: { $0.0 == property })?.1 else {
                    return call.fail(.unknownProperty("no property \(property)"))
                }
                call.reply([.variant(value)])
            }
        }
    }

    // MARK: Changes

    /// A client that gets `Updated` reads everything again, so a change of counts, ratings or bookmarks is not signalled:
    /// none of them is in the tree.
    private func heard(_ message: Message) {
        guard let changes = try? message.arguments().dropFirst().first?.asProperties, changes["ContentRevision"] != nil
        else { return }
        for path in [root] + Self.queries.map({ path(.query($0.word)) }) {
            connection.objects.emit(path: path, interface: Self.container, member: "Updated")
        }
    }

    // MARK: Introspection

    private func introspection(of node: Node) -> String {
        func property(_ name: String, _ type: String) -> String {
            "<property name=\"\(name)\" type=\"\(type)\" access=\"read\"/>"
        }
        func list(_ name: String) -> String {
            "<method name=\"\(name)\"><arg name=\"offset\" type=\"u\" direction=\"in\"/><arg name=\"max\" type=\"u\" "
                + "direction=\"in\"/><arg name=\"filter\" type=\"as\" direction=\"in\"/>"
                + "<arg name=\"children\" type=\"aa{sv}\" direction=\"out\"/></method>"
        }
        let object =
            property("Parent", "o") + property("Type", "s") + property("Path", "o") + property("DisplayName", "s")
        let own: String
        switch node {
        case .root, .query, .collection:
            own =
                "<interface name=\"\(Self.container)\">" + list("ListChildren") + list("ListContainers")
                + list("ListItems") + "<signal name=\"Updated\"/>" + property("ChildCount", "u")
                + property("ItemCount", "u") + property("ContainerCount", "u") + property("Searchable", "b")
        case .item, .cover:
            own =
                "<interface name=\"\(Self.media)\">" + property("URLs", "as") + property("MIMEType", "s")
                + property("Size", "x") + property("Artist", "s") + property("Album", "s") + property("Genre", "s")
                + property("Date", "s") + property("Duration", "i") + property("TrackNumber", "i")
                + property("AlbumArt", "o")
        }
        return "<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"\n"
            + " \"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">\n<node><interface name=\"\(Self.object)\">"
            + object + "</interface>" + own + "</interface></node>\n"
    }
}
