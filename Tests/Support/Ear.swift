import CPulse
import Foundation

/// Records the monitor of a sink continuously, 48 kHz mono, as long as this object exists.
public final class Ear {
    public static let rate = 48_000.0

    private let connection: PulseThread
    private let stream: OpaquePointer
    private let recording = Recording()

    /// Starts to record in fragments of `fragment` seconds, and waits for the first samples. The server mixes the sound of
    /// the sink in pieces of that length; a test that measures how fast something falls silent needs short ones.
    public convenience init(_ pulse: any PrivateServer, sink: String, fragment: Double = 0.01) throws {
        try self.init(server: pulse.serverString, sink: sink, fragment: fragment)
    }

    /// The same on any server. `server` has the form of PULSE_SERVER.
    public init(server: String, sink: String, fragment: Double = 0.01) throws {
        let connection = try PulseThread(server: server, name: "ear", properties: ["media.role": "test"])
        self.connection = connection
        var spec = pa_sample_spec(format: PA_SAMPLE_S16LE, rate: UInt32(Ear.rate), channels: 1)
        guard let made = connection.locked({ pa_stream_new(connection.context, "ear", &spec, nil) }) else {
            throw SupportError("pa_stream_new")
        }
        stream = made
        let context = Unmanaged.passUnretained(recording).toOpaque()
        var buffer = pa_buffer_attr()
        buffer.maxlength = .max
        buffer.fragsize = UInt32(max(2, fragment * Ear.rate * 2)) & ~1
        let flags = PA_STREAM_ADJUST_LATENCY.rawValue | PA_STREAM_DONT_MOVE.rawValue
        let status = connection.locked {
            pa_stream_set_read_callback(
                made,
                { stream, _, context in
                    guard let stream, let context else { return }
                    Unmanaged<Recording>.fromOpaque(context).takeUnretainedValue().read(stream)
                }, context)
            return pa_stream_connect_record(made, sink + ".monitor", &buffer, pa_stream_flags(rawValue: flags))
        }
        let hears = { connection.locked { !self.recording.samples.isEmpty } }
        if status == 0, !eventually(timeout: 0.05, hears), try isIdle(sink) {
            try connection.wait { pa_context_suspend_sink_by_name(connection.context, sink, 1, nil, nil) }
            try connection.wait { pa_context_suspend_sink_by_name(connection.context, sink, 0, nil, nil) }
        }
        guard status == 0, eventually(timeout: 10, hears) else { throw SupportError("cannot record \(sink)") }
    }

    /// Whether nothing plays on the sink. An idle null sink of PulseAudio may still sleep for two seconds, which it
    /// began before the recording. Suspending and resuming it ends the sleep.
    private func isIdle(_ sink: String) throws -> Bool {
        var state = PA_SINK_INVALID_STATE
        try withUnsafeMutablePointer(to: &state) { state in
            try connection.wait {
                pa_context_get_sink_info_by_name(
                    connection.context, sink,
                    { _, info, _, context in
                        guard let info, let context else { return }
                        context.assumingMemoryBound(to: pa_sink_state_t.self).pointee = info.pointee.state
                    }, state)
            }
        }
        return state == PA_SINK_IDLE
    }

    deinit {
        connection.locked {
            pa_stream_set_read_callback(stream, nil, nil)
            pa_stream_disconnect(stream)
            pa_stream_unref(stream)
        }
    }

    /// The length of the recording so far, in seconds.
    public var duration: Double { connection.locked { Double(recording.samples.count) } / Ear.rate }

    /// The level of a frequency in dBFS (0 is a full-scale sine, -120 silence) over the last `seconds` of the
    /// recording.
    public func level(of hertz: Double, last seconds: Double = 0.05) -> Double {
        connection.locked {
            Pitch.level(of: hertz, in: recording.samples.suffix(Int(seconds * Ear.rate)), rate: Ear.rate)
        }
    }

    /// The level of a steady tone. Waits until two pieces of `seconds` each have the same level, because on a busy
    /// machine a piece may contain a drop-out. If there are none, returns the last level.
    public func steadyLevel(of hertz: Double, seconds: Double = 0.1) -> Double {
        let count = Int(seconds * Ear.rate)
        var result: Double?
        _ = eventually {
            let last = connection.locked { Array(recording.samples.suffix(2 * count)) }
            guard last.count == 2 * count else { return false }
            let levels = [last.prefix(count), last.suffix(count)].map {
                Pitch.level(of: hertz, in: $0, rate: Ear.rate)
            }
            if levels[0] > -100, abs(levels[0] - levels[1]) < 0.02 { result = levels[1] }
            return result != nil
        }
        return result ?? level(of: hertz, last: seconds)
    }

    /// Waits until the level of a frequency over `window` seconds is at least `above` and at most `below`, in dBFS.
    /// Only samples that are recorded from now on count. Returns false after `timeout` seconds.
    public func waitUntil(
        _ hertz: Double, above: Double? = nil, below: Double? = nil, window: Double = 0.02, timeout: Double = 10
    ) -> Bool {
        let fresh = connection.locked { recording.samples.count } + Int(window * Ear.rate)
        return eventually(timeout: timeout) {
            guard connection.locked({ recording.samples.count }) >= fresh else { return false }
            let level = level(of: hertz, last: window)
            return level >= (above ?? -.infinity) && level <= (below ?? .infinity)
        }
    }

    /// The level of a frequency in each window since `since`, with the time (``monotonicNow()``) at which the window
    /// ended.
    public func trace(_ hertz: Double, window: Double = 0.005, since: Double = 0) -> [(time: Double, level: Double)] {
        let (samples, blocks) = connection.locked { (recording.samples, recording.blocks) }
        let count = max(1, Int(window * Ear.rate))
        var result: [(time: Double, level: Double)] = []
        var block = 0
        var start = 0
        while start + count <= samples.count {
            let end = start + count
            while block < blocks.count - 1, blocks[block].end < end { block += 1 }
            let time = blocks[block].arrival - Double(blocks[block].end - end) / Ear.rate
            if time >= since {
                result.append((time, Pitch.level(of: hertz, in: samples[start..<end], rate: Ear.rate)))
            }
            start = end
        }
        return result
    }

    /// All samples so far, with the end and the time of arrival of each fragment.
    var recorded: (samples: [Int16], blocks: [(end: Int, arrival: Double)]) {
        connection.locked { (recording.samples, recording.blocks) }
    }

    /// libpulse's thread writes this. Other threads read it under the connection's lock.
    private final class Recording {
        var samples: [Int16] = []
        /// The end and the time of arrival of each fragment.
        var blocks: [(end: Int, arrival: Double)] = []

        func read(_ stream: OpaquePointer) {
            let now = monotonicNow()
            while pa_stream_readable_size(stream) > 0 {
                var data: UnsafeRawPointer?
                var size = 0
                guard pa_stream_peek(stream, &data, &size) == 0, size > 0 else { break }
                if let data {
                    samples.append(
                        contentsOf: UnsafeBufferPointer(
                            start: data.assumingMemoryBound(to: Int16.self), count: size / 2))
                } else {
                    samples.append(contentsOf: repeatElement(0, count: size / 2))
                }
                pa_stream_drop(stream)
                blocks.append((samples.count, now))
            }
        }
    }
}
