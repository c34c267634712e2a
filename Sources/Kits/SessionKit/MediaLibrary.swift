public import DBus
import EventLoop
public import PluginAPI
import SessionBus

/// The music library of the user (MPMediaLibrary).
///
///     let library = MediaLibrary.default
///     for try await item in library.items(.songs.filter(.genre, is: "jazz")) { print(item.title) }
///     for album in try await library.collections(.albums) { print(album.title, album.count) }
///
/// The service starts the plugin of the library. The plugin stays in use while this object exists.
public actor MediaLibrary {
    public nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    /// The library of the user.
    public static let `default` = MediaLibrary()

    public enum Change: Sendable, Hashable {
        /// The library has changed; sent at most once a second.
        case changed(revision: UInt64)
        /// The items that have changed, if they are few; sent before ``changed(revision:)``.
        case items(added: [UInt64], changed: [UInt64], removed: [UInt64])
        /// A scan has started or ended.
        case scanning(Bool)
        /// The library has ended. For a minute, this object tries to find it again.
        case unavailable
        /// The library is available again.
        case available
    }

    /// A result of ``MediaLibrary/search(_:kinds:artist:album:max:)``.
    public struct Finding: Sendable, Hashable {
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            case song, podcast, audiobook, album, artist
            case albumArtist = "album-artist"
            case composer, genre, playlist
        }

        /// Nil for a kind that this version does not know.
        public let kind: Kind?
        /// The number of an item or a collection.
        public let persistentID: UInt64
        public let title: String
        public let artist: String
        /// 0…1: how well it matches.
        public let score: Double
        /// A query for playing it.
        public let query: MediaQuery
    }

    let client: PluginClient
    private let broadcast = Broadcast<Change>()
    private var wasLost = false

    /// - Parameter bus: the bus of the daemon.
    public init(bus: BusAddress = .session) { client = PluginClient(.library, on: bus, .shared(uri: "file:///")) }

    deinit { broadcast.finish() }

    /// Every change from now on (beginGeneratingLibraryChangeNotifications): reading the sequence subscribes to the
    /// changes.
    public nonisolated var changes: AsyncStream<Change> {
        let stream = broadcast.stream()
        Task { await follow() }
        return stream
    }

    /// The same. When it returns, no later change is missed.
    /// - Throws: `MediaServicesFailed` or `ResourceNotAvailable` if there is no library.
    public func subscribe() async throws(SessionError) -> AsyncStream<Change> {
        let stream = broadcast.stream()
        await follow()
        try await client.found()
        return stream
    }

    private func follow() async {
        await client.follow { [weak self] news in self?.assumeIsolated { $0.heard(news) } }
    }

    private func heard(_ news: PluginClient.News) {
        switch news {
        case .found:
            if wasLost { broadcast.send(.available) }
            wasLost = false
        case .lost:
            wasLost = true
            broadcast.send(.unavailable)
        case .signal("Changed", let values):
            broadcast.send(.changed(revision: values.first?.uint64Value ?? 0))
        case .signal("ItemsChanged", let values):
            let lists = values.map { $0.arrayValue?.compactMap(\.uint64Value) ?? [] }
            if lists.count == 3 { broadcast.send(.items(added: lists[0], changed: lists[1], removed: lists[2])) }
        case .changed(PluginKind.library.interface, let properties):
            if let isScanning = properties["Scanning"]?.boolValue { broadcast.send(.scanning(isScanning)) }
        case .signal, .changed: break
        }
    }

    // MARK: Queries

    /// The items of a query, read page by page during the iteration.
    ///
    /// If the library changes meanwhile, an item may be missing or occur twice: ``changes`` reports the change.
    public nonisolated func items(_ query: MediaQuery) -> MediaItems { MediaItems(query: query, library: self) }

    /// The number of items of a query.
    public func count(_ query: MediaQuery) async throws(SessionError) -> Int {
        try await page(query, offset: 0, max: 0).count
    }

    /// At most `max` items from `offset` on, at most 5000; and the number of all items.
    public func page(
        _ query: MediaQuery, offset: Int, max: Int
    ) async throws(SessionError) -> (count: Int, items: [MediaItem]) {
        let answer = try await client.ask(
            "Items",
            [
                query.wire, .uint32(UInt32(clamping: offset)), .uint32(UInt32(clamping: max)),
                .strings(MediaItem.fields),
            ])
        let (count, rows) = Self.rows(answer)
        return (count, rows.map { MediaItem($0) })
    }

    /// The item with that number; nil: it does not exist.
    public func item(_ persistentID: UInt64) async throws(SessionError) -> MediaItem? {
        var query = MediaQuery().filter(.persistentID, is: persistentID)
        query.includesUnavailableItems = true
        return try await page(query, offset: 0, max: 1).items.first
    }

    private static func rows(_ answer: [Value]) -> (count: Int, rows: [[String: Value]]) {
        (
            Int(answer.first?.uint32Value ?? 0),
            answer.count > 1 ? (answer[1].arrayValue ?? []).compactMap(\.asProperties) : []
        )
    }

    /// The collections of a query, in the order of their names.
    public func collections(_ query: MediaQuery) async throws(SessionError) -> [MediaItemCollection] {
        guard query.groupingType != .title else {
            return try await items(query).all.map { MediaItemCollection(items: [$0]) }
        }
        var collections: [MediaItemCollection] = []
        while true {
            let answer = try await client.ask(
                "Collections",
                [
                    .string(query.groupingType.rawValue), query.wire, .uint32(UInt32(clamping: collections.count)),
                    .uint32(UInt32(MediaItems.pageSize)),
                ])
            let (count, rows) = Self.rows(answer)
            collections += rows.map { MediaItemCollection($0, of: query) }
            if rows.isEmpty || collections.count >= count { return collections }
        }
    }

    /// The items and collections that match words as typed or heard, best match first: `ac dc`, `led zeppelin four`,
    /// `help by the beatles`.
    /// - Parameter kinds: empty: all.
    public func search(
        _ text: String, kinds: Set<Finding.Kind> = [], artist: String = "", album: String = "", max: Int = 20
    ) async throws(SessionError) -> [Finding] {
        var options: [(String, Value)] = [("max", .uint32(UInt32(clamping: max)))]
        if !kinds.isEmpty { options.append(("kinds", .strings(kinds.map(\.rawValue).sorted()))) }
        if !artist.isEmpty { options.append(("artist", .string(artist))) }
        if !album.isEmpty { options.append(("album", .string(album))) }
        let answer = try await client.ask("Search", [.string(text), .properties(options)])
        return (answer.first?.arrayValue ?? []).compactMap(\.asProperties).map(Finding.init)
    }

    /// The cover of an item: the `file:` URI of a picture of at most `size` pixels; nil: it has none.
    func artwork(of item: UInt64, size: Int) async throws(SessionError) -> String? {
        let answer = try await client.ask("Artwork", [.uint64(item), .uint32(UInt32(clamping: size))])
        let uri = answer.first?.stringValue ?? ""
        return uri.isEmpty ? nil : uri
    }

    // MARK: Values that the user sets

    /// - Throws: `BadParameter` for a rating that is not 0…5, `NotFound`.
    public func setRating(_ rating: Int, of item: MediaItem) async throws(SessionError) {
        guard let rating = UInt32(exactly: rating) else {
            throw SessionError(.badParameter, "a rating is 0 to 5, not \(rating)")
        }
        try await set(item, [("rating", .uint32(rating))])
    }

    /// Sets the position at which a podcast or an audiobook continues, in seconds.
    public func setBookmarkTime(_ seconds: Double, of item: MediaItem) async throws(SessionError) {
        try await set(item, [("bookmark", .double(seconds))])
    }

    /// Nil: the type that the file states.
    public func setMediaType(_ type: MediaItem.MediaType?, of item: MediaItem) async throws(SessionError) {
        try await set(item, [("media-type", .string(type?.rawValue ?? ""))])
    }

    private func set(_ item: MediaItem, _ values: [(String, Value)]) async throws(SessionError) {
        _ = try await client.ask("SetItem", [.uint64(item.persistentID), .properties(values)])
    }

    // MARK: Playlists

    /// All playlists, by name.
    public var playlists: [MediaPlaylist] {
        get async throws(SessionError) { try await collections(.playlists).map(MediaPlaylist.init) }
    }

    /// Creates a playlist of the user.
    public func createPlaylist(_ name: String, items: [MediaItem] = []) async throws(SessionError) -> MediaPlaylist {
        let answer = try await client.ask("CreatePlaylist", [.string(name), Self.ids(items)])
        let id = answer.first?.uint64Value ?? 0
        guard let made = try await playlists.first(where: { $0.persistentID == id }) else {
            throw SessionError(.notFound, "the playlist '\(name)' has just been deleted")
        }
        return made
    }

    /// Replaces the items of a playlist.
    /// - Throws: `NotSupported` for a playlist file.
    public func setItems(_ items: [MediaItem], of playlist: MediaPlaylist) async throws(SessionError) {
        _ = try await client.ask("SetPlaylist", [.uint64(playlist.persistentID), Self.ids(items)])
    }

    public func rename(_ playlist: MediaPlaylist, to name: String) async throws(SessionError) {
        _ = try await client.ask("RenamePlaylist", [.uint64(playlist.persistentID), .string(name)])
    }

    /// Deletes the playlist. Its items stay in the library.
    public func delete(_ playlist: MediaPlaylist) async throws(SessionError) {
        _ = try await client.ask("DeletePlaylist", [.uint64(playlist.persistentID)])
    }

    private static func ids(_ items: [MediaItem]) -> Value { .array(of: "t", items.map { .uint64($0.persistentID) }) }

    // MARK: Folders

    /// The folders of the library, as absolute paths.
    public var folders: [String] {
        get async throws(SessionError) { try await client.get("Folders").stringsValue ?? [] }
    }

    /// Increased by 1 with each change (lastModifiedDate).
    public var revision: UInt64 {
        get async throws(SessionError) { try await client.get("Revision").uint64Value ?? 0 }
    }

    public var isScanning: Bool {
        get async throws(SessionError) { try await client.get("Scanning").boolValue ?? false }
    }

    /// Adds a folder, and starts to scan it.
    /// - Parameters:
    ///   - path: an absolute path.
    ///   - type: the type of all its files; nil: the type that each file states.
    public func addFolder(_ path: String, as type: MediaItem.MediaType? = nil) async throws(SessionError) {
        let options: [(String, Value)] = type.map { [("media-type", .string($0.rawValue))] } ?? []
        _ = try await client.ask("AddFolder", [.string(path), .properties(options)])
    }

    /// Removes a folder from the library. Its files stay on the disk; counts, ratings and bookmarks come back if the
    /// folder is added again.
    public func removeFolder(_ path: String) async throws(SessionError) {
        _ = try await client.ask("RemoveFolder", [.string(path)])
    }

    /// Scans all folders. Returns when the scan has started; ``changes`` reports its end.
    public func scan() async throws(SessionError) {
        _ = try await client.ask("Scan", [.strings([]), .properties([])])
    }
}

extension MediaLibrary.Finding {
    init(_ fields: [String: Value]) {
        let kind = fields["kind"]?.stringValue.flatMap(Kind.init(rawValue:))
        let id = fields["id"]?.uint64Value ?? 0
        self.kind = kind
        persistentID = id
        title = fields["title"]?.stringValue ?? ""
        artist = fields["artist"]?.stringValue ?? ""
        score = fields["score"]?.doubleValue ?? 0
        switch kind {
        case .song, .podcast, .audiobook, nil: query = MediaQuery().filter(.persistentID, is: id)
        case .album: query = MediaQuery().filter(.albumPersistentID, is: id).sorted(by: .albumTitle)
        case .artist: query = MediaQuery.artists.members(of: id)
        case .albumArtist: query = MediaQuery.albums.filter(.albumArtistPersistentID, is: id)
        case .composer: query = MediaQuery.composers.members(of: id)
        case .genre: query = MediaQuery.genres.members(of: id)
        case .playlist: query = MediaQuery.playlists.members(of: id)
        }
    }
}

/// The items of a query, as a sequence.
public struct MediaItems: AsyncSequence, Sendable {
    public typealias Element = MediaItem

    let query: MediaQuery
    let library: MediaLibrary
    /// The library returns at most 5000 items in one answer.
    static let pageSize = 1_000

    public func makeAsyncIterator() -> Iterator { Iterator(query: query, library: library) }

    /// All items at once.
    public var all: [MediaItem] {
        get async throws(SessionError) {
            var items: [MediaItem] = []
            var iterator = makeAsyncIterator()
            while let page = try await iterator.nextPage() { items += page }
            return items
        }
    }

    public struct Iterator: AsyncIteratorProtocol {
        let query: MediaQuery
        let library: MediaLibrary
        private var page: ArraySlice<MediaItem> = []
        private var offset = 0
        private var isOver = false

        init(query: MediaQuery, library: MediaLibrary) { (self.query, self.library) = (query, library) }

        mutating func nextPage(
            isolation: isolated (any Actor)? = #isolation
        ) async throws(SessionError) -> [MediaItem]? {
            guard !isOver else { return nil }
            let answer = try await library.page(query, offset: offset, max: pageSize)
            offset += answer.items.count
            isOver = answer.items.isEmpty || offset >= answer.count
            return answer.items.isEmpty ? nil : answer.items
        }

        public mutating func next() async throws -> MediaItem? { try await next(isolation: nil) }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(SessionError) -> MediaItem? {
            if page.isEmpty, let more = try await nextPage(isolation: actor) { page = more[...] }
            return page.popFirst()
        }
    }
}
