import CPulse
public import EventLoop
public import PluginAPI

/// A ``SampleCache`` on the sample cache of PulseAudio, or of PipeWire's PulseAudio server.
public final class PulseSampleCache: SampleCache {
    public var onEnded: ((_ stream: UInt32, _ wasWhole: Bool) -> Void)?
    public var onLost: (() -> Void)?

    private let loop: EventLoop
    private let name: String
    private let server: String?
    private var context: OpaquePointer?
    private var isReady = false
    /// Requests made before the server was connected.
    private var waiting: [(SessionError?) -> Void] = []
    private var playing: Set<UInt32> = []
    private var stopped: Set<UInt32> = []

    /// - Parameters:
    ///   - name: the client's name at the server, which mixers show.
    ///   - server: as for PULSE_SERVER; nil: the default one.
    public init(loop: EventLoop, name: String, server: String? = nil) {
        self.loop = loop
        self.name = name
        self.server = server
    }

    deinit { disconnect() }

    // MARK: SampleCache

    public func upload(
        _ sample: SoundSample, as name: String, _ reply: @escaping (Result<Void, SessionError>) -> Void
    ) {
        connected { [unowned self] problem in
            guard problem == nil, let context else { return reply(.failure(problem ?? Self.gone)) }
            guard let upload = Upload(sample, as: name, on: context, reply) else {
                return reply(.failure(Self.refused("cannot take '\(name)'", context)))
            }
            upload.start()
        }
    }

    public func play(
        _ name: String, gain: Double, _ reply: @escaping (Result<UInt32, SessionError>) -> Void
    ) {
        connected { [unowned self] problem in
            guard problem == nil, let context else { return reply(.failure(problem ?? Self.gone)) }
            let list = pa_proplist_new()
            defer { pa_proplist_free(list) }
            pa_proplist_sets(list, PA_PROP_MEDIA_ROLE, "event")
            // The volume of a sample for which none was set.
            let volume = gain < 0 ? pa_sw_volume_from_dB(gain) : pa_volume_t.max
            let answer = Answer(self, reply)
            answers[ObjectIdentifier(answer)] = answer
            let operation = pa_context_play_sample_with_proplist(
                context, name, nil, volume, list,
                { context, stream, answer in
                    guard let answer else { return }
                    Unmanaged<Answer>.fromOpaque(answer).takeUnretainedValue().take(stream, context)
                }, Unmanaged.passUnretained(answer).toOpaque())
            guard let operation else {
                answers[ObjectIdentifier(answer)] = nil
                return reply(.failure(Self.refused("cannot play '\(name)'", context)))
            }
            pa_operation_unref(operation)
        }
    }

    public func stop(_ stream: UInt32) {
        guard let context, isReady, playing.contains(stream) else { return }
        stopped.insert(stream)
        if let operation = pa_context_kill_sink_input(context, stream, nil, nil) { pa_operation_unref(operation) }
    }

    public func remove(_ name: String) {
        guard let context, isReady else { return }
        if let operation = pa_context_remove_sample(context, name, nil, nil) { pa_operation_unref(operation) }
    }

    // MARK: The connection

    private func connected(_ body: @escaping (SessionError?) -> Void) {
        if isReady { return body(nil) }
        waiting.append(body)
        guard context == nil else { return }
        guard let made = pa_context_new(loop.api, name) else { return failed() }
        context = made
        let me = Unmanaged.passUnretained(self).toOpaque()
        pa_context_set_state_callback(
            made,
            { _, me in
                guard let me else { return }
                let cache = Unmanaged<PulseSampleCache>.fromOpaque(me).takeUnretainedValue()
                withExtendedLifetime(cache) { cache.stateChanged() }
            }, me)
        pa_context_set_subscribe_callback(
            made,
            { _, event, index, me in
                guard let me else { return }
                let isRemoved =
                    event.rawValue & PA_SUBSCRIPTION_EVENT_TYPE_MASK.rawValue == PA_SUBSCRIPTION_EVENT_REMOVE.rawValue
                let cache = Unmanaged<PulseSampleCache>.fromOpaque(me).takeUnretainedValue()
                if isRemoved { withExtendedLifetime(cache) { cache.ended(index) } }
            }, me)
        // If no server listens, this fails at once; that is reported from the loop, like every failure.
        if pa_context_connect(made, server, PA_CONTEXT_NOAUTOSPAWN, nil) < 0 {
            loop.later { [weak self] in if self?.context == made { self?.failed() } }
        }
    }

    private func stateChanged() {
        guard let context else { return }
        switch pa_context_get_state(context) {
        case PA_CONTEXT_READY:
            isReady = true
            if let operation = pa_context_subscribe(context, PA_SUBSCRIPTION_MASK_SINK_INPUT, nil, nil) {
                pa_operation_unref(operation)
            }
            let bodies = waiting
            waiting = []
            for body in bodies { body(nil) }
        case PA_CONTEXT_FAILED, PA_CONTEXT_TERMINATED:
            // Later, because this is a callback of the context.
            loop.later { [weak self] in if self?.context == context { self?.failed() } }
        default: break
        }
    }

    private func failed() {
        let wasReady = isReady
        disconnect()
        let bodies = waiting
        waiting = []
        for body in bodies { body(Self.gone) }
        // The context is gone and calls no callbacks.
        let unanswered = answers.values
        answers = [:]
        for answer in unanswered { answer.reply(.failure(Self.gone)) }
        let lost = playing
        (playing, stopped) = ([], [])
        if wasReady { onLost?() }
        for stream in lost { onEnded?(stream, false) }
    }

    /// A request that the server has not answered.
    private var answers: [ObjectIdentifier: Answer] = [:]

    private func disconnect() {
        isReady = false
        guard let context else { return }
        self.context = nil
        pa_context_set_state_callback(context, nil, nil)
        pa_context_set_subscribe_callback(context, nil, nil)
        pa_context_disconnect(context)
        pa_context_unref(context)
    }

    private func ended(_ stream: UInt32) {
        guard playing.remove(stream) != nil else { return }
        onEnded?(stream, stopped.remove(stream) == nil)
    }

    private static let gone = SessionError(.mediaServicesFailed, "there is no sound server")

    private static func refused(_ what: String, _ context: OpaquePointer?) -> SessionError {
        let reason = context.flatMap { pa_strerror(pa_context_errno($0)) }.map { String(cString: $0) } ?? "no reason"
        return SessionError(.mediaServicesFailed, "the sound server \(what): \(reason)")
    }

    /// A request that waits for the number of the stream that plays a sample.
    private final class Answer {
        private weak var cache: PulseSampleCache?
        let reply: (Result<UInt32, SessionError>) -> Void

        init(_ cache: PulseSampleCache, _ reply: @escaping (Result<UInt32, SessionError>) -> Void) {
            self.cache = cache
            self.reply = reply
        }

        func take(_ stream: UInt32, _ context: OpaquePointer?) {
            // This may release the last reference.
            let answer = cache?.answers.removeValue(forKey: ObjectIdentifier(self))
            defer { withExtendedLifetime(answer) {} }
            // PA_INVALID_INDEX.
            guard stream != .max, let cache else {
                return reply(.failure(PulseSampleCache.refused("cannot play the sample", context)))
            }
            cache.playing.insert(stream)
            reply(.success(stream))
        }
    }

    /// An upload of one sample (`pa_stream_connect_upload`). It lives until the server has the sample.
    private final class Upload {
        private let stream: OpaquePointer
        private let context: OpaquePointer
        private let bytes: [UInt8]
        private var sent = 0
        private var reply: ((Result<Void, SessionError>) -> Void)?

        init?(
            _ sample: SoundSample, as name: String, on context: OpaquePointer,
            _ reply: @escaping (Result<Void, SessionError>) -> Void
        ) {
            var spec = pa_sample_spec(
                format: PA_SAMPLE_S16LE, rate: UInt32(clamping: sample.sampleRate),
                channels: UInt8(clamping: sample.channels))
            guard let stream = pa_stream_new(context, name, &spec, nil) else { return nil }
            self.stream = stream
            self.context = context
            self.reply = reply
            bytes = sample.bytes
        }

        deinit { pa_stream_unref(stream) }

        func start() {
            // Released with the answer.
            let me = Unmanaged.passRetained(self).toOpaque()
            pa_stream_set_state_callback(
                stream,
                { _, me in
                    guard let me else { return }
                    Unmanaged<Upload>.fromOpaque(me).takeUnretainedValue().stateChanged()
                }, me)
            pa_stream_set_write_callback(
                stream,
                { _, room, me in
                    guard let me else { return }
                    Unmanaged<Upload>.fromOpaque(me).takeUnretainedValue().write(room)
                }, me)
            if pa_stream_connect_upload(stream, bytes.count) < 0 { finish(false) }
        }

        private func stateChanged() {
            switch pa_stream_get_state(stream) {
            case PA_STREAM_TERMINATED: finish(sent == bytes.count)
            case PA_STREAM_FAILED: finish(false)
            default: break
            }
        }

        private func write(_ room: Int) {
            let count = min(room, bytes.count - sent)
            guard count > 0 else { return }
            let status = bytes[sent..<sent + count].withUnsafeBytes {
                pa_stream_write(stream, $0.baseAddress, count, nil, 0, PA_SEEK_RELATIVE)
            }
            guard status == 0 else { return finish(false) }
            sent += count
            if sent == bytes.count { pa_stream_finish_upload(stream) }
        }

        private func finish(_ success: Bool) {
            guard let reply else { return }
            self.reply = nil
            pa_stream_set_state_callback(stream, nil, nil)
            pa_stream_set_write_callback(stream, nil, nil)
            reply(success ? .success(()) : .failure(PulseSampleCache.refused("cannot store a sample", context)))
            Unmanaged.passUnretained(self).release()
        }
    }
}
