import ArgumentParser
import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus

/// `sessionctl camera preview`.
struct CameraPreviewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "preview", abstract: "Show what a camera sees in a window.",
        discussion: """
            In the window and on the terminal: space pauses and resumes, c switches to the next camera, t the light on and off, q or ctrl-C ends it. In the \
            window, f is full screen.
            """)

    @Flag(help: "Also show the level of the microphone. Music pauses then, as for a recording.")
    var meter = false
    @OptionGroup var camera: CameraOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        if meter { try service.awaitSoundServer() }
        let place = try CameraPlace(service)
        let session = try place.open(camera)
        if meter { try place.ask(session, "AddInput", [.string("default"), .properties([])]) }
        try place.addPreview(to: session)
        CameraRun(place, session, .preview(hasMeter: meter)).run()
    }
}

/// `sessionctl camera frames`.
struct CameraFramesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "frames", abstract: "Give the pictures of a camera to another program, through a FIFO.",
        discussion: """
            Make the FIFO with mkfifo. A program that reads too slowly loses pictures, which are counted. Ctrl-C ends it.
            """)

    @Argument(help: "The FIFO.", completion: .file())
    var fifo: String
    @Option(help: "The pixels: I420 (default), RGB, BGRx or GRAY8.")
    var pixels: CapturePixels?
    @Flag(help: "Write a header with the number, the time and the size before each picture.")
    var header = false
    @OptionGroup var camera: CameraOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        let path = try FileArgument.path(fifo)
        let place = try CameraPlace(service)
        let session = try place.open(camera)
        var options: [(String, Value)] = [("path", .string(path)), ("header", .bool(header))]
        if let pixels { options.append(("pixels", .string(pixels.rawValue))) }
        try place.ask(session, "AddOutput", [.string("frames"), .properties(options)])
        CameraRun(place, session, .frames(pixels ?? .i420)).run()
    }
}

extension CameraPlace {
    /// A capture session with that camera.
    func open(_ options: CameraOptions, _ settings: [(String, Value)] = []) throws -> String {
        let session = try createSession(settings)
        if let preset = options.preset { try set(session, "Preset", .string(preset)) }
        let camera = Value.string(try camera(options.device))
        try ask(session, "AddInput", [camera, .properties([])])
        if let zoom = options.zoom {
            try ask(session, "LockForConfiguration", [camera])
            try ask(session, "SetControl", [camera, .string("zoom"), .variant(.double(zoom))])
            try ask(session, "UnlockForConfiguration", [camera])
        }
        return session
    }

    /// On the screen of this program, which may not be that of the plugin.
    func addPreview(to session: String) throws {
        let display = getenv("DISPLAY").map { String(cString: $0) } ?? ""
        try ask(session, "AddOutput", [.string("preview"), .properties([("display", .string(display))])])
    }
}

/// A camera that is shown, or whose pictures another program reads, until the user ends it.
final class CameraRun {
    enum Purpose {
        case preview(hasMeter: Bool)
        case frames(CapturePixels)
    }

    private static let help = "space pause · c switch the camera · t light · q quit"

    private let place: CameraPlace
    private let session: String
    private let purpose: Purpose
    private var service: Service { place.service }
    private let screen: ProgressScreen
    private var signals: [SignalWatch] = []
    private var subscriptions: [Subscription] = []
    private var properties: [String: Value] = [:]
    private var begun: UInt64?

    init(_ place: CameraPlace, _ session: String, _ purpose: Purpose) {
        (self.place, self.session, self.purpose) = (place, session, purpose)
        screen = ProgressScreen(place.service.loop, noteTime: 3)
    }

    private var isPreview: Bool { if case .preview = purpose { true } else { false } }

    /// Runs until the user ends it; never returns.
    func run() -> Never {
        let (loop, connection) = (service.loop, service.connection)
        screen.readKeys { [unowned self] in pressed($0) }
        screen.onTick = { [unowned self] in tick() }
        signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].map { number in
            loop.watch(signal: number) { [unowned self] in stop() }
        }
        subscriptions = [
            connection.subscribe(path: session, sender: place.place) { [unowned self] in heard($0) },
            connection.watchName(place.place) { [unowned self] in
                end(Complaint.refused("\(place.kind.program) ended unexpectedly"))
            },
        ]
        connection.onDisconnect = { [unowned self] in end(Complaint.unreachable("the bus connection was lost")) }
        call("StartRunning") { [unowned self] _ in readProperties { [unowned self] in begin() } }
        let code = loop.run()
        screen.finish()
        RawMode.restore()
        Output.end(code, keeping: self)
    }

    private func begin() {
        begun = MonotonicClock.now()
        let cameras = (properties["Inputs"]?.arrayValue ?? []).compactMap(\.asProperties)
        let name = cameras.first { $0["media"]?.stringValue == "video" }?["name"]?.stringValue?.escaped ?? ""
        let format = (properties["Format"]?.structureValue ?? []).map { $0.uint32Value ?? 0 }
        var text = name
        if format.count == 4, format[3] > 0 {
            let rate = Wording.tenths(Double(format[2]) / Double(format[3]))
            text += "  \(format[0])x\(format[1]), \(rate)/s"
        }
        if case .frames(let pixels) = purpose { text += "  \(pixels.rawValue)" }
        (screen.line.title, screen.line.state) = (text, isPreview ? "preview" : "running")
        if screen.isInteractive { screen.begin(isPreview ? Self.help : "q quit") } else { Output.line(text) }
    }

    private func call(_ member: String, _ arguments: [Value] = [], _ then: @escaping ([Value]) -> Void = { _ in }) {
        service.connection.call(
            place.place, session, CameraPlace.session, member, arguments, timeout: CameraPlace.timeout(of: member)
        ) { [weak self] answer in
            guard let self else { return }
            switch answer {
            case .success(let values): then(values)
            case .failure(let failure):
                if begun != nil { note(service.complaint(failure).message) } else { end(service.complaint(failure)) }
            }
        }
    }

    private func readProperties(_ then: @escaping () -> Void) {
        service.connection.call(
            place.place, session, StandardName.properties, "GetAll", [.string(CameraPlace.session)],
            timeout: Service.timeout
        ) { [weak self] answer in
            guard let self else { return }
            properties.merge((try? answer.get())?.first?.asProperties ?? [:]) { $1 }
            then()
        }
    }

    private func stop() {
        guard begun != nil, !isPreview else { return service.loop.quit(0) }
        readProperties { [unowned self] in
            screen.finish()
            let (written, lost) = (
                properties["FramesWritten"]?.uint64Value ?? 0, properties["FramesLost"]?.uint64Value ?? 0
            )
            Output.line("\(written) pictures\(lost > 0 ? ", \(lost) lost: the reader was too slow" : "")")
            service.loop.quit(0)
        }
    }

    private func end(_ complaint: Complaint) {
        screen.finish()
        Output.complain(complaint.message)
        service.loop.quit(complaint.code)
    }

    private func note(_ text: String) {
        if screen.isDrawing { screen.note(text) } else { Output.complain(text) }
    }

    private func heard(_ message: Message) {
        guard let values = try? message.arguments() else { return }
        switch message.member {
        case "PropertiesChanged":
            service.connection.readChanges(message) { [weak self] in self?.changed($1) }
        case "PreviewDidClose":
            if values.first?.stringValue == "user-exited" { return service.loop.quit(0) }
            end(Complaint.refused("the window is gone: the X11 server closed the connection"))
        case "RuntimeError": note(values.last?.stringValue?.escaped ?? "")
        case "WasInterrupted":
            if values.first?.stringValue == "video-device-not-available" { note("the camera sends no pictures") }
        default: break
        }
    }

    private func changed(_ changes: [String: Value]) {
        properties.merge(changes) { $1 }
        guard begun != nil else { return }
        // The camera did not come back.
        if properties["Running"]?.boolValue == false { return end(Complaint.refused("the camera is gone")) }
        let isPaused = properties["PreviewPaused"]?.boolValue == true
        if isPreview { screen.line.state = isPaused ? "paused" : "preview" }
        screen.draw()
    }

    private func tick() {
        guard let begun else { return }
        screen.line.position = Double(MonotonicClock.now() - begun) / 1e6
        guard case .preview(hasMeter: true) = purpose else { return screen.draw() }
        call("Meters") { [weak self] values in
            self?.screen.line.levels = ProgressLine.levels(values.first)
            self?.screen.draw()
        }
    }

    private func pressed(_ key: Keyboard.Key) {
        switch key {
        case .space where isPreview:
            let isPaused = properties["PreviewPaused"]?.boolValue == true
            service.connection.call(
                place.place, session, StandardName.properties, "Set",
                [.string(CameraPlace.session), .string("PreviewPaused"), .variant(.bool(!isPaused))],
                timeout: Service.timeout
            ) { _ in }
        case .letter("c"): call("SwitchCamera", [.string("")])
        case .letter("t"):
            place.toggleLight(of: session) { [weak self] failure in
                if let self { note(service.complaint(failure).message) }
            }
        case .letter("q"): stop()
        case .space, .letter, .left, .right, .up, .down, .editing: break
        }
    }
}
