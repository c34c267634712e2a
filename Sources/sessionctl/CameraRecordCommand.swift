import ArgumentParser
import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus

/// `sessionctl camera record`.
struct CameraRecordCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record", abstract: "Record a film until ctrl-C.",
        discussion: """
            Without a file, the film goes to the folder for videos. A call pauses the film; it goes on in the same file after the \
            call. With --live, a server of live streams gets the same pictures and sound, and a call silences both instead. \
            On a terminal: space pauses and resumes, c switches to the next camera, t the light on and off, p takes a photo, q or ctrl-C ends the film.
            """)

    @Argument(help: "The file, which ends in .mp4, .mov, .mkv or .webm.", completion: .file())
    var file: String?
    @Option(help: "Stop after that many seconds, exact to the picture.")
    var duration: Double?
    @Option(help: "Stop before the file has more than that many bytes, such as 500M.")
    var size: UploadCommand.Size?
    @Option(help: "The quality: low, medium (default) or high.")
    var quality: String?
    @Option(help: "The encoder: h264, x264, openh264 or vp8; default: the usual one of the format.")
    var codec: String?
    @Option(help: "How the camera is held: degrees clockwise by which the film must be turned: 0, 90, 180 or 270.")
    var orientation: UInt32?
    @Flag(help: "Record no sound; then a call does not matter.")
    var noSound = false
    @Option(help: "The microphone: its id, as 'camera list' shows it; default: that of the route.")
    var microphone: String?
    @Option(
        help: ArgumentHelp(
            """
            Also send it: to rtmp://HOST/APPLICATION/KEY (or rtmps:), srt://HOST:PORT?streamid=KEY, https://HOST/PATH of WHIP, or as \
            HLS into a folder.
            """,
            valueName: "url"))
    var live: String?
    @Option(
        help: ArgumentHelp(
            "The key of the live stream is the first line of this file (- is standard input).", valueName: "file"),
        completion: .file())
    var keyFile: String?
    @Option(help: "What a call does: pause (default), silence (the pictures go on; default with --live) or stop.")
    var onCall: CaptureInterruption?
    @Flag(help: "Also show the pictures in a window.")
    var preview = false
    @Flag(help: "Replace an existing file.")
    var overwrite = false
    @OptionGroup var camera: CameraOptions
    @OptionGroup var bus: BusOptions

    func validate() throws {
        if let duration, !(duration > 0 && duration < 1e9) {
            throw ValidationError("--duration needs a number of seconds above 0")
        }
        if keyFile != nil, live == nil { throw ValidationError("--key-file needs --live") }
        if noSound, microphone != nil { throw ValidationError("--no-sound and --microphone contradict") }
    }

    func run() throws {
        let service = try Service(bus)
        let path = try file.map { try FileArgument.path($0) } ?? ""
        if !noSound { try service.awaitSoundServer() }
        let place = try CameraPlace(service)
        let session = try place.open(
            camera, onCall.map { [("on-interruption", .string($0.rawValue))] } ?? [])
        if !noSound {
            do {
                try place.ask(session, "AddInput", [.string(microphone ?? "default"), .properties([])])
            } catch let complaint as Complaint {
                throw Complaint.refused(complaint.message + "; --no-sound records the pictures alone")
            }
        }
        for kind in ["movie-file", "photo"] { try place.ask(session, "AddOutput", [.string(kind), .properties([])]) }
        let stream = try live.map { try place.addLive($0, keyFile, to: session) }
        if preview { try place.addPreview(to: session) }
        var options: [(String, Value)] = [("overwrite", .bool(overwrite))]
        if let duration { options.append(("maximum-duration", .double(duration))) }
        if let size { options.append(("maximum-size", .uint64(size.bytes))) }
        if let codec { options.append(("codec", .string(codec))) }
        if let orientation { options.append(("orientation", .uint32(orientation))) }
        if let quality { options.append(("quality", .string(quality))) }
        FilmRun(path, options, duration, place, session, stream).run()
    }
}

extension CameraPlace {
    /// - Returns: the path of the stream.
    fileprivate func addLive(_ url: String, _ keyFile: String?, to session: String) throws -> String {
        var options: [(String, Value)] = [
            ("url", .string(url.includes(":") || url.isEmpty ? url : try FileArgument.path(url)))
        ]
        if let keyFile { options.append(("stream-key", .string(try LivePushCommand.key(keyFile)))) }
        let answer = try ask(session, "AddOutput", [.string("live"), .properties(options)])
        return "\(session)/live/\(answer.first?.uint32Value ?? 0)"
    }
}

/// One film on the command line.
final class FilmRun {
    private static let help = "space pause · c switch the camera · t light · p photo · q stop"

    private let place: CameraPlace
    private let session: String
    /// The path of the live stream beside it.
    private let stream: String?
    private let options: [(String, Value)]
    private var service: Service { place.service }
    private var path: String
    private let screen: ProgressScreen
    private var isInteractive: Bool { screen.isInteractive }
    private var line: ProgressLine {
        get { screen.line }
        set { screen.line = newValue }
    }
    private var signals: [SignalWatch] = []
    private var subscriptions: [Subscription] = []
    private var properties: [String: Value] = [:]
    private var hasBegun = false
    private var isStopping = false
    private var stopTime: UInt64 = 0
    private var isPausedByUs = false
    private var pauseReason: String?
    private var failure: String? {
        didSet { if failure != oldValue { isFailureTold = false } }
    }
    private var isFailureTold = false
    /// Of the live stream.
    private var wasLive = false
    private var streamTrouble = ""

    init(
        _ path: String, _ options: [(String, Value)], _ duration: Double?, _ place: CameraPlace, _ session: String,
        _ stream: String?
    ) {
        (self.path, self.options, self.place, self.session) = (path, options, place, session)
        self.stream = stream
        screen = ProgressScreen(place.service.loop, noteTime: 3)
        line.duration = duration
        line.title = path.escaped
    }

    /// Runs until the film has ended; never returns.
    func run() -> Never {
        let (loop, connection) = (service.loop, service.connection)
        screen.readKeys { [unowned self] in pressed($0) }
        screen.onTick = { [unowned self] in tick() }
        signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].map { number in
            loop.watch(signal: number) { [unowned self] in
                guard hasBegun else { return loop.quit(128 + number) }
                // The same ctrl-C may arrive twice, as from timeout(1); only a later one forces an exit.
                guard isStopping else { return stop() }
                if MonotonicClock.now() > stopTime + 1_000_000 { loop.quit(128 + number) }
            }
        }
        subscriptions = [
            connection.subscribe(path: session, sender: place.place) { [unowned self] in heard($0) },
            connection.watchName(place.place) { [unowned self] in
                end(Complaint.refused("\(place.kind.program) ended unexpectedly; what was recorded is in the file"))
            },
        ]
        if let stream {
            subscriptions.append(
                connection.subscribe(path: stream, sender: place.place) { [unowned self] in heardStream($0) })
        }
        connection.onDisconnect = { [unowned self] in end(Complaint.unreachable("the bus connection was lost")) }
        call("StartRunning") { [unowned self] in
            call("StartRecording", [.string(path), .properties(options)]) { [unowned self] in startStream() }
        }
        let code = loop.run()
        screen.finish()
        RawMode.restore()
        Output.end(code, keeping: self)
    }

    private func call(_ member: String, _ arguments: [Value] = [], _ then: @escaping () -> Void = {}) {
        service.connection.call(
            place.place, session, CameraPlace.session, member, arguments, timeout: CameraPlace.timeout(of: member)
        ) { [weak self] answer in
            guard let self else { return }
            switch answer {
            case .success: then()
            case .failure(let failure):
                guard !isStopping else { return }
                if hasBegun { note(service.complaint(failure).message) } else { end(service.complaint(failure)) }
            }
        }
    }

    private func startStream() {
        guard let stream else { return }
        service.connection.call(place.place, stream, BusName.liveStream, "Start", [], timeout: CameraPlace.opening) {
            [weak self] answer in
            if let self, case .failure(let failure) = answer { streamFailed(service.complaint(failure).message) }
        }
    }

    /// The film goes on.
    private func streamFailed(_ message: String) {
        failure = "the live stream ended: \(message)"
        if isInteractive { note(failure ?? "") } else { Output.complain(failure ?? "") }
    }

    private func heardStream(_ message: Message) {
        guard let values = try? message.arguments() else { return }
        switch message.member {
        case "StateChanged":
            let state = values.first?.stringValue ?? ""
            if state == "live" { wasLive = true }
            // The end, and a failure, are told otherwise.
            guard ["connecting", "live", "reconnecting"].contains(state), !isStopping else { return }
            if isInteractive { note("stream: \(state)") } else { Output.line("stream: \(state)") }
        case "PropertiesChanged":
            service.connection.readChanges(message) { [weak self] in self?.streamChanged($1) }
        case "Failed": streamFailed(values.last?.stringValue?.escaped ?? "")
        default: break
        }
    }

    /// Why it is not live.
    private func streamChanged(_ changes: [String: Value]) {
        guard let text = changes["Message"]?.stringValue?.escaped, text != streamTrouble, !isStopping else { return }
        streamTrouble = text
        if !text.isEmpty { note("stream: \(text)") }
    }

    private func stop() {
        guard hasBegun else { return service.loop.quit(130) }
        isStopping = true
        stopTime = MonotonicClock.now()
        line.remark = "finishing the file"
        draw()
        call("StopRecording")
    }

    private func end(_ complaint: Complaint) {
        screen.finish()
        Output.complain(complaint.message)
        service.loop.quit(complaint.code)
    }

    // MARK: Events

    private func heard(_ message: Message) {
        guard let values = try? message.arguments() else { return }
        switch message.member {
        case "PropertiesChanged":
            service.connection.readChanges(message) { [weak self] in self?.changed($1) }
        case "DidStartRecording":
            path = values.first?.stringValue ?? path
            (hasBegun, line.title, line.state, line.style) = (true, path.escaped, "recording", .bad)
            if isInteractive { screen.begin(Self.help) } else { Output.line("recording \(path.escaped)") }
        case "DidFinishRecording":
            if values.count == 3 { finished(values[1].boolValue ?? false, values[2].stringValue ?? "") }
        case "DidCapturePhoto":
            if values.count == 3 {
                let error = values[2].stringValue ?? ""
                note(error.isEmpty ? (values[1].stringValue ?? "").escaped : error.escaped)
            }
        case "RuntimeError":
            failure = values.last?.stringValue?.escaped ?? ""
            isFailureTold = !isInteractive
            if isInteractive { note(failure ?? "") } else { Output.complain(failure ?? "") }
        case "WasInterrupted":
            let isCall = values.first?.stringValue == "audio-device-in-use"
            pauseReason = isCall ? "the microphone is in use" : "the camera sends no pictures"
            if !isInteractive { Output.line("interrupted: \(pauseReason ?? "")") }
        default: break
        }
    }

    private func changed(_ changes: [String: Value]) {
        let wasPaused = properties["Paused"]?.boolValue == true
        properties.merge(changes) { $1 }
        // At its end a film is not paused any more, but does not go on either.
        guard hasBegun, !isStopping, properties["Recording"]?.boolValue != false else { return }
        let isPaused = properties["Paused"]?.boolValue == true
        let isInterrupted = properties["Interrupted"]?.boolValue == true
        line.state = isPaused ? (isInterrupted ? "interrupted" : "paused") : "recording"
        line.style = isPaused ? .warning : .bad
        line.remark = isPaused ? (isInterrupted ? pauseReason ?? " " : " ") : ""
        if !isInteractive, isPaused != wasPaused { Output.line(isPaused ? line.state : "resumed") }
        // It goes on, so what had stopped it is mended.
        if wasPaused, !isPaused { failure = nil }
        if !isPaused { isPausedByUs = false }
        // Without a terminal, the user could not resume it.
        if isPaused, !isInterrupted, !isPausedByUs, !isInteractive {
            failure = "the film paused, and nothing resumes it"
            stop()
        }
        draw()
    }

    private func finished(_ isComplete: Bool, _ reason: String) {
        isStopping = true
        service.connection.call(
            place.place, session, StandardName.properties, "GetAll", [.string(CameraPlace.session)],
            timeout: Service.timeout
        ) { [weak self] answer in
            guard let self else { return }
            let all = (try? answer.get())?.first?.asProperties ?? [:]
            screen.finish()
            let length = all["RecordedDuration"]?.doubleValue ?? 0
            var text = "\(path.escaped)  \(Wording.tenths(length)) s"
            if let dropped = all["DroppedFrames"]?.uint64Value, dropped > 0 {
                let pictures = dropped == 1 ? "1 picture is" : "\(dropped) pictures are"
                text += "  \(pictures) missing: the machine was too slow"
            }
            if length > 0, isComplete || access(path, F_OK) == 0 { Output.line(text) }
            switch reason {
            case "disk-full": failure = "the disk is almost full, so the film was ended"
            case "device-disconnected": failure = failure ?? "the camera was disconnected"
            case "interrupted": failure = failure ?? "a call has the microphone, so the film was ended"
            default: break
            }
            if stream != nil, !wasLive, failure == nil {
                failure = "the live stream was never live" + (streamTrouble.isEmpty ? "" : ": \(streamTrouble)")
            }
            guard isComplete, failure == nil else {
                if !isFailureTold {
                    Output.complain(failure ?? "\(path.escaped): the end of the film is missing")
                }
                return service.loop.quit(1)
            }
            service.loop.quit(0)
        }
    }

    // MARK: Terminal

    private func draw() { screen.draw() }

    private func note(_ text: String) {
        if screen.isDrawing { screen.note(text) } else { Output.complain(text) }
    }

    private func tick() {
        service.connection.call(
            place.place, session, StandardName.properties, "Get",
            [.string(CameraPlace.session), .string("RecordedDuration")], timeout: Service.timeout
        ) { [weak self] answer in
            guard let self, let value = (try? answer.get())?.first?.unwrapped.doubleValue else { return }
            line.position = value
            draw()
        }
    }

    private func pressed(_ key: Keyboard.Key) {
        switch key {
        case .space:
            isPausedByUs = properties["Paused"]?.boolValue != true
            call(isPausedByUs ? "PauseRecording" : "ResumeRecording")
        case .letter("c"): call("SwitchCamera", [.string("")])
        case .letter("t"):
            place.toggleLight(of: session) { [weak self] failure in
                if let self { note(service.complaint(failure).message) }
            }
        case .letter("p"): call("CapturePhoto", [.string(""), .properties([])])
        case .letter("q"): stop()
        case .letter, .left, .right, .up, .down, .editing: break
        }
    }
}
