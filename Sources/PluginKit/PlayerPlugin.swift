public import DBus
public import EventLoop
import MediaValues
public import PluginAPI
import SessionBus
public import SessionKit

/// A player as the session service knows it: an engine, a session that decides when it may sound, and both on the bus.
///
/// Serves `org.sessiond1.Player` and MPRIS. Decides, for any engine: sound starts only once the daemon has granted it;
/// an interruption pauses at once; it goes on only where the daemon recommends it, it was playing, and nobody touched
/// it since. Pausing and stopping by hand, the end of an item and its failure give the sound back at once and
/// recommend to those who waited that they resume: a silent player has no claim to the silence of others.
public final class PlayerPlugin: Plugin {
    /// Called once, on the loop's thread; from inside the call where the daemon need not be asked.
    public typealias Reply = (Result<Void, Failure>) -> Void

    /// Its callbacks are the plugin's from the initializer on.
    public let engine: any PlayerEngine
    /// Its ``AudioSessionClient/onEvent`` is the plugin's from the initializer on.
    public let session: AudioSessionClient
    /// The item ended after all its loops; after the signal went out.
    public var onFinished: ((Bool) -> Void)?
    /// The item cannot be played; the message says why.
    public var onFailed: ((String) -> Void)?
    /// The sound server went away while the item was loaded, or was not there; the message says what happened.
    public var onServicesLost: ((String) -> Void)?
    /// MPRIS's Quit.
    public var onQuit: (() -> Void)?

    let connection: Connection
    let identity: String
    var queue = PlayQueue()
    var tags = MediaTags()
    /// Where the item's cover lies for others to look at; empty for none.
    var artURI = ""
    lazy var covers = CoverCache()
    /// What bytes were loaded, by the URI the engine has them by; kept while they are in the queue.
    var memory: [String: MemoryFile] = [:]
    lazy var positionClock = PositionClock(on: loop) { [unowned self] in tellPosition() }
    var trackListTold = TrackListTold()
    /// Those who wait to hear whether the item can be played.
    var preparing: [(Bool) -> Void] = []

    /// When it may be heard; changed by ``take(_:)`` alone.
    private(set) var grant = Grant(resumesOnReplug: true)
    var failure = ""
    /// A list could not be taken apart: the engine holds nothing that could have failed.
    var isListFailed = false
    var hasFailed: Bool { engine.state == .failed || isListFailed }
    /// Who waits for the answer to the order that is given next.
    private var answers: Reply?
    private var changeDepth = 0
    private var announcements: [Announcement<PlayerPlugin>] = []
    private lazy var starter = Timer(on: loop) { [unowned self] in changing { _ = take(.due) } }
    private lazy var lull = Timer(on: loop) { [unowned self] in _ = take(.lingered) }
    lazy var hold = Timer(on: loop) { [unowned self] in engine.duck(to: 0, over: session.ducking.release) }
    private let loop: EventLoop

    /// Longer than any file system's or server's.
    private static let uriLimit = 16_384

    /// How long the sound is kept when the item that played is replaced, in seconds.
    ///
    /// The next one plays at once as a rule; others should not be woken for the moment between.
    private static let lullTime = 1.0

    /// Exports the objects and asks the daemon for the session. The bus name is the caller's to claim.
    ///
    /// The connection's objects keep it alive.
    public init(
        _ engine: any PlayerEngine, _ description: AudioSessionClient.Description, on connection: Connection,
        _ loop: EventLoop
    ) {
        self.engine = engine
        self.connection = connection
        self.loop = loop
        identity = description.name
        // The engine ramps, without a trace in what the server remembers.
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

    /// What it is doing, as the bus has it.
    public var state: PlayerState {
        hasFailed ? .failed : grant.isInterrupted ? .interrupted : engine.state
    }

    /// Runs a change and then tells, once, which properties it changed.
    func changing<Answer, Problem: Error>(_ body: () throws(Problem) -> Answer) throws(Problem) -> Answer {
        changeDepth += 1
        defer {
            if changeDepth == 1 { settle() }
            changeDepth -= 1
        }
        return try body()
    }

    /// What follows from what is now, and what of it is news.
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

    // MARK: Orders

    /// Replaces all there is to play, silent. What is wrong with an item comes as `Failed`.
    /// - Parameter start: the place of the item to begin with.
    public func load(_ entries: [PlaylistEntry], startingAt start: Int = 0) throws(Failure) {
        try check(entries)
        guard entries.isEmpty || entries.indices.contains(start) else {
            throw Failure(.badParameter("item \(start) of \(entries.count): there is none"))
        }
        changing {
            _ = take(.replaced)
            queue.replaceAll(with: entries, startingAt: start)
            open(sounding: false)
        }
    }

    /// The same for one item.
    public func load(uri: String) throws(Failure) { try load([PlaylistEntry(uri: uri)]) }

    func check(_ entries: [PlaylistEntry]) throws(Failure) {
        let category = session.description.category
        guard category.playerMay.prepare else {
            throw Failure(
                SessionError(.incompatibleCategory, "nothing is played in category '\(category.rawValue)'"))
        }
        guard entries.allSatisfy({ $0.uri.utf8.count <= PlayerPlugin.uriLimit }) else {
            throw Failure(.badParameter("the URI is longer than \(PlayerPlugin.uriLimit) bytes"))
        }
        guard entries.count <= PlayQueue.limit else {
            throw Failure(
                SessionError(.resourceNotAvailable, "\(entries.count) items: \(PlayQueue.limit) is the limit"))
        }
    }

    /// Whether the sound is ours, wanted, and to be heard now.
    var sounds: Bool { grant.sounds && session.state == .active }

    /// Makes the queue's current item the engine's. Where it sounded before it goes on with this one.
    func open(sounding: Bool) {
        (tags, artURI, isListFailed) = (MediaTags(), "", false)
        memory = memory.filter { held in queue.items.contains { $0.entry.uri == held.key } }
        if !sounding { _ = take(.fellSilent) }
        guard let item = queue.current else { return engine.unload() }
        engine.load(uri: item.entry.uri)
        if sounding { _ = take(.goesOn) }
    }

    /// The queue has nothing more to play, or something else: what sounded is over.
    func openOrEnd(sounding: Bool) {
        if queue.current == nil, sounding { _ = take(.finished) }
        open(sounding: sounding)
    }

    /// Asks for the sound, then plays from where it is; fails with the daemon's refusal, and nothing sounds.
    /// - Parameter start: when the first sample is to be heard, of `MonotonicClock`; nil or past: at once.
    public func play(at start: UInt64? = nil, _ reply: @escaping Reply) {
        do throws(SessionError) {
            try checkMayPlay()
        } catch {
            return reply(.failure(Failure(error)))
        }
        if engine.state == .playing, start == nil { return reply(.success(())) }
        answers = reply
        changing { _ = take(.wants(at: start)) }
    }

    /// Silent, keeping its place; the sound is given back. Paused while interrupted, it does not go on by itself.
    public func pause() {
        changing { _ = take(.paused) }
    }

    /// Silent and back at the beginning; the sound is given back.
    public func stop() {
        changing {
            engine.stop()
            _ = take(.stopped)
        }
    }

    /// Goes to that many seconds from the beginning.
    /// - Throws: `BadParameter` for what is negative, or where nothing is loaded.
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
        engine.unload()
        _ = take(.stopped)
        session.close { _ in }
        connection.flush()
        done()
    }

    private func checkMayPlay() throws(SessionError) {
        let category = session.description.category
        guard category.playerMay.play else {
            throw SessionError(.cannotStartPlaying, "nothing is played in category '\(category.rawValue)'")
        }
        guard !hasFailed else {
            throw SessionError(.cannotStartPlaying, "what is loaded failed: \(failure)")
        }
        guard engine.uri != nil else {
            throw SessionError(.cannotStartPlaying, "nothing is loaded: load a file first")
        }
        guard !grant.isServerAway else {
            throw SessionError(.mediaServicesFailed, "the sound server is away: play again when it is back")
        }
    }

    // MARK: The claim to the sound

    /// Carries out what follows; where the engine does not start, with its refusal.
    func take(_ input: Grant.Input) -> Result<Void, Failure> { carry(out: grant.handle(input)) }

    /// For what must be told between the change and what follows from it.
    func decide(_ input: Grant.Input) -> [Grant.Effect] { grant.handle(input) }

    @discardableResult
    func carry(out effects: [Grant.Effect]) -> Result<Void, Failure> {
        var result: Result<Void, Failure> = .success(())
        for effect in effects {
            switch effect {
            case .activate(let order): activate(order)
            case .deactivate(let notifyOthers): session.deactivate(notifyOthers: notifyOthers)
            case .start:
                do throws(SessionError) {
                    try engine.play()
                } catch {
                    _ = take(.startFailed)
                    result = .failure(Failure(error))
                }
            case .silence: engine.pause()
            case .wait(let time): starter.arm(at: time)
            case .linger: lull.arm(after: PlayerPlugin.lullTime)
            }
        }
        if case .due = grant.state {} else { starter.disarm() }
        if grant.state != .lingering { lull.disarm() }
        return result
    }

    private func activate(_ order: UInt64) {
        let reply = answers
        answers = nil
        session.activate { [weak self] result in
            guard let self else { return }
            let answer = changing { self.answered(result, to: order) }
            reply?(answer)
        }
    }

    private func answered(_ result: Result<Void, Failure>, to order: UInt64) -> Result<Void, Failure> {
        guard case .success = result else {
            _ = take(.refused(order: order))
            return result
        }
        let isLate = order != grant.order
        let started = take(.granted(order: order, now: MonotonicClock.now()))
        if isLate, hasFailed { return .failure(Failure(SessionError(.cannotStartPlaying, failure))) }
        return started
    }
}
