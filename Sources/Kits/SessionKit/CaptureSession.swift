public import DBus
import EventLoop
import Glibc
public import PluginAPI
import SessionBus

/// Takes photos and records films with a camera (AVCaptureSession), in the plugin for cameras (`sessiond-capture`).
///
///     let session = CaptureSession(name: "Doorbell")
///     guard let camera = try await CaptureDevice.default(for: .video) else { return }
///     try await session.addInput(camera)
///     try await session.addOutput(.photo)
///     try await session.startRunning()
///     print(try await session.capturePhoto())
///
/// With a microphone and a film, it is an audio session of its own while it runs: a call takes the microphone, and the
/// film pauses and goes on in the same file afterwards (``Options/onInterruption``). It ends with this object, or with
/// this program; a film is completed then.
public actor CaptureSession {
    /// The thread of the loop: messages from the bus and calls from tasks run on it, one after the other.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    public typealias Preset = CapturePreset
    public typealias OnInterruption = CaptureInterruption
    public typealias EndReason = CaptureEndReason

    public enum Output: String, Sendable, Hashable, CaseIterable {
        case photo
        case movieFile = "movie-file"
        /// A window of X11 on the screen of this program (DISPLAY), with the time and the level of the microphone
        /// (AVCaptureVideoPreviewLayer).
        case preview
    }

    /// How a film is encoded (AVVideoCodecType).
    public enum Codec: String, Sendable, Hashable, CaseIterable {
        /// By the first encoder that is installed, or by that one.
        case h264, x264, openh264
        case vp8
    }

    /// How the camera is held: the degrees clockwise by which a picture must be turned (videoRotationAngle).
    public enum Orientation: UInt32, Sendable, Hashable, CaseIterable {
        case upright = 0
        case right = 90
        case upsideDown = 180
        case left = 270
    }

    public struct Options: Sendable, Hashable {
        /// Nil: the film pauses; beside a live stream it goes on without sound, as the stream does.
        public var onInterruption: OnInterruption?
        /// The audio session's category: one with input.
        public var category = Category.record
        public var mode = Mode.videoRecording

        public init() {}
    }

    /// A film (AVCaptureMovieFileOutput).
    public struct Film: Sendable, Hashable {
        public enum Quality: String, Sendable, Hashable, CaseIterable { case low, medium, high }

        /// Seconds without pauses, exact to the picture; nil: no limit.
        public var maxRecordedDuration: Double?
        /// Bytes; nil: no limit.
        public var maxRecordedFileSize: UInt64?
        /// Nil: high; beside a live stream that of the stream, whose encoder the film then has.
        public var quality: Quality?
        /// Nil: the usual one of the format.
        public var codec: Codec?
        /// Nil: that of the session.
        public var orientation: Orientation?
        /// Whether the file may exist.
        public var overwrites = false

        public init() {}
    }

    /// A live stream of what the camera and the microphone give.
    public struct Live: Sendable, Hashable {
        /// `rtmp://HOST/APPLICATION/KEY` (or `rtmps:`), `srt://HOST:PORT?streamid=KEY`, `https://HOST/PATH` of WHIP (WebRTC), or a
        /// folder that gets HLS.
        public var url: String
        /// The key, if it is not in the address.
        public var key = ""
        /// Of pictures and sound, in bits per second.
        public var bitrate: UInt32 = 2_500_000
        public var audioBitrate: UInt32 = 128_000
        /// Whether the bit rate of the pictures follows what the network carries.
        public var isAdaptive = true
        /// The distance of key frames, 0.5 to 10 seconds.
        public var keyFrameInterval = 2.0
        /// What is done to the pictures of the stream, in this order; at most 16. A film has an encoder of its own then.
        public var filters: [LiveFilter] = []
        /// The delay of SRT in milliseconds.
        public var latency: UInt32 = 120
        /// How many seconds it tries to connect again.
        public var giveUp = 300.0

        public init(url: String) { self.url = url }

        fileprivate var wire: [(String, Value)] {
            [
                ("url", .string(LiveStream.address(url))), ("stream-key", .string(key)),
                ("bitrate", .uint32(bitrate)), ("audio-bitrate", .uint32(audioBitrate)),
                ("adaptive", .bool(isAdaptive)), ("gop", .double(keyFrameInterval)),
                ("filter", .strings(filters.map(\.word))), ("latency", .uint32(latency)), ("give-up", .double(giveUp)),
            ]
        }
    }

    public enum InterruptionReason: String, Sendable, Hashable, CaseIterable {
        /// A call, for example.
        case audioDeviceInUse = "audio-device-in-use"
        case videoDeviceNotAvailable = "video-device-not-available"
    }

    public enum Notice: Sendable, Hashable {
        case didStartRecording(path: String)
        /// `isComplete`: otherwise ``runtimeError(_:)`` came before, and what was recorded plays.
        case didFinishRecording(path: String, isComplete: Bool, reason: EndReason)
        case wasInterrupted(InterruptionReason?)
        case interruptionEnded
        case runtimeError(SessionError)
        /// The window of the preview is gone. `byUser`: otherwise ``runtimeError(_:)`` came before.
        case previewDidClose(byUser: Bool)
        /// Of the live stream. If it fails, a film goes on.
        case live(LiveStream.Notice)
    }

    /// What it is doing, and how long and large the film is (or the last one was).
    public struct Status: Sendable, Hashable {
        public let isRunning: Bool
        public let isRecording: Bool
        public let isPaused: Bool
        /// Nil: not interrupted.
        public let interruption: InterruptionReason?
        /// Seconds, without pauses.
        public let recordedDuration: Double
        /// Bytes.
        public let recordedFileSize: UInt64
        /// Pictures that are missing in the film because the machine was too slow.
        public let droppedFrames: UInt64
    }

    /// An input that was added.
    public struct Input: Sendable, Hashable, Identifiable {
        public let id: UInt32
        public let device: CaptureDevice
    }

    static let plugin = PluginClient.Source.shared(uri: "file:///")

    public nonisolated let name: String
    private let options: Options
    private let client: PluginClient
    private let broadcast = Broadcast<Notice>()
    private var path: String?
    /// Photos that are being saved, and those that were saved before the answer to their call.
    private var waiting: [UInt32: CheckedContinuation<Result<String, SessionError>, Never>] = [:]
    private var saved: [UInt32: Result<String, SessionError>] = [:]
    private var pipes: [FramePipe] = []
    /// The number of the output.
    private var live: UInt32?

    /// - Parameters:
    ///   - name: shown to the user as who uses the camera.
    ///   - bus: where sessiond is.
    public init(name: String, options: Options = Options(), on bus: BusAddress = .session) {
        (self.name, self.options) = (name, options)
        client = PluginClient(.capture, on: bus, Self.plugin)
    }

    deinit { broadcast.finish() }

    /// All of them from now on.
    public nonisolated var notices: AsyncStream<Notice> { broadcast.stream() }

    /// Ends it, and completes a film. A later call begins a new one, without inputs and outputs.
    public func close() async {
        if path != nil { _ = try? await ask("StopRunning") }
        end(SessionError(.notReady, "the capture session was closed"))
        await client.close()
    }

    // MARK: Configuration

    public func canAddInput(_ device: CaptureDevice) async throws(SessionError) -> Bool {
        try await ask("CanAddInput", [.string(device.id)]).first?.boolValue ?? false
    }

    /// At most one camera and one microphone.
    /// - Throws: why it cannot be added, `ResourceNotAvailable` if it is gone.
    @discardableResult
    public func addInput(_ device: CaptureDevice) async throws(SessionError) -> Input {
        let answer = try await ask("AddInput", [.string(device.id), .properties([])])
        return Input(id: answer.first?.uint32Value ?? 0, device: device)
    }

    public func removeInput(_ input: Input) async throws(SessionError) {
        try await ask("RemoveInput", [.uint32(input.id)])
    }

    public func canAddOutput(_ output: Output) async throws(SessionError) -> Bool {
        try await ask("CanAddOutput", [.string(output.rawValue)]).first?.boolValue ?? false
    }

    /// - Parameter hasShutterSound: whether a shutter is heard with each photo, unless the silent switch is on.
    /// - Returns: its number, for ``removeOutput(_:)``.
    @discardableResult
    public func addOutput(_ output: Output, hasShutterSound: Bool = false) async throws(SessionError) -> UInt32 {
        var options: [(String, Value)] = []
        if output == .photo, hasShutterSound { options.append(("shutter-sound", .bool(true))) }
        // The screen of the plugin may be another one.
        if output == .preview, let display = getenv("DISPLAY") {
            options.append(("display", .string(String(cString: display))))
        }
        return try await ask("AddOutput", [.string(output.rawValue), .properties(options)]).first?.uint32Value ?? 0
    }

    public func removeOutput(_ number: UInt32) async throws(SessionError) {
        try await ask("RemoveOutput", [.uint32(number)])
        if live == number { live = nil }
    }

    // MARK: The live stream

    /// Adds a live stream, which ``startLive()`` starts while the session runs. A film beside it has the pictures of the same
    /// encoder, if they are H.264; neither disturbs the other. At most one.
    /// - Returns: its number, for ``removeOutput(_:)``.
    /// - Throws: `BadParameter` for a wrong address.
    @discardableResult
    public func addOutput(_ stream: Live) async throws(SessionError) -> UInt32 {
        let answer = try await ask("AddOutput", [.string("live"), .properties(stream.wire)])
        let number = answer.first?.uint32Value ?? 0
        try await client.listen(to: BusName.liveStream, at: streamPath(number))
        live = number
        return number
    }

    /// Connects; the state tells when the server takes the stream.
    /// - Throws: `NotReady` while the session does not run, or without a live stream.
    public func startLive() async throws(SessionError) { try await askLive("Start") }

    /// Ends the stream; ``Notice/live(_:)`` tells its end. The session runs on.
    public func stopLive() async throws(SessionError) { try await askLive("Stop") }

    /// Of the pictures, in bits per second, from now on.
    public func setLiveBitrate(_ bitrate: UInt32) async throws(SessionError) {
        try await askLive("SetBitrate", [.uint32(bitrate)])
    }

    /// Whether viewers hear the microphone. A film keeps its sound.
    /// - Throws: `NotSupported` without a microphone, `NotReady` while the stream does not run.
    public func setLiveMicrophone(_ isOn: Bool) async throws(SessionError) {
        let path = try liveStream()
        _ = try await client.ask(
            "Set", [.string(BusName.liveStream), .string("Microphone"), .variant(.bool(isOn))],
            of: StandardName.properties, at: path)
    }

    public var liveStatistics: LiveStream.Statistics {
        get async throws(SessionError) {
            LiveStream.Statistics(try await client.properties(of: BusName.liveStream, at: try liveStream()))
        }
    }

    private func streamPath(_ number: UInt32) -> String { "\(path ?? "")/live/\(number)" }

    private func liveStream() throws(SessionError) -> String {
        guard path != nil, let live else {
            throw SessionError(.notReady, "the capture session has no live stream: add it first")
        }
        return streamPath(live)
    }

    private func askLive(_ member: String, _ arguments: [Value] = []) async throws(SessionError) {
        try await client.ask(member, arguments, of: BusName.liveStream, at: try liveStream())
    }

    // MARK: The preset

    /// What is changed until ``commitConfiguration()`` is applied as a whole, or refused as a whole.
    public func beginConfiguration() async throws(SessionError) { try await ask("BeginConfiguration") }

    public func commitConfiguration() async throws(SessionError) { try await ask("CommitConfiguration") }

    public func canSetSessionPreset(_ preset: Preset) async throws(SessionError) -> Bool {
        try await ask("CanSetPreset", [.string(preset.rawValue)]).first?.boolValue ?? false
    }

    /// `high` at the start.
    public var sessionPreset: Preset {
        get async throws(SessionError) {
            let path = try await made()
            let text = try await client.get("Preset", of: BusName.captureSession, at: path).stringValue
            return Preset(rawValue: text ?? "") ?? .high
        }
    }

    /// - Throws: `NotSupported` if the camera cannot.
    public func setSessionPreset(_ preset: Preset) async throws(SessionError) {
        let path = try await made()
        _ = try await client.ask(
            "Set",
            [.string(BusName.captureSession), .string("Preset"), .variant(.string(preset.rawValue))],
            of: StandardName.properties, at: path)
    }

    /// Another camera in the place of the current one, also while a film is recorded.
    /// - Parameter position: nil: the next camera.
    public func switchCamera(to position: CaptureDevice.Position? = nil) async throws(SessionError) {
        try await ask("SwitchCamera", [.string(position?.rawValue ?? "")])
    }

    // MARK: Running

    /// Opens the camera; returns with the first picture. In a sandbox, the desktop asks the user first, who has a minute.
    /// - Throws: `InsufficientPriority` while a call has the microphone that a film needs; `MissingEntitlement` if the user does
    ///   not allow cameras, `TimedOut` if nobody answers; why the camera cannot be opened.
    public func startRunning() async throws(SessionError) {
        _ = try await client.ask("StartRunning", of: BusName.captureSession, at: try await made(), timeout: 90)
    }

    /// Completes a film first.
    public func stopRunning() async throws(SessionError) { try await ask("StopRunning") }

    public var status: Status {
        get async throws(SessionError) {
            let fields = try await client.properties(of: BusName.captureSession, at: try await made())
            return Status(
                isRunning: fields["Running"]?.boolValue ?? false, isRecording: fields["Recording"]?.boolValue ?? false,
                isPaused: fields["Paused"]?.boolValue ?? false,
                interruption: InterruptionReason(rawValue: fields["InterruptionReason"]?.stringValue ?? ""),
                recordedDuration: fields["RecordedDuration"]?.doubleValue ?? 0,
                recordedFileSize: fields["RecordedSize"]?.uint64Value ?? 0,
                droppedFrames: fields["DroppedFrames"]?.uint64Value ?? 0)
        }
    }

    // MARK: Photos

    /// Saves the next picture, also while a film is recorded.
    /// - Parameters:
    ///   - file: ends in `.jpg` or `.png`; nil: a new file in the user's folder for pictures.
    ///   - flash: whether the light of the camera is on meanwhile; nil: as the control `flash` says.
    /// - Returns: the path of the file.
    /// - Throws: `NotSupported` for a flash that the camera does not have.
    @discardableResult
    public func capturePhoto(
        to file: String? = nil, orientation: Orientation? = nil, flash: Bool? = nil
    ) async throws(SessionError) -> String {
        try await done(try await photo(file, orientation, 1, flash))
    }

    /// Saves the next pictures, one directly after the other.
    /// - Parameters:
    ///   - count: from 1 to 20.
    ///   - file: as for one photo; each name gets a number, as in `door-1.jpg`.
    /// - Returns: the paths of the files.
    @discardableResult
    public func captureBurst(
        _ count: Int, to file: String? = nil, orientation: Orientation? = nil
    ) async throws(SessionError) -> [String] {
        let first = try await photo(file, orientation, UInt32(clamping: count))
        var paths: [String] = []
        for place in 0..<UInt32(clamping: count) { paths.append(try await done(first &+ place)) }
        return paths
    }

    /// - Returns: the number of the first one.
    private func photo(
        _ file: String?, _ orientation: Orientation?, _ count: UInt32, _ flash: Bool? = nil
    ) async throws(SessionError) -> UInt32 {
        var options: [(String, Value)] = []
        if let orientation { options.append(("orientation", .uint32(orientation.rawValue))) }
        if count != 1 { options.append(("burst", .uint32(count))) }
        if let flash { options.append(("flash", .string((flash ? CaptureFlash.on : .off).rawValue))) }
        let answer = try await ask("CapturePhoto", [.string(file.map(Self.path) ?? ""), .properties(options)])
        guard let number = answer.first?.uint32Value else {
            throw SessionError(.mediaServicesFailed, "the plugin for cameras has given the photo no number")
        }
        return number
    }

    private func done(_ photo: UInt32) async throws(SessionError) -> String {
        if let done = saved.removeValue(forKey: photo) { return try done.get() }
        return try await withCheckedContinuation { waiting[photo] = $0 }.get()
    }

    // MARK: Controls

    /// Before a change of what can be set of a device that is an input.
    /// - Throws: `IsBusy` while another program changes it.
    public func lockForConfiguration(_ device: CaptureDevice) async throws(SessionError) {
        try await ask("LockForConfiguration", [.string(device.id)])
    }

    /// What was set stays.
    public func unlockForConfiguration(_ device: CaptureDevice) async throws(SessionError) {
        try await ask("UnlockForConfiguration", [.string(device.id)])
    }

    /// The part of the picture that is shown, photographed and recorded, enlarged (videoZoomFactor). The device must be locked.
    /// - Parameter factor: from 1, all of it, to 8.
    public func setZoomFactor(_ factor: Double, of device: CaptureDevice) async throws(SessionError) {
        try await set("zoom", .double(factor), of: device)
    }

    /// Sets what a camera has (``CaptureDevice/controls``). The device must be locked. The light goes out when the session stops.
    /// - Throws: `NotSupported` for what cannot be set of the camera; `BadParameter` for a value that is not possible;
    ///   `ResourceNotAvailable` or `TimedOut` if its driver refuses or does not answer.
    public func set(
        _ control: CaptureControl, to setting: CaptureDevice.Setting, of device: CaptureDevice
    ) async throws(SessionError) {
        try await set(control.rawValue, setting.value, of: device)
    }

    /// Sets a control by its name on the bus, such as `torch`.
    /// - Throws: `NotSupported` for what cannot be set of the camera.
    public func set(_ control: String, _ value: Value, of device: CaptureDevice) async throws(SessionError) {
        try await ask("SetControl", [.string(device.id), .string(control), .variant(value)])
    }

    /// How the camera is held: for films and photos that begin from now on.
    public func setOrientation(_ orientation: Orientation) async throws(SessionError) {
        let path = try await made()
        _ = try await client.ask(
            "Set",
            [
                .string(BusName.captureSession), .string("Orientation"), .variant(.uint32(orientation.rawValue)),
            ], of: StandardName.properties, at: path)
    }

    // MARK: Pictures

    /// The pictures of the camera, from now on until the stream ends (AVCaptureVideoDataOutput). If this program is too slow, it
    /// loses some: ``CaptureFrame/number`` tells. One stream at a time.
    public func frames(_ pixels: CapturePixels = .i420) async throws(SessionError) -> AsyncStream<CaptureFrame> {
        let pipe = try FramePipe(pixels)
        let id = try await ask(
            "AddOutput",
            [
                .string("frames"),
                .properties([("path", .string(pipe.path)), ("pixels", .string(pixels.rawValue))]),
            ]
        ).first?.uint32Value
        let (stream, continuation) = AsyncStream.makeStream(of: CaptureFrame.self, bufferingPolicy: .bufferingNewest(2))
        pipe.read {
            continuation.yield($0)
        } onEnd: {
            continuation.finish()
        }
        continuation.onTermination = { [weak self] _ in
            Task { await self?.endFrames(pipe, id) }
        }
        pipes.append(pipe)
        return stream
    }

    private func endFrames(_ pipe: FramePipe, _ output: UInt32?) async {
        pipe.close()
        pipes.removeAll { $0 === pipe }
        if let output, path != nil { _ = try? await ask("RemoveOutput", [.uint32(output)]) }
    }

    // MARK: Films

    /// Begins a film with the next picture; ``Notice/didFinishRecording(path:isComplete:reason:)`` is its end.
    /// - Parameter file: ends in `.mp4`, `.mov`, `.mkv` or `.webm`; nil: a new file in the user's folder for videos.
    /// - Throws: `FileAlreadyExists`, `CannotStartRecording` while it does not run.
    public func startRecording(to file: String? = nil, _ film: Film = Film()) async throws(SessionError) {
        var values: [(String, Value)] = [("overwrite", .bool(film.overwrites))]
        if let quality = film.quality ?? (live == nil ? .high : nil) {
            values.append(("quality", .string(quality.rawValue)))
        }
        if let seconds = film.maxRecordedDuration { values.append(("maximum-duration", .double(seconds))) }
        if let codec = film.codec { values.append(("codec", .string(codec.rawValue))) }
        if let orientation = film.orientation { values.append(("orientation", .uint32(orientation.rawValue))) }
        if let bytes = film.maxRecordedFileSize { values.append(("maximum-size", .uint64(bytes))) }
        try await ask("StartRecording", [.string(file.map(Self.path) ?? ""), .properties(values)])
    }

    public func pauseRecording() async throws(SessionError) { try await ask("PauseRecording") }

    /// Goes on in the same file, also after an interruption that ended without the should-resume hint.
    public func resumeRecording() async throws(SessionError) { try await ask("ResumeRecording") }

    /// Returns when the file is complete.
    public func stopRecording() async throws(SessionError) { try await ask("StopRecording") }

    // MARK: The plugin

    private static func path(_ file: String) -> String { MediaPath.file(file) ?? file }

    @discardableResult
    private func ask(_ member: String, _ arguments: [Value] = []) async throws(SessionError) -> [Value] {
        try await client.ask(member, arguments, of: BusName.captureSession, at: try await made())
    }

    private func made() async throws(SessionError) -> String {
        if let path { return path }
        await client.follow { [weak self] news in self?.assumeIsolated { $0.heard(news) } }
        let answer = try await client.ask(
            "CreateSession",
            [
                .string(name),
                .properties(
                    [("category", .string(options.category.rawValue)), ("mode", .string(options.mode.rawValue))]
                        + (options.onInterruption.map { [("on-interruption", .string($0.rawValue))] } ?? [])),
            ])
        guard let made = answer.first?.objectPathValue else {
            throw SessionError(.mediaServicesFailed, "the plugin for cameras made no capture session")
        }
        // Nothing happens to it before it gets its first input.
        try await client.listen(to: BusName.captureSession, at: made)
        path = made
        return made
    }

    private func end(_ error: SessionError) {
        path = nil
        live = nil
        saved = [:]
        for photo in waiting.values { photo.resume(returning: .failure(error)) }
        waiting = [:]
        for pipe in pipes { pipe.close() }
        pipes = []
    }

    private func heard(_ news: PluginClient.News) {
        switch news {
        case .found, .changed: break
        case .lost:
            guard path != nil else { break }
            let error = SessionError(.mediaServicesFailed, "the plugin for cameras ended")
            end(error)
            broadcast.send(.runtimeError(error))
        case .signal("DidStartRecording", let values):
            broadcast.send(.didStartRecording(path: values.first?.stringValue ?? ""))
        case .signal("DidFinishRecording", let values) where values.count == 3:
            broadcast.send(
                .didFinishRecording(
                    path: values[0].stringValue ?? "", isComplete: values[1].boolValue ?? false,
                    reason: EndReason(rawValue: values[2].stringValue ?? "") ?? .error))
        case .signal("DidCapturePhoto", let values) where values.count == 3:
            guard let number = values[0].uint32Value else { break }
            let message = values[2].stringValue ?? ""
            let result: Result<String, SessionError> =
                message.isEmpty
                ? .success(values[1].stringValue ?? "") : .failure(SessionError(.mediaServicesFailed, message))
            if let photo = waiting.removeValue(forKey: number) {
                photo.resume(returning: result)
            } else {
                saved[number] = result
            }
        case .signal("WasInterrupted", let values):
            broadcast.send(.wasInterrupted(InterruptionReason(rawValue: values.first?.stringValue ?? "")))
        case .signal("PreviewDidClose", let values):
            broadcast.send(.previewDidClose(byUser: values.first?.stringValue == "user-exited"))
        case .signal("InterruptionEnded", _): broadcast.send(.interruptionEnded)
        case .signal("RuntimeError", let values):
            broadcast.send(
                .runtimeError(
                    SessionError(
                        Failure(name: values.first?.stringValue ?? "", message: values.last?.stringValue ?? ""))))
        case .signal(let signal, let values):
            if let notice = LiveStream.Notice(signal, values) { broadcast.send(.live(notice)) }
        }
    }
}
