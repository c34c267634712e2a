import ArgumentParser
import DBus
import PluginAPI

/// `sessionctl watch`.
struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Show films in a window, one after the other.",
        discussion: """
            Files, folders, playlists and URLs, also of HLS. In the window and on a terminal: space pauses and resumes, \
            left and right seek 5 s, up and down a minute, [ and ] change the rate, 9 and 0 the volume, m mutes, l loops, \
            f is full screen, q quits. In the window Escape leaves full screen, and so does a double click.
            """)

    @Argument(help: "Films: files, folders or URLs.", completion: .file())
    var items: [String]
    @Flag(help: "Fill the screen.")
    var fullscreen = false
    @Flag(help: "Begin again at the end, for ever.")
    var loop = false
    @Option(
        help: ArgumentHelp(
            "Where: auto (the default: an X11 window if there is a server), x11, x11:ID (in that window), or none.",
            valueName: "output"))
    var output: String?
    @Option(help: "How a picture fills a window of another shape.")
    var scaling: Scaling?
    @OptionGroup var session: SessionOptions
    @OptionGroup var bus: BusOptions

    /// The words of ``MovieScaling``.
    enum Scaling: String, CaseIterable, ExpressibleByArgument {
        case none
        case aspectFit = "aspect-fit"
        case aspectFill = "aspect-fill"
        case fill
    }

    func run() throws {
        let service = try Service(bus)
        let entries = try LibraryChoice.entries(items, nil, service)
        let words = try session.arguments(name: "sessionctl watch", in: .playback)
        try FilmPlayback(entries, words, service, self).run()
    }
}

/// Shows films with its own process of the movie player.
final class FilmPlayback: Playback {
    override class var help: String {
        "space pause · ←/→ 5 s · ↑/↓ 60 s · [ ] rate · 9 0 volume · m mute · l loop · f full screen · q quit"
    }

    private static let movie = PluginKind.moviePlayer
    private static let rates = [0.5, 0.75, 1, 1.25, 1.5, 2]

    private let wish: WatchCommand
    private var isFullscreen = false
    private var isWaitingForWindow: Bool
    private var isOutputTold = false
    private var rate = 1.0
    private var loops = 0
    private var mutedVolume: Double?

    init(_ items: [Value], _ arguments: [String], _ service: Service, _ wish: WatchCommand) throws {
        self.wish = wish
        isWaitingForWindow = wish.fullscreen
        try super.init(items, arguments, service, with: Self.movie)
        plugin.onClosed = { [unowned self] in end(0) }
    }

    override func start() {
        if let scaling = wish.scaling {
            plugin.set("ScalingMode", .string(scaling.rawValue), of: Self.movie.interface)
        }
        if wish.loop { plugin.set("RepeatMode", .string(items.count > 1 ? "all" : "one")) }
        plugin.call(
            "SetOutput", [.string(wish.output ?? "auto")], of: Self.movie.interface, at: Self.movie.objectPath
        ) { [weak self] answer in
            guard let self else { return }
            if case .failure(let failure) = answer { end(failure) } else { load() }
        }
    }

    override func changed(_ properties: [String: Value]) {
        if let isOn = properties["Fullscreen"]?.boolValue { isFullscreen = isOn }
        if let rate = properties["Rate"]?.doubleValue { self.rate = rate }
        if let loops = properties["Loops"]?.int32Value { self.loops = Int(loops) }
        if properties["Output"]?.stringValue == "none", wish.output == nil { tellMissingScreen() }
        if properties["ReadyForDisplay"]?.boolValue == true, isWaitingForWindow {
            isWaitingForWindow = false
            setFullscreen(true)
        }
        super.changed(properties)
    }

    private func tellMissingScreen() {
        guard !isOutputTold else { return }
        isOutputTold = true
        complain("no X11 server can be reached (DISPLAY): only the sound is played")
    }

    private func setFullscreen(_ isOn: Bool) {
        plugin.call(
            "SetFullscreen", [.bool(isOn)], of: Self.movie.interface, at: Self.movie.objectPath
        ) { [weak self] answer in
            guard let self, case .failure(let failure) = answer else { return }
            complain(service.complaint(failure).message)
        }
    }

    override func pressed(_ key: Keyboard.Key) {
        switch key {
        case .up: seek(60)
        case .down: seek(-60)
        case .letter("f"): setFullscreen(!isFullscreen)
        case .letter("["): changeRate(-1)
        case .letter("]"): changeRate(1)
        case .letter("9"): turn(-0.05)
        case .letter("0"): turn(0.05)
        case .letter("m"): toggleMute()
        case .letter("l"):
            plugin.set("Loops", .int32(loops == 0 ? -1 : 0))
            note(loops == 0 ? "repeat" : "once")
        case .space, .left, .right, .letter, .editing: super.pressed(key)
        }
    }

    private func changeRate(_ steps: Int) {
        let now = Self.rates.firstIndex { $0 >= rate } ?? 2
        rate = Self.rates[min(max(now + steps, 0), Self.rates.count - 1)]
        plugin.set("Rate", .double(rate))
        note("rate \(rate)")
    }

    private func toggleMute() {
        if let before = mutedVolume {
            mutedVolume = nil
            turn(before - volume)
        } else {
            mutedVolume = volume
            turn(-volume)
        }
    }
}
