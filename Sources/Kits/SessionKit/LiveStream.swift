public import DBus
import EventLoop
public import PluginAPI
import SessionBus

/// Sends a live stream to a server, and at the same time into a file.
///
///     let stream = LiveStream(url: "rtmp://live.example.org/app", key: key, source: .test)
///     let notices = stream.notices
///     try await stream.start()
///     for await notice in notices { print(notice) }
///
/// A lost connection is made again, while the encoder and the recording go on. It runs in a process of its own
/// (`sessiond-live`), which ends with this object. With a microphone it has a session of its own: while another session
/// interrupts it, viewers see the pictures and hear nothing.
public actor LiveStream {
    public nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    /// What it sends.
    public enum Source: Sendable, Hashable {
        /// A film at its own pace: a path or a `file:` URI.
        case file(String)
        /// The screen of an X11 server; nil: that of `DISPLAY`.
        case screen(display: String? = nil)
        /// A camera, by its id, its position (`front`, `back`, `external`) or its name; nil: the first one.
        case camera(String? = nil)
        /// A test picture with a tone.
        case test
    }

    public struct Options: Sendable, Hashable {
        /// The sound is that of the microphone.
        public var microphone = false
        public var onInterruption = LiveInterruption.silence
        /// Of pictures and sound, in bits per second.
        public var bitrate: UInt32 = 2_500_000
        public var audioBitrate: UInt32 = 128_000
        /// Whether the bit rate of the pictures follows what the network carries.
        public var isAdaptive = true
        /// The distance of key frames, 0.5 to 10 seconds.
        public var keyFrameInterval = 2.0
        /// Even numbers; nil: that of the source, at most 1920 × 1080.
        public var size: PictureSize?
        /// 1 to 60 pictures per second; nil: those of the film, or 30.
        public var frameRate: UInt32?
        /// What is done to the pictures, in this order; at most 16.
        public var filters: [LiveFilter] = []
        /// The delay of SRT in milliseconds.
        public var latency: UInt32 = 120
        /// The path of a file (mp4, mov or mkv) that gets the same stream; nil: none.
        public var recording: String?
        /// Whether that file may exist.
        public var overwrites = false
        /// How many seconds it tries to connect again.
        public var giveUp = 300.0
        /// The name of the session of the microphone.
        public var name = ""

        public init() {}
    }

    public enum Notice: Sendable, Hashable {
        case stateDidChange(LiveState)
        /// The recording ended early, or lacks pictures; the stream goes on.
        case recordingFailed(SessionError)
        /// It is over, and the recording is complete.
        case didFinish(LiveEnd)
        /// It gave up, or its source failed.
        case didFail(SessionError)

        /// From a signal of `org.sessiond1.LiveStream`; nil: it is another one.
        init?(_ signal: String, _ values: [Value]) {
            let word = values.first?.stringValue ?? ""
            let error = SessionError(Failure(name: word, message: values.last?.stringValue ?? ""))
            switch signal {
            case "StateChanged":
                guard let state = LiveState(rawValue: word) else { return nil }
                self = .stateDidChange(state)
            case "RecordingFailed": self = .recordingFailed(error)
            case "Failed": self = .didFail(error)
            case "Finished": self = .didFinish(LiveEnd(rawValue: word) ?? .stopped)
            case _: return nil
            }
        }
    }

    /// Figures of the stream.
    public struct Statistics: Sendable, Hashable {
        public let state: LiveState
        /// Why it is not live; empty: no reason.
        public let message: String
        /// Seconds since the server takes it without a break.
        public let uptime: Double
        public let bytesSent: UInt64
        /// Of the pictures now, in bits per second.
        public let bitrate: UInt32
        /// Seconds to the server and back, of SRT; 0: unknown.
        public let roundTripTime: Double
        public let droppedFrames: UInt64
        public let reconnects: UInt32

        init(_ fields: [String: Value]) {
            state = LiveState(rawValue: fields["State"]?.stringValue ?? "") ?? .idle
            message = fields["Message"]?.stringValue ?? ""
            uptime = fields["Uptime"]?.doubleValue ?? 0
            bytesSent = fields["BytesSent"]?.uint64Value ?? 0
            bitrate = fields["Bitrate"]?.uint32Value ?? 0
            roundTripTime = fields["Rtt"]?.doubleValue ?? 0
            droppedFrames = fields["DroppedFrames"]?.uint64Value ?? 0
            reconnects = fields["Reconnects"]?.uint32Value ?? 0
        }
    }

    public nonisolated let source: Source
    private let url: String
    private let key: String
    private let options: Options
    private let client: PluginClient
    private let broadcast = Broadcast<Notice>()
    private var path: String?

    /// - Parameters:
    ///   - url: `rtmp://HOST/APPLICATION/KEY` (or `rtmps:`), `srt://HOST:PORT?streamid=KEY`,
    ///     `https://HOST/PATH` of WHIP (WebRTC), or a folder that gets HLS.
    ///   - key: the key, if it is not in the address.
    ///   - bus: where sessiond is, for the microphone.
    public init(
        url: String, key: String = "", source: Source, options: Options = Options(), bus: BusAddress = .session
    ) {
        self.init(url: url, key: key, source: source, options: options, bus: bus, environment: [:])
    }

    /// - Parameter environment: changed variables of the plugin's process.
    package init(
        url: String, key: String, source: Source, options: Options, bus: BusAddress, environment: [String: String]
    ) {
        (self.url, self.key, self.source, self.options) = (url, key, source, options)
        client = PluginClient(.live, on: bus, .own(arguments: [], environment: environment))
    }

    deinit { broadcast.finish() }

    /// All of them from now on.
    public nonisolated var notices: AsyncStream<Notice> { broadcast.stream() }

    /// Opens the source, and connects; the state tells when the server takes the stream.
    /// - Throws: the reason why the source cannot be opened, or why the microphone may not be used; `BadParameter` for a
    ///   wrong address; `ResourceNotAvailable` if the plugin (`sessiond-live`) is not installed.
    public func start() async throws(SessionError) {
        let path = try await made()
        try await client.ask("Start", of: BusName.liveStream, at: path)
    }

    /// Ends it, and completes the recording; ``Notice/didFinish(_:)`` follows.
    public func stop() async {
        guard let path else { return }
        _ = try? await client.ask("Stop", of: BusName.liveStream, at: path)
    }

    /// Ends the process. ``start()`` begins anew.
    public func close() async {
        path = nil
        await client.close()
    }

    /// In bits per second, from now on.
    public func setBitrate(_ bitrate: UInt32) async throws(SessionError) {
        try await client.ask("SetBitrate", [.uint32(bitrate)], of: BusName.liveStream, at: try await made())
    }

    /// Whether the microphone is heard.
    /// - Throws: `NotSupported` without a microphone, `NotReady` before it was started.
    public func setMicrophone(_ isOn: Bool) async throws(SessionError) {
        let path = try await made()
        _ = try await client.ask(
            "Set", [.string(BusName.liveStream), .string("Microphone"), .variant(.bool(isOn))],
            of: StandardName.properties, at: path)
    }

    /// What it is doing now.
    public var statistics: Statistics {
        get async {
            var fields: [String: Value] = [:]
            if let path { fields = (try? await client.properties(of: BusName.liveStream, at: path)) ?? [:] }
            return Statistics(fields)
        }
    }

    private func made() async throws(SessionError) -> String {
        if let path { return path }
        await client.follow { [weak self] news in self?.assumeIsolated { $0.heard(news) } }
        try await client.listen(to: BusName.liveStream)
        let answer = try await client.ask("CreateStream", [.string(Self.address(url)), .properties(wire)])
        guard let made = answer.first?.objectPathValue else {
            throw SessionError(.resourceNotAvailable, "the plugin for live streams made none")
        }
        path = made
        return made
    }

    /// A folder may be given as a relative path.
    static func address(_ url: String) -> String { url.includes(":") ? url : MediaPath.file(url) ?? url }

    private var wire: [(String, Value)] {
        var values: [(String, Value)] = [
            ("microphone", .bool(options.microphone)), ("on-interruption", .string(options.onInterruption.rawValue)),
            ("bitrate", .uint32(options.bitrate)), ("audio-bitrate", .uint32(options.audioBitrate)),
            ("adaptive", .bool(options.isAdaptive)), ("gop", .double(options.keyFrameInterval)),
            ("latency", .uint32(options.latency)), ("give-up", .double(options.giveUp)),
            ("overwrite", .bool(options.overwrites)), ("name", .string(options.name)), ("stream-key", .string(key)),
        ]
        switch source {
        case .file(let address):
            values += [("source", .string("file")), ("file", .string(MediaPath.file(address) ?? address))]
        case .screen(let display):
            values.append(("source", .string("screen")))
            if let display { values.append(("display", .string(display))) }
        case .camera(let name):
            values.append(("source", .string("camera")))
            if let name { values.append(("camera", .string(name))) }
        case .test: values.append(("source", .string("test")))
        }
        if let size = options.size {
            values.append(
                ("size", .structure([.uint32(UInt32(clamping: size.width)), .uint32(UInt32(clamping: size.height))])))
        }
        if !options.filters.isEmpty { values.append(("filter", .strings(options.filters.map(\.word)))) }
        if let rate = options.frameRate { values.append(("frame-rate", .uint32(rate))) }
        if let recording = options.recording {
            values.append(("record", .string(MediaPath.file(recording) ?? recording)))
        }
        return values
    }

    private func heard(_ news: PluginClient.News) {
        switch news {
        case .found, .changed: break
        case .lost:
            path = nil
            broadcast.send(.didFail(SessionError(.mediaServicesFailed, "the plugin for live streams ended")))
        case .signal(let signal, let values): if let notice = Notice(signal, values) { broadcast.send(notice) }
        }
    }
}
