import PluginAPI

/// An engine without sound. Items have a length of a minute; the test says when they end.
final class FakePlayer: QueueingEngine {
    var state = PlayerState.stopped {
        didSet { if state != oldValue { onStateChanged?(state) } }
    }
    var uri: String?
    var position = 0.0
    var duration: Double? { uri == nil ? nil : 60 }
    var channels: Int { 2 }
    var volume = 1.0
    var isMuted = false
    var pan = 0.0
    var rate = 1.0
    var loops = 0
    var meteringEnabled = false
    var device: String?
    var duckGain = 0.0
    var following: String?
    /// The targets of all seeks.
    var seeks: [Double] = []
    /// Called at the end of each seek.
    var whenSeeked: () -> Void = {}

    var onStateChanged: ((PlayerState) -> Void)?
    var onFinished: ((Bool) -> Void)?
    var onFailed: ((String) -> Void)?
    var onServicesLost: ((String) -> Void)?
    var onItemChanged: (() -> Void)?
    var onSeeked: ((Double) -> Void)?
    var onTags: ((MediaTags) -> Void)?
    var onAdvanced: (() -> Void)?
    var onPlaylist: (([PlaylistEntry]) -> Void)?

    func load(uri: String) {
        (self.uri, following, position) = (uri, nil, 0)
        state = .stopped
    }

    func play() throws(SessionError) { state = .playing }
    func pause() { if state == .playing { state = .paused } }
    func stop() {
        position = 0
        state = .stopped
    }
    func seek(to seconds: Double) {
        position = seconds
        seeks.append(seconds)
        whenSeeked()
    }
    func duck(to gainDB: Double, over seconds: Double) { duckGain = gainDB }
    func meters() -> [ChannelLevel] { [] }
    func unload() {
        uri = nil
        state = .stopped
    }

    /// Continues with the next item without a gap.
    func advance() {
        (uri, following, position) = (following, nil, 0)
        onAdvanced?()
    }

    /// The item has ended, and none follows.
    func finish() {
        position = 0
        state = .stopped
        onFinished?(true)
    }
}
