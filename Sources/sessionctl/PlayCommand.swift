import ArgumentParser
import DBus
import EventLoop
import MediaValues
import PluginAPI
import SessionBus

/// `sessionctl play`.
struct PlayCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "play", abstract: "Play files and URLs, one after the other.",
        discussion: """
            Files, folders, playlists (M3U, PLS), and URLs of files, streams and radios; and from the music library, \
            album:NAME, artist:NAME, song:NAME, genre:NAME, composer:NAME, playlist:NAME, podcast:NAME and \
            audiobook:NAME. Podcasts and audiobooks go on where they were. A URL with the scheme of another \
            installed player plugin, such as tone:440, is played alone, by that plugin. Films alone are shown in a window, \
            as by watch. On a terminal: space \
            pauses and resumes, left and right seek 5 s, up and down change the volume, n is the next item, p the \
            previous one, r repeats all, one or none, s shuffles, q quits.
            """)

    @Argument(help: "Files, folders, URLs, or entries of the music library such as album:NAME.", completion: .file())
    var items: [String] = []
    @Option(
        help: ArgumentHelp(
            "Play the items of the library that match: KEY=VALUE, or KEY~PART for a part of a text; several with commas. Keys: preset, playlist, text, sort, and properties such as artist, album, genre, year.",
            valueName: "query"))
    var query: String?
    @Flag(
        help: "Keep what comes from the web: every byte is fetched once, and what is whole plays without the network.")
    var cache = false
    @OptionGroup var session: SessionOptions
    @OptionGroup var bus: BusOptions

    func validate() throws {
        if items.isEmpty, query == nil { throw ValidationError("name what to play, or give a --query") }
    }

    func run() throws {
        let service = try Service(bus)
        if let uri = try PluginPlayback.uri(among: items, query, service) {
            guard !cache else {
                throw Complaint(
                    code: 64,
                    message: "--cache does not apply to '\(uri.escaped)': only addresses with http or https are kept")
            }
            guard session.isEmpty else {
                throw Complaint(
                    code: 64,
                    message: "--name, --category, --mode and --option do not apply to '\(uri.escaped)': "
                        + "the plugin that plays it has a session of its own")
            }
            try PluginPlayback(uri, service).run()
        }
        var entries = try LibraryChoice.entries(items, query, service)
        let isFilm = !entries.isEmpty && entries.allSatisfy(Self.isFilm)
        if cache { entries = try Self.cached(entries, service) }
        if isFilm, !PluginProcess.isInstalled(.moviePlayer) {
            Output.complain("only the sound is played: the pictures need the package sessiond-movie")
        } else if isFilm {
            // The options of `watch` that it has no words for.
            let wish = try WatchCommand.parse(["-"])
            try FilmPlayback(entries, session.arguments(name: "sessionctl play", in: .playback), service, wish).run()
        }
        try Playback(entries, session.arguments(name: "sessionctl play", in: .playback), service).run()
    }
}

extension PlayCommand {
    /// Whether the name of an item says that it has pictures.
    fileprivate static func isFilm(_ entry: Value) -> Bool {
        let uri = entry.asProperties?["uri"]?.stringValue ?? ""
        let path = uri.prefix { $0 != "?" && $0 != "#" }
        return MediaType.of(String(path))?.hasPrefix("video/") == true
    }

    /// The items with the addresses of the cache instead of those of the web. They are valid as long as this program runs.
    fileprivate static func cached(_ entries: [Value], _ service: Service) throws -> [Value] {
        var place: CachePlace?
        return try entries.map { entry in
            var fields = entry.asProperties ?? [:]
            guard let uri = fields["uri"]?.stringValue,
                ["http://", "https://"].contains(where: { uri.lowercased().hasPrefix($0) })
            else { return entry }
            let opened = try place ?? CachePlace(service)
            place = opened
            fields["uri"] = .string(try opened.open(uri, .properties([])))
            return .properties(fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        }
    }
}

/// Plays items with its own player process, which has the queue.
class Playback: FrontEnd {
    /// The keys, for the user.
    class var help: String {
        "space pause · ←/→ 5 s · ↑/↓ volume · n next · p previous · r repeat · s shuffle · q quit"
    }
    static let step = 5.0
    private static let mpris = (path: "/org/mpris/MediaPlayer2", interface: "org.mpris.MediaPlayer2.Player")

    let items: [Value]
    private var hasFailed = false
    /// The item and title that were printed.
    private var announced: (item: String, title: String)?
    private var item = ""
    /// The player accepted the request to play.
    private var mayPlay = false
    private var isReady = false
    private var isStalled = false
    private var isPausedByUs = false
    private(set) var volume = 1.0
    private var repeatMode = "none"
    private var isShuffled = false
    private var lossWatch: Subscription?

    /// - Parameter items: as `LoadItems` takes them.
    init(_ items: [Value], _ arguments: [String], _ service: Service, with kind: PluginKind = .player) throws {
        self.items = items
        try super.init(kind, arguments, service)
        lossWatch = service.connection.subscribe(
            path: ObjectPath.root, interface: BusName.manager, member: "ServicesLost", sender: BusName.service
        ) { [unowned self] _ in
            // Playback would not resume automatically, and without a terminal, no user can resume it.
            if !isInteractive { end(Self.serverEnded) }
        }
        plugin.onItemFailed = { [unowned self] in skipped($0.escaped) }
        plugin.watch(Self.mpris.path) { [unowned self] in if $0["Metadata"] != nil { look() } }
    }

    private static var serverEnded: Complaint {
        .refused("the sound server has ended: start it with '\(SoundServerAdvice.command("start"))', then play again")
    }

    override func start() { load() }

    /// Loads the items and plays them.
    func load() {
        plugin.get("Volume") { [weak self] in self?.volume = $0?.doubleValue ?? 1 }
        plugin.call("LoadItems", [.array(of: "a{sv}", items), .uint32(0)]) { [weak self] answer in
            guard let self else { return }
            if case .failure(let failure) = answer { end(failure) } else { play() }
        }
    }

    func play() {
        plugin.call("Play") { [weak self] answer in
            guard let self else { return }
            guard case .failure(let failure) = answer else {
                mayPlay = true
                return
            }
            // An item that cannot be played is reported by a signal; other errors are not.
            plugin.get("State") { [weak self] state in
                if state?.stringValue != "failed" { self?.refused(failure) }
            }
        }
    }

    /// An item cannot be played; the message gives the reason.
    func skipped(_ message: String) {
        hasFailed = true
        complain(message)
    }

    private func refused(_ failure: Failure) {
        guard isInteractive, announced != nil else { return end(failure) }
        complain(service.complaint(failure).message)
    }

    // MARK: Events of the player

    override func finished(_ success: Bool) { end(hasFailed || !success ? 1 : 0) }

    override func failed(_ message: String) {
        tellServer(message) { [weak self] advice in self?.end(Complaint.refused(advice ?? message)) }
    }

    override func changed(_ properties: [String: Value]) {
        if let duration = properties["Duration"]?.doubleValue { line.duration = duration > 0 ? duration : nil }
        if let volume = properties["Volume"]?.doubleValue { self.volume = volume }
        if let mode = properties["RepeatMode"]?.stringValue { repeatMode = mode }
        if let isOn = properties["Shuffle"]?.boolValue { isShuffled = isOn }
        if let path = properties["CurrentItem"]?.objectPathValue { item = path }
        if let status = properties["ItemStatus"]?.stringValue { isReady = status == "ready" }
        if let isOn = properties["Stalled"]?.boolValue { isStalled = isOn }
        if let state = properties["State"]?.stringValue { show(state) }
        line.remark = line.state == "playing" && isStalled ? "waiting for the network" : line.remark
        if line.state == "playing", !isStalled { line.remark = "" }
        look()
        draw()
    }

    private func show(_ state: String) {
        line.state = state.escaped
        line.style = state == "playing" ? .good : .warning
        line.remark = ["playing", "stopped"].contains(state) ? "" : " "
        switch state {
        case "playing": if announced?.item == item { sayPlainly("resumed") }
        case "interrupted":
            plugin.interrupters { [weak self] names in
                guard let self, line.state == "interrupted" else { return }
                line.remark = names.isEmpty ? " " : "by " + Wording.list(names)
                draw()
                sayPlainly("interrupted" + (names.isEmpty ? "" : " by " + Wording.list(names)))
            }
        case "paused": if announced != nil { sayPlainly("paused") }
        case "stopped": if announced == nil { lookForServer() } else { endIfStopped() }
        default: break
        }
    }

    /// The player accepted the request but stopped before any sound. Without a sound server there is nothing to wait
    /// for. An item that ended or failed was reported before this answer.
    private func lookForServer() {
        guard mayPlay, announced == nil else { return }
        plugin.get("State") { [weak self] state in
            guard let self, state?.stringValue == "stopped", announced == nil else { return }
            tellServer("no sound server") { [weak self] advice in
                guard let self, announced == nil, let advice else { return }
                end(Complaint.refused(advice))
            }
        }
    }

    /// Somebody else has stopped it, by MPRIS or a media key: that is the end, as it is of mpv. An item that ended or failed was
    /// reported before this answer.
    private func endIfStopped() {
        plugin.get("State") { [weak self] state in
            guard let self, state?.stringValue == "stopped" else { return }
            service.call(
                "Get", [.string(BusName.manager), .string("ServerConnected")], interface: StandardName.properties
            ) { [weak self] answer in
                // Without a sound server it waits for one.
                guard let self, case .success(let values) = answer, values.first?.unwrapped.boolValue == true else {
                    return
                }
                end(hasFailed ? 1 : 0)
            }
        }
    }

    /// Prints the playing item by its title if it has one; also the next song of a radio.
    private func look() {
        guard isReady, line.state == "playing" else { return }
        let current = item
        plugin.get("Metadata", of: Self.mpris.interface, at: Self.mpris.path) { [weak self] value in
            guard let self, item == current, line.state == "playing" else { return }
            let fields = value?.asProperties ?? [:]
            guard fields["mpris:trackid"]?.objectPathValue == current else { return }
            let artists = (fields["xesam:artist"]?.stringsValue ?? []).joined(separator: ", ")
            let name = fields["xesam:title"]?.stringValue ?? ""
            line.title = (artists.isEmpty ? name : "\(artists) – \(name)").escaped
            beginDrawing(type(of: self).help)
            draw()
            // Late tags of a file are not printed.
            guard announced?.item != current || (announced?.title != line.title && line.duration == nil) else { return }
            announced = (current, line.title)
            sayPlainly("playing \(line.title)" + (line.duration.map { " (\(Wording.clock($0)))" } ?? ""))
        }
    }

    func sayPlainly(_ text: String) { if !isInteractive { say(text) } }

    // MARK: Keys

    override func pressed(_ key: Keyboard.Key) {
        switch key {
        case .space: if line.state == "playing" || line.state == "interrupted" { plugin.call("Pause") } else { play() }
        case .left: seek(-Self.step)
        case .right: seek(Self.step)
        case .up: turn(0.05)
        case .down: turn(-0.05)
        case .letter("n"): plugin.call("Next")
        case .letter("p"): goBack()
        case .letter("r"): cycleRepeat()
        case .letter("s"):
            plugin.set("Shuffle", .bool(!isShuffled))
            note(isShuffled ? "in order" : "shuffled")
        case .letter("q"): end(hasFailed ? 1 : 0)
        case .letter, .editing: break
        }
    }

    /// After the first seconds of an item, "back" goes to its beginning.
    private func goBack() {
        plugin.get("Position") { [weak self] position in
            self?.plugin.call(position?.doubleValue ?? 0 > 3 ? "SkipToBeginning" : "Previous")
        }
    }

    private func cycleRepeat() {
        let modes = ["none": "all", "all": "one", "one": "none"]
        let next = modes[repeatMode] ?? "none"
        plugin.set("RepeatMode", .string(next))
        note("repeat " + next)
    }

    /// Relative to the target of the previous seek, because keys come faster than answers.
    func seek(_ seconds: Double) {
        line.position = max(0, line.position + seconds)
        plugin.call("Seek", [.int64(Int64(seconds * 1e6))], of: Self.mpris.interface, at: Self.mpris.path)
        draw()
    }

    func turn(_ change: Double) {
        volume = min(1, max(0, ((volume + change) * 20).rounded() / 20))
        plugin.set("Volume", .double(volume))
        note("volume \(Wording.whole((volume * 100).rounded(), 0...100)) %")
    }

    override func willSuspend() {
        isPausedByUs = line.state == "playing"
        if isPausedByUs { plugin.call("Pause") }
    }

    override func didContinue() { if isPausedByUs { play() } }
}
