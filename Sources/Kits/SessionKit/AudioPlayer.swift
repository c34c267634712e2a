import DBus
import EventLoop
public import PluginAPI
import SessionBus
import Synchronization

/// Plays one sound of a file or of the memory (AVAudioPlayer).
///
///     let player = try await AudioPlayer(contentsOf: "/usr/share/sounds/alarm.wav")
///     player.numberOfLoops = -1
///     try await player.play()
///
/// It plays in the session of the app, and in a process of its own, which ends with this object. ``play()`` activates the
/// session if it is not active. If the app did not activate it, it is deactivated when nothing of the app sounds any
/// more.
/// An interruption pauses the player. Afterwards the app calls ``play()`` again if it wants to.
///
/// Properties have the last known values. They can be read and set at once, from any thread.
public final class AudioPlayer: Sendable {
    /// The URI of the sound; nil: it was loaded from the memory.
    public let url: String?
    package var address: String? { url }
    private let data: [UInt8]
    private let playback: Playback
    private let wanted = Mutex((rate: 1.0, isRateEnabled: false))
    /// How many processes of the player had ended when the sound was loaded; nil: it was not.
    private let loaded = Mutex<Int?>(nil)

    /// Opens a sound.
    /// - Parameters:
    ///   - url: a path, a URI or a URL.
    ///   - session: nil: that of ``AudioSession/sharedInstance(bus:)``.
    /// - Throws: `DecodeFailed` with the reason if it cannot be played; `ResourceNotAvailable` if the player
    ///   (`sessiond-plugins`) is not installed.
    public convenience init(
        contentsOf url: some MediaAddress, session: AudioSession? = nil
    ) async throws(SessionError) {
        try await self.init(contentsOf: url, session: session, environment: [:])
    }

    /// - Parameter environment: changed variables of the player's process.
    package convenience init(
        contentsOf url: some MediaAddress, session: AudioSession?, environment: [String: String]
    ) async throws(SessionError) {
        self.init(MediaPath.uri(url), [], session, environment)
        try await prepare()
    }

    /// The contents of a sound file, at most 1 MB.
    /// - Throws: as ``init(contentsOf:session:)``.
    public convenience init(data: [UInt8], session: AudioSession? = nil) async throws(SessionError) {
        self.init(nil, data, session, [:])
        try await prepare()
    }

    private init(_ url: String?, _ data: [UInt8], _ session: AudioSession?, _ environment: [String: String]) {
        (self.url, self.data) = (url, data)
        playback = Playback(in: session, environment: environment)
    }

    /// ``open()`` opens the sound.
    package convenience init(unopened url: some MediaAddress) { self.init(MediaPath.uri(url), [], nil, [:]) }
    package convenience init(unopened data: [UInt8]) { self.init(nil, data, nil, [:]) }
    package func open() async throws(SessionError) { try await prepare() }

    private func prepare() async throws(SessionError) {
        let ends = playback.ends.withLock { $0 }
        guard loaded.withLock({ $0 }) != ends else { return }
        if let url {
            try await playback.load("Load", [.string(url)])
        } else {
            try await playback.load("LoadData", [.array(of: "y", data.map(Value.byte))])
        }
        try await playback.prepare()
        loaded.withLock { $0 = ends }
    }

    // MARK: Playing

    /// Prepares the sound again after the player's process has ended; otherwise it is prepared already.
    /// - Returns: whether it can be played.
    @discardableResult
    public func prepareToPlay() async -> Bool { (try? await prepare()) != nil }

    /// Plays from ``currentTime`` on.
    /// - Throws: the reason why the session may not play, such as `InsufficientPriority` during an alert.
    public func play() async throws(SessionError) {
        try await prepare()
        try await playback.play()
    }

    /// The same, beginning at that time of ``deviceCurrentTime``: several players begin together.
    public func play(atTime time: Double) async throws(SessionError) {
        try await prepare()
        try await playback.play(at: time)
    }

    /// Stays at ``currentTime``.
    public func pause() async { await playback.pause() }

    /// Pauses and goes back to the start. (On iOS, `stop` keeps the position.)
    public func stop() async { await playback.stop() }

    public var isPlaying: Bool { playback.facts.withLock(\.isPlaying) }

    /// Seconds. Setting it seeks.
    public var currentTime: Double {
        get { playback.position }
        set {
            let target = max(0, newValue)
            playback.place(target)
            Task { [playback] in try? await playback.seek(to: target) }
        }
    }

    /// The clock of ``play(atTime:)``, in seconds (CLOCK_MONOTONIC).
    public var deviceCurrentTime: Double { MonotonicClock.seconds }

    /// Seconds; 0: unknown.
    public var duration: Double { playback.facts.withLock(\.duration) }
    public var numberOfChannels: Int { playback.facts.withLock(\.channels) }

    // MARK: Settings

    /// 0…1; other values are limited to that. The volume of this player only.
    public var volume: Double {
        get { playback.settings.withLock(\.volume) }
        set { playback.change { $0.volume = newValue.limited(to: 0...1) } }
    }

    /// −1 left, 0 centre, 1 right.
    public var pan: Double {
        get { playback.settings.withLock(\.pan) }
        set { playback.change { $0.pan = newValue.limited(to: -1...1) } }
    }

    /// 0…: how many times it is repeated; negative: without an end.
    public var numberOfLoops: Int {
        get { playback.settings.withLock(\.loops) }
        set { playback.change { $0.loops = newValue } }
    }

    /// Whether ``rate`` has an effect.
    public var enableRate: Bool {
        get { wanted.withLock(\.isRateEnabled) }
        set {
            wanted.withLock { $0.isRateEnabled = newValue }
            applyRate()
        }
    }

    /// 0.5…2, without a change of pitch.
    public var rate: Double {
        get { wanted.withLock(\.rate) }
        set {
            wanted.withLock { $0.rate = newValue.limited(to: 0.5...2) }
            applyRate()
        }
    }

    private func applyRate() {
        let rate = wanted.withLock { $0.isRateEnabled ? $0.rate : 1 }
        playback.change { $0.rate = rate }
    }

    // MARK: Levels

    public var isMeteringEnabled: Bool {
        get { playback.settings.withLock(\.isMetering) }
        set { playback.change { $0.isMetering = newValue } }
    }

    /// Reads the levels for the next two methods.
    public func updateMeters() async { await playback.meter() }

    /// dBFS, −160…0; −160 for a channel that does not exist, and while metering is off.
    public func averagePower(forChannel channel: Int) -> Double { level(channel).average }
    public func peakPower(forChannel channel: Int) -> Double { level(channel).peak }

    private func level(_ channel: Int) -> ChannelLevel {
        playback.facts.withLock { $0.levels.indices.contains(channel) ? $0.levels[channel] : .silence }
    }

    // MARK: Events

    /// It played to its end, with all loops (audioPlayerDidFinishPlaying); false: its end is missing.
    public var finishes: AsyncStream<Bool> {
        playback.events.stream { if case .finished(let success) = $0 { success } else { nil } }
    }

    /// It cannot be played on (audioPlayerDecodeErrorDidOccur), or the process of the player has ended.
    public var decodeErrors: AsyncStream<SessionError> {
        playback.events.stream { if case .failed(let error) = $0 { error } else { nil } }
    }
}

extension Double {
    /// The nearest value in the range; its lower end for NaN.
    func limited(to range: ClosedRange<Double>) -> Double {
        isNaN ? range.lowerBound : Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
    }
}
