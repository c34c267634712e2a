import ArgumentParser
import DBus
import PluginAPI

/// `sessionctl live watch`.
struct LiveWatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Show a live stream in a window, and how late it is.",
        discussion: """
            A lost connection is made again, and the stream goes on with what is sent then. In the window and on a terminal: \
            space pauses and resumes, 9 and 0 change the volume, m mutes, e leaves out what is late, f is full screen, q quits.
            """)

    @Argument(
        help: ArgumentHelp(
            "rtmp://HOST/APPLICATION/NAME (or rtmps:), srt://HOST:PORT, rtsp://HOST/NAME, or the list of HLS at an http "
                + "address.", valueName: "url"))
    var url: String
    @Option(
        help: ArgumentHelp(
            "How late it may be, 0.05 to 60; default: 0.06, or two segments of HLS.", valueName: "seconds"))
    var latency: Double?
    @Flag(help: "Fill the screen.")
    var fullscreen = false
    @Option(
        help: ArgumentHelp(
            "Where: auto, x11, x11:ID, wayland, pipewire, pipewire:NODE or none, as for watch.",
            valueName: "output"))
    var output: String?
    @OptionGroup var session: SessionOptions
    @OptionGroup var bus: BusOptions

    func validate() throws {
        if let latency, !(0.05...60).contains(latency) { throw ValidationError("--latency needs 0.05 to 60 seconds") }
        try WatchCommand.check(output: output)
    }

    func run() throws {
        let service = try Service(bus)
        var wish = try WatchCommand.parse(["-"])
        (wish.fullscreen, wish.output) = (fullscreen, output)
        let words = try session.arguments(name: "sessionctl live", in: .playback)
        let entries = try LibraryChoice.entries([url], nil, service)
        try LivePlayback(entries, words, service, wish, latency: latency).run()
    }
}

/// Shows a live stream, and a line with its state, its delay and what was left out.
final class LivePlayback: FilmPlayback {
    override class var help: String { "space pause · 9 0 volume · m mute · e edge · f full screen · q quit" }

    private let latency: Double?
    private var ticks = 0
    private var dropped: UInt64 = 0
    private var isStalled = false

    init(_ items: [Value], _ arguments: [String], _ service: Service, _ wish: WatchCommand, latency: Double?) throws {
        self.latency = latency
        try super.init(items, arguments, service, wish)
    }

    override func start() {
        if let latency {
            plugin.set("TargetLatency", .double(latency), of: PluginKind.moviePlayer.interface)
        }
        super.start()
    }

    override func changed(_ properties: [String: Value]) {
        if let isOn = properties["Stalled"]?.boolValue {
            if isOn != isStalled { sayPlainly(isOn ? "waits for the server" : "goes on") }
            isStalled = isOn
        }
        super.changed(properties)
    }

    override func refresh() {
        // Twice a second.
        ticks += 1
        guard ticks % 5 == 1 else { return }
        let interface = PluginKind.moviePlayer.interface
        plugin.get("DroppedFrames", of: interface, at: PluginKind.moviePlayer.objectPath) { [weak self] value in
            self?.dropped = value?.uint64Value ?? 0
        }
        plugin.get("Latency", of: interface, at: PluginKind.moviePlayer.objectPath) { [weak self] value in
            guard let self else { return }
            line.figures = Self.figures(delay: value?.doubleValue ?? 0, dropped: dropped)
            draw()
        }
    }

    /// `0.24 s behind  3 dropped`
    static func figures(delay: Double, dropped: UInt64) -> String {
        let hundredths = Int((min(max(delay, 0), 1e6) * 100).rounded())
        let rest = hundredths % 100
        let seconds = "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest) s behind"
        return hundredths == 0 ? "" : dropped == 0 ? seconds : "\(seconds)  \(dropped) dropped"
    }

    override func pressed(_ key: Keyboard.Key) {
        switch key {
        case .letter("e"):
            plugin.call("GoToLive")
            note("at the edge")
        case .left, .right, .up, .down: note("a live stream cannot be wound")
        case .space, .letter, .editing: super.pressed(key)
        }
    }
}
