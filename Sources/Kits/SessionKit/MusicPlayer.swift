public import DBus
import EventLoop
import Glibc
public import PluginAPI
import SessionBus

/// Plays items of the library (MPMusicPlayerController).
///
///     let player = MusicPlayer.systemMusicPlayer
///     let changes = player.changes
///     try await player.setQueue(with: .albums.filter(.albumTitle, is: "Homogenic"))
///     try await player.play()
///     for await change in changes { print(change) }
public actor MusicPlayer {
    public nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    /// The shared player of the user, which other programs control too. It plays on when this program ends, and saves
    /// its queue.
    public static let systemMusicPlayer = MusicPlayer(.system)
    /// A player for this program alone, which ends with the program. It sounds in the session of the program
    /// (``AudioSession/sharedInstance(bus:)``), as an ``AudioPlayer`` does: ``play()`` activates the session, and an
    /// interruption pauses the player.
    public static let applicationMusicPlayer = MusicPlayer(session: nil)

    public enum Kind: Sendable, Hashable {
        case system, application
    }

    /// MPMusicPlaybackState.
    public enum PlaybackState: String, Sendable, Hashable, CaseIterable {
        case stopped, playing, paused
        /// Another session has the sound. The player may resume afterwards.
        case interrupted
        case seekingForward = "seeking-forward"
        case seekingBackward = "seeking-backward"
    }

    /// MPMusicRepeatMode.
    public enum RepeatMode: String, Sendable, Hashable, CaseIterable {
        /// The mode that the user has set in the system player. Never returned.
        case `default`
        case none, one, all
    }

    /// MPMusicShuffleMode.
    public enum ShuffleMode: String, Sendable, Hashable, CaseIterable {
        /// The mode that the user has set in the system player. Never returned.
        case `default`
        case off, songs
        /// The albums in random order, the songs of each album in order.
        case albums
    }

    /// A change, as ``MusicPlayer/changes`` reports it.
    public enum Change: Sendable, Hashable {
        /// PlaybackStateDidChange.
        case playbackState(PlaybackState)
        /// NowPlayingItemDidChange: the number of the item in the library, 0 if it is not in the library; nil: there is
        /// no item.
        case nowPlayingItem(persistentID: UInt64?)
        /// VolumeDidChange.
        case volume
        /// IsPreparedToPlayDidChange.
        case isPreparedToPlay(Bool)
        /// The items of the queue or their order have changed.
        case queue
        /// An item could not be played, with the reason. The player tries the next one.
        case itemFailed(String)
    }

    let kind: Kind
    private let library: MediaLibrary
    let source: Source
    let bus: BusAddress
    private let broadcast = Broadcast<Change>()
    private var told = Told()

    enum Source {
        /// A plugin with a session of its own.
        case separate(PluginClient)
        /// A plugin in a session of this program.
        case hosted(HostedPlugin)
    }

    var client: PluginClient {
        get async throws(SessionError) {
            switch source {
            case .separate(let client): client
            case .hosted(let plugin): try await plugin.requests
            }
        }
    }

    /// The last known values, and the properties that have changed since the player was found.
    private struct Told {
        var state: PlaybackState?
        /// The path of the item in the queue, which identifies it.
        var track: String?
        var isPrepared: Bool?
        var isNew: Set<String> = []
    }

    private static let mpris = (path: "/org/mpris/MediaPlayer2", interface: "org.mpris.MediaPlayer2.Player")

    /// An application player in a session of this program.
    /// - Parameters:
    ///   - session: nil: that of ``AudioSession/sharedInstance(bus:)`` when it is first needed.
    public init(session: AudioSession?) { self.init(session: session, environment: [:]) }

    /// - Parameter environment: changed variables of the player's process.
    package init(session: AudioSession?, environment: [String: String]) {
        let bus = session?.bus ?? .session
        (kind, self.bus, library) = (.application, bus, MediaLibrary(bus: bus))
        source = .hosted(HostedPlugin(.player, in: session, environment: environment))
    }

    /// A player with a session of its own.
    /// - Parameters:
    ///   - name: the name of the session, for the user; nil: the name of this program. Only for an application player.
    ///   - category: only for an application player. With the default category, it is silent in the background.
    ///   - bus: the bus of the daemon.
    public init(
        _ kind: Kind, name: String? = nil, category: AudioSession.Category = .soloAmbient, bus: BusAddress = .session
    ) {
        self.init(kind, name: name, category: category, bus: bus, environment: [:])
    }

    /// - Parameter environment: changed variables for an application player.
    package init(
        _ kind: Kind, name: String? = nil, category: AudioSession.Category = .soloAmbient, bus: BusAddress,
        environment: [String: String]
    ) {
        (self.kind, self.bus, library) = (kind, bus, MediaLibrary(bus: bus))
        let program: PluginClient.Source
        switch kind {
        case .system: program = .shared(uri: "")
        case .application:
            let name = name ?? OwnProcess.programName
            program = .own(arguments: ["--name", name, "--category", category.rawValue], environment: environment)
        }
        source = .separate(PluginClient(.player, on: bus, program))
    }

    deinit { broadcast.finish() }

    /// Ends an application player. It can be used again, with an empty queue. The system player plays on.
    public func close() async {
        switch source {
        case .separate(let client): if kind == .application { await client.close() }
        case .hosted(let plugin): await plugin.close()
        }
    }

    // MARK: Changes

    /// Every change from now on. Reading the sequence corresponds to beginGeneratingPlaybackNotifications on iOS.
    public nonisolated var changes: AsyncStream<Change> {
        let stream = broadcast.stream()
        Task { await follow() }
        return stream
    }

    private func follow() async {
        let tell: @Sendable (PluginClient.News) -> Void = { [weak self] news in
            self?.assumeIsolated { $0.heard(news) }
        }
        switch source {
        case .separate(let client): await client.follow(tell)
        case .hosted(let plugin):
            await plugin.follow(tell, silenced: {})
            _ = try? await plugin.requests.found()
        }
    }

    private func heard(_ news: PluginClient.News) {
        switch news {
        case .found:
            told.isNew = []
            Task { await catchUp() }
        case .lost:
            settle(state: .stopped)
            settle(track: nil, metadata: [:])
            settle(isPrepared: false)
        case .changed(let interface, let properties): learn(interface, properties)
        case .signal("QueueChanged", _): broadcast.send(.queue)
        case .signal("ItemFailed", let values): broadcast.send(.itemFailed(values.last?.stringValue ?? ""))
        case .signal("Failed", let values): broadcast.send(.itemFailed(values.first?.stringValue ?? ""))
        case .signal: break
        }
    }

    private func learn(_ interface: String, _ properties: [String: Value]) {
        told.isNew.formUnion(properties.keys)
        if interface == Self.mpris.interface {
            if let metadata = properties["Metadata"]?.asProperties { settle(metadata) }
            return
        }
        guard interface == PluginKind.player.interface else { return }
        if let status = properties["ItemStatus"]?.stringValue { settle(isPrepared: status == "ready") }
        if let state = properties["State"]?.stringValue { settle(state: Self.state(state)) }
        if properties["Volume"] != nil { broadcast.send(.volume) }
    }

    /// Reads the values of the player when it is found, unless newer ones are already known.
    private func catchUp() async {
        guard let own = try? await client.properties(),
            let shown = try? await client.properties(of: Self.mpris.interface, at: Self.mpris.path)
        else { return }
        let isFirst = told.state == nil
        if !told.isNew.contains("ItemStatus") {
            settle(isPrepared: own["ItemStatus"]?.stringValue == "ready", isTold: !isFirst)
        }
        if !told.isNew.contains("State") {
            settle(state: Self.state(own["State"]?.stringValue ?? ""), isTold: !isFirst)
        }
        if !told.isNew.contains("Metadata") { settle(shown["Metadata"]?.asProperties ?? [:], isTold: !isFirst) }
    }

    /// A player in an unknown state, such as after a failure, is reported as stopped.
    static func state(_ word: String) -> PlaybackState { PlaybackState(rawValue: word) ?? .stopped }

    private func settle(state: PlaybackState, isTold: Bool = true) {
        let isNew = told.state != state
        told.state = state
        if isNew, isTold { broadcast.send(.playbackState(state)) }
    }

    private func settle(isPrepared: Bool, isTold: Bool = true) {
        let isNew = told.isPrepared != isPrepared
        told.isPrepared = isPrepared
        if isNew, isTold { broadcast.send(.isPreparedToPlay(isPrepared)) }
    }

    private func settle(_ metadata: [String: Value], isTold: Bool = true) {
        settle(track: metadata["mpris:trackid"]?.objectPathValue, metadata: metadata, isTold: isTold)
    }

    private func settle(track: String?, metadata: [String: Value], isTold: Bool = true) {
        let isNew = told.track != track
        told.track = track
        guard isNew, isTold else { return }
        broadcast.send(.nowPlayingItem(persistentID: track.map { _ in metadata["sessiond:item"]?.uint64Value ?? 0 }))
    }

    // MARK: Queue

    /// Loads the items of the query in its order, at most 10,000. Nothing plays until ``play()``.
    /// - Throws: `NotFound` if the query has no items; the queue then stays unchanged.
    public func setQueue(with query: MediaQuery) async throws(SessionError) {
        let answer = try await library.client.ask("Uris", [query.wire, .uint32(0)])
        try await load(answer.first?.arrayValue ?? [], at: 0)
    }

    /// Loads the items of a collection.
    public func setQueue(with collection: MediaItemCollection) async throws(SessionError) {
        switch collection.contents {
        case .items(let items): try await setQueue(with: items)
        case .query(let query): try await setQueue(with: query)
        }
    }

    /// Loads items. `first` is the index of the item that plays first.
    /// - Throws: `NotFound` if there are no items, `BadParameter` if `first` is not an index of them.
    public func setQueue(with items: [MediaItem], startingAt first: Int = 0) async throws(SessionError) {
        try await load(items.map(\.entry), at: first)
    }

    /// Loads files or streams: paths, URIs or URLs. They need not be in the library.
    /// - Throws: `NotFound` if there are none, `BadParameter` if `first` is not an index of them.
    public func setQueue(with urls: [some MediaAddress], startingAt first: Int = 0) async throws(SessionError) {
        try await load(urls.map { .properties([("uri", .string(MediaPath.uri($0)))]) }, at: first)
    }

    private func load(_ entries: [Value], at first: Int) async throws(SessionError) {
        guard !entries.isEmpty else { throw SessionError(.notFound, "there is nothing to play") }
        guard let first = UInt32(exactly: first) else {
            throw SessionError(.badParameter, "there is no item \(first): the first one is 0")
        }
        try await client.ask("LoadItems", [.array(of: "a{sv}", entries), .uint32(first)])
    }

    /// The item that plays or will play next; nil: the queue is empty.
    public var nowPlayingItem: MediaItem? {
        get async throws(SessionError) {
            let value = try await client.get("Metadata", of: Self.mpris.interface, at: Self.mpris.path)
            guard let metadata = value.asProperties, metadata["mpris:trackid"] != nil else { return nil }
            let id = metadata["sessiond:item"]?.uint64Value ?? 0
            if id > 0, let item = try? await library.item(id) { return item }
            return MediaItem(metadata: metadata)
        }
    }

    /// Moves to the first such item in the queue. It plays if the player was playing.
    /// - Throws: `NotFound` if it is not in the queue.
    public func setNowPlayingItem(_ item: MediaItem) async throws(SessionError) {
        let rows = try await client.ask("Items").first?.arrayValue ?? []
        let place = rows.lazy.compactMap(\.asProperties).first { row in
            item.persistentID > 0
                ? row["item"]?.uint64Value == item.persistentID : row["uri"]?.stringValue == item.assetURL
        }
        guard let path = place?["id"] else { throw SessionError(.notFound, "'\(item.title)' is not in the queue") }
        try await client.ask("GoTo", [path])
    }

    /// The index of the item in the queue, from 0; nil: the queue is empty.
    public var indexOfNowPlayingItem: Int? {
        get async throws(SessionError) {
            let index = try await client.get("IndexOfCurrentItem").uint32Value
            return index.flatMap { $0 == .max ? nil : Int($0) }
        }
    }
}
