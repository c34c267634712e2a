import DBus
import EventLoop
import PluginAPI
import SessionBus
import Synchronization

/// What ``AudioPlayer`` and ``Player`` have in common: the settings of the app and the last known values of the player,
/// which can be read at once from any thread, and the player itself.
final class Playback: Sendable {
    /// Set by the app; sent to the player when they differ from what it has.
    struct Settings: Sendable, Hashable {
        var volume = 1.0
        var pan = 0.0
        var rate = 1.0
        var loops = 0
        var isMetering = false

        var properties: [(String, Value)] {
            [
                ("Volume", .double(volume)), ("Pan", .double(pan)), ("Rate", .double(rate)),
                ("Loops", .int32(Int32(clamping: loops))), ("MeteringEnabled", .bool(isMetering)),
            ]
        }
    }

    /// The last known values of the player.
    struct Facts: Sendable {
        var isPlaying = false
        var isStalled = false
        /// Seconds, at the time `since` of CLOCK_MONOTONIC.
        var position = 0.0
        var since = 0.0
        var rate = 1.0
        /// Seconds; 0: unknown.
        var duration = 0.0
        var channels = 0
        var levels: [ChannelLevel] = []
        var status = "unknown"
        var failure: SessionError?
        var current = ObjectPath.none
        /// The number of states that the player has announced.
        var announced = 0

        func position(at time: Double) -> Double {
            guard isPlaying, !isStalled else { return position }
            let now = position + max(0, time - since) * rate
            return duration > 0 ? min(now, duration) : now
        }
    }

    enum Event: Sendable {
        case finished(Bool)
        case failed(SessionError)
        case itemFinished(String)
        case itemFailed(String, SessionError)
        case state
        case status
        case position
    }

    let settings = Mutex(Settings())
    let facts = Mutex(Facts())
    let events = Broadcast<Event>()
    /// How many processes of the player have ended. Each has to load the sound anew.
    let ends = Mutex(0)
    private let plugin: HostedPlugin
    private let sent = Mutex<[String: Value]>([:])
    /// The player reports its position so often while it plays, in seconds.
    private static let interval = 0.25

    /// Where pictures are shown; nil: it plays sound alone.
    private let output: MoviePlayer.Output?
    /// The number of ends of the process that has been told the output.
    private let informed = Mutex(-1)
    private static let player = BusName.player

    /// - Parameter output: nil: the player of sounds plays; otherwise that of films.
    init(in session: AudioSession?, output: MoviePlayer.Output? = nil, environment: [String: String]) {
        self.output = output
        plugin = HostedPlugin(output == nil ? .player : .moviePlayer, in: session, environment: environment)
    }

    deinit { events.finish() }

    func follow() async {
        await plugin.follow({ [weak self] in self?.heard($0) }, silenced: { [weak self] in self?.silenced() })
    }

    var position: Double { facts.withLock { $0.position(at: MonotonicClock.seconds) } }

    // MARK: Requests

    /// Loads with one of the methods of `org.sessiond1.Player`; nothing plays.
    func load(_ member: String, _ arguments: [Value]) async throws(SessionError) {
        await follow()
        facts.withLock { $0 = Facts() }
        sent.withLock { $0 = [:] }
        try await inform()
        try await plugin.ask(member, arguments, of: Self.player)
        try await plugin.set("PositionInterval", .double(Self.interval), of: Self.player)
        try await send()
    }

    /// Tells a new process of the movie player where it shows films, and that the app says when they play.
    private func inform() async throws(SessionError) {
        let process = ends.withLock { $0 }
        guard let output, informed.withLock({ $0 }) != process else { return }
        try await plugin.ask("SetOutput", [.string(output.word)])
        try await plugin.set("ShouldAutoplay", .bool(false))
        informed.withLock { $0 = process }
    }

    /// Waits until the item can be played.
    /// - Throws: the reason why it cannot.
    func prepare() async throws(SessionError) {
        let isReady = try await plugin.ask("Prepare", of: Self.player).first?.boolValue ?? false
        learn(try await plugin.properties(of: Self.player))
        if isReady { return }
        throw facts.withLock(\.failure) ?? SessionError(.decodeFailed, "the item cannot be played")
    }

    /// Sends the settings that the player does not have.
    func send() async throws(SessionError) {
        for (name, value) in settings.withLock(\.properties) {
            guard sent.withLock({ $0.updateValue(value, forKey: name) }) != value else { continue }
            try await plugin.set(name, value, of: Self.player)
        }
    }

    /// Changes settings. The player gets them soon; at the next request at the latest.
    func change(_ body: (inout sending Settings) -> Void) {
        settings.withLock { body(&$0) }
        guard !sent.withLock(\.isEmpty) else { return }
        Task { try? await send() }
    }

    /// - Parameter start: the time of CLOCK_MONOTONIC at which the sound begins, in seconds; nil: at once.
    func play(at start: Double? = nil) async throws(SessionError) {
        try await send()
        if let start {
            try await plugin.sound("PlayAt", [.double(start)], of: Self.player)
        } else {
            try await plugin.sound("Play", of: Self.player)
        }
        // The answer may come before the announcement of the state.
        await learnPosition()
    }

    /// Plays something else: the session stays active meanwhile, so that nobody else begins to play.
    func playOn(after change: () async throws(SessionError) -> Void) async throws(SessionError) {
        await plugin.hold()
        do throws(SessionError) {
            try await change()
            try await play()
        } catch {
            await plugin.release(isSilent: true)
            throw error
        }
        await plugin.release()
    }

    func pause() async {
        await plugin.fallSilent("Pause", of: Self.player)
        await learnPosition()
    }

    func stop() async {
        await plugin.fallSilent("Stop", of: Self.player)
        await learnPosition()
    }

    func seek(to seconds: Double) async throws(SessionError) {
        place(seconds)
        try await plugin.ask("SeekTo", [.double(seconds)], of: Self.player)
    }

    @discardableResult
    func ask(_ member: String, _ arguments: [Value] = []) async throws(SessionError) -> [Value] {
        try await plugin.ask(member, arguments, of: Self.player)
    }

    /// The levels of the channels now; empty while metering is off.
    func meter() async {
        try? await send()
        let rows = (try? await plugin.ask("Meters", of: Self.player))?.first?.arrayValue ?? []
        let levels = rows.compactMap(\.level)
        facts.withLock { $0.levels = levels }
    }

    func place(_ seconds: Double) { facts.withLock { ($0.position, $0.since) = (seconds, MonotonicClock.seconds) } }

    private func learnPosition() async {
        let before = facts.withLock(\.announced)
        guard var fields = try? await plugin.properties(of: Self.player) else { return }
        // What was announced meanwhile may be newer.
        if facts.withLock(\.announced) != before { fields["State"] = nil }
        learn(fields)
        if let position = fields["Position"]?.doubleValue { place(position) }
    }

    // MARK: Events

    private func silenced() {
        facts.withLock { facts in
            let now = MonotonicClock.seconds
            (facts.position, facts.since) = (facts.position(at: now), now)
            facts.isPlaying = false
        }
        events.send(.state)
    }

    private func heard(_ news: PluginClient.News) {
        switch news {
        case .found: break
        case .lost:
            let error = SessionError(.mediaServicesFailed, "the player ended; play again")
            sent.withLock { $0 = [:] }
            ends.withLock { $0 += 1 }
            // Before it is told: whoever hears of it may play at once, from another thread.
            facts.withLock { ($0.failure, $0.status, $0.current) = (error, "failed", ObjectPath.none) }
            silenced()
            events.send(.failed(error))
        case .changed(PluginKind.player.interface, let properties):
            if properties["State"] != nil { facts.withLock { $0.announced += 1 } }
            learn(properties)
        case .changed: break
        case .signal("PositionChanged", let values):
            place(values.first?.doubleValue ?? 0)
            events.send(.position)
        case .signal("Finished", let values):
            place(0)
            events.send(.finished(values.first?.boolValue ?? false))
        case .signal("Failed", let values):
            let error = SessionError(.decodeFailed, values.first?.stringValue ?? "the item cannot be played")
            facts.withLock { $0.failure = error }
            events.send(.failed(error))
        case .signal("ItemFinished", let values): events.send(.itemFinished(values.first?.objectPathValue ?? ""))
        case .signal("ItemFailed", let values):
            let error = SessionError(.decodeFailed, values.last?.stringValue ?? "the item cannot be played")
            events.send(.itemFailed(values.first?.objectPathValue ?? "", error))
        case .signal: break
        }
    }

    private func learn(_ properties: [String: Value]) {
        facts.withLock { facts in
            let now = MonotonicClock.seconds
            (facts.position, facts.since) = (facts.position(at: now), now)
            if let state = properties["State"]?.stringValue { facts.isPlaying = state == "playing" }
            if let duration = properties["Duration"]?.doubleValue { facts.duration = duration }
            if let channels = properties["Channels"]?.uint32Value { facts.channels = Int(channels) }
            if let status = properties["ItemStatus"]?.stringValue { facts.status = status }
            if let rate = properties["Rate"]?.doubleValue { facts.rate = rate }
            if let isStalled = properties["Stalled"]?.boolValue { facts.isStalled = isStalled }
            if let current = properties["CurrentItem"]?.objectPathValue {
                if current != facts.current { facts.position = 0 }
                facts.current = current
            }
        }
        if properties["State"] != nil { events.send(.state) }
        if properties["ItemStatus"] != nil || properties["CurrentItem"] != nil { events.send(.status) }
    }
}

extension Value {
    /// An element of `Meters`.
    var level: ChannelLevel? {
        guard case .structure(let fields) = self, fields.count == 2, let peak = fields[0].doubleValue,
            let average = fields[1].doubleValue
        else { return nil }
        return ChannelLevel(peak: peak, average: average)
    }
}
