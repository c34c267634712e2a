import MediaValues

/// The conditions that items must meet, and their order.
public struct Query: Sendable, Hashable {
    /// The nine queries of iOS.
    public enum Preset: String, CaseIterable, Sendable {
        case songs, albums, artists, compilations, composers, genres, playlists, podcasts, audiobooks

        public var grouping: Grouping? {
            switch self {
            case .songs: nil
            case .albums, .compilations, .audiobooks: .album
            case .artists: .artist
            case .composers: .composer
            case .genres: .genre
            case .playlists: .playlist
            case .podcasts: .podcast
            }
        }

        var mediaType: ItemType? {
            switch self {
            case .songs, .albums, .artists, .compilations, .composers, .genres: .music
            case .podcasts: .podcast
            case .audiobooks: .audiobook
            case .playlists: nil
            }
        }
    }

    /// The property by which items are grouped into collections.
    public enum Grouping: String, CaseIterable, Sendable {
        case album, artist
        case albumArtist = "album-artist"
        case composer, genre, playlist, podcast
    }

    public enum Property: String, CaseIterable, Sendable {
        case id, uri, title, artist, album
        case albumArtist = "album-artist"
        case composer, genre, year, disc, number, duration, compilation
        case mediaType = "media-type"
        case rating
        case playCount = "play-count"
        case skipCount = "skip-count"
        case albumID = "album-id"
        case artistID = "artist-id"
        case albumArtistID = "album-artist-id"
        case composerID = "composer-id"
        case genreID = "genre-id"

        /// Whether the values of the field are texts.
        public var isText: Bool {
            switch self {
            case .uri, .title, .artist, .album, .albumArtist, .composer, .genre, .mediaType: true
            case .id, .year, .disc, .number, .duration, .compilation, .rating, .playCount, .skipCount, .albumID,
                .artistID, .albumArtistID, .composerID, .genreID:
                false
            }
        }
    }

    public enum Comparison: String, CaseIterable, Sendable { case `is`, contains }

    public struct Predicate: Sendable, Hashable {
        public var property: Property
        public var comparison: Comparison
        /// A text, or a number.
        public var value: SQLValue

        public init(_ property: Property, _ comparison: Comparison, _ value: SQLValue) {
            (self.property, self.comparison, self.value) = (property, comparison, value)
        }
    }

    public enum Key: String, CaseIterable, Sendable {
        case title, artist, album, year, added
        case lastPlayed = "last-played"
        case playCount = "play-count"
        case rating, random
    }

    public struct Order: Sendable, Hashable {
        public var key: Key
        public var isDescending: Bool

        public init(_ key: Key, isDescending: Bool = false) { (self.key, self.isDescending) = (key, isDescending) }
    }

    public var preset: Preset?
    /// Conditions; an item must meet all of them.
    public var predicates: [Predicate] = []
    /// Empty: the types of the preset.
    public var mediaTypes: [ItemType] = []
    public var playlist: Int64?
    public var order: [Order] = []
    /// Words as a person types them; the last one may be incomplete.
    public var text = ""
    /// Includes items on file systems that are not mounted.
    public var includesUnavailable = false

    public init(_ preset: Preset? = nil) { self.preset = preset }
}

// MARK: SQL

/// A part of an SQL statement, and its values.
struct Clause {
    var sql: String
    var values: [SQLValue] = []
}

extension Query {
    /// The tables and conditions. `t` are the tracks, `k` their stored counts, ratings and bookmarks.
    var source: Clause {
        var tables = "track t"
        var conditions: [String] = []
        var values: [SQLValue] = []
        if needsKept { tables += " LEFT JOIN kept.item k ON k.id = t.id" }
        if let playlist {
            tables += " JOIN any_list_item p ON p.item = t.id"
            conditions.append("p.playlist = ?")
            values.append(.whole(playlist))
        }
        if !includesUnavailable { conditions.append("t.is_available = 1") }
        let types = mediaTypes.isEmpty ? preset?.mediaType.map { [$0] } ?? [] : mediaTypes
        if types.count == 1 {
            conditions.append("t.media_type = ?")
            values.append(.whole(types[0].rawValue))
        } else if !types.isEmpty {
            conditions.append("t.media_type IN (\(types.map { String($0.rawValue) }.joined(separator: ", ")))")
        }
        if preset == .compilations { conditions.append("t.is_compilation = 1") }
        if preset == .playlists, playlist == nil { conditions.append("t.id IN (SELECT item FROM any_list_item)") }
        for predicate in predicates {
            let clause = predicate.clause
            conditions.append(clause.sql)
            values += clause.values
        }
        if let match = Words.prefixMatch(text) {
            conditions.append("t.id IN (SELECT rowid FROM words WHERE words MATCH ? AND rowid < \(Store.Kind.shift))")
            values.append(.text(match))
        } else if !text.isEmpty {
            conditions.append("0")
        }
        return Clause(
            sql: " FROM \(tables)\(conditions.isEmpty ? "" : " WHERE " + conditions.joined(separator: " AND "))",
            values: values)
    }

    /// Whether it has conditions besides the type. Then SQLite finds the items by the indices of these conditions.
    var isNarrow: Bool { !predicates.isEmpty || playlist != nil || !text.isEmpty || preset == .compilations }

    var isRandom: Bool { order.contains { $0.key == .random } }

    /// Whether counts or ratings affect which items it has, or their order.
    var needsKept: Bool {
        let properties: Set<Property> = [.rating, .playCount, .skipCount]
        let keys: Set<Key> = [.lastPlayed, .playCount, .rating]
        return predicates.contains { properties.contains($0.property) } || order.contains { keys.contains($0.key) }
    }

    private static let albumOrder = "t.album_sort, t.album, t.disc, t.number, t.title_sort, t.id"

    var orderSQL: String {
        if !order.isEmpty {
            return order.map { order in
                order.columns.map { $0 + (order.isDescending ? " DESC" : "") }.joined(separator: ", ")
            }.joined(separator: ", ") + ", t.title_sort, t.id"
        }
        if playlist != nil { return "p.position" }
        switch preset {
        case .albums: return "t.album_artist_sort, t.released, " + Self.albumOrder
        case .artists: return "t.artist_sort, " + Self.albumOrder
        case .compilations: return Self.albumOrder
        case .composers: return "t.composer_key, " + Self.albumOrder
        case .genres: return "t.genre_key, " + Self.albumOrder
        case .podcasts: return "t.released DESC, t.added DESC, t.title_sort, t.id"
        case .audiobooks: return Self.albumOrder
        case .songs, .playlists, nil: return "t.title_sort, t.id"
        }
    }
}

extension Query.Order {
    fileprivate var columns: [String] {
        switch key {
        case .title: ["t.title_sort"]
        case .artist: ["t.artist_sort"]
        case .album: ["t.album_sort", "t.album", "t.disc", "t.number"]
        case .year: ["t.released"]
        case .added: ["t.added"]
        case .lastPlayed: ["ifnull(k.played, 0)"]
        case .playCount: ["ifnull(k.plays, 0)"]
        case .rating: ["ifnull(k.rating, 0)"]
        case .random: ["random()"]
        }
    }
}

extension Query.Predicate {
    fileprivate var clause: Clause {
        switch property {
        case .id: equal("t.id")
        case .uri: file
        case .title: text("t.title_key")
        case .album: text("t.album_key")
        case .artist: listed("t.artist_key")
        case .albumArtist: listed("t.album_artist_key")
        case .composer: listed("t.composer_key")
        case .genre: listed("t.genre_key")
        case .year: equal("t.released / 10000")
        case .disc: equal("t.disc")
        case .number: equal("t.number")
        case .duration: equal("t.duration")
        case .compilation: equal("t.is_compilation")
        case .mediaType: type
        case .rating: equal("ifnull(k.rating, 0)")
        case .playCount: equal("ifnull(k.plays, 0)")
        case .skipCount: equal("ifnull(k.skips, 0)")
        case .albumID: equal("t.album")
        case .artistID: named(0)
        case .albumArtistID: named(1)
        case .composerID: named(2)
        case .genreID: named(3)
        }
    }

    private var file: Clause {
        guard case .text(let uri) = value, let path = FileURI.path(of: uri),
            let slash = path.lastIndex(of: UInt8(ascii: "/"))
        else { return Clause(sql: "0") }
        return Clause(
            sql:
                "t.id = (SELECT f.id FROM directory d JOIN file f ON f.directory = d.id WHERE d.path = ? AND f.name = ?)",
            values: [.blob(Array(path[..<slash])), .blob(Array(path[(slash + 1)...]))])
    }

    private var type: Clause {
        if case .text(let word) = value, let type = ItemType(word: word) {
            return Clause(sql: "t.media_type = ?", values: [.whole(type.rawValue)])
        }
        return Clause(sql: "0")
    }

    private func equal(_ column: String) -> Clause { Clause(sql: "\(column) = ?", values: [value]) }

    private func named(_ role: Int) -> Clause {
        Clause(sql: "t.id IN (SELECT track FROM track_name WHERE role = \(role) AND name = ?)", values: [value])
    }

    private var folded: String { if case .text(let text) = value { Folding.fold(text) } else { "" } }

    private func text(_ column: String) -> Clause {
        switch comparison {
        case .is: Clause(sql: "\(column) = ?", values: [.text(folded)])
        case .contains: Clause(sql: "instr(\(column), ?) > 0", values: [.text(folded)])
        }
    }

    /// The column with a line end before and after each value.
    private func listed(_ column: String) -> Clause {
        switch comparison {
        case .is:
            folded.isEmpty
                ? Clause(sql: "\(column) = ''")
                : Clause(sql: "instr(\(column), ?) > 0", values: [.text("\n\(folded)\n")])
        case .contains: Clause(sql: "instr(\(column), ?) > 0", values: [.text(folded)])
        }
    }
}
