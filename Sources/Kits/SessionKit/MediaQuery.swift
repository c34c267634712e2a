import DBus
import PluginAPI

/// The property by which items are grouped into collections (MPMediaGrouping).
public enum MediaGrouping: String, Sendable, Hashable, CaseIterable {
    /// Each item is a separate collection.
    case title
    case album, artist
    case albumArtist = "album-artist"
    case composer, genre, playlist
    case podcastTitle = "podcast"
}

/// A property of an item that predicates compare (MPMediaItemProperty…).
public enum MediaProperty: String, Sendable, Hashable, CaseIterable {
    case persistentID = "id"
    case assetURL = "uri"
    case title, artist
    case albumTitle = "album"
    case albumArtist = "album-artist"
    case composer, genre, year
    case discNumber = "disc"
    case albumTrackNumber = "number"
    case playbackDuration = "duration"
    case isCompilation = "compilation"
    case mediaType = "media-type"
    case rating
    case playCount = "play-count"
    case skipCount = "skip-count"
    case albumPersistentID = "album-id"
    case artistPersistentID = "artist-id"
    case albumArtistPersistentID = "album-artist-id"
    case composerPersistentID = "composer-id"
    case genrePersistentID = "genre-id"
}

/// A condition (MPMediaPropertyPredicate). Case and accents are ignored. If an item has several artists, each is
/// compared.
public struct MediaPropertyPredicate: Sendable, Hashable {
    /// MPMediaPredicateComparison.
    public enum Comparison: String, Sendable, Hashable {
        case equalTo = "is"
        /// Only for texts.
        case contains
    }

    public let property: MediaProperty
    public let comparison: Comparison
    let value: Value

    public init(_ property: MediaProperty, _ text: String, _ comparison: Comparison = .equalTo) {
        (self.property, self.comparison, value) = (property, comparison, .string(text))
    }

    public init(_ property: MediaProperty, _ number: UInt64) {
        (self.property, comparison, value) = (property, .equalTo, .uint64(number))
    }

    public init(_ property: MediaProperty, _ flag: Bool) {
        (self.property, comparison, value) = (property, .equalTo, .bool(flag))
    }
}

/// The items to read, and their grouping (MPMediaQuery).
///
///     let albums = try await MediaQuery.albums.filter(.artist, is: "Björk").collections
///     for try await song in MediaLibrary.default.items(.songs) { print(song.title) }
public struct MediaQuery: Sendable, Hashable {
    enum Preset: String, Sendable {
        case songs, albums, artists, compilations, composers, genres, playlists, podcasts, audiobooks
    }

    /// The property by which items are sorted.
    public enum SortKey: String, Sendable, Hashable, CaseIterable {
        case title, artist
        case albumTitle = "album"
        case year
        case dateAdded = "added"
        case lastPlayedDate = "last-played"
        case playCount = "play-count"
        case rating, random
    }

    struct Order: Sendable, Hashable {
        let key: SortKey
        let isDescending: Bool
    }

    /// Music by title.
    public static let songs = MediaQuery(.songs, .title)
    /// Music by album.
    public static let albums = MediaQuery(.albums, .album)
    /// Music by artist; an item with two artists is in two collections.
    public static let artists = MediaQuery(.artists, .artist)
    /// Albums with several artists.
    public static let compilations = MediaQuery(.compilations, .album)
    public static let composers = MediaQuery(.composers, .composer)
    public static let genres = MediaQuery(.genres, .genre)
    public static let playlists = MediaQuery(.playlists, .playlist)
    /// Podcasts, the newest first.
    public static let podcasts = MediaQuery(.podcasts, .podcastTitle)
    /// Audiobooks; an audiobook of several files is one collection.
    public static let audiobooks = MediaQuery(.audiobooks, .album)

    let preset: Preset?
    /// The grouping of the collections; for a preset, the one in its name.
    public var groupingType: MediaGrouping
    /// The conditions. An item must meet all of them; at most 64.
    public var filterPredicates: Set<MediaPropertyPredicate> = []
    /// Empty: the types of the preset; without a preset, all types.
    public var mediaTypes: Set<MediaItem.MediaType> = []
    /// Words of the title, artist, album, composer or genre; the last word may be incomplete.
    public var text = ""
    /// Includes items on file systems that are not mounted.
    public var includesUnavailableItems = false
    var order: [Order] = []
    var playlist: UInt64?

    private init(_ preset: Preset, _ grouping: MediaGrouping) { (self.preset, groupingType) = (preset, grouping) }

    /// All items that meet the conditions, of all media types.
    public init(filterPredicates: Set<MediaPropertyPredicate> = []) {
        (preset, groupingType, self.filterPredicates) = (nil, .title, filterPredicates)
    }

    /// The same query with one more predicate.
    public func filter(_ property: MediaProperty, is text: String) -> MediaQuery {
        adding(MediaPropertyPredicate(property, text))
    }

    public func filter(_ property: MediaProperty, is number: UInt64) -> MediaQuery {
        adding(MediaPropertyPredicate(property, number))
    }

    public func filter(_ property: MediaProperty, is flag: Bool) -> MediaQuery {
        adding(MediaPropertyPredicate(property, flag))
    }

    public func filter(_ property: MediaProperty, contains part: String) -> MediaQuery {
        adding(MediaPropertyPredicate(property, part, .contains))
    }

    private func adding(_ predicate: MediaPropertyPredicate) -> MediaQuery {
        var query = self
        query.filterPredicates.insert(predicate)
        return query
    }

    /// The same query in another order. A second call sorts the items that are equal in the first order.
    public func sorted(by key: SortKey, descending isDescending: Bool = false) -> MediaQuery {
        var query = self
        query.order.append(Order(key: key, isDescending: isDescending))
        return query
    }

    /// All items, read from the library of the user.
    public var items: [MediaItem] {
        get async throws(SessionError) { try await MediaLibrary.default.items(self).all }
    }

    /// The items in groups, read from the library of the user.
    public var collections: [MediaItemCollection] {
        get async throws(SessionError) { try await MediaLibrary.default.collections(self) }
    }
}

extension MediaQuery {
    /// The options of `org.sessiond1.Library`.
    var wire: Value {
        var fields: [(String, Value)] = []
        if let preset { fields.append(("preset", .string(preset.rawValue))) }
        if !filterPredicates.isEmpty {
            let rows = filterPredicates.map { predicate in
                Value.structure([
                    .string(predicate.property.rawValue), .string(predicate.comparison.rawValue),
                    .variant(predicate.value),
                ])
            }
            fields.append(("where", .array(of: "(ssv)", rows)))
        }
        if !mediaTypes.isEmpty { fields.append(("media-types", .strings(mediaTypes.map(\.rawValue).sorted()))) }
        if let playlist { fields.append(("playlist", .uint64(playlist))) }
        if !order.isEmpty {
            fields.append(("sort", .strings(order.map { ($0.isDescending ? "-" : "") + $0.key.rawValue })))
        }
        if !text.isEmpty { fields.append(("text", .string(text))) }
        if includesUnavailableItems { fields.append(("unavailable", .bool(true))) }
        return .properties(fields)
    }

    /// The items of one collection of this query, as a query.
    func members(of collection: UInt64) -> MediaQuery {
        var query = self
        switch groupingType {
        case .title: query = filter(.persistentID, is: collection)
        case .album, .podcastTitle: query = filter(.albumPersistentID, is: collection)
        case .artist: query = filter(.artistPersistentID, is: collection)
        case .albumArtist: query = filter(.albumArtistPersistentID, is: collection)
        case .composer: query = filter(.composerPersistentID, is: collection)
        case .genre: query = filter(.genrePersistentID, is: collection)
        case .playlist: query.playlist = collection
        }
        return query
    }
}
