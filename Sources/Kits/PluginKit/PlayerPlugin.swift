public import DBus
public import EventLoop
import MediaValues
public import PluginAPI
import SessionBus
public import SessionKit

/// A player for the session service: an engine, a session that decides when it may play, and both on the bus.
///
/// Implements `org.sessiond1.Player` and MPRIS. Rules for every engine: sound starts only when the daemon has activated
/// the session. An interruption pauses at once. The player resumes only with the should-resume hint, if it was playing
/// and was not used since. Pause and stop by the user, the end of an item and its failure deactivate the session at
/// once with notify-others, because a silent player must not keep others silent.
public final class PlayerPlugin: Plugin {
    public typealias Reply = GrantDriver.Reply

    /// The plugin owns its callbacks from the initializer on.
    public let engine: any PlayerEngine
    /// The plugin owns its ``AudioSessionClient/onEvent`` from the initializer on.
    public let session: AudioSessionClient
    /// The item ended after all its loops; called after the signal was sent.
    public var onFinished: ((Bool) -> Void)?
    /// The item cannot be played; the message gives the reason.
    public var onFailed: ((String) -> Void)?
    /// The sound server stopped while the item was loaded, or was missing; the message gives the reason.
    public var onServicesLost: ((String) -> Void)?
    /// Its state may have changed; called after the changed properties were sent.
    public var onSettled: (() -> Void)?
    /// An item was given to the engine, or the queue has none any more.
    /// - Parameter start: where the item begins by its entry, in seconds.
    public var onOpened: ((_ start: Double) -> Void)?
    /// It is known that the item can be played, and a client waited for that (`Prepare`).
    public var onPrepared: (() -> Void)?
    /// MPRIS's Quit.
    public var onQuit: (() -> Void)?

    /// Where its object is; MPRIS has a path of its own.
    public let path: String
    let connection: Connection
    let identity: String
    var queue = PlayQueue()
    var tags = MediaTags()
    /// The URI of the item's cover file; empty for none.
    var artURI = ""
    lazy var covers = CoverCache()
    /// Loaded data, by the URI under which the engine knows it; kept while it is in the queue.
    var memory: [String: MemoryFile] = [:]
    /// Keeps the queue on the disk; nil: it ends with the process.
    public var keeper: QueueKeeper?
    /// It winds forward or backward.
    var seeking: Seeking? {
        didSet { if (seeking == nil) != (oldValue == nil) { seekingChanged() } }
    }
    lazy var seekingTimer = Timer(on: loop) { [unowned self] in wind() }
    lazy var positionClock = PositionClock(on: loop) { [unowned self] in tellPosition() }
    var trackListTold = TrackListTold()
    /// Nil: it offers none.
    var playlists: PlaylistShelf?
    /// The playlist whose items were loaded last.
    var activePlaylist: PlaylistShelf.Entry?
    /// Callers that wait to know whether the item can be played.
    var preparing: [(Bool) -> Void] = []

    /// Decides when it may play, and starts the engine.
    let driver: GrantDriver
    var grant: Grant { driver.grant }
    var failure = ""
    /// A playlist could not be expanded: the engine has no item that could have failed.
    var isListFailed = false
    var hasFailed: Bool { engine.state == .failed || isListFailed }
    private var changeDepth = 0
    private var announcements: [Announcement<PlayerPlugin>] = []
    /// Export further interfaces at the path.
    var further: [(ObjectTable, String) -> Void] = []
    private(set) var isServed = false
    lazy var hold = Timer(on: loop) { [unowned self] in engine.duck(to: 0, over: session.ducking.release) }
    let loop: EventLoop

    /// Longer than any path or URL that file systems and servers accept.
    private static let uriLimit = 16_384

    /// Seconds for which the session stays active when the playing item is replaced.
    ///
    /// The next item usually plays at once; other sessions should not resume in between.
    private static let linger = 1.0

    /// Creates the session. The caller owns the bus name, and calls ``serve()``.
    ///
    /// A connection has one player, because MPRIS has one path.
    /// - Parameters:
    ///   - kind: the kind with the path of the object.
    ///   - path: another path for it.
    public init(
        _ engine: any PlayerEngine, _ description: AudioSessionClient.Description, kind: PluginKind = .player,
        at path: String? = nil, on connection: Connection, _ loop: EventLoop
    ) {
        self.engine = engine
        self.path = path ?? kind.objectPath
        self.connection = connection
        self.loop = loop
        identity = description.name
        // The engine itself makes the ramp, so the server does not remember it.
        var description = description
        description.lowersItself = true
        session = AudioSessionClient(description, on: connection) { _ in }
        driver = GrantDriver(session, linger: PlayerPlugin.linger, resumesOnReplug: true, on: loop)
        driver.changing = { [unowned self] body in changing(body) }
        driver.onStart = { [unowned self] () throws(Failure) in try start() }
        driver.onSilence = { [engine] in engine.pause() }
        driver.failureOfEngine = { [unowned self] in
            hasFailed ? Failure(SessionError(.cannotStartPlaying, failure)) : nil
        }
        session.onEvent = { [unowned self] event in changing { heard(event) } }
        engine.onStateChanged = { [unowned self] _ in changing {} }
        engine.onItemChanged = { [unowned self] in changing {} }
        engine.onTags = { [unowned self] tags in changing { learned(tags) } }
        engine.onSeeked = { [unowned self] position in
            changing {}
            emitSeeked(position)
        }
        engine.onFinished = { [unowned self] success in finished(success) }
        engine.onFailed = { [unowned self] message in failed(message) }
        engine.onServicesLost = { [unowned self] message in changing { servicesLost(message) } }
        if let engine = engine.queueing {
            engine.onAdvanced = { [unowned self] in advanced() }
            engine.onPlaylist = { [unowned self] entries in opened(entries) }
        }
    }

    /// Serves the player on the bus: from now on the objects on the connection keep it alive. ``PluginHost`` and
    /// ``PluginProgram`` call it; does nothing the second time.
    public func serve() {
        guard !isServed else { return }
        announcements = export()
        isServed = true
    }

    /// The state, with the name on the bus.
    public var state: PlayerState {
        hasFailed ? .failed : grant.isInterrupted ? .interrupted : engine.state
    }

    /// Runs a change and then sends, once, the properties that it changed.
    package func changing<Answer, Problem: Error>(_ body: () throws(Problem) -> Answer) throws(Problem) -> Answer {
        changeDepth += 1
        defer {
            if changeDepth == 1 { settle() }
            changeDepth -= 1
        }
        return try body()
    }

    /// Derives all properties from the current state and sends the changed ones.
    private func settle() {
        if let engine = engine.queueing {
            // What begins at its bookmark is loaded when it is its turn.
            let following = hasFailed ? nil : queue.following?.entry
            let uri = following?.start == 0 ? following?.uri : nil
            if engine.following != uri { engine.following = uri }
        }
        if engine.state != .playing { seeking = nil }
        keeper?.settled(self)
        positionClock.run(engine.state == .playing)
        if isServed {
            for announcement in announcements { announcement.update(self) }
            tellTrackList()
        }
        answerPreparations()
        onSettled?()
    }

    // MARK: Requests

    /// Replaces all items, without playing. Errors of an item are sent as `Failed`.
    /// - Parameter start: the index of the first item to play.
    public func load(_ entries: [PlaylistEntry], startingAt start: Int = 0) throws(Failure) {
        try check(entries)
        guard entries.isEmpty || entries.indices.contains(start) else {
            throw Failure(.badParameter("there is no item \(start): the list has \(entries.count)"))
        }
        changing {
            driver.take(.replaced)
            queue.replaceAll(with: entries, startingAt: start)
            activePlaylist = nil
            open(sounding: false)
        }
    }

    /// The same for one item.
    public func load(uri: String) throws(Failure) { try load([PlaylistEntry(uri: uri)]) }

    func check(_ entries: [PlaylistEntry]) throws(Failure) {
        let category = session.description.category
        guard category.playerMay.prepare else {
            throw Failure(
                SessionError(.incompatibleCategory, "playback is not allowed in category '\(category.rawValue)'"))
        }
        guard entries.allSatisfy({ $0.uri.utf8.count <= PlayerPlugin.uriLimit }) else {
            throw Failure(.badParameter("the URI is longer than \(PlayerPlugin.uriLimit) bytes"))
        }
        guard entries.count <= PlayQueue.limit else {
            throw Failure(
                SessionError(.resourceNotAvailable, "\(entries.count) items; the limit is \(PlayQueue.limit)"))
        }
        let size = entries.reduce(0) { $0 + $1.size }
        guard size <= PlayQueue.byteLimit else { throw Self.tooLong(size) }
    }

    static func tooLong(_ size: Int) -> Failure {
        Failure(
            SessionError(
                .resourceNotAvailable,
                "the texts of the queue would have \(size) bytes; the limit is \(PlayQueue.byteLimit >> 20) MiB"))
    }

    /// Whether it plays. While the daemon is away, its session is not active, but it plays on.
    var sounds: Bool { grant.sounds }

    /// Loads the queue's current item into the engine. If the previous item played, this one plays.
    func open(sounding: Bool) {
        (tags, artURI, isListFailed, seeking) = (MediaTags(), "", false, nil)
        if !memory.isEmpty {
            let uris = Set(queue.items.map(\.entry.uri))
            memory = memory.filter { uris.contains($0.key) }
        }
        if !sounding { driver.take(.fellSilent) }
        let start = queue.current?.entry.start ?? 0
        defer { onOpened?(start) }
        guard let item = queue.current else { return engine.unload() }
        engine.load(uri: item.entry.uri)
        if item.entry.start > 0 {
            engine.seek(to: item.entry.start)
            // Only once: repeated, it begins at its beginning.
            queue.setStart(item.id, 0)
        }
        if sounding { driver.take(.goesOn) }
    }

    /// The queue has no further item, or another one: the sound ends.
    func openOrEnd(sounding: Bool) {
        if queue.current == nil, sounding { driver.take(.finished) }
        open(sounding: sounding)
    }

    /// Activates the session, then plays from the current position; fails with the daemon's refusal, without sound.
    /// - Parameter start: when the first sample is heard, in `MonotonicClock` time; nil or past: at once.
    public func play(at start: UInt64? = nil, _ reply: @escaping Reply) {
        do throws(SessionError) {
            try checkMayPlay()
        } catch {
            return reply(.failure(Failure(error)))
        }
        if engine.state == .playing, start == nil { return reply(.success(())) }
        driver.ask(at: start, reply)
    }

    /// Pauses and deactivates the session. If it is interrupted at that time, it will not resume automatically.
    public func pause() {
        changing {
            seeking = nil
            driver.take(.paused)
        }
    }

    /// Stops, returns to the beginning, and deactivates the session.
    public func stop() {
        changing {
            seeking = nil
            engine.stop()
            driver.take(.stopped)
        }
    }

    /// Seeks to that position in seconds.
    /// - Throws: `BadParameter` for a negative position, or if nothing is loaded.
    public func seek(to seconds: Double) throws(Failure) {
        guard seconds >= 0, seconds < 1e9 else {
            throw Failure(.badParameter("position \(seconds) s: it must be 0 or more"))
        }
        guard engine.uri != nil, !hasFailed else {
            throw Failure(.badParameter("nothing is loaded to seek in: load a file first"))
        }
        changing {
            seeking = nil
            engine.seek(to: seconds)
        }
    }

    public func end(_ done: @escaping () -> Void) {
        keeper?.save(self, isLast: true)
        keeper = nil
        engine.unload()
        driver.take(.stopped)
        session.close { _ in }
        connection.flush()
        done()
    }

    private func checkMayPlay() throws(SessionError) {
        let category = session.description.category
        guard category.playerMay.play else {
            throw SessionError(.cannotStartPlaying, "playback is not allowed in category '\(category.rawValue)'")
        }
        guard !hasFailed else {
            throw SessionError(.cannotStartPlaying, "the loaded item failed: \(failure)")
        }
        guard engine.uri != nil else {
            throw SessionError(.cannotStartPlaying, "nothing is loaded: load a file first")
        }
        guard !grant.isServerAway else {
            throw SessionError(.mediaServicesFailed, "no sound server: play again when it is back")
        }
    }

    private func start() throws(Failure) {
        do throws(SessionError) {
            try engine.play()
        } catch {
            throw Failure(error)
        }
    }
}
