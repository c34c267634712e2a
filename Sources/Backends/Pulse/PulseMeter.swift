import CPulse
import EventLoop
import PluginAPI

/// Measures which streams make a sound.
extension PulseBackend {
    /// Called after every relevant change.
    func keepMeters() {
        guard isReady, let connection else { return }
        let wanted = Set(measured.lazy.filter { $0.direction == .playback }.map(\.number))
        for index in meters.keys where !wanted.contains(index) || model.playing[index] == nil { meters[index] = nil }
        for index in wanted {
            guard let stream = model.playing[index] else { continue }
            let earlier = meters[index]
            // PulseAudio ends the meter of a stream that is moved.
            guard earlier == nil || earlier?.device != stream.device || earlier?.isOver == true else { continue }
            let attempts = (earlier?.device == stream.device ? earlier?.attempts ?? 0 : 0) + 1
            guard attempts <= PulseMeter.mostAttempts else { continue }
            let made = connection.measure(index, on: stream.device, attempts, hasSound: earlier?.hasSound ?? false)
            made?.onChange = { [weak self] in self?.measureSoon() }
            meters[index] = made
        }
    }

    /// Reports the change after this turn of the loop; the answers that are awaited report it, too.
    private func measureSoon() {
        loop.later { [weak self] in
            guard let self, isReady else { return }
            if !round.isAsking { evaluate(isSettled: false) }
        }
    }
}

/// A recording of one stream that reports only its peaks, some times a second (`pa_stream_set_monitor_stream`).
///
/// Used from the loop only.
final class PulseMeter {
    /// The sink that the stream plays on.
    let device: UInt32
    /// How often its measuring was tried on this device, this time included.
    let attempts: Int
    /// Whether the stream made a sound within ``AudioStream/soundSpan``. If it cannot be measured, it does.
    private(set) var hasSound: Bool
    /// The server has ended or refused it.
    private(set) var isOver = false
    /// ``hasSound`` or ``isOver`` changed.
    var onChange: (() -> Void)?

    static let mostAttempts = 5
    /// Peaks a second.
    private static let rate: UInt32 = 10
    private static let span = Int(UInt64(rate) * AudioStream.soundSpan / 1_000_000)
    /// The amplitude of the quietest sound, -70 dB.
    private static let quietest: Float = 0.000_3

    private let stream: OpaquePointer
    /// Peaks since the last sound.
    private var silentPeaks = 0
    /// A reference to itself, if it must end as soon as the server has created it.
    private var leaving: PulseMeter?

    /// Nil if libpulse refuses.
    init?(_ index: UInt32, on device: UInt32, _ attempts: Int, hasSound: Bool, context: OpaquePointer) {
        var format = pa_sample_spec(format: PA_SAMPLE_FLOAT32LE, rate: PulseMeter.rate, channels: 1)
        guard let made = pa_stream_new(context, "Peak detect", &format, nil) else { return nil }
        (stream, self.device, self.attempts, self.hasSound) = (made, device, attempts, hasSound)
        let me = Unmanaged.passUnretained(self).toOpaque()
        pa_stream_set_state_callback(
            stream,
            { _, me in
                guard let me else { return }
                let meter = Unmanaged<PulseMeter>.fromOpaque(me).takeUnretainedValue()
                withExtendedLifetime(meter) { meter.stateChanged() }
            }, me)
        pa_stream_set_read_callback(
            stream,
            { _, _, me in
                guard let me else { return }
                let meter = Unmanaged<PulseMeter>.fromOpaque(me).takeUnretainedValue()
                withExtendedLifetime(meter) { meter.read() }
            }, me)
        let peak = UInt32(MemoryLayout<Float>.size)
        var buffer = pa_buffer_attr(maxlength: .max, tlength: .max, prebuf: .max, minreq: .max, fragsize: peak)
        let flags =
            PA_STREAM_PEAK_DETECT.rawValue | PA_STREAM_ADJUST_LATENCY.rawValue | PA_STREAM_DONT_MOVE.rawValue
            | PA_STREAM_DONT_INHIBIT_AUTO_SUSPEND.rawValue
        guard pa_stream_set_monitor_stream(stream, index) >= 0,
            pa_stream_connect_record(stream, nil, &buffer, pa_stream_flags_t(rawValue: flags)) >= 0
        else { return nil }
    }

    deinit {
        pa_stream_set_state_callback(stream, nil, nil)
        pa_stream_set_read_callback(stream, nil, nil)
        pa_stream_disconnect(stream)
        pa_stream_unref(stream)
    }

    /// Reports nothing more, and ends. If the server is still creating it, it ends after that; otherwise libpulse would
    /// forget it and the server would keep it.
    func close() {
        onChange = nil
        if pa_stream_get_state(stream) == PA_STREAM_CREATING { leaving = self }
    }

    /// The server's number of the recording; nil until it exists, and after its end.
    var index: UInt32? { pa_stream_get_state(stream) == PA_STREAM_READY ? pa_stream_get_index(stream) : nil }

    private func stateChanged() {
        leaving = nil
        switch pa_stream_get_state(stream) {
        case PA_STREAM_FAILED, PA_STREAM_TERMINATED:
            isOver = true
            if attempts == PulseMeter.mostAttempts { hasSound = true }
            onChange?()
        default: break
        }
    }

    private func read() {
        var peak: Float = 0
        var count = 0
        while pa_stream_readable_size(stream) > 0 {
            var data: UnsafeRawPointer?
            var size = 0
            guard pa_stream_peek(stream, &data, &size) >= 0, size > 0 else { break }
            let values = UnsafeRawBufferPointer(start: data, count: data == nil ? 0 : size)
            for bits in values.bindMemory(to: UInt32.self) {
                peak = max(peak, abs(Float(bitPattern: UInt32(littleEndian: bits))))
            }
            count += max(1, size / MemoryLayout<Float>.size)
            pa_stream_drop(stream)
        }
        guard count > 0 else { return }
        silentPeaks = peak >= PulseMeter.quietest ? 0 : silentPeaks + count
        let hadSound = hasSound
        // At first, nothing was heard yet.
        hasSound = peak >= PulseMeter.quietest || hasSound && silentPeaks < PulseMeter.span
        if hasSound != hadSound { onChange?() }
    }
}
