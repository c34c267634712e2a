import ArgumentParser
import DBus
import EventLoop
import MediaValues
import PluginAPI
import SessionBus

/// `sessionctl record`.
struct RecordCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "record", abstract: "Record into a file until ctrl-C.",
        discussion: "On a terminal: space pauses and resumes, q or ctrl-C ends the recording.")

    @Argument(help: "The file; an existing file is replaced.", completion: .file())
    var file: String
    @Option(help: "Stop after that many seconds.")
    var duration: Double?
    @Option(help: "The format; default: the one of the file's extension.")
    var format: RecordingFormat?
    @Option(help: "The sample rate in Hz, 1000 to 384000; default: 44100 (Opus: 48000).")
    var rate: Double?
    @Option(help: "The number of channels, 1 to 8, as the format allows; default: 2.")
    var channels: UInt32?
    @Option(help: "Bits per sample: 8, 16, 24 or 32 for WAV, 8, 16 or 24 for FLAC, 16, 24 or 32 for ALAC.")
    var bitDepth: UInt32?
    @Flag(help: "Record 32-bit floating-point samples; WAV only.")
    var float = false
    @Option(help: "The quality of the encoder; default: medium.")
    var quality: RecordingQuality?
    @Option(help: "The uid of the input to record from, as 'route list' shows it.", completion: .inputs)
    var device: String?
    @OptionGroup var session: SessionOptions
    @OptionGroup var bus: BusOptions

    func validate() throws {
        if let duration, !(duration > 0 && duration < 1e9) {
            throw ValidationError("--duration needs a number of seconds above 0")
        }
        if let rate, !(1_000...384_000).contains(rate.rounded()) {
            throw ValidationError("--rate needs 1000 to 384000 Hz")
        }
        if let channels, !(1...8).contains(channels) { throw ValidationError("--channels needs 1 to 8") }
        if let bitDepth, ![8, 16, 24, 32].contains(bitDepth) {
            throw ValidationError("--bit-depth needs 8, 16, 24 or 32")
        }
    }

    func run() throws {
        let service = try Service(bus)
        let path = try FileArgument.path(file)
        var arguments = try session.arguments(name: "sessionctl record", in: .record)
        if let device { arguments += ["--input", device] }
        if device == nil { try lookForInput(service) }
        try Recording(path, settings, duration, arguments, service).run()
    }

    /// Says before the recording what it will be without an input.
    private func lookForInput(_ service: Service) throws {
        try service.awaitSoundServer()
        let properties =
            try service.ask("GetAll", [.string(BusName.manager)], interface: StandardName.properties)
            .first?.asProperties ?? [:]
        guard properties["ServerConnected"]?.boolValue == true, properties["AvailableInputs"]?.ports.isEmpty == true
        else { return }
        let server = ServerLabel(properties["ServerName"]?.stringValue ?? "")
        if server.recordsOutputs, properties["AvailableOutputs"]?.ports.isEmpty == true {
            throw Complaint.refused("there is no input, such as a microphone, and no output: nothing can be recorded")
        }
        Output.complain("there is no input, such as a microphone: " + server.recordingWithoutInput)
    }

    private var settings: Value {
        var values: [(String, Value)] = []
        if let format { values.append(("format", .string(format.rawValue))) }
        if let rate { values.append(("sample-rate", .double(rate))) }
        if let channels { values.append(("channels", .uint32(channels))) }
        if let bitDepth { values.append(("bit-depth", .uint32(bitDepth))) }
        if float { values.append(("float", .bool(true))) }
        if let quality { values.append(("quality", .string(quality.rawValue))) }
        return .properties(values)
    }
}

/// Makes one recording with its own recorder process.
final class Recording: FrontEnd {
    private static let help = "space pause · q stop"
    /// Seconds that completing the file may take.
    private static let closing = 15.0

    private let path: String
    private let settings: Value
    private let duration: Double?
    private var isStopping = false
    /// When the stop was requested (``MonotonicClock``).
    private var stopTime: UInt64 = 0
    private var isPausedByUs = false
    /// The reason why the recorder paused without a request; nil after it resumed.
    private var pauseReason: String?
    private var closingTime: Timer?
    private var hasBegun = false
    /// The recorder has told why it failed. The answers of requests that were on their way say less.
    private var hasFailed = false

    init(_ path: String, _ settings: Value, _ duration: Double?, _ arguments: [String], _ service: Service) throws {
        self.path = path
        self.settings = settings
        self.duration = duration
        try super.init(.recorder, arguments, service)
        line.title = path.escaped
        line.duration = duration
        closingTime = Timer(on: service.loop) { [unowned self] in
            end(Complaint.refused("\(path.escaped): the file could not be completed in time"))
        }
        plugin.onPaused = { [unowned self] in paused($0.escaped) }
    }

    override func start() {
        plugin.call("Prepare", [.string(path), settings]) { [weak self] answer in
            guard let self else { return }
            switch answer {
            case .failure(let failure): end(failure)
            case .success: record()
            }
        }
    }

    override var purpose: String { "record" }

    private func record() {
        // Earlier parts of the recording count.
        let rest = duration.map { max(0.01, $0 - line.position) }
        plugin.call(rest == nil ? "Record" : "RecordFor", rest.map { [.double($0)] } ?? []) { [weak self] answer in
            guard let self, !hasFailed, case .failure(let failure) = answer else { return }
            if hasBegun { complain(service.complaint(failure).message) } else { end(failure) }
        }
    }

    private func stop() {
        guard !isStopping else { return }
        guard hasBegun else { return end(130) }
        isStopping = true
        stopTime = MonotonicClock.now()
        plugin.get("Position") { [weak self] value in
            guard let self else { return }
            learn(value)
            line.remark = "finishing the file"
            draw()
            plugin.call("Stop")
            closingTime?.arm(after: Self.closing)
        }
    }

    private func learn(_ position: Value?) { line.position = position?.doubleValue ?? line.position }

    // MARK: Events of the recorder

    override func finished(_ success: Bool) {
        close { [unowned self] in
            guard success else { return end(Complaint.refused("\(path.escaped): the end of the file is missing")) }
            sayLength()
            guard let pauseReason, !isInteractive else { return end(0) }
            end(Complaint.refused("\(pauseReason): the recording ended; to continue, record into another file"))
        }
    }

    override func failed(_ message: String) {
        hasFailed = true
        close { [unowned self] in
            if line.position > 0 { sayLength() }
            tellServer(message) { [weak self] advice in self?.end(Complaint.refused(advice ?? message)) }
        }
    }

    /// Without a terminal, the user could not resume it, so the recording ends.
    private func paused(_ message: String) {
        guard !isStopping else { return }
        pauseReason = message
        if !isInteractive { stop() }
    }

    /// Reads the length of the recording.
    private func close(_ then: @escaping () -> Void) {
        plugin.get("Position") { [weak self] value in
            guard let self else { return }
            learn(value)
            then()
        }
    }

    private func sayLength() {
        let reason = line.position == 0 ? ": the input sent no data" : ""
        say("\(path.escaped)  \(Wording.tenths(line.position)) s\(reason)")
    }

    override func changed(_ properties: [String: Value]) {
        guard let state = properties["State"]?.stringValue else { return }
        guard !isStopping else { return }
        line.state = state.escaped
        line.style = state == "recording" ? .bad : .warning
        line.remark = state == "recording" ? "" : pauseReason ?? " "
        switch state {
        case "recording":
            pauseReason = nil
            if !isInteractive { say(hasBegun ? "resumed" : "recording \(path.escaped)") }
            hasBegun = true
            beginDrawing(Self.help)
        case "paused": if hasBegun, !isInteractive { say("paused") }
        case "interrupted":
            plugin.interrupters { [weak self] names in
                guard let self, line.state == "interrupted" else { return }
                line.remark = names.isEmpty ? " " : "by " + Wording.list(names)
                draw()
                if !isInteractive { say("interrupted" + (names.isEmpty ? "" : " by " + Wording.list(names))) }
            }
        default: break
        }
        draw()
    }

    // MARK: Keys and signals

    override func pressed(_ key: Keyboard.Key) {
        switch key {
        case .space:
            if line.state == "recording" || line.state == "interrupted" { plugin.call("Pause") } else { record() }
        case .letter("q"): stop()
        case .letter, .left, .right, .up, .down, .editing: break
        }
    }

    /// Completes the file before every exit.
    override func interrupted(by signal: Int32) {
        // The same ctrl-C may arrive twice, as from timeout(1); only a later one forces an exit.
        if isStopping, MonotonicClock.now() > stopTime + 1_000_000 { end(128 + signal) }
        stop()
    }

    override func willSuspend() {
        isPausedByUs = line.state == "recording"
        if isPausedByUs { plugin.call("Pause") }
    }

    override func didContinue() { if isPausedByUs { record() } }
}
