/// The state of a player. The raw value is the name on the wire.
public enum PlayerState: String, CaseIterable, Sendable, Hashable {
    /// Nothing is loaded, or the item is at its beginning.
    case stopped
    case playing
    case paused
    /// Silenced because the session is interrupted. Engines never report it; the layer above does.
    case interrupted
    /// The item cannot be played; loading another one ends this state.
    case failed
}

/// How loud one channel is, in dBFS: −160 (silence) to 0 (full scale).
public struct ChannelLevel: Sendable, Hashable {
    /// AVAudioPlayer's peakPower(forChannel:).
    public var peak: Double
    /// AVAudioPlayer's averagePower(forChannel:).
    public var average: Double

    /// The level of a silent channel.
    public static let silence = ChannelLevel(peak: -160, average: -160)

    /// Values are limited to −160…0; NaN is read as silence.
    public init(peak: Double, average: Double) {
        self.peak = peak >= -160 ? min(peak, 0) : -160
        self.average = average >= -160 ? min(average, 0) : -160
    }
}

/// Metadata of an item, for display; nil if unknown.
public struct MediaTags: Sendable, Hashable {
    public var title: String?
    public var artist: String?
    public var album: String?
    public var albumArtist: String?
    public var genre: String?
    public var composer: String?
    public var comment: String?
    /// ISO 8601, as much as is known: at least a year.
    public var date: String?
    /// The name of an internet radio.
    public var organization: String?
    /// From 1.
    public var trackNumber: Int?
    /// From 1.
    public var discNumber: Int?
    /// The cover.
    public var artwork: Artwork?

    public init() {}
}

/// A picture as stored in the item, not decoded.
public struct Artwork: Sendable, Hashable {
    /// The complete picture file.
    public var bytes: [UInt8]
    /// Such as `image/jpeg`, as stated in the item.
    public var mimeType: String

    public init(bytes: [UInt8], mimeType: String) {
        self.bytes = bytes
        self.mimeType = mimeType
    }
}

/// One entry of a playlist.
public struct PlaylistEntry: Sendable, Hashable {
    /// An absolute URI.
    public var uri: String
    /// For display; nil if the list does not state it.
    public var title: String?
    /// Seconds, more than 0; nil if the list does not state it.
    public var duration: Double?
    /// For display, and to group the songs of an album; nil if unknown.
    public var artist: String?
    public var album: String?
    /// The item of the library; 0: it is not of it.
    public var item: UInt64 = 0
    /// Where it begins, in seconds: the bookmark of a podcast or an audiobook.
    public var start = 0.0
    /// What it is, if it is spoken; nil: music, or unknown.
    public var spoken: Spoken?

    /// Spoken items (MPMediaType). The raw values are the words on the wire.
    public enum Spoken: String, CaseIterable, Sendable, Hashable, Codable {
        case podcast, audiobook
    }

    public init(uri: String, title: String? = nil, duration: Double? = nil) {
        self.uri = uri
        self.title = title
        self.duration = duration
    }
}

/// Decodes one item at a time and plays it to the sound server (the port behind `org.sessiond1.Player`).
///
/// Belongs to the loop: methods are called and callbacks come only on its thread. A callback may call any method. Calls
/// do not wait for the disk, the network or the server longer than a state change takes.
public protocol PlayerEngine: AnyObject {
    /// Never ``PlayerState/interrupted``. It is `playing` from the call of ``play()`` on, even before the first sample.
    var state: PlayerState { get }
    /// The URI last given to ``load(uri:)``; nil after ``unload()``.
    var uri: String? { get }
    /// Seconds heard since the beginning of the item; during a seek, its target.
    var position: Double { get }
    /// Seconds; nil while unknown, and for endless streams.
    var duration: Double? { get }
    /// The channels of the item; 0 while unknown.
    var channels: Int { get }
    /// The parts of the item that can be played without waiting, in seconds, ascending; for streams an estimate
    /// (AVPlayerItem's loadedTimeRanges).
    var loadedRanges: [ClosedRange<Double>] { get }
    /// It should play, but waits for the network.
    var isStalled: Bool { get }
    /// It comes from the network, is being sent now, and has no end.
    var isLive: Bool { get }

    /// 0…1, linear amplitude, kept over items. Never written to the server, because the server would remember it.
    var volume: Double { get set }
    /// Mutes without changing ``volume``.
    var isMuted: Bool { get set }
    /// −1 left, 0 centre, 1 right.
    var pan: Double { get set }
    /// 0.5…2, without a change of pitch.
    var rate: Double { get set }
    /// 0: the item plays once; n > 0: it plays n + 1 times; negative: without an end. A new value counts from now, or from
    /// the next ``play()`` at the beginning.
    var loops: Int { get set }
    /// Off, metering costs nothing.
    var meteringEnabled: Bool { get set }
    /// The name of a sink at the server; nil: the default. A change during playback causes a short gap.
    var device: String? { get set }
    /// The last gain given to ``duck(to:over:)``, in dB; 0 when not ducked.
    var duckGain: Double { get }
    /// Itself, if it knows the next item; nil by default.
    var queueing: (any QueueingEngine)? { get }

    /// After every change of ``state``, with the new one.
    var onStateChanged: ((PlayerState) -> Void)? { get set }
    /// The item ended after all its loops. True: it was played to its end (AVAudioPlayer's `successfully`). Not called for
    /// ``stop()``, ``pause()`` or a failure.
    var onFinished: ((Bool) -> Void)? { get set }
    /// The item cannot be played, or cannot continue; the message gives the reason and tells what to do.
    var onFailed: ((String) -> Void)? { get set }
    /// The sound server is gone or cannot be reached; the message gives the reason. The item has not failed: it is
    /// paused (or stopped at its beginning), keeps its position, and the next ``play()`` tries the server again.
    var onServicesLost: ((String) -> Void)? { get set }
    /// ``duration``, ``channels`` or ``isStalled`` changed or became known.
    var onItemChanged: (() -> Void)? { get set }
    /// A ``seek(to:)`` is done; the new position in seconds.
    var onSeeked: ((Double) -> Void)? { get set }
    /// All tags known so far, each time more are found.
    var onTags: ((MediaTags) -> Void)? { get set }

    /// Replaces the item and prepares its beginning; failures are reported with ``onFailed``, never during the call.
    func load(uri: String)
    /// Plays from the current position; a second call changes nothing.
    /// - Throws: `CannotStartPlaying` if nothing is loaded, or the item has failed.
    func play() throws(SessionError)
    /// Silent within the server's next period; ``play()`` continues with the sample after the last one heard.
    func pause()
    /// Falls silent and returns to the beginning, ready to play.
    func stop()
    /// What is live goes on with what is sent now; does nothing for others.
    func goToLive()
    /// Seeks to that position in seconds, at most the duration; of several calls the latest wins.
    func seek(to seconds: Double)
    /// Ducks to `gainDB` (−80…0, relative to ``volume``) in a ramp of `seconds`, never steeper than 2 dB in 10 ms.
    func duck(to gainDB: Double, over seconds: Double)
    /// The levels heard now, one for each channel; empty while ``meteringEnabled`` is off or nothing is loaded.
    func meters() -> [ChannelLevel]
    /// Releases the item and its resources.
    func unload()
}

extension PlayerEngine {
    /// For engines whose items are completely local.
    public var loadedRanges: [ClosedRange<Double>] { duration.map { [0...$0] } ?? [] }
    /// For engines that do not use the network.
    public var isStalled: Bool { false }
    /// For engines that do not use the network.
    public var isLive: Bool { false }
    /// For engines that do not use the network.
    public func goToLive() {}
    /// For engines that play one item and know of no other.
    public var queueing: (any QueueingEngine)? { nil }
}

/// An engine that knows the next item: it continues without a gap, and expands playlists.
///
/// The rules of ``PlayerEngine`` about threads and calls apply.
public protocol QueueingEngine: PlayerEngine {
    /// The item to play next without a gap, if the engine can; nil: none. Cleared by ``load(uri:)`` and when it starts.
    /// Its failure is not reported: an item that does not follow is loaded by the owner of the queue.
    var following: String? { get set }
    /// The next item is heard now and is the engine's item; ``onFinished`` is not called for the one before it.
    var onAdvanced: (() -> Void)? { get set }
    /// The loaded item is a playlist: its entries in order, at least one. The engine has released the item.
    var onPlaylist: (([PlaylistEntry]) -> Void)? { get set }
}

extension QueueingEngine {
    public var queueing: (any QueueingEngine)? { self }
}
