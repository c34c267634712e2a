import CGStreamer
import CStreaming
public import EventLoop
public import GStreamerBackend
import GStreamerBase
import Glibc
public import LiveStreaming
public import PluginAPI

/// A live stream of a film, a screen, a camera or a test picture: one encoder for the pictures and one for the sound, whose output goes
/// to a server and, at the same time, into a file.
///
/// The encoders never stop and never wait: a lost connection costs only what the viewers miss, and the recording is without a
/// gap. Called on the loop's thread alone.
public final class LivePush: LiveEngine {
    public var onEvent: ((LiveEvent) -> Void)?

    private let loop: EventLoop
    private let settings: LiveSettings
    private let target: LiveTarget
    private let chain: LiveChain
    private let pipeline: Pipeline
    private let camera: LiveCamera?
    private var tracks: FilmTracks?
    private var microphone: LiveMicrophone?
    private var output: LiveOutput?
    private var recording: LiveRecording?
    private var started: ((Result<Void, SessionError>) -> Void)?
    private var end: LiveEnd?
    private var failure: SessionError?
    private var isOver = false
    /// How many of the pictures and the sound have not ended.
    private var unended = 0
    /// The state after the output is gone.
    private var last = LiveState.idle
    private lazy var patience = Timer(on: loop) { [unowned self] in
        if let camera { return look(at: camera) }
        fail(SessionError(.timedOut, "the source gave no picture within \(Int(Self.sourceTime)) s"))
    }
    private lazy var closing = Timer(on: loop) { [unowned self] in
        if let recording, recording.isOpen {
            let message =
                "the end of '\(recording.path)' is missing: the disk took more than \(Int(Self.closingTime)) s"
            onEvent?(.recordingFailed(SessionError(.exportFailed, message)))
        }
        over()
    }
    /// How many errors the screen had given at the last look.
    private var screenErrors: guint = 0
    /// At the last look at the camera.
    private var seenPictures: UInt64 = 0
    private var isSizeKept = false
    private lazy var screenLook = Timer(on: loop) { [unowned self] in lookAtScreen() }
    /// Of the queue before the encoder.
    private var losses: QueueLosses?

    /// Seconds between two looks at the screen.
    private static let screenInterval = 0.5
    /// Seconds between two looks at a camera.
    private static let cameraTime = 5.0
    /// Seconds until the streams of a film are known.
    private static let sourceTime = 10.0
    /// Seconds that completing the file may take.
    private static let closingTime = 10.0

    /// - Parameter device: the server's name of the microphone; nil: its default one.
    /// - Throws: `EncoderNotFound`, `NotFound`, `NotSupported`, each with what to do.
    public init(
        _ target: LiveTarget, _ settings: LiveSettings, _ identity: StreamIdentity, device: String? = nil,
        on loop: EventLoop
    ) throws(SessionError) {
        (self.target, self.settings, self.loop) = (target, settings, loop)
        if case .file(let path) = settings.source, access(path, R_OK) != 0 {
            throw SessionError(
                errno == ENOENT ? .notFound : .badParameter,
                "'\(path)' cannot be read: \(String(cString: strerror(errno)))")
        }
        if let path = settings.recording {
            _ = try LiveRecording.muxer(path)
            var (film, copy) = (stat(), stat())
            if case .file(let source) = settings.source, stat(source, &film) == 0, stat(path, &copy) == 0,
                film.st_dev == copy.st_dev, film.st_ino == copy.st_ino
            {
                throw .badParameter("'\(path)' is the film that is sent: choose another name for the recording")
            }
        }
        try Self.prepare(target, settings)
        if case .camera(let name) = settings.source { camera = try LiveCamera(name, on: loop) } else { camera = nil }
        chain = try LiveChain(settings, target.method, camera: camera?.description)
        do throws(PipelineError) {
            pipeline = try Pipeline(chain.text, on: loop, reachesServer: true)
        } catch {
            throw SessionError(.resourceNotAvailable, "GStreamer lacks an element of the stream: \(error.message)")
        }
        pipeline.onMessage = { [unowned self] in received($0) }
        prepareEncoder()
        try camera?.enter(pipeline)
        LiveFilters.set(settings.filters, in: pipeline)
        if settings.hasMicrophone {
            microphone = LiveMicrophone(in: pipeline, mixer: "mixer", identity, device: device)
        }
    }

    deinit { pipeline.close() }

    /// Makes the folder of HLS, and looks for the elements.
    static func prepare(_ target: LiveTarget, _ settings: LiveSettings) throws(SessionError) {
        if target.method == .hls, mkdir(target.location, 0o755) != 0, errno != EEXIST {
            throw .badParameter(
                "the folder '\(target.location)' cannot be made: \(String(cString: strerror(errno)))")
        }
        try require(target)
        try LiveFilters.require(settings.filters)
    }

    /// What sends is in packages that need not be there.
    private static func require(_ target: LiveTarget) throws(SessionError) {
        let needed: [(element: String, package: String)] =
            switch target.method {
            case .rtmp: [("rtmp2sink", Packages.others), ("flvmux", "gstreamer1.0-plugins-good")]
            case .srt: [("srtsink", Packages.others)]
            case .whip:
                [
                    ("webrtcbin", Packages.others), ("nicesink", "gstreamer1.0-nice"),
                    ("rtph264pay", "gstreamer1.0-plugins-good"),
                ]
            case .hls: [("hlssink2", Packages.others)]
            }
        for (name, package) in needed + [("errorignore", Packages.others)] where Runtime.find([name]) == nil {
            throw SessionError(.resourceNotAvailable, "GStreamer has no \(name): install \(package)")
        }
    }

    private func prepareEncoder() {
        losses = pipeline.child("late").flatMap { QueueLosses(of: $0, in: pipeline) }
        if let losses { shim_beat_keys(losses.exit, Times.nanoseconds(settings.keyFrameInterval)) }
        switch settings.source {
        case .file(let path):
            if let file = pipeline.child("file") { shim_set_string(file, "location", path) }
        case .screen(let display):
            if let display, let screen = pipeline.child("screen") { shim_set_string(screen, "display-name", display) }
        case .camera, .test: break
        }
    }

    // MARK: Facts

    public var state: LiveState { failure != nil ? .failed : output?.state ?? last }
    public var uptime: Double { output?.uptime ?? 0 }
    public var bytesSent: UInt64 { output?.bytesSent ?? 0 }
    public var bitrate: Int { output?.bitrate ?? settings.bitrate }
    public var roundTrip: Double { output?.roundTrip ?? 0 }
    public var droppedFrames: UInt64 { (output?.droppedFrames ?? 0) + latePictures }
    public var reconnects: Int { output?.reconnects ?? 0 }
    public var message: String { failure?.reason ?? output?.message ?? "" }
    public var isRecording: Bool { recording?.isOpen == true }

    /// How many pictures the encoder was given.
    package var pictures: UInt64 { losses?.passed ?? 0 }

    /// Pictures of a live source that came faster than they were encoded; those that still wait do not count.
    private var latePictures: UInt64 { settings.isFile ? 0 : losses?.lost ?? 0 }

    public var microphoneIsOn: Bool {
        get { microphone?.isOn == true }
        set { if !isOver, pipeline.isStarted { microphone?.isOn = newValue } }
    }

    public var isInterrupted = false {
        didSet {
            if isInterrupted != oldValue, !isOver { LiveFilters.tell(isInterrupted, settings.filters, in: pipeline) }
        }
    }

    // MARK: Requests

    public func start(_ reply: @escaping (Result<Void, SessionError>) -> Void) {
        started = reply
        last = .connecting
        guard settings.isFile else { return begin(hasSound: true) }
        guard let source = pipeline.child("source"), let pictures = pipeline.child("picture-head") else { return }
        // Where there is a microphone, the film is not heard.
        if let sound = pipeline.child("sound-head") {
            tracks = FilmTracks(of: source, sound: sound, pictures: pictures, heard: 0)
        } else {
            tracks = FilmTracks(of: source, sound: pictures, pictures: pictures, heard: -1)
        }
        patience.arm(after: Self.sourceTime)
        if !pipeline.setState(GST_STATE_PAUSED) { fail(sourceFailure(pipeline.popError(item: itemName) ?? "")) }
    }

    /// The source is open: the branches are attached before its first picture.
    private func begin(hasSound: Bool) {
        patience.disarm()
        guard let streams = EncodedStreams(in: pipeline, pictures: "pictures", sound: hasSound ? "sound" : nil) else {
            return
        }
        // The sound of a mixer never ends.
        let tees = hasSound && !settings.hasMicrophone ? ["pictures", "sound"] : ["pictures"]
        unended = tees.count
        for name in tees {
            guard let tee = pipeline.child(name), let pad = gst_element_get_static_pad(tee, "sink") else { continue }
            shim_tell_end(pad, pipeline.element)
            gst_object_unref(pad)
        }
        // A screen that cannot be read must not cost a file.
        guard settings.isFile || pipeline.setState(GST_STATE_PAUSED) else {
            return fail(sourceFailure(pipeline.popError(item: itemName) ?? "it cannot be opened"))
        }
        // libX11 is loaded now, and ends the process when the screen is gone or gets smaller.
        if case .screen = settings.source {
            shim_outlive_screen()
            screenErrors = shim_screen_errors()
            screenLook.arm(after: Self.screenInterval)
        }
        if let path = settings.recording {
            do throws(SessionError) {
                let made = try LiveRecording(path, overwrites: settings.overwrites, on: streams)
                recording = made
                made.attach()
            } catch {
                return fail(error)
            }
        }
        let output = LiveOutput(target, settings, on: streams, loop)
        output.onEvent = { [unowned self] in heard($0) }
        output.onBitrate = { [unowned self] in
            if let encoder = pipeline.child("encoder") { LiveChain.set(bitrate: $0, of: encoder, chain.encoder) }
        }
        self.output = output
        guard pipeline.setState(GST_STATE_PLAYING) else {
            return fail(sourceFailure(pipeline.popError(item: itemName) ?? "it cannot be opened"))
        }
        // One that hangs gives no error.
        if let camera {
            camera.open(in: pipeline)
            patience.arm(after: Self.sourceTime)
        }
        output.start()
        let reply = started
        started = nil
        reply?(.success(()))
    }

    /// Viewers and the recording keep the size that they have: another one would be another stream. A screen that is read beyond
    /// its edge, because it was made smaller, gives the old pictures for ever: it is opened again.
    private func lookAtScreen() {
        guard !isOver, let screen = pipeline.child("screen") else { return }
        screenLook.arm(after: Self.screenInterval)
        keepSize()
        let errors = shim_screen_errors()
        guard errors != screenErrors else { return }
        pipeline.perform {
            gst_element_set_state(screen, GST_STATE_NULL)
            gst_element_sync_state_with_parent(screen)
        }
        screenErrors = shim_screen_errors()
    }

    /// A camera that hangs, or is unplugged, may give no error.
    private func look(at camera: LiveCamera) {
        guard pictures != seenPictures else {
            return fail(
                SessionError(
                    .timedOut, "the camera '\(camera.name)' has sent no picture for \(Int(Self.cameraTime)) s or more"))
        }
        seenPictures = pictures
        patience.arm(after: Self.cameraTime)
    }

    /// From the first picture on.
    private func keepSize() {
        guard !isSizeKept, pictures > 0 else { return }
        isSizeKept = true
        if let format = pipeline.child("format"), let way = gst_element_get_static_pad(format, "src") {
            if let caps = gst_pad_get_current_caps(way) {
                shim_set_caps(format, caps)
                gst_caps_unref(caps)
            }
            gst_object_unref(way)
        }
    }

    public func stop() { finish(.stopped) }

    private func finish(_ end: LiveEnd) {
        guard self.end == nil, failure == nil, !isOver else { return }
        self.end = end
        guard let output else { return over() }
        microphone?.isOn = false
        recording?.finish()
        output.finish()
        closing.arm(after: Self.closingTime)
    }

    /// The film is over: the same end is on its way to all branches, or there is none on the way because of the microphone.
    private func sourceEnded() {
        unended -= 1
        guard unended == 0, end == nil, failure == nil else { return }
        // The server did not get the last part of it.
        if let output, output.state != .live {
            return fail(
                SessionError(
                    .networkFailed,
                    "the film ended while it was not sent"
                        + (output.message.isEmpty ? ": \(target.shown) does not answer" : ": \(output.message)")))
        }
        if settings.hasMicrophone { return finish(.ended) }
        end = .ended
        closing.arm(after: Self.closingTime)
        output?.expectEnd()
        settle()
    }

    public func close() {
        onEvent = nil
        started = nil
        shut()
    }

    public func want(bitrate: Int) { output?.want(bitrate: bitrate) }

    // MARK: Events

    private func heard(_ event: LiveOutput.Event) {
        switch event {
        case .changed: onEvent?(.changed)
        case .failed(let error): fail(error)
        case .finished:
            if end == nil { end = .ended }
            closing.arm(after: Self.closingTime)
            settle()
        }
    }

    /// It is over when the server has all of it, and the file is complete.
    private func settle() {
        guard failure != nil || end != nil, recording?.isOpen != true, output?.state != .live else { return }
        over()
    }

    /// The file is completed before the failure is told.
    private func fail(_ error: SessionError) {
        guard failure == nil, !isOver else { return }
        failure = error
        patience.disarm()
        output?.close()
        microphone?.isOn = false
        guard let recording, recording.isOpen else { return over() }
        recording.finish()
        closing.arm(after: Self.closingTime)
        onEvent?(.changed)
    }

    private func over() {
        guard !isOver else { return }
        shut()
        if let failure {
            if let reply = started {
                started = nil
                return reply(.failure(failure))
            }
            onEvent?(.failed(failure))
        } else {
            last = .idle
            let reply = started
            started = nil
            reply?(.failure(SessionError(.cancelled, "the stream was stopped before its film was open")))
            onEvent?(.finished(end ?? .stopped))
        }
    }

    private func shut() {
        guard !isOver else { return }
        isOver = true
        patience.disarm()
        closing.disarm()
        screenLook.disarm()
        output?.close()
        microphone?.isOn = false
        if let recording, recording.isOpen {
            recording.remove()
            if recording.isEmpty { unlink(recording.path) }
        }
        pipeline.close()
    }

    private var itemName: String { if case .file(let path) = settings.source { path } else { "the source" } }

    private func sourceFailure(_ text: String) -> SessionError {
        switch settings.source {
        case .file(let path): SessionError(.decodeFailed, "'\(path)' cannot be played: \(text)")
        case .screen:
            SessionError(
                .resourceNotAvailable,
                "the screen cannot be read: \(text); is DISPLAY that of an X11 server? A screen of Wayland cannot be sent"
            )
        case .camera:
            SessionError(.resourceNotAvailable, "the camera '\(camera?.name ?? "")' cannot be read: \(text)")
        case .test: SessionError(.resourceNotAvailable, "the test picture cannot be made: \(text)")
        }
    }

    private func received(_ message: UnsafeMutablePointer<GstMessage>) {
        guard !isOver else { return }
        // A microphone that comes has another latency than the silence before it.
        if message.pointee.type == GST_MESSAGE_LATENCY {
            pipeline.perform { [element = pipeline.element] in
                element.withMemoryRebound(to: GstBin.self, capacity: 1) { _ = gst_bin_recalculate_latency($0) }
            }
            return
        }
        if shim_stream_ended(message) != 0 { return sourceEnded() }
        if let event = recording?.take(message) { return recorded(event) }
        if output?.take(message) == true { return }
        if case .failed(let fault) = Notice(message), microphone?.owns(message) == true {
            microphone?.isOn = false
            onEvent?(.microphoneLost("the microphone cannot be read: \(fault.text)"))
            return
        }
        if let tracks, output == nil, tracks.take(message) { return opened(tracks) }
        if case .failed(let fault) = Notice(message), isOurs(message) { fail(sourceFailure(fault.text)) }
    }

    /// Not of a branch that was taken out meanwhile.
    private func isOurs(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        Elements.owns(pipeline.element, message)
    }

    private func opened(_ tracks: FilmTracks) {
        if let plugin = tracks.missing {
            return fail(
                SessionError(
                    .decoderNotFound,
                    "'\(itemName)' cannot be played: no plugin for \(plugin) is installed; "
                        + "\(Packages.package(for: plugin)) may have it"))
        }
        guard !tracks.isPicture else {
            return fail(SessionError(.notSupported, "'\(itemName)' is a picture, not a film"))
        }
        guard tracks.kinds.contains(.video) else {
            return fail(SessionError(.notSupported, "'\(itemName)' has no pictures: a live stream needs them"))
        }
        begin(hasSound: settings.hasMicrophone || tracks.kinds.contains(.audio))
    }

    private func recorded(_ event: LiveRecording.Event) {
        guard let recording else { return }
        let (lost, loss) = (recording.lostPictures, recording.loss)
        recording.remove()
        switch event {
        case .ended:
            if let loss {
                onEvent?(.recordingFailed(SessionError(.exportFailed, "'\(recording.path)': \(loss)")))
            } else if lost > 0 {
                onEvent?(
                    .recordingFailed(
                        SessionError(
                            .exportFailed, "'\(recording.path)' lacks \(lost) pictures: the disk was too slow for them")
                    ))
            }
        case .failed(let error):
            if recording.isEmpty, loss == nil { unlink(recording.path) }
            onEvent?(.recordingFailed(error))
        }
        onEvent?(.changed)
        // Its end was also that of the film, or comes with it.
        if failure != nil || end != nil { settle() }
    }
}
