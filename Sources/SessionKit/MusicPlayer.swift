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
    /// A player for this program alone, which ends with the program. It is silent while the program is in the
    /// background.
    public static let applicationMusicPlayer = MusicPlayer(.application)

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

    private let kind: Kind
    private let library: MediaLibrary
    private let client: PluginClient
    private let bus: BusAddress
    private let broadcast = Broadcast<Change>()
    private var told = Told()

    /// The last known values, and the properties that have changed since the player was found.
    private struct Told {
        var state: PlaybackState?
        /// The path of the item in the queue, which identifies it.
        var track: String?
        var isPrepared: Bool?
        var isNew: Set<String> = []
    }

    private static let mpris = (path: "/org/mpris/MediaPlayer2", interface: "org.mpris.MediaPlayer2.Player")

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
        let source: PluginClient.Source
        switch kind {
        case .system: source = .shared(uri: "")
        case .application:
            let name = name ?? OwnProcess.programName
            source = .own(arguments: ["--name", name, "--category", category.rawValue], environment: environment)
        }
        client = PluginClient(.player, on: bus, source)
    }

    deinit { broadcast.finish() }

    /// Ends an application player. It can be used again, with an empty queue. The system player plays on.
    public func close() async { if kind == .application { await client.close() } }

    // MARK: Changes

    /// Every change from now on. Reading the sequence corresponds to beginGeneratingPlaybackNotifications on iOS.
    public nonisolated var changes: AsyncStream<Change> {
        let stream = broadcast.stream()
        Task { await follow() }
        return stream
    }

    private func follow() async {
        await client.follow { [weak self] news in self?.assumeIsolated { $0.heard(news) } }
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
    private static func state(_ word: String) -> PlaybackState { PlaybackState(rawValue: word) ?? .stopped }

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

    // MARK: State

    public var playbackState: PlaybackState {
        get async throws(SessionError) { Self.state(try await client.get("State").stringValue ?? "") }
    }

    public var repeatMode: RepeatMode {
        get async throws(SessionError) {
            RepeatMode(rawValue: try await client.get("RepeatMode").stringValue ?? "") ?? .none
        }
    }

    public func setRepeatMode(_ mode: RepeatMode) async throws(SessionError) {
        try await set("RepeatMode", mode == .default ? nil : mode.rawValue)
    }

    public var shuffleMode: ShuffleMode {
        get async throws(SessionError) {
            ShuffleMode(rawValue: try await client.get("ShuffleMode").stringValue ?? "") ?? .off
        }
    }

    public func setShuffleMode(_ mode: ShuffleMode) async throws(SessionError) {
        try await set("ShuffleMode", mode == .default ? nil : mode.rawValue)
    }

    /// Nil: the value of the system player.
    private func set(_ property: String, _ word: String?) async throws(SessionError) {
        if let word { return try await client.set(property, .string(word)) }
        guard kind == .application else { return }
        let system = PluginClient(.player, on: bus, .shared(uri: ""))
        try await client.set(property, try await system.get(property))
    }

    /// Seconds since the start of the item.
    public var currentPlaybackTime: Double {
        get async throws(SessionError) { try await client.get("Position").doubleValue ?? 0 }
    }

    /// - Throws: `BadParameter` for a negative time, or if the queue is empty.
    public func setCurrentPlaybackTime(_ seconds: Double) async throws(SessionError) {
        try await client.ask("SeekTo", [.double(seconds)])
    }

    /// 0 while it does not play, 1 at normal speed, 8 and −8 while it seeks.
    public var currentPlaybackRate: Double {
        get async throws(SessionError) { try await client.get("CurrentRate").doubleValue ?? 0 }
    }

    /// 0 pauses, 0.5…2 plays.
    public func setCurrentPlaybackRate(_ rate: Double) async throws(SessionError) {
        guard rate != 0 else { return try await pause() }
        try await client.set("Rate", .double(rate))
        try await play()
    }

    /// 0…1; the volume of this player only.
    public var volume: Double { get async throws(SessionError) { try await client.get("Volume").doubleValue ?? 1 } }

    public func setVolume(_ volume: Double) async throws(SessionError) {
        try await client.set("Volume", .double(volume))
    }

    /// Whether the item can start to play without a delay.
    public var isPreparedToPlay: Bool {
        get async throws(SessionError) { try await client.get("ItemStatus").stringValue == "ready" }
    }

    // MARK: Control

    /// Opens the item. ``play()`` does this itself.
    /// - Returns: whether it can be played.
    @discardableResult
    public func prepareToPlay() async throws(SessionError) -> Bool {
        try await client.ask("Prepare").first?.boolValue ?? false
    }

    /// - Throws: the reason why the session may not play, such as `InsufficientPriority` during a call;
    ///   `CannotStartPlaying` if the queue is empty.
    public func play() async throws(SessionError) { try await client.ask("Play") }
    public func pause() async throws(SessionError) { try await client.ask("Pause") }
    /// Stops, and goes back to the start of the item.
    public func stop() async throws(SessionError) { try await client.ask("Stop") }

    /// Moves to the next item. It plays if the player was playing. At the end of the queue nothing happens.
    public func skipToNextItem() async throws(SessionError) { try await client.ask("Next") }
    /// Moves to the previous item. It plays if the player was playing. At the start of the queue nothing happens.
    public func skipToPreviousItem() async throws(SessionError) { try await client.ask("Previous") }
    public func skipToBeginning() async throws(SessionError) { try await client.ask("SkipToBeginning") }

    /// Moves forward at eight times the speed without sound, until ``endSeeking()`` or the end of the item.
    /// - Throws: `CannotStartPlaying` if nothing plays.
    public func beginSeekingForward() async throws(SessionError) {
        try await client.ask("BeginSeeking", [.string("forward")])
    }

    /// Moves backward at eight times the speed without sound, until ``endSeeking()`` or the start of the item.
    /// - Throws: `CannotStartPlaying` if nothing plays.
    public func beginSeekingBackward() async throws(SessionError) {
        try await client.ask("BeginSeeking", [.string("backward")])
    }

    public func endSeeking() async throws(SessionError) { try await client.ask("EndSeeking") }
}
