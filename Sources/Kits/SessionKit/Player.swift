public import PluginAPI
import Synchronization

/// Plays an item (AVPlayer): a file or a stream, which can be replaced.
///
///     let player = Player(url: "https://radio.example/live.mp3")
///     let observer = player.addPeriodicTimeObserver(forInterval: MediaTime(seconds: 1)) { print($0) }
///     try await player.play()
///
/// With an output, it shows the pictures of films, as AVPlayer does with an AVPlayerLayer; without one, it plays their sound
/// alone. It plays in the session of the app as an ``AudioPlayer`` does. An item is opened as soon as the player has it;
/// ``PlayerItem/status`` says how that went. Changes are made in the order of the calls.
// SAFETY: its properties are constants of types that are Sendable, and QueuePlayer, its only subclass, adds none.
public class Player: @unchecked Sendable {
    /// AVPlayer.TimeControlStatus.
    public enum TimeControlStatus: Sendable, Hashable {
        case paused
        /// It would play, but waits for the network.
        case waitingToPlayAtSpecifiedRate
        case playing
    }

    /// An observer of the time, until ``Player/removeTimeObserver(_:)`` or the end of the player.
    public struct TimeObserver: Sendable, Hashable {
        fileprivate let number: Int
    }

    private struct State {
        /// What is played now and then. The first one is the current one.
        var items: [PlayerItem] = []
        var volume = 1.0
        var isMuted = false
        var observers: [Int: Task<Void, Never>] = [:]
        var lastObserver = 0
        var watch: Task<Void, Never>?
        /// The last status that was announced.
        var told = TimeControlStatus.paused
    }

    private let state = Mutex(State())
    private let queue: PlayerQueue
    private let broadcast = Broadcast<TimeControlStatus>()
    private let line = WorkLine()
    private var playback: Playback { queue.playback }

    /// - Parameters:
    ///   - url: a path, a URI or a URL.
    ///   - output: where pictures are shown; nil: only sound is played.
    ///   - session: nil: that of ``AudioSession/sharedInstance(bus:)``.
    public convenience init(
        url: some MediaAddress, output: MoviePlayer.Output? = nil, session: AudioSession? = nil
    ) {
        self.init(playerItem: PlayerItem(url: url), output: output, session: session)
    }

    /// - Parameters:
    ///   - item: nil: nothing yet.
    ///   - output: where pictures are shown; nil: only sound is played.
    ///   - session: nil: that of ``AudioSession/sharedInstance(bus:)``.
    public convenience init(
        playerItem item: PlayerItem? = nil, output: MoviePlayer.Output? = nil, session: AudioSession? = nil
    ) {
        self.init([item].compactMap(\.self), output: output, session, removesPlayed: false, environment: [:])
    }

    /// - Parameters:
    ///   - removesPlayed: whether an item leaves the player at its end.
    ///   - environment: changed variables of the player's process.
    package init(
        _ items: [PlayerItem], output: MoviePlayer.Output? = nil, _ session: AudioSession?, removesPlayed: Bool,
        environment: [String: String]
    ) {
        queue = PlayerQueue(Playback(in: session, output: output, environment: environment))
        let events = playback.events.stream()
        let watch = Task { [weak self] in
            for await event in events { self?.heard(event, removesPlayed) }
        }
        state.withLock { $0.watch = watch }
        if !items.isEmpty { change { $0 = items } }
    }

    deinit {
        let tasks = state.withLock { [$0.watch] + Array($0.observers.values) }
        for task in tasks { task?.cancel() }
        broadcast.finish()
    }

    // MARK: Items

    /// Nil: it has nothing to play.
    public var currentItem: PlayerItem? { state.withLock(\.items.first) }

    /// The item that plays from now on; it plays if the player was playing. Nil: nothing.
    public func replaceCurrentItem(with item: PlayerItem?) {
        change { $0 = [item].compactMap(\.self) + $0.dropFirst() }
    }

    var allItems: [PlayerItem] { state.withLock(\.items) }

    /// Changes what is played. If the current item stays, it plays on.
    func change(_ body: @Sendable (inout [PlayerItem]) -> Void) {
        state.withLock { state in
            body(&state.items)
            let items = state.items
            line.add { [queue] in await queue.show(items) }
        }
    }

    // MARK: Playing

    /// Plays on. At the end of the last item, it plays that one again.
    /// - Throws: the reason why the item cannot be played, or why the session may not play; `CannotStartPlaying` if
    ///   there is no item.
    public func play() async throws(SessionError) {
        let items = allItems
        try await line.run { [queue] in await queue.play(items) }.get()
    }

    public func pause() async { await line.run { [playback] in await playback.pause() } }

    /// - Returns: whether the item has such a time.
    @discardableResult
    public func seek(to time: MediaTime) async -> Bool {
        await line.run { [playback] in (try? await playback.seek(to: time.seconds)) != nil }
    }

    /// The time in the current item.
    public func currentTime() -> MediaTime { MediaTime(seconds: playback.position) }

    public var timeControlStatus: TimeControlStatus {
        playback.facts.withLock { $0.isPlaying ? ($0.isStalled ? .waitingToPlayAtSpecifiedRate : .playing) : .paused }
    }

    /// Every change of ``timeControlStatus`` from now on.
    public var timeControlStatuses: AsyncStream<TimeControlStatus> { broadcast.stream() }

    /// Why the current item cannot be played.
    public var error: SessionError? { currentItem?.error }

    /// 0 while it does not play.
    public var rate: Double { playback.facts.withLock { $0.isPlaying ? $0.rate : 0 } }

    /// The speed at which it plays, 0.5…2 without a change of pitch; other values are limited to that.
    public var defaultRate: Double {
        get { playback.settings.withLock(\.rate) }
        set { playback.change { $0.rate = newValue.limited(to: 0.5...2) } }
    }

    /// 0…1; other values are limited to that. The volume of this player only.
    public var volume: Double {
        get { state.withLock(\.volume) }
        set {
            state.withLock { $0.volume = newValue.limited(to: 0...1) }
            applyVolume()
        }
    }

    public var isMuted: Bool {
        get { state.withLock(\.isMuted) }
        set {
            state.withLock { $0.isMuted = newValue }
            applyVolume()
        }
    }

    private func applyVolume() {
        let volume = state.withLock { $0.isMuted ? 0 : $0.volume }
        playback.change { $0.volume = volume }
    }

    // MARK: Times

    /// Calls `block` with the time of the item, at least once in each interval while it plays, and after a jump. Calls
    /// come one after the other, on no particular thread.
    /// - Parameters:
    ///   - interval: at least a hundredth of a second.
    ///   - block: called until the observer is removed.
    /// - Returns: what ``removeTimeObserver(_:)`` needs.
    public func addPeriodicTimeObserver(
        forInterval interval: MediaTime, using block: @escaping @Sendable (MediaTime) -> Void
    ) -> TimeObserver {
        let pause = max(0.01, interval.seconds)
        let task = Task { [weak self] in
            var last: MediaTime?
            while !Task.isCancelled {
                guard let time = self?.currentTime() else { return }
                if time != last { block(time) }
                last = time
                try? await Task.sleep(for: .seconds(pause))
            }
        }
        return state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = task
            return TimeObserver(number: state.lastObserver)
        }
    }

    public func removeTimeObserver(_ observer: TimeObserver) {
        state.withLock { $0.observers.removeValue(forKey: observer.number) }?.cancel()
    }

    // MARK: Events

    private func heard(_ event: Playback.Event, _ removesPlayed: Bool) {
        switch event {
        case .itemFinished(let path):
            guard let item = queue.item(path) else { return }
            item.end(true)
            // The current one has left already if the next one was announced first.
            if removesPlayed { state.withLock { $0.items.removeAll { $0 === item } } }
        case .itemFailed(let path, let error):
            guard let item = queue.item(path) else { return }
            item.end(false)
            item.fail(error)
        case .status: settleCurrent()
        case .state:
            let status = timeControlStatus
            let isNew = state.withLock { state in
                defer { state.told = status }
                return state.told != status
            }
            if isNew { broadcast.send(status) }
        case .failed, .finished, .position: break
        }
    }

    private func settleCurrent() {
        let (path, status, duration) = playback.facts.withLock { ($0.current, $0.status, $0.duration) }
        guard let item = queue.item(path) else { return }
        if status == "ready" { item.becomeReady(duration: duration) }
        // Items before the current one were played, or could not be played.
        state.withLock { state in
            if let place = state.items.firstIndex(of: item) { state.items.removeFirst(place) }
        }
    }
}
