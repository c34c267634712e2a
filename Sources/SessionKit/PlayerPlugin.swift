public import DBus
public import EventLoop
public import PluginAPI
import SessionBus

/// A player for the session service: an engine, a session that decides when it may play, and both on the bus.
///
/// Implements `org.sessiond1.Player` and MPRIS. Rules for every engine: sound starts only when the daemon has activated
/// the session. An interruption pauses at once. The player resumes only with the should-resume hint, if it was playing
/// and was not used since. Pause and stop by the user, the end of an item and its failure deactivate the session at
/// once with notify-others: a silent player must not keep others silent.
public final class PlayerPlugin: Plugin {
    /// Called once, on the loop's thread; during the call if the daemon need not be asked.
    public typealias Reply = (Result<Void, Failure>) -> Void

    /// The plugin owns its callbacks from the initializer on.
    public let engine: any PlayerEngine
    /// The plugin owns its ``AudioSessionClient/onEvent`` from the initializer on.
    public let session: AudioSessionClient
    /// The item ended after all its loops; called after the signal was sent.
    public var onFinished: ((Bool) -> Void)?
    /// The item cannot be played; the message says why.
    public var onFailed: ((String) -> Void)?
    /// The sound server went away while the item was loaded, or was missing; the message says what happened.
    public var onServicesLost: ((String) -> Void)?
    /// MPRIS's Quit.
    public var onQuit: (() -> Void)?

    let connection: Connection
    let identity: String
    var queue = PlayQueue()
    var tags = MediaTags()
    /// The URI of the item's cover file; empty for none.
    var artURI = ""
    lazy var covers = CoverCache()
    /// Loaded data, by the URI under which the engine knows it; kept while it is in the queue.
    var memory: [String: MemoryFile] = [:]
    lazy var positionClock = PositionClock(on: loop) { [unowned self] in tellPosition() }
    var trackListTold = TrackListTold()
    /// Callers that wait to know whether the item can be played.
    var preparing: [(Bool) -> Void] = []

    /// Between `began` and `ended`.
    struct Interruption {
        /// It was playing, or was asked to play since, and was not paused.
        var resumes: Bool
        /// When it was to start, if it had not started yet.
        var start: UInt64?
    }
    var interruption: Interruption?
    /// It was paused because its output was unplugged, and was not used since: it resumes when the output is back.
    var resumesOnReplug = false
    /// Counts requests to play, pause or stop: the answer to an outdated request is ignored.
    var orders: UInt64 = 0
    var wantsSound = false
    /// When the sound is to start; the session is already active (``MonotonicClock``).
    var start: UInt64?
    var isServerAway = false
    var failure = ""
    /// A playlist could not be expanded: the engine has no item that could have failed.
    var isListFailed = false
    var hasFailed: Bool { engine.state == .failed || isListFailed }
    private var changeDepth = 0
    private var announcements: [Announcement<PlayerPlugin>] = []
    lazy var starter = Timer(on: loop) { [unowned self] in startNow() }
    lazy var lull = Timer(on: loop) { [unowned self] in giveBack(notifyOthers: true) }
    lazy var hold = Timer(on: loop) { [unowned self] in engine.duck(to: 0, over: session.ducking.release) }
    private let loop: EventLoop

    /// Longer than any path or URL that file systems and servers accept.
    private static let uriLimit = 16_384

    /// Seconds for which the session stays active when the playing item is replaced.
    ///
    /// The next item usually plays at once; other sessions should not resume in between.
    private static let lullTime = 1.0

    /// Exports the objects and creates the session. The caller owns the bus name.
    ///
    /// The objects on the connection keep this object alive.
    public init(
        _ engine: any PlayerEngine, _ description: AudioSessionClient.Description, on connection: Connection,
        _ loop: EventLoop
    ) {
        self.engine = engine
        self.connection = connection
        self.loop = loop
        identity = description.name
        // The engine makes the ramp itself, so the server remembers nothing of it.
        var description = description
        description.lowersItself = true
        session = AudioSessionClient(description, on: connection) { _ in }
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
        if let engine = engine as? any QueueingEngine {
            engine.onAdvanced = { [unowned self] in advanced() }
            engine.onPlaylist = { [unowned self] entries in opened(entries) }
        }
        announcements = export()
    }

    /// The state, with the name on the bus.
    public var state: PlayerState {
        hasFailed ? .failed : interruption?.resumes == true ? .interrupted : engine.state
    }

    /// Runs a change and then sends, once, the properties that it changed.
    func changing<Answer, Problem: Error>(_ body: () throws(Problem) -> Answer) throws(Problem) -> Answer {
        changeDepth += 1
        defer {
            if changeDepth == 1 { settle() }
            changeDepth -= 1
        }
        return try body()
    }

    /// Derives all properties from the current state and sends the changed ones.
    private func settle() {
        if let engine = engine as? any QueueingEngine {
            let following = hasFailed ? nil : queue.following?.entry.uri
            if engine.following != following { engine.following = following }
        }
        positionClock.run(engine.state == .playing)
        for announcement in announcements { announcement.update(self) }
        tellTrackList()
        answerPreparations()
    }

    // MARK: Requests

    /// Replaces all items, without playing. Errors of an item are sent as `Failed`.
    /// - Parameter start: the index of the first item to play.
    public func load(_ entries: [PlaylistEntry], startingAt start: Int = 0) throws(Failure) {
        try check(entries)
        guard entries.isEmpty || entries.indices.contains(start) else {
            throw Failure(.badParameter("item \(start) of \(entries.count): there is none"))
        }
        changing {
            order(sound: false)
            interruption?.resumes = false
            queue.replaceAll(with: entries, startingAt: start)
            open(sounding: false)
            if session.state == .active { lull.arm(after: PlayerPlugin.lullTime) }
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
    }

    /// Whether the session is active, play was requested, and sound is due now.
    var sounds: Bool { wantsSound && interruption == nil && start == nil && session.state == .active }

    /// Loads the queue's current item into the engine. If the previous item played, this one plays.
    func open(sounding: Bool) {
        (tags, artURI, isListFailed) = (MediaTags(), "", false)
        memory = memory.filter { held in queue.items.contains { $0.entry.uri == held.key } }
        guard let item = queue.current else { return engine.unload() }
        engine.load(uri: item.entry.uri)
        if sounding { _ = begin(at: nil) }
    }

    /// The queue has no further item, or another one: the sound ends.
    func openOrEnd(sounding: Bool) {
        if queue.current == nil, sounding {
            order(sound: false)
            giveBack(notifyOthers: true)
        }
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
        lull.disarm()
        if engine.state == .playing, start == nil { return reply(.success(())) }
        changing { order(sound: true) }
        let mine = orders
        session.activate { [weak self] result in
            guard let self else { return }
            reply(changing { self.answered(result, to: mine, start) })
        }
    }

    /// Pauses and deactivates the session. If it is interrupted at that time, it will not resume by itself.
    public func pause() {
        changing {
            order(sound: false)
            engine.pause()
            // An interrupted session keeps its claim: if a later Play is refused, it still learns of the end.
            if interruption != nil { interruption?.resumes = false } else { giveBack(notifyOthers: true) }
        }
    }

    /// Stops, returns to the beginning, and deactivates the session.
    public func stop() {
        changing {
            order(sound: false)
            interruption = nil
            engine.stop()
            giveBack(notifyOthers: true)
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
        changing { engine.seek(to: seconds) }
    }

    public func end(_ done: @escaping () -> Void) {
        order(sound: false)
        engine.unload()
        giveBack(notifyOthers: true)
        session.close { _ in }
        connection.flush()
        done()
    }

    func order(sound: Bool) {
        orders &+= 1
        wantsSound = sound
        resumesOnReplug = false
        start = nil
        starter.disarm()
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
        guard !isServerAway else {
            throw SessionError(.mediaServicesFailed, "no sound server: play again when it is back")
        }
    }

    // MARK: Answers of the daemon

    func answered(_ result: Result<Void, Failure>, to order: UInt64, _ start: UInt64?) -> Result<Void, Failure> {
        switch result {
        case .failure:
            if order == orders {
                wantsSound = false
                // The request stays valid after the refusal if an interruption is the reason.
                if interruption != nil { interruption = Interruption(resumes: true, start: start) }
            }
            return result
        case .success:
            guard order == orders else {
                // Paused, stopped or failed before the daemon answered.
                if !wantsSound {
                    interruption = nil
                    giveBack(notifyOthers: true)
                }
                if hasFailed { return .failure(Failure(SessionError(.cannotStartPlaying, failure))) }
                return result
            }
            return begin(at: start)
        }
    }

    /// The session is active.
    private func begin(at start: UInt64?) -> Result<Void, Failure> {
        interruption = nil
        if let start, start > MonotonicClock.now() {
            engine.pause()
            self.start = start
            starter.arm(at: start)
            return .success(())
        }
        do throws(SessionError) {
            try engine.play()
            return .success(())
        } catch {
            wantsSound = false
            giveBack(notifyOthers: true)
            return .failure(Failure(error))
        }
    }

    private func startNow() { changing { if start != nil { _ = begin(at: nil) } } }

    func giveBack(notifyOthers: Bool) {
        lull.disarm()
        session.deactivate(notifyOthers: notifyOthers)
    }
}
