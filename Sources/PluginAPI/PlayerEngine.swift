/// What a player is doing. The raw value is the name on the wire.
public enum PlayerState: String, CaseIterable, Sendable, Hashable {
    /// Nothing loaded, or at the beginning.
    case stopped
    case playing
    case paused
    /// Silenced by the session; no engine reports it, the layer above does.
    case interrupted
    /// The item cannot be played; loading another one leaves this state.
    case failed
}

/// How loud one channel is, in dBFS: −160 (silence) to 0 (full scale).
public struct ChannelLevel: Sendable, Hashable {
    /// AVAudioPlayer's peakPower(forChannel:).
    public var peak: Double
    /// AVAudioPlayer's averagePower(forChannel:).
    public var average: Double

    /// What a channel is while nothing sounds.
    public static let silence = ChannelLevel(peak: -160, average: -160)

    /// Values are brought into −160…0; what is not a number counts as silence.
    public init(peak: Double, average: Double) {
        self.peak = peak >= -160 ? min(peak, 0) : -160
        self.average = average >= -160 ? min(average, 0) : -160
    }
}

/// What an item says about itself, for people; nil where it does not say.
public struct MediaTags: Sendable, Hashable {
    public var title: String?
    public var artist: String?
    public var album: String?
    public var albumArtist: String?
    public var genre: String?
    public var composer: String?
    public var comment: String?
    /// ISO 8601, as much of it as is known: a year at the least.
    public var date: String?
    /// Who broadcasts it: an internet radio's name.
    public var organization: String?
    /// From 1.
    public var trackNumber: Int?
    /// From 1.
    public var discNumber: Int?
    /// The cover.
    public var artwork: Artwork?

    public init() {}
}

/// A picture as it lay in the item, not decoded.
public struct Artwork: Sendable, Hashable {
    /// The whole picture file.
    public var bytes: [UInt8]
    /// Such as `image/jpeg`, as the item says.
    public var mimeType: String

    public init(bytes: [UInt8], mimeType: String) {
        self.bytes = bytes
        self.mimeType = mimeType
    }
}

/// What a playlist says of one of its entries.
public struct PlaylistEntry: Sendable, Hashable {
    /// Absolute.
    public var uri: String
    /// For people; nil where the list does not say.
    public var title: String?
    /// Seconds, more than 0; nil where the list does not say.
    public var duration: Double?

    public init(uri: String, title: String? = nil, duration: Double? = nil) {
        self.uri = uri
        self.title = title
        self.duration = duration
    }
}

/// One item at a time, decoded and played to the sound server (the port behind `org.sessiond1.Player`).
///
/// Lives on the loop: methods are called and callbacks come on its thread only. A callback may call any method. Calls
/// do not wait for the disk, the network or the server longer than a state change takes.
public protocol PlayerEngine: AnyObject {
    /// Never ``PlayerState/interrupted``. `playing` from the call to ``play()`` on, also before the first sample.
    var state: PlayerState { get }
    /// What was last given to ``load(uri:)``; nil after ``unload()``.
    var uri: String? { get }
    /// Seconds heard since the item's beginning; the target while a seek is under way.
    var position: Double { get }
    /// Seconds; nil while unknown, and for endless streams.
    var duration: Double? { get }
    /// The item's channels; 0 while unknown.
    var channels: Int { get }
    /// The stretches of the item that are here and can be played without waiting, in seconds, ascending; for streams an
    /// estimate (AVPlayerItem's loadedTimeRanges).
    var loadedRanges: [ClosedRange<Double>] { get }
    /// It plays and waits for the network.
    var isStalled: Bool { get }

    /// 0…1, linear amplitude, kept over items. Never written to the server, which would remember it.
    var volume: Double { get set }
    /// Silences without touching ``volume``.
    var isMuted: Bool { get set }
    /// −1 left, 0 centre, 1 right.
    var pan: Double { get set }
    /// 0.5…2, the pitch stays.
    var rate: Double { get set }
    /// 0 once, n > 0 n + 1 times, negative endless. Counts from the next ``play()`` at the beginning, or from now.
    var loops: Int { get set }
    /// Off, metering costs nothing.
    var meteringEnabled: Bool { get set }
    /// A sink's name at the server; nil follows the server's choice. A change while playing costs a short gap.
    var device: String? { get set }
    /// The gain ``duck(to:over:)`` was last given, in dB; 0 when not ducked.
    var duckGain: Double { get }

    /// After every change of ``state``, with the new one.
    var onStateChanged: ((PlayerState) -> Void)? { get set }
    /// The item ended after all its loops (true). Not sent for ``stop()``, ``pause()`` or a failure.
    var onFinished: ((Bool) -> Void)? { get set }
    /// The item cannot be played or cannot be played on; the message says why and what to do.
    var onFailed: ((String) -> Void)? { get set }
    /// The sound server went or cannot be reached; the message says what happened. The item is no failed one: it is
    /// paused (stopped at its beginning), keeps its place, and the next ``play()`` asks the server again.
    var onServicesLost: ((String) -> Void)? { get set }
    /// ``duration``, ``channels`` or ``isStalled`` became known, or changed.
    var onItemChanged: (() -> Void)? { get set }
    /// A ``seek(to:)`` is done; the position it reached, in seconds.
    var onSeeked: ((Double) -> Void)? { get set }
    /// The tags known so far, each time there are more.
    var onTags: ((MediaTags) -> Void)? { get set }

    /// Replaces the item and makes it ready at its beginning; failures come to ``onFailed``, never from inside the call.
    func load(uri: String)
    /// Plays from where it is; a second call changes nothing.
    /// - Throws: `CannotStartPlaying` where nothing is loaded, or what is loaded failed.
    func play() throws(SessionError)
    /// Silent within the server's next period; ``play()`` goes on with the sample after the last one heard.
    func pause()
    /// Silent, and back at the beginning, ready.
    func stop()
    /// Goes to that many seconds, at most the duration; the newest of several calls wins.
    func seek(to seconds: Double)
    /// Lowers to `gainDB` (−80…0, relative to ``volume``) by a ramp of `seconds`, never steeper than 2 dB in 10 ms.
    func duck(to gainDB: Double, over seconds: Double)
    /// The levels being heard now, one for each channel; empty while ``meteringEnabled`` is off or nothing is loaded.
    func meters() -> [ChannelLevel]
    /// Gives up the item and everything held for it.
    func unload()
}

extension PlayerEngine {
    /// For engines that play what is wholly here.
    public var loadedRanges: [ClosedRange<Double>] { duration.map { [0...$0] } ?? [] }
    /// For engines that read no network.
    public var isStalled: Bool { false }
}

/// An engine that knows what follows: plays on without a gap, and takes lists apart.
///
/// ``PlayerEngine``'s rules of thread and calls hold.
public protocol QueueingEngine: PlayerEngine {
    /// What is to follow the item without a gap, where the engine can; nil for nothing. Gone with ``load(uri:)`` and
    /// when it follows. Never told of as failed: what does not follow is loaded by whoever keeps the queue.
    var following: String? { get set }
    /// The following item is heard now and is the engine's item; ``onFinished`` is not called for the one before it.
    var onAdvanced: (() -> Void)? { get set }
    /// What was loaded is no sound but a list: these, in order, at least one. The engine holds nothing any more.
    var onPlaylist: (([PlaylistEntry]) -> Void)? { get set }
}
