package import CGStreamer
import CStreaming
package import EventLoop
import GStreamerBackend
import GStreamerBase
import HTTP
package import LiveStreaming
package import PluginAPI

/// The connection of a live stream to its server, made again when it is lost. A capture session can own one just as
/// ``LivePush`` does: it needs only ``EncodedStreams``.
package final class LiveOutput {
    package enum Event: Sendable, Hashable {
        /// The state, or one of the figures, has changed.
        case changed
        /// It gave up.
        case failed(SessionError)
        /// After ``finish()``: the server has all of it, or as much as it takes.
        case finished
    }

    package var onEvent: ((Event) -> Void)?
    /// The encoder is to use this bit rate from now on, in bits per second.
    package var onBitrate: ((Int) -> Void)?

    package let target: LiveTarget
    private let streams: EncodedStreams
    private let latency: Int
    private let loop: EventLoop
    private var link: LiveLink
    private var control: BitrateControl
    private var branch: StreamBranch?
    /// For WebRTC.
    private var sender: WebRTCSender?
    private lazy var client = HTTPClient(on: loop)
    /// Of the connections before.
    private var earlier = (bytes: UInt64(0), dropped: UInt64(0))
    private var isFinishing = false
    /// When the connection was last seen to take something, and how many buffers it had then.
    private var progress = (arrived: UInt64(0), time: UInt64(0))
    private lazy var deadline = Timer(on: loop) { [unowned self] in take(.timePassed) }
    private lazy var question = Timer(on: loop) { [unowned self] in askServer() }
    private lazy var look = Timer(on: loop) { [unowned self] in observe() }
    private lazy var farewell = Timer(on: loop) { [unowned self] in cutOff() }
    /// A film is over, and the server has not taken its end yet.
    private var owesEnd = false

    /// How much of the stream may wait to be sent, in seconds. What is older is not live any more.
    private static let queueLimit = 2.0
    /// A connection that takes nothing for so long is lost, in microseconds.
    private static let patience: UInt64 = 6_000_000
    /// Seconds between two questions whether a server of RTMP takes the stream.
    private static let questionTime = 0.05
    /// Seconds between two looks at the queue.
    private static let interval = 0.5
    /// Seconds that the end of a stream may take. WebRTC has no word for it: the last pictures are on their way.
    private static func ending(of method: LiveTarget.Method) -> Double { method == .whip ? 0.3 : 3 }

    package init(
        _ target: LiveTarget, _ settings: LiveSettings, on streams: EncodedStreams, _ loop: EventLoop
    ) {
        (self.target, self.streams, self.loop) = (target, streams, loop)
        latency = target.latency ?? settings.latency
        link = LiveLink(giveUp: settings.giveUp)
        control = BitrateControl(settings.bitrate, isAdaptive: settings.isAdaptive)
    }

    // MARK: Facts

    package var state: LiveState { link.state }
    /// Seconds since the server takes it without a break; 0: it does not.
    package var uptime: Double {
        link.liveSince.map { Double(MonotonicClock.now() - min($0, MonotonicClock.now())) / 1e6 } ?? 0
    }
    package var bytesSent: UInt64 { earlier.bytes + (branch?.facts.bytes ?? 0) }
    /// Pictures that a server which was connected did not get, because the network was too slow.
    package var droppedFrames: UInt64 { earlier.dropped + (branch?.facts.dropped ?? 0) }
    package var reconnects: Int { link.reconnects }
    package var bitrate: Int { control.current }
    /// What waits to be sent, in seconds.
    package var queued: Double { branch?.facts.queued ?? 0 }
    /// The time to the server and back, in seconds; 0 if unknown: only SRT measures it.
    package var roundTrip: Double {
        guard target.method == .srt, let sender = branch?.child("sender") else { return 0 }
        return shim_srt_round_trip(sender) / 1e3
    }
    /// Why it is not live, for people; empty: no reason.
    package var message: String {
        guard let trouble = link.trouble else { return "" }
        return Self.words(trouble, link.message, target)
    }

    // MARK: Requests

    package func start() { take(.start) }

    /// Sends the end of the stream, and then reports ``Event/finished``.
    package func finish() {
        guard !isFinishing else { return }
        isFinishing = true
        guard link.state == .live, let branch else { return over() }
        branch.finish()
        farewell.arm(after: Self.ending(of: target.method))
    }

    /// The end of the stream is on its way to the server, after the last picture.
    package func expectEnd() {
        guard !isFinishing else { return }
        isFinishing = true
        guard link.state == .live else { return over() }
        owesEnd = target.method != .whip
        farewell.arm(after: Self.ending(of: target.method))
    }

    /// The connection takes nothing more.
    private func cutOff() {
        guard owesEnd else { return over() }
        farewell.disarm()
        take(.stop)
        look.disarm()
        onEvent?(.failed(SessionError(.networkFailed, "\(target.shown) did not take the end of the film")))
    }

    /// Ends it at once; it reports nothing more.
    package func close() {
        onEvent = nil
        take(.stop)
        look.disarm()
        farewell.disarm()
    }

    package func want(bitrate: Int) {
        control.want(bitrate)
        onBitrate?(control.current)
        onEvent?(.changed)
    }

    private func over() {
        farewell.disarm()
        take(.stop)
        look.disarm()
        onEvent?(.finished)
    }

    // MARK: Messages

    /// Looks at a message of the pipeline's bus.
    /// - Returns: whether it was about this output.
    package func take(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        guard let branch else { return false }
        if sender?.take(message) == true { return true }
        switch Notice(message) {
        case .application:
            guard shim_taken_gate(message) == branch.id else { return false }
            connected(branch)
        case .failed(let fault):
            guard branch.owns(message) else { return false }
            if isFinishing {
                cutOff()
            } else {
                take(.lost(UInt64(branch.id), trouble(fault), fault.insecurity?.text ?? target.hidden(fault.text)))
            }
        case .element:
            guard let ended = shim_ended_bin(message), ended == branch.bin else { return false }
            // Also at the end of a film: nothing follows. SRT may still have to send again what was lost.
            isFinishing = true
            owesEnd = false
            if target.method == .srt { farewell.arm(after: 2 * Double(latency) / 1e3) } else { over() }
        case .prerolled, .ended, .segmentDone, .durationChanged, .lacksPlugin, .tags, .buffered, .other: return false
        }
        return true
    }

    /// Of an error of the element that sends. Servers that refuse say so in a command of RTMP, or close the connection
    /// before they take anything.
    private func trouble(_ fault: Fault) -> LiveLink.Trouble {
        if fault.insecurity != nil { return .insecure }
        // rtmp2sink waits for the server for 5 s.
        if fault.text.includes("timed out") { return .stalled }
        if link.state == .live { return .closed }
        let isDenied = ["cmd failed", "denied", "BadName"].contains { fault.text.includes($0) }
        if fault.reason == .notAuthorized || isDenied { return .refused }
        return .unreachable
    }

    private static func words(_ trouble: LiveLink.Trouble, _ text: String, _ target: LiveTarget) -> String {
        let place = target.shown
        return switch (trouble, target.method) {
        case (_, .hls): "'\(place)' cannot be written: \(text)"
        case (.unreachable, _): "\(place) cannot be reached: \(text)"
        case (.refused, _): "\(place) refused the stream; is its key right? (\(text))"
        case (.insecure, _): "\(place) cannot be reached securely: \(text)"
        case (.closed, _): "\(place) closed the connection: \(text)"
        case (.stalled, _): "\(place) takes nothing: \(text)"
        }
    }

    // MARK: The connection

    private func take(_ input: LiveLink.Input) {
        let before = (link.state, link.trouble)
        for effect in link.handle(input, at: MonotonicClock.now()) {
            switch effect {
            case .connect(let number): connect(number)
            case .disconnect: disconnect()
            case .wait(let time): deadline.arm(at: time)
            case .fail(let trouble, let text):
                deadline.disarm()
                onEvent?(.failed(SessionError(Self.code(trouble, target), Self.words(trouble, text, target))))
            }
        }
        if link.connection == nil { look.disarm() }
        switch link.state {
        case .idle, .live, .failed: deadline.disarm()
        case .connecting, .reconnecting: break
        }
        if before != (link.state, link.trouble) { onEvent?(.changed) }
    }

    private static func code(_ trouble: LiveLink.Trouble, _ target: LiveTarget) -> SessionError.Code {
        target.method == .hls ? .exportFailed : trouble == .stalled ? .timedOut : .networkFailed
    }

    private func connect(_ number: UInt64) {
        do throws(Elements.Missing) {
            let made = try StreamBranch(
                UInt32(truncatingIfNeeded: number), description, on: streams, limit: Self.queueLimit,
                needed: needed, sender: [.hls, .whip].contains(target.method) ? nil : "sender")
            if let sender = made.child("sender") { configure(sender) }
            branch = made
            if target.method == .whip { return negotiate(number, made) }
            made.attach()
            if target.method == .rtmp { question.arm(after: Self.questionTime) }
        } catch {
            // It was there when the stream began.
            take(.lost(number, .unreachable, "GStreamer cannot send it: \(error.message)"))
        }
    }

    /// WebRTC gets pictures only when it is connected: what waits until then would be late.
    private func negotiate(_ number: UInt64, _ branch: StreamBranch) {
        guard let element = branch.child("sender") else { return }
        let made = WebRTCSender(element, target, client)
        made.onEvent = { [unowned self] event in
            switch event {
            case .connected:
                branch.link()
                connected(branch)
            case .lost(let trouble, let text): take(.lost(number, trouble, target.hidden(text)))
            }
        }
        sender = made
        branch.start()
        made.begin(in: streams.pipeline)
    }

    /// After how many buffers at the element that sends it is connected: srtsink waits with the first one. rtmp2sink takes some
    /// before it is, so it is asked (``askServer()``). A folder is there from the first picture on.
    private var needed: Int {
        switch target.method {
        case .rtmp, .whip: Int(guint.max)
        case .srt: 2
        case .hls: 0
        }
    }

    private func askServer() {
        guard let branch, link.connection == UInt64(branch.id), link.state != .live, let sender = branch.child("sender")
        else { return }
        guard shim_rtmp_is_taken(sender) != 0 else { return question.arm(after: Self.questionTime) }
        connected(branch)
    }

    private func connected(_ branch: StreamBranch) {
        take(.connected(UInt64(branch.id)))
        progress = (sender?.received ?? branch.facts.arrived, MonotonicClock.now())
        look.arm(after: Self.interval)
    }

    /// The elements between the encoders and the server.
    private var description: String {
        let sound = streams.sound == nil ? "" : " " + StreamBranch.sound
        func heard(_ rest: String) -> String { sound.isEmpty ? "" : sound + rest }
        return switch target.method {
        case .rtmp:
            "flvmux name=mux streamable=true ! rtmp2sink name=sender async-connect=true sync=false async=false timeout=5 "
                + "\(StreamBranch.pictures) ! mux.video" + heard(" ! mux.audio")
        case .srt:
            "mpegtsmux name=mux alignment=7 ! srtsink name=sender mode=caller auto-reconnect=false sync=false async=false "
                + "\(StreamBranch.pictures) ! h264parse config-interval=-1 ! mux." + heard(" ! aacparse ! mux.")
        case .whip:
            "webrtcbin name=sender bundle-policy=max-bundle "
                + "\(StreamBranch.pictures) ! rtph264pay config-interval=-1 aggregate-mode=zero-latency ! application/x-rtp,"
                + "media=video,encoding-name=H264,payload=96,clock-rate=90000,packetization-mode=(string)1 ! sender."
                + heard(
                    " ! rtpopuspay ! application/x-rtp,media=audio,encoding-name=OPUS,payload=97,clock-rate=48000,"
                        + "encoding-params=(string)2 ! sender.")
        case .hls:
            "hlssink2 name=sender target-duration=2 playlist-length=5 max-files=10 "
                + "\(StreamBranch.pictures) ! h264parse config-interval=-1 ! sender.video"
                + heard(" ! aacparse ! sender.audio")
        }
    }

    /// Addresses are properties, because they would need quotes in a description.
    private func configure(_ sender: UnsafeMutablePointer<GstElement>) {
        switch target.method {
        case .rtmp: shim_set_string(sender, "location", target.location)
        case .srt:
            shim_set_string(sender, "uri", target.location)
            shim_set_int(sender, "latency", gint(clamping: latency))
        case .hls:
            // The location is a format, in which each "%" of the folder must be doubled.
            let folder = target.location.split(separator: "%", omittingEmptySubsequences: false).joined(separator: "%%")
            shim_set_string(sender, "location", folder + "/segment%05d.ts")
            shim_set_string(sender, "playlist-location", target.location + "/stream.m3u8")
        case .whip: break
        }
    }

    private func disconnect() {
        question.disarm()
        sender?.close()
        sender = nil
        guard let branch else { return }
        branch.remove()
        let facts = branch.facts
        earlier = (earlier.bytes + facts.bytes, earlier.dropped + facts.dropped)
        self.branch = nil
    }

    // MARK: Back-pressure

    private func observe() {
        guard link.state == .live, let branch else { return }
        look.arm(after: Self.interval)
        let now = MonotonicClock.now()
        let facts = branch.facts
        // WebRTC sends to a server that is gone, too; only what comes from it tells that it is there.
        let arrived = sender?.received ?? facts.arrived
        if arrived != progress.arrived || target.method == .hls || (sender == nil && facts.queued == 0) {
            progress = (arrived, now)
        } else if now > progress.time + Self.patience {
            return take(.lost(UInt64(branch.id), .stalled, "for \(Self.patience / 1_000_000) s"))
        }
        if let bitrate = control.observe(queued: facts.queued, at: now) { onBitrate?(bitrate) }
        onEvent?(.changed)
    }
}
