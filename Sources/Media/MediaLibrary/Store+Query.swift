// Answers to queries.

/// An item with its properties.
public struct Item: Sendable, Hashable {
    public var id: Int64
    public var path: [UInt8]
    public var mediaType: ItemType
    public var isAvailable: Bool
    public var title, artist, album, albumArtist, composer, genre: String
    public var albumID: Int64
    public var disc, number, released: Int
    public var duration: Double
    public var isCompilation, hasPicture: Bool
    /// Seconds since 1970.
    public var added: Int64
    public var kept = KeptFacts()

    public var year: Int { released / 10_000 }
}

/// The rating, the counts and the bookmark of an item, which come from users and players.
public struct KeptFacts: Sendable, Hashable {
    public var plays = 0
    public var skips = 0
    /// Seconds since 1970; 0: never.
    public var played: Int64 = 0
    /// 0…5.
    public var rating = 0
    /// The bookmark, in seconds.
    public var bookmark = 0.0

    public init() {}
}

/// Items with something in common.
public struct Collection: Sendable, Hashable {
    public var id: Int64
    public var title: String
    public var artist: String
    public var count: Int
    public var duration: Double
    /// One of its items; an item with a cover if there is one.
    public var representative: Int64
    /// The latest year of its items; 0: unknown.
    public var year: Int
}

extension Store {
    /// The number of matching items, and the items from `offset` on.
    public func items(_ query: Query, offset: Int, max: Int) throws(SQLError) -> (count: Int, items: [Item]) {
        try db.reading { () throws(SQLError) in
            // Of a narrow query, SQLite has to look at all items anyway: they are counted and sorted at once.
            if query.isNarrow {
                let all = try allIDs(query, isFirstPage: offset == 0)
                return (all.count, max > 0 ? try items(all.dropFirst(offset).prefix(max)) : [])
            }
            let count = try self.count(query)
            guard offset < count, max > 0 else { return (count, []) }
            return (count, try items(ids(query, offset: offset, max: max)[...]))
        }
    }

    /// SQLite would count rows from the start to find a page far from it. Such a query runs once, for all its pages. A
    /// random order is chosen anew each time the first page is read.
    private static let farPage = 500

    public func ids(_ query: Query, offset: Int = 0, max: Int = .max) throws(SQLError) -> [Int64] {
        if offset >= Self.farPage || query.isRandom || query.isNarrow {
            return Array(try allIDs(query, isFirstPage: offset == 0).dropFirst(offset).prefix(max))
        }
        return try readIDs(query, offset: offset, max: max)
    }

    private func allIDs(_ query: Query, isFirstPage: Bool) throws(SQLError) -> [Int64] {
        let stamp = stamp(of: query)
        if !(query.isRandom && isFirstPage), let known = cache.orders.list(query, stamp) { return known }
        let all = try readIDs(query, offset: 0, max: .max)
        if !isInBatch { cache.orders.keep(all, query, stamp) }
        return all
    }

    private func readIDs(_ query: Query, offset: Int, max: Int) throws(SQLError) -> [Int64] {
        let source = query.source
        return try db.all(
            "SELECT t.id\(source.sql) ORDER BY \(query.orderSQL) LIMIT ? OFFSET ?",
            source.values + [SQLValue(max), SQLValue(offset)]
        ) { $0.whole(0) }
    }

    public func count(_ query: Query) throws(SQLError) -> Int {
        // The order does not change the count.
        var query = query
        query.order = []
        let stamp = stamp(of: query)
        if let known = cache.count(query, stamp) { return known }
        let source = query.source
        let count = Int(try db.number("SELECT count(*)\(source.sql)", source.values) ?? 0)
        if !isInBatch { cache.keep(count, query, stamp) }
        return count
    }

    public func item(_ id: Int64) throws(SQLError) -> Item? { try items([id]).first }

    /// The items with these ids, in this order; those that do not exist are left out.
    public func items(_ ids: ArraySlice<Int64>) throws(SQLError) -> [Item] {
        // One statement for all: to begin one takes as long as to read an item.
        let list = "[" + ids.map { String($0) }.joined(separator: ",") + "]"
        return try db.all(
            """
            SELECT t.id, d.path, f.name, t.media_type, t.is_available, t.title, t.artist, t.album_title, t.album_artist,
                t.composer, t.genre, t.album, t.disc, t.number, t.released, t.duration, t.is_compilation, t.has_picture,
                t.added, k.plays, k.skips, k.played, k.rating, k.bookmark
            FROM json_each(?) j CROSS JOIN track t ON t.id = j.value CROSS JOIN file f ON f.id = t.id
                CROSS JOIN directory d ON d.id = f.directory LEFT JOIN kept.item k ON k.id = t.id
            """, [.text(list)]
        ) { row in
            var kept = KeptFacts()
            kept.plays = Int(row.whole(19))
            kept.skips = Int(row.whole(20))
            kept.played = row.whole(21)
            kept.rating = Int(row.whole(22))
            kept.bookmark = row.number(23)
            return Item(
                id: row.whole(0), path: row.blob(1) + [UInt8(ascii: "/")] + row.blob(2),
                mediaType: ItemType(rawValue: row.whole(3)) ?? .music, isAvailable: row.flag(4), title: row.text(5),
                artist: row.text(6), album: row.text(7), albumArtist: row.text(8), composer: row.text(9),
                genre: row.text(10), albumID: row.whole(11), disc: Int(row.whole(12)), number: Int(row.whole(13)),
                released: Int(row.whole(14)), duration: row.number(15), isCompilation: row.flag(16),
                hasPicture: row.flag(17), added: row.whole(18), kept: kept)
        }
    }

    /// The separate names of an item: artists (0), album artists (1), composers (2) or genres (3).
    public func names(of id: Int64, role: Int) throws(SQLError) -> [String] {
        try db.all(
            "SELECT n.name FROM track_name t JOIN name n ON n.id = t.name WHERE t.track = ? AND t.role = ? ORDER BY n.id",
            [.whole(id), SQLValue(role)]
        ) { $0.text(0) }
    }

    /// The number of items that can be played now.
    public func itemCount() throws(SQLError) -> Int { try count(Query()) }

    // MARK: Collections

    /// The id of an item with a cover, if there is one: items without a cover get larger numbers.
    private static let representative = "min(t.id + (1 - t.has_picture) * \(Kind.shift)) % \(Kind.shift)"

    public func collections(
        _ grouping: Query.Grouping, _ query: Query, offset: Int, max: Int
    ) throws(SQLError) -> (count: Int, collections: [Collection]) {
        var query = query
        query.order = []
        if grouping == .podcast, query.preset == nil, query.mediaTypes.isEmpty { query.mediaTypes = [.podcast] }
        let (key, stamp) = (AnswerCache.Key(grouping: grouping, query: query), stamp(of: query))
        if let known = cache.groups.list(key, stamp) {
            return (known.count, Array(known.dropFirst(offset).prefix(max)))
        }
        let all = grouping == .playlist ? try lists(query) : try groups(grouping, query)
        // During a scan the content changes at once, so the answer is not cached.
        if !isInBatch { cache.groups.keep(all, key, stamp) }
        return (all.count, Array(all.dropFirst(offset).prefix(max)))
    }

    private func groups(_ grouping: Query.Grouping, _ query: Query) throws(SQLError) -> [Collection] {
        let sql: String
        var source = query.source
        let facts = "count(*), total(t.duration), \(Self.representative), max(t.released) / 10000"
        switch grouping {
        case .album, .podcast:
            // One index has all values that are needed of each item, ordered by album.
            if !query.isNarrow {
                source.sql = source.sql.replacing(" FROM track t", " FROM track t INDEXED BY track_album")
            }
            let isNewest = grouping == .podcast || query.preset == .podcasts
            let order =
                isNewest
                ? "max(t.released) DESC, max(t.added) DESC, a.id"
                : query.preset == .albums ? "a.artist_sort, max(t.released), a.title_sort, a.id" : "a.title_sort, a.id"
            sql = """
                SELECT g.*, a.title, a.artist FROM (
                    SELECT t.album AS id, \(facts), max(t.released) AS newest, max(t.added) AS latest\(source.sql) GROUP BY t.album
                ) g JOIN album a ON a.id = g.id ORDER BY \(order
                    .replacing("max(t.released)", "g.newest").replacing("max(t.added)", "g.latest"))
                """
        case .artist, .albumArtist, .composer, .genre:
            let role = [Query.Grouping.artist, .albumArtist, .composer, .genre].firstIndex(of: grouping) ?? 0
            sql = """
                SELECT g.*, n.name, '' FROM (
                    SELECT r.name AS id, \(facts), 0, 0\(source.sql.replacing(
                        " FROM track t", " FROM track t JOIN track_name r ON r.track = t.id AND r.role = \(role)"))
                    GROUP BY r.name
                ) g JOIN name n ON n.id = g.id ORDER BY n.sort, n.id
                """
        case .playlist: return []
        }
        return try db.all(sql, source.values) { row in
            Collection(
                id: row.whole(0), title: row.text(7), artist: row.text(8), count: Int(row.whole(1)),
                duration: row.number(2), representative: row.whole(3), year: Int(row.whole(4)))
        }
    }

    private func lists(_ query: Query) throws(SQLError) -> [Collection] {
        var all: [Collection] = []
        let lists = try db.all("SELECT id, name FROM any_list") { (id: $0.whole(0), name: $0.text(1)) }
        for list in lists {
            var own = query
            own.playlist = list.id
            let source = own.source
            let facts = try db.first(
                "SELECT count(*), total(t.duration), \(Self.representative), max(t.released) / 10000\(source.sql)",
                source.values
            ) { ($0.whole(0), $0.number(1), $0.whole(2), $0.whole(3)) }
            guard let facts else { continue }
            // A playlist of the user is listed even if it is empty.
            if facts.0 == 0, !query.predicates.isEmpty || !query.text.isEmpty { continue }
            all.append(
                Collection(
                    id: list.id, title: list.name, artist: "", count: Int(facts.0), duration: facts.1,
                    representative: facts.2, year: Int(facts.3)))
        }
        all.sort { one, other in
            let keys = (Folding.sortKey(Folding.fold(one.title)), Folding.sortKey(Folding.fold(other.title)))
            return keys.0 == keys.1 ? one.id < other.id : keys.0 < keys.1
        }
        return all
    }

    // MARK: Ratings, counts and bookmarks

    public enum KeptChange: Sendable, Hashable {
        case rating(Int)
        case bookmark(Double)
        case mediaType(ItemType?)
        case plays(Int)
        case skips(Int)
        /// It was played to its end at that time.
        case played(at: Int64)
        case skipped
    }

    /// - Returns: false if there is no such item.
    public func set(_ id: Int64, _ changes: [KeptChange]) throws(SQLError) -> Bool {
        guard try keep(id) else { return false }
        let isOfContents = changes.contains { if case .mediaType = $0 { true } else { false } }
        try change(ofContents: isOfContents) { () throws(SQLError) in
            for change in changes {
                let (column, value): (String, SQLValue)
                switch change {
                case .rating(let rating): (column, value) = ("rating = ?", SQLValue(rating))
                case .bookmark(let seconds): (column, value) = ("bookmark = ?", .number(seconds))
                case .plays(let count): (column, value) = ("plays = ?", SQLValue(count))
                case .skips(let count): (column, value) = ("skips = ?", SQLValue(count))
                case .played(let time): (column, value) = ("bookmark = 0, plays = plays + 1, played = ?", .whole(time))
                case .skipped: (column, value) = ("skips = skips + ?", .whole(1))
                case .mediaType(let type):
                    (column, value) = ("media_type = ?", type.map { .whole($0.rawValue) } ?? .null)
                    try db.run(
                        "UPDATE track SET media_type = ifnull(?, own_type) WHERE id = ?",
                        [type.map { .whole($0.rawValue) } ?? .null, .whole(id)])
                }
                try db.run("UPDATE kept.item SET \(column) WHERE id = ?", [value, .whole(id)])
            }
        }
        return true
    }

    /// Creates the row of the item in the database `kept`; false if there is no such item.
    private func keep(_ id: Int64) throws(SQLError) -> Bool {
        guard try db.number("SELECT 1 FROM track WHERE id = ?", [.whole(id)]) != nil, let path = try path(of: id) else {
            return false
        }
        if try db.number("SELECT 1 FROM kept.item WHERE id = ?", [.whole(id)]) == nil {
            try db.run(
                """
                INSERT INTO kept.item(id, path, sound, fingerprint, size)
                SELECT id, ?, sound, fingerprint, size FROM file WHERE id = ?
                """, [.blob(path), .whole(id)])
        }
        return true
    }

    // MARK: Playlists

    /// - Returns: nil if one of the items does not exist.
    public func addList(_ name: String, _ items: [Int64]) throws(SQLError) -> Int64? {
        var id: Int64?
        try change { () throws(SQLError) in
            try db.run("INSERT INTO kept.playlist(name) VALUES(?)", [.text(name)])
            let made = db.lastID
            if try fill(made, items) {
                id = made
                try addWords(.list, listRow(made), [name])
            } else {
                try db.run("DELETE FROM kept.playlist WHERE id = ?", [.whole(made)])
            }
        }
        return id
    }

    /// In the full-text index, playlists of the user have even row numbers, and those of files odd ones.
    func listRow(_ id: Int64) -> Int64 { id + Self.firstFileList / 2 }

    private func fill(_ list: Int64, _ items: [Int64]) throws(SQLError) -> Bool {
        try db.run("DELETE FROM kept.playlist_item WHERE playlist = ?", [.whole(list)])
        for (index, item) in items.enumerated() {
            // An unavailable item stays in the playlist.
            let isKept = try db.number("SELECT 1 FROM kept.item WHERE id = ?", [.whole(item)]) != nil
            if !isKept, try !keep(item) { return false }
            try db.run(
                "INSERT INTO kept.playlist_item VALUES(?, ?, ?)", [.whole(list), SQLValue(index), .whole(item)])
        }
        return true
    }

    /// The name of a playlist; nil: it does not exist. Playlists of files cannot be changed.
    public func list(_ id: Int64) throws(SQLError) -> (name: String, isOwn: Bool)? {
        try db.first("SELECT name FROM any_list WHERE id = ?", [.whole(id)]) { ($0.text(0), id < Self.firstFileList) }
    }

    /// - Returns: false, without changes, if one of the items does not exist.
    public func setList(_ id: Int64, _ items: [Int64]) throws(SQLError) -> Bool {
        let old = try db.all(
            "SELECT item FROM kept.playlist_item WHERE playlist = ? ORDER BY position", [.whole(id)]
        ) { $0.whole(0) }
        var isDone = false
        try change { () throws(SQLError) in
            isDone = try fill(id, items)
            if !isDone { _ = try fill(id, old) }
        }
        return isDone
    }

    public func renameList(_ id: Int64, _ name: String) throws(SQLError) {
        guard let old = try list(id) else { return }
        try change { () throws(SQLError) in
            try removeWords(.list, listRow(id), [old.name])
            try db.run("UPDATE kept.playlist SET name = ? WHERE id = ?", [.text(name), .whole(id)])
            try addWords(.list, listRow(id), [name])
        }
    }

    public func removeList(own id: Int64) throws(SQLError) {
        guard let old = try list(id) else { return }
        try change { () throws(SQLError) in
            try removeWords(.list, listRow(id), [old.name])
            try db.run("DELETE FROM kept.playlist_item WHERE playlist = ?", [.whole(id)])
            try db.run("DELETE FROM kept.playlist WHERE id = ?", [.whole(id)])
        }
    }
}

extension String {
    /// Replaces a part of a text, without a library for regular expressions.
    func replacing(_ part: String, _ other: String) -> String {
        var result = ""
        var rest = self[...]
        while !rest.isEmpty {
            if rest.hasPrefix(part) {
                result += other
                rest = rest.dropFirst(part.count)
            } else {
                result.append(rest.removeFirst())
            }
        }
        return result
    }
}
