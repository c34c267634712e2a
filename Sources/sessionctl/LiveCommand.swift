import ArgumentParser
import DBus
import EventLoop
import Glibc
import MediaValues
import PluginAPI
import SessionBus

/// `sessionctl live`.
struct LiveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "live", abstract: "Send and watch live streams.",
        subcommands: [LivePushCommand.self, LiveWatchCommand.self])
}

/// `sessionctl live push`.
struct LivePushCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Send a film, the screen, a camera or a test picture to a server of live streams.",
        discussion: """
            A lost connection is made again, and the encoder and a recording go on meanwhile. While another session, such as \
            a call, interrupts the microphone, viewers see the pictures and hear nothing. On a terminal: m turns the \
            microphone off and on, q or ctrl-C ends the stream.
            """)

    @Argument(
        help: ArgumentHelp(
            """
            rtmp://HOST/APPLICATION/KEY (or rtmps:), srt://HOST:PORT?streamid=KEY, https://HOST/PATH of WHIP (WebRTC; the \
            token is the key), or a folder, which gets HLS.
            """,
            valueName: "url"))
    var url: String
    @Option(help: "Send this film, at its own pace.", completion: .file())
    var file: String?
    @Flag(help: "Send the screen of the X11 server that DISPLAY names.")
    var screen = false
    @Option(
        help: ArgumentHelp(
            "Send the pictures of this camera: its id, its position (front, back, external) or its name.",
            valueName: "camera"))
    var camera: String?
    @Flag(help: "Send a test picture with a tone.")
    var test = false
    @Flag(help: "The sound is that of the microphone, in a session of its own.")
    var microphone = false
    @Option(help: "The server's name of the microphone; default: that of the route.", completion: .inputs)
    var device: String?
    @Option(
        help: ArgumentHelp(
            "The key is the first line of this file (- is standard input): everybody can read a command line.",
            valueName: "file"), completion: .file())
    var keyFile: String?
    @Option(help: "Record the same stream into this file: mp4, mov or mkv.", completion: .file())
    var record: String?
    @Flag(help: "Replace an existing file.")
    var overwrite = false
    @Option(help: ArgumentHelp("The bit rate of the pictures in kbit/s; default: 2500.", valueName: "kbit/s"))
    var bitrate: UInt32?
    @Flag(help: "Keep that bit rate although the network carries less.")
    var fixed = false
    @Option(help: ArgumentHelp("The size of the pictures, such as 1280x720.", valueName: "size"))
    var size: PictureDimensions?
    @Option(help: "Pictures per second, 1 to 60.")
    var rate: UInt32?
    @Option(
        help: ArgumentHelp(
            "Change the pictures: mirror, smooth, brightness=N, contrast=N, saturation=N, text=TEXT, interruption-text=TEXT "
                + "(during a call) or logo=FILE. May be given several times.", valueName: "filter"))
    var filter: [String] = []
    @Option(help: ArgumentHelp("The delay of SRT in milliseconds; default: 120.", valueName: "ms"))
    var latency: UInt32?
    @Option(help: "What an interruption of the microphone does to the stream; default: silence.")
    var onInterruption: LiveInterruption?
    @Option(help: ArgumentHelp("Seconds without a connection until it gives up; default: 300.", valueName: "seconds"))
    var giveUp: Double?
    @Option(help: "The name of the session of the microphone.")
    var name: String?
    @OptionGroup var bus: BusOptions

    /// Two numbers with an x.
    struct PictureDimensions: ExpressibleByArgument {
        let width, height: UInt32

        init?(argument: String) {
            let parts = argument.lowercased().split(separator: "x", omittingEmptySubsequences: false)
            guard parts.count == 2, let width = UInt32(parts[0]), let height = UInt32(parts[1]) else { return nil }
            (self.width, self.height) = (width, height)
        }
    }

    func validate() throws {
        guard [file != nil, screen, camera != nil, test].filter(\.self).count == 1 else {
            throw ValidationError("say what to send: --file FILE, --screen, --camera CAMERA or --test")
        }
        if let bitrate, !(64...100_000).contains(bitrate) {
            throw ValidationError("--bitrate needs 64 to 100000 kbit/s")
        }
        if !microphone, device != nil || onInterruption != nil || name != nil {
            throw ValidationError("--device, --on-interruption and --name need --microphone")
        }
        if overwrite, record == nil { throw ValidationError("--overwrite needs --record") }
    }

    func run() throws {
        let options = try options()
        let service = try Service(bus)
        let place = url.contains(":") || url.isEmpty ? url : try FileArgument.path(url)
        try LivePushRun(place, options, hasMicrophone: microphone, record: record != nil, service).run()
    }

    private func options() throws -> Value {
        var options: [(String, Value)] = []
        if let file {
            options += [("source", .string("file")), ("file", .string(try FileArgument.path(file)))]
        } else if let camera {
            options += [("source", .string("camera")), ("camera", .string(camera))]
        } else {
            options.append(("source", .string(screen ? "screen" : "test")))
        }
        if microphone { options.append(("microphone", .bool(true))) }
        if let device { options.append(("input", .string(device))) }
        if let keyFile { options.append(("stream-key", .string(try Self.key(keyFile)))) }
        if let record { options.append(("record", .string(try FileArgument.path(record)))) }
        if overwrite { options.append(("overwrite", .bool(true))) }
        if let bitrate { options.append(("bitrate", .uint32(bitrate * 1_000))) }
        if fixed { options.append(("adaptive", .bool(false))) }
        if let size { options.append(("size", .structure([.uint32(size.width), .uint32(size.height)]))) }
        if let rate { options.append(("frame-rate", .uint32(rate))) }
        if !filter.isEmpty { options.append(("filter", .strings(try filter.map(Self.filter)))) }
        if let latency { options.append(("latency", .uint32(latency))) }
        if let onInterruption { options.append(("on-interruption", .string(onInterruption.rawValue))) }
        if let giveUp { options.append(("give-up", .double(giveUp))) }
        if microphone { options.append(("name", .string(name ?? "sessionctl live"))) }
        return .properties(options)
    }

    /// With the absolute path of a logo.
    private static func filter(_ word: String) throws -> String {
        let prefix = "logo="
        guard word.hasPrefix(prefix) else { return word }
        return prefix + (try FileArgument.path(String(word.dropFirst(prefix.count))))
    }

    /// The first line of a file, without spaces at its ends.
    static func key(_ file: String) throws -> String {
        let path = file == "-" ? "/dev/stdin" : try FileArgument.path(file)
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Complaint.refused("\(file.escaped): \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while bytes.count < 8_192, !bytes.contains(10) {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        let line = String(decoding: bytes.prefix { $0 != 10 }, as: UTF8.self)
        let key = line.drop { $0 == " " || $0 == "\t" }.reversed().drop { " \t\r".contains($0) }.reversed()
        guard !key.isEmpty else { throw Complaint.refused("\(file.escaped): its first line has no key") }
        return String(key)
    }
}

/// Sends one live stream with its own process of the plugin.
final class LivePushRun: FrontEnd {
    private let url: String
    private let options: Value
    private let hasMicrophone: Bool
    private let isRecording: Bool
    private var stream = ""
    private var known: [String: Value] = [:]
    private var lastState = ""
    private var lastMessage = ""
    private var isInterrupted = false
    private var isStopping = false
    private var stopTime: UInt64 = 0
    private var hasBegun = false
    private var ticks = 0
    private var begin = MonotonicClock.seconds
    /// The recording has ended early.
    private var isIncomplete = false

    init(_ url: String, _ options: Value, hasMicrophone: Bool, record: Bool, _ service: Service) throws {
        (self.url, self.options, self.hasMicrophone, isRecording) = (url, options, hasMicrophone, record)
        try super.init(.live, ["--name", "sessionctl live"], service)
    }

    override func start() {
        plugin.call("CreateStream", [.string(url), options]) { [weak self] answer in
            guard let self else { return }
            switch answer {
            case .failure(let failure): end(failure)
            case .success(let values): open(values.first?.objectPathValue ?? "")
            }
        }
    }

    private func open(_ path: String) {
        stream = path
        plugin.watch(path) { [unowned self] in learn($0) }
        plugin.listen(path, BusName.liveStream) { [unowned self] in heard($0, $1) }
        ask("Start") { [weak self] failure in
            guard let self, let failure else { return }
            end(failure)
        }
        refresh()
    }

    private func ask(_ member: String, _ then: @escaping (Failure?) -> Void = { _ in }) {
        plugin.call(member, [], of: BusName.liveStream, at: stream) { answer in
            if case .failure(let failure) = answer { then(failure) } else { then(nil) }
        }
    }

    private func stop() {
        // The file is being completed; a second ctrl-C or q must not cut it off.
        guard !isStopping else { return }
        guard !stream.isEmpty else { return end(130) }
        isStopping = true
        stopTime = MonotonicClock.now()
        ask("Stop")
    }

    // MARK: What the stream tells

    private func heard(_ member: String, _ values: [Value]) {
        let texts = values.compactMap { $0.stringValue?.escaped }
        switch member {
        case "Failed": readAll { $0.end(Complaint.refused(Wording.forPeople(texts.last ?? ""))) }
        case "Finished":
            readAll { run in
                run.say(run.summary)
                run.end(run.isIncomplete ? 1 : 0)
            }
        case "RecordingFailed":
            isIncomplete = true
            complain(Wording.forPeople(texts.last ?? ""))
        default: break
        }
    }

    private func readAll(_ then: @escaping (LivePushRun) -> Void) {
        plugin.call("GetAll", [.string(BusName.liveStream)], of: StandardName.properties, at: stream) {
            [weak self] answer in
            guard let self else { return }
            if let fields = (try? answer.get())?.first?.asProperties { known.merge(fields) { $1 } }
            then(self)
        }
    }

    override func refresh() {
        // Twice a second.
        ticks += 1
        guard !stream.isEmpty, ticks % 5 == 1 else { return }
        readAll { run in
            run.learn([:])
        }
    }

    private func learn(_ changes: [String: Value]) {
        known.merge(changes) { $1 }
        // Before the plugin tells it, only the address with its key is known.
        guard let shown = known["Url"]?.stringValue else { return }
        let state = known["State"]?.stringValue ?? ""
        let message = (known["Message"]?.stringValue ?? "").escaped
        line.title = shown.escaped
        line.state = state.escaped
        line.style = state == "live" ? .good : .warning
        line.figures = figures
        line.note = ""
        line.remark =
            message.isEmpty ? (isRecording && known["Recording"]?.stringValue?.isEmpty == false ? "rec" : " ") : message
        if state != lastState { changed(to: state) }
        if !message.isEmpty, message != lastMessage, !isInteractive { say(message) }
        lastMessage = message
        let wasInterrupted = isInterrupted
        isInterrupted = known["Interrupted"]?.boolValue == true
        if isInterrupted != wasInterrupted, !isInteractive {
            say(isInterrupted ? "interrupted: viewers hear nothing" : "the microphone is heard again")
        }
        draw()
    }

    private func changed(to state: String) {
        lastState = state
        guard state != "idle" || hasBegun else { return }
        if !hasBegun {
            hasBegun = true
            begin = MonotonicClock.seconds
            beginDrawing(hasMicrophone ? "m microphone · q stop" : "q stop")
        }
        if !isInteractive, ["connecting", "live", "reconnecting"].contains(state) {
            say(state == "connecting" ? "connecting to \(line.title)" : state)
        }
    }

    private var figures: String {
        let dropped = known["DroppedFrames"]?.uint64Value ?? 0
        let reconnects = known["Reconnects"]?.uint32Value ?? 0
        var parts = [
            Wording.clock(hasBegun ? (MonotonicClock.seconds - begin).rounded(.down) : 0),
            "\((known["Bitrate"]?.uint32Value ?? 0) / 1_000) kbit/s",
        ]
        if dropped > 0 { parts.append("\(dropped) dropped") }
        if reconnects > 0 { parts.append("\(reconnects) reconnects") }
        if hasMicrophone, known["Microphone"]?.boolValue != true { parts.append("no sound") }
        return parts.joined(separator: "  ")
    }

    private var summary: String {
        let sent = InspectCommand.size(known["BytesSent"]?.uint64Value ?? 0)
        let dropped = known["DroppedFrames"]?.uint64Value ?? 0
        let reconnects = known["Reconnects"]?.uint32Value ?? 0
        return
            "\(line.title)  \(Wording.clock(MonotonicClock.seconds - begin)), \(sent) sent, \(dropped) pictures dropped, "
            + "\(reconnects) reconnects"
    }

    // MARK: Keys and signals

    override func pressed(_ key: Keyboard.Key) {
        switch key {
        case .letter("q"): stop()
        case .letter("m"): toggleMicrophone()
        case .letter, .space, .left, .right, .up, .down, .editing: break
        }
    }

    private func toggleMicrophone() {
        guard hasMicrophone else { return note("there is no microphone: begin with --microphone") }
        let isOn = known["Microphone"]?.boolValue == true
        plugin.call(
            "Set", [.string(BusName.liveStream), .string("Microphone"), .variant(.bool(!isOn))],
            of: StandardName.properties, at: stream
        ) { [weak self] answer in
            guard let self, case .failure(let failure) = answer else { return }
            complain(service.complaint(failure).message)
        }
    }

    /// Completes the recording before every exit.
    override func interrupted(by signal: Int32) {
        // The same ctrl-C may arrive twice, as from timeout(1); only a later one forces an exit.
        if isStopping, MonotonicClock.now() > stopTime + 1_000_000 { end(128 + signal) }
        stop()
    }
}
