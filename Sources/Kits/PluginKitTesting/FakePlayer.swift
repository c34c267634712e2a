public import PluginAPI

/// An engine without sound, for the tests of what is built on ``PlayerEngine``. Items have a length of a minute; the test
/// says when they end.
public final class FakePlayer: QueueingEngine {
    public var state = PlayerState.stopped {
        didSet { if state != oldValue { onStateChanged?(state) } }
    }
    public var uri: String?
    public var position = 0.0
    public var duration: Double? { uri == nil ? nil : 60 }
    public var channels: Int { 2 }
    public var volume = 1.0
    public var isMuted = false
    public var pan = 0.0
    public var rate = 1.0
    public var loops = 0
    public var meteringEnabled = false
    public var device: String?
    public var duckGain = 0.0
    public var following: String?
    /// The targets of all seeks.
    public var seeks: [Double] = []
    /// Called at the end of each seek.
    public var whenSeeked: () -> Void = {}

    public var onStateChanged: ((PlayerState) -> Void)?
    public var onFinished: ((Bool) -> Void)?
    public var onFailed: ((String) -> Void)?
    public var onServicesLost: ((String) -> Void)?
    public var onItemChanged: (() -> Void)?
    public var onSeeked: ((Double) -> Void)?
    public var onTags: ((MediaTags) -> Void)?
    public var onAdvanced: (() -> Void)?
    public var onPlaylist: (([PlaylistEntry]) -> Void)?

    public init() {}

    public func load(uri: String) {
        (self.uri, following, position) = (uri, nil, 0)
        state = .stopped
    }

    public func play() throws(SessionError) { state = .playing }
    public func pause() { if state == .playing { state = .paused } }
    public func stop() {
        position = 0
        state = .stopped
    }
    public func seek(to seconds: Double) {
        position = seconds
        seeks.append(seconds)
        whenSeeked()
    }
    public func duck(to gainDB: Double, over seconds: Double) { duckGain = gainDB }
    public func meters() -> [ChannelLevel] { [] }
    public func unload() {
        uri = nil
        state = .stopped
    }

    /// Continues with the next item without a gap.
    public func advance() {
        (uri, following, position) = (following, nil, 0)
        onAdvanced?()
    }

    /// The item has ended, and none follows.
    public func finish() {
        position = 0
        state = .stopped
        onFinished?(true)
    }
}
