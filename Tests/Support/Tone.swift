import CPulse
import Foundation

/// A sine on a separate PulseAudio client connection: a program that does not use sessiond.
public final class Tone {
    private let connection: PulseThread
    private let stream: OpaquePointer
    private let wave: Wave

    /// Starts to play and waits until the server has the stream. `properties` are those of the stream (`media.role`,
    /// …). `processID` is the process that the client states. Without `sink` the server chooses one. With `obeysCork`
    /// the program pauses when the server asks for it (`request-cork`). With `isFixed` the stream cannot be moved to
    /// another sink.
    public init(
        _ pulse: any PrivateServer, hertz: Double, amplitude: Double = 0.25, name: String = "tone", sink: String? = nil,
        processID: Int32? = nil, properties: [String: String] = [:], obeysCork: Bool = false, isFixed: Bool = false,
        latency: Double = 0.02
    ) throws {
        var own: [String: String] = [:]
        if let processID { own["application.process.id"] = String(processID) }
        let connection = try PulseThread(server: pulse.serverString, name: name, properties: own)
        self.connection = connection
        wave = Wave(hertz: hertz, amplitude: amplitude, obeysCork: obeysCork)
        var spec = pa_sample_spec(format: PA_SAMPLE_S16LE, rate: 48_000, channels: 1)
        let list = pa_proplist_new()
        for (key, value) in properties { pa_proplist_sets(list, key, value) }
        defer { pa_proplist_free(list) }
        let made = connection.locked { pa_stream_new_with_proplist(connection.context, name, &spec, nil, list) }
        guard let made else { throw SupportError("pa_stream_new_with_proplist") }
        stream = made
        let context = Unmanaged.passUnretained(wave).toOpaque()
        var buffer = pa_buffer_attr()
        buffer.maxlength = .max
        buffer.tlength = UInt32(latency * 48_000) * 2
        buffer.prebuf = .max
        buffer.minreq = .max
        connection.locked {
            pa_stream_set_write_callback(
                made,
                { stream, size, context in
                    guard let stream, let context else { return }
                    Unmanaged<Wave>.fromOpaque(context).takeUnretainedValue().write(to: stream, size)
                }, context)
            pa_stream_set_event_callback(
                made,
                { stream, name, _, context in
                    guard let stream, let name, let context else { return }
                    Unmanaged<Wave>.fromOpaque(context).takeUnretainedValue().event(String(cString: name), on: stream)
                }, context)
            let flags = PA_STREAM_ADJUST_LATENCY.rawValue | (isFixed ? PA_STREAM_DONT_MOVE.rawValue : 0)
            _ = pa_stream_connect_playback(made, sink, &buffer, pa_stream_flags(rawValue: flags), nil, nil)
        }
        guard eventually(timeout: 10, { state == PA_STREAM_READY || state == PA_STREAM_FAILED }),
            state == PA_STREAM_READY
        else { throw SupportError("\(name) cannot play") }
    }

    deinit {
        connection.locked {
            pa_stream_set_write_callback(stream, nil, nil)
            pa_stream_set_event_callback(stream, nil, nil)
            pa_stream_disconnect(stream)
            pa_stream_unref(stream)
        }
    }

    private var state: pa_stream_state_t { connection.locked { pa_stream_get_state(stream) } }

    /// The number of the stream (sink input) at the server.
    public var index: UInt32 { connection.locked { pa_stream_get_index(stream) } }
    /// The present sink of the stream.
    public var sink: String {
        connection.locked { pa_stream_get_device_name(stream).map { String(cString: $0) } ?? "" }
    }
    public var isCorked: Bool { connection.locked { pa_stream_is_corked(stream) == 1 } }
    public var isFailed: Bool { state == PA_STREAM_FAILED }
    /// The requests of the server so far (`request-cork`, …).
    public var events: [String] { connection.locked { wave.events } }

    public func cork() throws { try connection.wait { pa_stream_cork(stream, 1, nil, nil) } }
    public func uncork() throws { try connection.wait { pa_stream_cork(stream, 0, nil, nil) } }

    /// Starts a real program in a process of its own (pacat) that plays `hertz` for `seconds`, and does not wait for
    /// it.
    ///
    /// With a much lower `latency` (in seconds), pacat has drop-outs on a busy machine.
    public static func program(
        _ pulse: any PrivateServer, hertz: Double, seconds: Double = 60, amplitude: Double = 0.25,
        name: String = "pacat",
        sink: String? = nil, properties: [String: String] = [:], latency: Double = 0.2
    ) throws -> Child {
        let path = try file(pulse, hertz: hertz, seconds: seconds, amplitude: amplitude)
        var arguments = [
            "--playback", "--raw", "--format=s16le", "--rate=48000", "--channels=1",
            "--latency-msec=\(Int(latency * 1_000))", "--client-name=\(name)", "--stream-name=\(name)",
        ]
        if let sink { arguments.append("--device=\(sink)") }
        for (key, value) in properties { arguments.append("--property=\(key)=\(value)") }
        return try Child("pacat", arguments + [path], environment: pulse.environment)
    }

    /// Writes a file with raw samples of `hertz` (16 bits, 48 kHz, mono) and returns its path.
    public static func file(
        _ pulse: any PrivateServer, hertz: Double, seconds: Double = 60, amplitude: Double = 0.25
    ) throws -> String {
        let path = pulse.folder.path + "/tone-\(hertz)-\(seconds)-\(amplitude).raw"
        if !FileManager.default.fileExists(atPath: path) {
            let wave = Wave(hertz: hertz, amplitude: amplitude, obeysCork: false)
            let data = wave.samples(Int(seconds * 48_000)).withUnsafeBytes { Data($0) }
            try data.write(to: URL(fileURLWithPath: path))
        }
        return path
    }

    /// libpulse's thread uses this. Other threads use it under the connection's lock.
    private final class Wave {
        let step: Double
        let amplitude: Double
        let obeysCork: Bool
        var phase = 0.0
        var events: [String] = []

        init(hertz: Double, amplitude: Double, obeysCork: Bool) {
            step = 2 * Double.pi * hertz / 48_000
            self.amplitude = amplitude
            self.obeysCork = obeysCork
        }

        func samples(_ count: Int) -> [Int16] {
            (0..<count).map { _ in
                let value = Int16(amplitude * 32_767 * sin(phase))
                phase = (phase + step).truncatingRemainder(dividingBy: 2 * Double.pi)
                return value
            }
        }

        func write(to stream: OpaquePointer, _ size: Int) {
            let block = samples(size / 2)
            _ = block.withUnsafeBytes { pa_stream_write(stream, $0.baseAddress, $0.count, nil, 0, PA_SEEK_RELATIVE) }
        }

        func event(_ name: String, on stream: OpaquePointer) {
            events.append(name)
            guard obeysCork else { return }
            let operation: OpaquePointer? =
                switch name {
                case PA_STREAM_EVENT_REQUEST_CORK: pa_stream_cork(stream, 1, nil, nil)
                case PA_STREAM_EVENT_REQUEST_UNCORK: pa_stream_cork(stream, 0, nil, nil)
                default: nil
                }
            if let operation { pa_operation_unref(operation) }
        }
    }
}
