import DBus
public import PluginAPI

/// Items with something in common, such as an album; or items that an app has collected (MPMediaItemCollection).
public struct MediaItemCollection: Sendable, Hashable {
    enum Contents: Sendable, Hashable {
        case items([MediaItem])
        case query(MediaQuery)
    }

    /// The number of the album, artist, composer, genre or playlist; 0: an app has made the collection.
    public let persistentID: UInt64
    public let title: String
    /// The artist of an album.
    public let artist: String
    public let count: Int
    /// The duration of all items, in seconds.
    public let playbackDuration: Double
    /// The latest year of its items; 0: unknown.
    public let year: Int
    /// The number of one of its items, with a cover if there is one; 0: it is empty.
    public let representativeItem: UInt64
    let contents: Contents

    /// A collection of an app, in the order of `items`.
    public init(items: [MediaItem]) {
        (persistentID, title, artist, year) = (0, "", "", 0)
        (count, playbackDuration) = (items.count, items.reduce(0) { $0 + $1.playbackDuration })
        representativeItem = items.first?.persistentID ?? 0
        contents = .items(items)
    }

    /// A collection from `org.sessiond1.Library.Collections`.
    init(_ fields: [String: Value], of query: MediaQuery) {
        persistentID = fields["id"]?.uint64Value ?? 0
        title = fields["title"]?.stringValue ?? ""
        artist = fields["artist"]?.stringValue ?? ""
        count = Int(fields["count"]?.uint32Value ?? 0)
        playbackDuration = fields["duration"]?.doubleValue ?? 0
        year = Int(fields["year"]?.uint32Value ?? 0)
        representativeItem = fields["representative"]?.uint64Value ?? 0
        contents = .query(query.members(of: persistentID))
    }

    /// Its current items.
    public func items(in library: MediaLibrary = .default) async throws(SessionError) -> [MediaItem] {
        switch contents {
        case .items(let items): return items
        case .query(let query): return try await library.items(query).all
        }
    }
}

/// A playlist of the library (MPMediaPlaylist): created by the user, or a playlist file (M3U, PLS, XSPF) in the
/// folders, which cannot be changed.
public struct MediaPlaylist: Sendable, Hashable {
    public let persistentID: UInt64
    public let name: String
    public let count: Int
    /// The duration of all items, in seconds.
    public let playbackDuration: Double

    init(_ collection: MediaItemCollection) {
        (persistentID, name) = (collection.persistentID, collection.title)
        (count, playbackDuration) = (collection.count, collection.playbackDuration)
    }

    /// Its items, in its order, as a query: to play them, or to filter them.
    public var query: MediaQuery {
        var query = MediaQuery()
        query.playlist = persistentID
        return query
    }
}
