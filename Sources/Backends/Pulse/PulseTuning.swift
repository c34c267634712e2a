import CPulse
import EventLoop
import PluginAPI

/// Requests ``PulseBackend/outputWish`` from the server, in the only possible way: with a stream that
/// requests it (docs/adr/0013).
extension PulseBackend {
    /// Called after every relevant change.
    func keepTuning() {
        // While streams move to the guard, or are on it, the next output is not known yet.
        guard isReady, let connection, !model.isOnGuard, guards.guardDue == nil else { return }
        guard !outputWish.isEmpty, let output = model.output, !output.isNoPort else {
            tuning = nil
            return
        }
        if tuning?.wish != outputWish || tuning?.device != output.index {
            tuning = nil
            tuning = connection.tune(output, outputWish)
            // The rate or buffer of the device may change, and the server need not report it.
            tuning?.onReady = { [weak self] in self?.mark(ReadRound.Item(facility: .sink, index: output.index)) }
        }
        // PipeWire considers only streams that play. If no other stream plays, this one need not run either.
        let isHeard = model.playing.values.contains { !$0.isCorked && $0.index != tuning?.index }
        tuning?.run(model.isPipeWire && isHeard)
    }
}

/// A stream that never makes a sound. It exists only for the rate and the buffer that it requests from its device; the
/// request ends with it.
///
/// Used from the loop only.
final class PulseTuning {
    let wish: OutputWish
    /// The sink that it is for, which was the default at its creation.
    let device: UInt32
    /// The server has created the stream, and reports the rate and the buffer of the device.
    var onReady: (() -> Void)?

    private let stream: OpaquePointer
    /// The pending question for the buffer of the device.
    private var question: OpaquePointer?
    private var isRunning = false
    /// A reference to itself, if it must end as soon as the server has created it.
    private var leaving: PulseTuning?

    /// The longest buffer that a sink has, in seconds.
    private static let longest = 2.0
    /// PA_RATE_MAX; the macro is a product, which Swift does not import.
    private static let highestRate = 384_000.0

    /// Nil if libpulse refuses. PulseAudio uses the sample rate only if the device is idle at that moment.
    init?(_ wish: OutputWish, for output: PulseDevice, on context: OpaquePointer) {
        let rate = min(wish.sampleRate ?? Double(output.rate), PulseTuning.highestRate)
        var format = pa_sample_spec(format: PA_SAMPLE_S16LE, rate: UInt32(rate.rounded()), channels: 1)
        guard let made = pa_stream_new(context, "preferences", &format, nil) else { return nil }
        (self.wish, device, stream) = (wish, output.index, made)
        pa_stream_set_state_callback(
            stream,
            { _, me in
                guard let me else { return }
                let tuning = Unmanaged<PulseTuning>.fromOpaque(me).takeUnretainedValue()
                withExtendedLifetime(tuning) { tuning.stateChanged() }
            }, Unmanaged.passUnretained(self).toOpaque())
        // With early requests, the device's buffer becomes as long as one request for data.
        let period = min(wish.bufferDuration ?? PulseTuning.longest, PulseTuning.longest)
        let bytes = max(1, UInt32(period * rate)) * 2
        var buffer = pa_buffer_attr(maxlength: .max, tlength: bytes * 2, prebuf: 0, minreq: bytes, fragsize: .max)
        let flags = PA_STREAM_START_CORKED.rawValue | PA_STREAM_EARLY_REQUESTS.rawValue
        guard pa_stream_connect_playback(stream, nil, &buffer, pa_stream_flags_t(rawValue: flags), nil, nil) >= 0 else {
            return nil
        }
    }

    deinit {
        pa_stream_set_state_callback(stream, nil, nil)
        dropQuestion()
        pa_stream_disconnect(stream)
        pa_stream_unref(stream)
    }

    /// Calls ``onReady`` no more, and ends. If the server is still creating the stream, it ends after that; otherwise
    /// libpulse would forget it and the server would keep it.
    func close() {
        onReady = nil
        if pa_stream_get_state(stream) == PA_STREAM_CREATING { leaving = self }
    }

    private func dropQuestion() {
        guard let question else { return }
        pa_operation_cancel(question)
        pa_operation_unref(question)
        self.question = nil
    }

    private func stateChanged() {
        leaving = nil
        guard onReady != nil, pa_stream_get_state(stream) == PA_STREAM_READY else { return }
        question = pa_stream_update_timing_info(
            stream,
            { _, _, me in
                guard let me else { return }
                let tuning = Unmanaged<PulseTuning>.fromOpaque(me).takeUnretainedValue()
                withExtendedLifetime(tuning) { tuning.onReady?() }
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The server's number of the stream; nil until it exists, and if it was refused.
    var index: UInt32? { pa_stream_get_state(stream) == PA_STREAM_READY ? pa_stream_get_index(stream) : nil }

    /// The device's buffer in seconds, as the server reports it; 0 if it does not.
    var latency: Double {
        guard index != nil, let timing = pa_stream_get_timing_info(stream) else { return 0 }
        return Double(timing.pointee.configured_sink_usec) / 1e6
    }

    /// Starts or stops playing silence.
    func run(_ runs: Bool) {
        guard runs != isRunning, index != nil else { return }
        isRunning = runs
        if let operation = pa_stream_cork(stream, runs ? 0 : 1, nil, nil) { pa_operation_unref(operation) }
    }
}
