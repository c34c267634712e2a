package import CameraBackend
import Capturing
package import EventLoop
import GStreamerBackend
import GStreamerBase
import Glibc
package import LiveStreaming
package import PluginAPI

/// The live stream of a capture session: what its camera and its microphone give, by one encoder for the stream and for films
/// beside it.
///
/// A lost connection does not touch the encoder and the films; a film that pauses does not touch the stream.
package final class CaptureLive: LiveEngine {
    package var onEvent: ((LiveEvent) -> Void)?

    private let target: LiveTarget
    private let settings: LiveSettings
    private let capture: CaptureEngine
    private let loop: EventLoop
    private let hasMicrophone: Bool
    private var encoder: StreamEncoder?
    private var output: LiveOutput?
    private var failure: SessionError?
    private var isOver = false
    /// Of the encoder, before this stream, and at its end.
    private var lateBefore: UInt64 = 0
    private var lateInAll: UInt64 = 0

    /// - Parameters:
    ///   - capture: it runs.
    ///   - hasMicrophone: whether its sound is that of a microphone, and not silence.
    /// - Throws: `ResourceNotAvailable` with the package of a missing part, `BadParameter` for a folder that cannot be made.
    package init(
        _ target: LiveTarget, _ settings: LiveSettings, of capture: CaptureEngine, hasMicrophone: Bool,
        on loop: EventLoop
    ) throws(SessionError) {
        (self.target, self.settings, self.capture, self.loop) = (target, settings, capture, loop)
        self.hasMicrophone = hasMicrophone
        try LivePush.prepare(target, settings)
    }

    /// The encoder of streams with these settings: the one that runs, or a new one.
    package static func encoder(
        _ settings: LiveSettings, for target: LiveTarget, of capture: CaptureEngine
    ) throws(SessionError) -> StreamEncoder {
        if let running = capture.encoder { return running }
        let chain = try LiveChain.encoders(settings, target.method, rate: capture.choice.rate.perSecond)
        let made = try StreamEncoder(
            pictures: chain.pictures, sound: chain.sound, interval: Times.nanoseconds(settings.keyFrameInterval),
            on: capture)
        LiveFilters.set(settings.filters, in: capture.pipeline)
        capture.encoder = made
        return made
    }

    // MARK: Facts

    package var state: LiveState { failure != nil ? .failed : isOver ? .idle : output?.state ?? .connecting }
    package var uptime: Double { output?.uptime ?? 0 }
    package var bytesSent: UInt64 { output?.bytesSent ?? 0 }
    package var bitrate: Int { output?.bitrate ?? settings.bitrate }
    package var roundTrip: Double { output?.roundTrip ?? 0 }
    package var droppedFrames: UInt64 { (output?.droppedFrames ?? 0) + late }
    package var reconnects: Int { output?.reconnects ?? 0 }
    package var message: String { failure?.reason ?? output?.message ?? "" }
    package var isRecording: Bool { false }

    private var late: UInt64 {
        guard let encoder else { return lateInAll }
        return encoder.late - min(encoder.late, lateBefore)
    }

    package var microphoneIsOn: Bool {
        get { hasMicrophone && encoder?.isMuted == false && capture.hasMicrophone }
        set { encoder?.isMuted = !newValue }
    }

    package var isInterrupted = false {
        didSet {
            if isInterrupted != oldValue, !isOver {
                LiveFilters.tell(isInterrupted, settings.filters, in: capture.pipeline)
            }
        }
    }

    // MARK: Requests

    package func start(_ reply: @escaping (Result<Void, SessionError>) -> Void) {
        do throws(SessionError) {
            let encoder = try Self.encoder(settings, for: target, of: capture)
            guard
                let streams = EncodedStreams(
                    in: capture.pipeline, pictures: StreamEncoder.pictures, sound: StreamEncoder.sound)
            else { throw SessionError(.encoderNotFound, "GStreamer cannot encode a stream: the branch is incomplete") }
            self.encoder = encoder
            encoder.isMuted = false
            lateBefore = encoder.late
            let output = LiveOutput(target, settings, on: streams, loop)
            output.onEvent = { [unowned self] in heard($0) }
            output.onBitrate = { [unowned self] in set(bitrate: $0) }
            self.output = output
            set(bitrate: output.bitrate)
        } catch {
            isOver = true
            return reply(.failure(error))
        }
        capture.onStreamMessage = { [unowned self] in output?.take($0) ?? false }
        capture.onEncoderFailed = { [unowned self] in
            fail(SessionError(.resourceNotAvailable, "the stream cannot be encoded any more: \($0)"))
        }
        output?.start()
        reply(.success(()))
    }

    private func set(bitrate: Int) {
        guard let encoder, let element = encoder.element, let name = LiveChain.encoder else { return }
        LiveChain.set(bitrate: bitrate, of: element, name)
    }

    package func stop() {
        guard !isOver else { return }
        output?.finish()
    }

    package func want(bitrate: Int) { output?.want(bitrate: bitrate) }

    package func close() {
        onEvent = nil
        shut()
    }

    /// Its source is gone.
    package func fail(_ error: SessionError) {
        guard !isOver else { return }
        failure = error
        shut()
        onEvent?(.failed(error))
    }

    private func heard(_ event: LiveOutput.Event) {
        switch event {
        case .changed: onEvent?(.changed)
        case .failed(let error): fail(error)
        case .finished:
            shut()
            onEvent?(.finished(.stopped))
        }
    }

    /// The figures of the output stay.
    private func shut() {
        guard !isOver else { return }
        isOver = true
        lateInAll = late
        output?.close()
        encoder = nil
        capture.onStreamMessage = nil
        capture.onEncoderFailed = nil
    }
}
