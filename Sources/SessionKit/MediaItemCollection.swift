import DBus
public import PluginAPI

/// Items with something in common, such as an album; or those that an app has put together (MPMediaItemCollection).
public struct MediaItemCollection: Sendable, Hashable {
    enum Contents: Sendable, Hashable {
        case items([MediaItem])
        case query(MediaQuery)
    }

    /// Of the album, artist, composer, genre or playlist; 0: an app has made the collection.
    public let persistentID: UInt64
    public let title: String
    /// Of an album.
    public let artist: String
    public let count: Int
    /// Seconds, of all items.
    public let playbackDuration: Double
    /// The latest of its items; 0: not known.
    public let year: Int
    /// The number of an item of it, with a cover if one has; 0: it is empty.
    public let representativeItem: UInt64
    let contents: Contents

    /// A collection of an app, in this order.
    public init(items: [MediaItem]) {
        (persistentID, title, artist, year) = (0, "", "", 0)
        (count, playbackDuration) = (items.count, items.reduce(0) { $0 + $1.playbackDuration })
        representativeItem = items.first?.persistentID ?? 0
        contents = .items(items)
    }

    /// One of `org.sessiond1.Library.Collections`.
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

    /// Its items now.
    public func items(in library: MediaLibrary = .default) async throws(SessionError) -> [MediaItem] {
        switch contents {
        case .items(let items): return items
        case .query(let query): return try await library.items(query).all
        }
    }
}

/// A playlist of the library (MPMediaPlaylist): its own, or a file (M3U, PLS, XSPF) in its folders, which is read only.
public struct MediaPlaylist: Sendable, Hashable {
    public let persistentID: UInt64
    public let name: String
    public let count: Int
    /// Seconds, of all items.
    public let playbackDuration: Double

    init(_ collection: MediaItemCollection) {
        (persistentID, name) = (collection.persistentID, collection.title)
        (count, playbackDuration) = (collection.count, collection.playbackDuration)
    }

    /// The items of it, in its order, as a query: to play it, or to look for something in it.
    public var query: MediaQuery {
        var query = MediaQuery()
        query.playlist = persistentID
        return query
    }
}
