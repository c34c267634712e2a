import CGStreamer
public import EventLoop
public import PluginAPI

/// A ``RecorderEngine`` on PulseAudio and GStreamer.
public final class GStreamerRecorder: RecorderEngine {
    private let loop: EventLoop
    private let identity: StreamIdentity
    private var take: Take?
    /// The length of the last recording in seconds, after its pipeline is gone.
    private var lastPosition = 0.0
    /// stop() was called, and the end of the file is being written.
    private var isEnding = false
    private lazy var watchdog = Timer(on: loop) { [weak self] in self?.finish(isWhole: false) }

    public private(set) var state = RecorderState.idle {
        didSet { if state != oldValue { onStateChanged?(state) } }
    }
    public private(set) var path: String?
    public var device: String?
    public var meteringEnabled = false {
        didSet { take?.meters(meteringEnabled) }
    }

    public var onStateChanged: ((RecorderState) -> Void)?
    public var onFinished: ((Bool) -> Void)?
    public var onFailed: ((String) -> Void)?

    /// Connects to nothing before the first ``prepare(path:settings:)``.
    public init(loop: EventLoop, identity: StreamIdentity) {
        self.loop = loop
        self.identity = identity
    }

    public var position: Double { take?.position ?? lastPosition }

    public func meters() -> [ChannelLevel] {
        guard meteringEnabled, state == .recording, let take else { return [] }
        return take.levels()
    }

    private var isBusy: Bool { state == .recording || state == .paused }

    public func prepare(path: String, settings: RecordingSettings) throws(SessionError) {
        guard !isBusy else { throw SessionError(.isBusy, "recording '\(self.path ?? "")': stop it first") }
        let encoding = try Encoding(settings, path: path)
        take?.close()
        take = nil
        lastPosition = 0
        let made = try Take(path: path, encoding: encoding, identity: identity, device: device, loop: loop)
        made.onEvent = { [weak self] in self?.took($0) }
        made.meters(meteringEnabled)
        do throws(SessionError) {
            try made.prepare()
        } catch {
            made.close()
            throw error
        }
        take = made
        self.path = path
        state = .idle
    }

    public func record() throws(SessionError) { try record(atMost: nil) }

    public func record(for seconds: Double) throws(SessionError) {
        guard seconds > 0, seconds < 1e9 else { throw .badParameter("record for \(seconds) s: give more than 0") }
        try record(atMost: seconds)
    }

    private func record(atMost seconds: Double?) throws(SessionError) {
        guard let take, !isEnding else {
            throw SessionError(.cannotStartRecording, "no recording is prepared: give a file first")
        }
        take.limit(seconds)
        guard state != .recording else { return }
        take.record()
        state = .recording
    }

    public func pause() {
        guard state == .recording, !isEnding else { return }
        take?.pause()
        state = .paused
    }

    public func stop() {
        guard isBusy, !isEnding, let take else { return }
        isEnding = true
        take.end()
        watchdog.arm(after: 5)
    }

    public func delete() throws(SessionError) {
        guard !isBusy else { throw SessionError(.isBusy, "recording '\(path ?? "")': stop it first") }
        guard let path else { throw .badParameter("there is no recording to delete") }
        take?.close()
        take = nil
        self.path = nil
        lastPosition = 0
        try Take.remove(path)
    }

    private func took(_ event: Take.Event) {
        switch event {
        case .limitReached: stop()
        case .ended: finish(isWhole: true)
        case .failed(let message):
            let wasBusy = isBusy
            close()
            let isEmpty = lastPosition == 0
            if isEmpty, let path {
                try? Take.remove(path)
                self.path = nil
            }
            if wasBusy || state == .idle { state = .failed }
            onFailed?(isEmpty ? message + "; nothing was recorded, so the file was removed" : message)
        }
    }

    private func finish(isWhole: Bool) {
        guard isBusy else { return }
        let loss = take?.loss
        close()
        if let loss {
            state = .failed
            onFailed?("'\(path ?? "")': \(loss)")
        } else {
            state = .idle
            onFinished?(isWhole)
        }
    }

    private func close() {
        watchdog.disarm()
        isEnding = false
        lastPosition = take?.position ?? lastPosition
        take?.close()
        take = nil
    }
}
