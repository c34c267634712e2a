import DBus
import PluginAPI

/// A song, an episode of a podcast, or a part of an audiobook (MPMediaItem).
///
/// It has the values of the time when it was read; ``MediaLibrary/changes`` reports when to read it again.
public struct MediaItem: Sendable, Hashable, Identifiable {
    /// MPMediaType.
    public enum MediaType: String, Sendable, Hashable, CaseIterable {
        case music, podcast
        case audiobook
    }

    /// Stays the same when the file is moved or renamed; 0: it is not in the library.
    public let persistentID: UInt64
    /// Nil for a type that this version does not know.
    public let mediaType: MediaType?
    public let title: String
    /// The artist as shown; several artists are in one text.
    public let artist: String
    public let albumTitle: String
    public let albumArtist: String
    public let composer: String
    public let genre: String
    /// 0: it has no album.
    public let albumPersistentID: UInt64
    /// 0: unknown; the same for the next two.
    public let albumTrackNumber: Int
    public let discNumber: Int
    public let year: Int
    /// Seconds; 0: unknown.
    public let playbackDuration: Double
    public let isCompilation: Bool
    /// A `file:` URI.
    public let assetURL: String
    /// Whether its file system is mounted.
    public let isAvailable: Bool
    /// Seconds since 1970.
    public let dateAdded: UInt64
    /// 0…5; 0: no rating.
    public let rating: Int
    public let playCount: Int
    public let skipCount: Int
    /// Seconds since 1970; nil: never.
    public let lastPlayedDate: UInt64?
    /// The position at which a podcast or an audiobook continues, in seconds.
    public let bookmarkTime: Double

    public var id: UInt64 { persistentID }

    /// An item that an app plays although it is not in the library: ``persistentID`` is 0. The player shows these texts
    /// until it has read the file.
    /// - Parameters:
    ///   - url: a path, a URI or a URL.
    ///   - title: empty: unknown; the same for the next two.
    ///   - artist: its artist.
    ///   - albumTitle: the title of its album.
    ///   - playbackDuration: seconds; 0: unknown.
    public init(
        url: some MediaAddress, title: String = "", artist: String = "", albumTitle: String = "",
        playbackDuration: Double = 0
    ) {
        self.init([
            "uri": .string(MediaPath.uri(url)), "title": .string(title), "artist": .string(artist),
            "album": .string(albumTitle), "duration": .double(playbackDuration),
            "media-type": .string(MediaType.music.rawValue),
        ])
    }

    /// The cover, at most `size` pixels wide and high (0: unchanged): the `file:` URI of a picture; nil: there is none.
    /// - Throws: `NotFound` if the item is no longer in the library, `DecodeFailed` for a damaged picture.
    public func artwork(size: Int = 0, from library: MediaLibrary = .default) async throws(SessionError) -> String? {
        try await library.artwork(of: persistentID, size: size)
    }
}

extension MediaItem {
    static let fields = [
        "id", "uri", "title", "artist", "album", "album-artist", "composer", "genre", "disc", "number", "year",
        "duration", "media-type", "compilation", "added", "rating", "play-count", "skip-count", "last-played",
        "bookmark", "album-id", "available",
    ]

    /// An item of `org.sessiond1.Library`.
    init(_ fields: [String: Value]) {
        func text(_ key: String) -> String { fields[key]?.stringValue ?? "" }
        func count(_ key: String) -> Int { Int(fields[key]?.uint32Value ?? 0) }
        func large(_ key: String) -> UInt64 { fields[key]?.uint64Value ?? 0 }
        persistentID = large("id")
        mediaType = MediaType(rawValue: text("media-type"))
        (title, artist, albumTitle, albumArtist) = (text("title"), text("artist"), text("album"), text("album-artist"))
        (composer, genre, albumPersistentID) = (text("composer"), text("genre"), large("album-id"))
        (albumTrackNumber, discNumber, year) = (count("number"), count("disc"), count("year"))
        playbackDuration = fields["duration"]?.doubleValue ?? 0
        isCompilation = fields["compilation"]?.boolValue ?? false
        (assetURL, isAvailable) = (text("uri"), fields["available"]?.boolValue ?? true)
        (dateAdded, rating) = (large("added"), count("rating"))
        (playCount, skipCount) = (count("play-count"), count("skip-count"))
        lastPlayedDate = large("last-played") == 0 ? nil : large("last-played")
        bookmarkTime = fields["bookmark"]?.doubleValue ?? 0
    }

    /// The playing item, from the MPRIS metadata of a player. It may not be in the library.
    init(metadata: [String: Value]) {
        func list(_ key: String) -> Value { .string((metadata[key]?.stringsValue ?? []).joined(separator: ", ")) }
        self.init([
            "id": metadata["sessiond:item"] ?? .uint64(0), "uri": metadata["xesam:url"] ?? .string(""),
            "title": metadata["xesam:title"] ?? .string(""), "artist": list("xesam:artist"),
            "album": metadata["xesam:album"] ?? .string(""), "album-artist": list("xesam:albumArtist"),
            "genre": list("xesam:genre"), "composer": list("xesam:composer"),
            "number": .uint32(UInt32(clamping: metadata["xesam:trackNumber"]?.int32Value ?? 0)),
            "disc": .uint32(UInt32(clamping: metadata["xesam:discNumber"]?.int32Value ?? 0)),
            "duration": .double(Double(metadata["mpris:length"]?.int64Value ?? 0) / 1e6),
        ])
    }

    /// The entry for `LoadItems` of a player. Podcasts and audiobooks start at their bookmarks.
    var entry: Value {
        var fields: [(String, Value)] = [("uri", .string(assetURL))]
        if persistentID > 0 { fields.append(("id", .uint64(persistentID))) }
        for (key, text) in [("title", title), ("artist", artist), ("album", albumTitle)] where !text.isEmpty {
            fields.append((key, .string(text)))
        }
        if playbackDuration > 0 { fields.append(("duration", .double(playbackDuration))) }
        if bookmarkTime > 0 { fields.append(("bookmark", .double(bookmarkTime))) }
        if let mediaType, mediaType != .music { fields.append(("media-type", .string(mediaType.rawValue))) }
        return .properties(fields)
    }
}
