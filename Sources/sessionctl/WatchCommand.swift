import ArgumentParser
import DBus
import Installation
import MediaValues
import PluginAPI
import PulseBackend
import SessionBus

/// `sessionctl watch`.
struct WatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Show films in a window, one after the other.",
        discussion: """
            Files, folders, playlists and URLs, also of HLS, and live streams (rtmp:, srt:, rtsp:). In the window and on a terminal: space pauses and resumes, \
            left and right seek 5 s, up and down a minute, . and , show the next and the previous picture, [ and ] change \
            the rate, 9 and 0 the volume, m mutes, l loops, # is the next sound track, j the next subtitles or none, page up \
            and page down are the next and the previous chapter, f is full screen, q quits. In the window Escape leaves full screen, and so does a double click.
            """)

    @Argument(help: "Films: files, folders or URLs.", completion: .file())
    var items: [String]
    @Flag(help: "Fill the screen.")
    var fullscreen = false
    @Flag(help: "Begin again at the end, for ever.")
    var loop = false
    @Option(
        help: ArgumentHelp(
            "Where: auto (the default: an X11 window if there is a server, else one of Wayland), x11, x11:ID (in that "
                + "window), wayland, pipewire or pipewire:NODE (a node of PipeWire, from which other programs read the "
                + "pictures), or none. The setting [movie] output is the default.",
            valueName: "output"))
    var output: String?
    @Option(help: "How a picture fills a window of another shape.")
    var scaling: Scaling?
    @Option(
        help: "Show the subtitles in this file: SubRip, WebVTT or SubStation Alpha.", completion: .file())
    var subtitles: String?
    @Option(help: ArgumentHelp("Play this one of several sound tracks, from 1.", valueName: "number"))
    var audio: Int?
    @Option(
        help: ArgumentHelp(
            "Begin the first film there: seconds, minutes:seconds or hours:minutes:seconds. By default, a long film goes on "
                + "where it was left; 0 is its beginning.", valueName: "time"))
    var from: PlayingTime?
    @OptionGroup var session: SessionOptions
    @OptionGroup var bus: BusOptions

    /// A time in a film.
    struct PlayingTime: ExpressibleByArgument {
        let seconds: Double

        init?(argument: String) {
            let parts = argument.split(separator: ":", omittingEmptySubsequences: false).map { Double($0) }
            guard (1...3).contains(parts.count), !parts.contains(nil) else { return nil }
            let numbers = parts.compactMap(\.self)
            // Only the first number may be larger than 59.
            guard numbers.allSatisfy({ $0 >= 0 && $0 < 1e7 }), numbers.dropFirst().allSatisfy({ $0 < 60 }) else {
                return nil
            }
            seconds = numbers.reduce(0) { $0 * 60 + $1 }
        }
    }

    func validate() throws {
        if let audio, !(1...10_000).contains(audio) {
            throw ValidationError("--audio needs the number of a sound track, from 1")
        }
        try Self.check(output: output)
    }

    /// The words that the movie player knows for its output.
    static func check(output: String?) throws {
        guard let output else { return }
        do throws(SessionError) {
            _ = try MovieOutput(output)
        } catch {
            throw ValidationError("--output: " + error.reason)
        }
    }

    /// The words of ``MovieScaling``.
    enum Scaling: String, CaseIterable, ExpressibleByArgument {
        case none
        case aspectFit = "aspect-fit"
        case aspectFill = "aspect-fill"
        case fill
    }

    func run() throws {
        let service = try Service(bus)
        // What these choose is known only when the film is open, and without a server it is never opened.
        if audio != nil || from != nil, case .unreachable = ServerProbe.look(on: service.loop) {
            let isElsewhere = try service.ask(
                "Get", [.string(BusName.manager), .string("ServerConnected")], interface: StandardName.properties
            ).first?.unwrapped.boolValue
            throw Complaint.refused(
                isElsewhere == true
                    ? SoundServerAdvice.elsewhere : SoundServerAdvice.absent(isSystem: bus.system, "play"))
        }
        var entries = try LibraryChoice.entries(items, nil, service)
        if let from, from.seconds > 0, let first = entries.first?.asProperties {
            entries[0] = .properties(first.merging(["bookmark": .double(from.seconds)]) { $1 }.map { ($0, $1) })
        }
        if subtitles != nil, entries.count != 1 {
            throw Complaint.usage("--subtitles belongs to one film: give one")
        }
        let words = try session.arguments(name: "sessionctl watch", in: .playback)
        try FilmPlayback(entries, words, service, self).run()
    }
}

/// Shows films with its own process of the movie player.
class FilmPlayback: Playback {
    override class var help: String {
        "space pause · ←/→ 5 s · ↑/↓ 60 s · , . picture · [ ] rate · 9 0 volume · m mute · # sound · j subtitles · "
            + "page ↑/↓ chapter · l loop · f full screen · q quit"
    }

    private static let movie = PluginKind.moviePlayer
    private static let rates = [0.5, 0.75, 1, 1.25, 1.5, 2]

    private let wish: WatchCommand
    /// Where films are shown to which no output was given.
    private let usual: MovieOutput
    private var isFullscreen = false
    private var isWaitingForWindow: Bool
    private var isOutputTold = false
    private var rate = 1.0
    private var loops = 0
    private var mutedVolume: Double?
    /// Of the film: what is known of it, and whether that is heard which the command line chose.
    private var tracks: [[String: Value]] = []
    private var isWaitingForTracks = false
    private var isChosen = false
    private var areSubtitlesAdded = false
    /// Of the film, in the queue.
    private var place = ""
    /// It is the first one that is played.
    private var isFirst = true

    init(_ items: [Value], _ arguments: [String], _ service: Service, _ wish: WatchCommand) throws {
        self.wish = wish
        usual = SettingsFiles(isSystem: service.bus.isSystem).read { _ in }.movie.output
        isWaitingForWindow = wish.fullscreen
        try super.init(items, arguments, service, with: Self.movie)
        plugin.onClosed = { [unowned self] in end(0) }
    }

    override func start() {
        if let scaling = wish.scaling {
            plugin.set("ScalingMode", .string(scaling.rawValue), of: Self.movie.interface)
        }
        // What the user says counts, and not where the film was left.
        if wish.from != nil { plugin.set("InitialPlaybackTime", .double(0), of: Self.movie.interface) }
        if wish.loop { plugin.set("RepeatMode", .string(items.count > 1 ? "all" : "one")) }
        guard let output = wish.output else { return load() }
        plugin.call(
            "SetOutput", [.string(output)], of: Self.movie.interface, at: Self.movie.objectPath
        ) { [weak self] answer in
            guard let self else { return }
            if case .failure(let failure) = answer { end(failure) } else { load() }
        }
    }

    /// First the subtitles, and the sound: nothing else is heard before.
    override func play() {
        guard let file = wish.subtitles, !areSubtitlesAdded else { return chooseSound() }
        movieCall("AddSubtitles", [.string(FileURI.uri(file))]) {
            $0.areSubtitlesAdded = true
            $0.chooseSound()
        }
    }

    private func chooseSound() {
        guard let number = wish.audio, !isChosen else { return super.play() }
        isWaitingForTracks = tracks.isEmpty
        guard !tracks.isEmpty else { return }
        if let lack = lack(ofSound: number) { return end(Complaint.refused(lack)) }
        movieCall("SelectTrack", [.string("audio"), .int32(Int32(number - 1))]) {
            $0.isChosen = true
            $0.startPlaying()
        }
    }

    /// A film without that sound track; the player counts from 0, and the user from 1.
    private func lack(ofSound number: Int) -> String? {
        let count = tracks.count { $0["type"]?.stringValue == "audio" }
        guard number > count else { return nil }
        return "there is no sound track \(number): the film has \(count == 0 ? "no sound" : "only \(count)")"
    }

    private func startPlaying() { super.play() }

    /// If it is refused, tells the reason; it ends with that if the command line wants it.
    private func movieCall(
        _ member: String, _ arguments: [Value], isByKey: Bool = false,
        _ then: @escaping (FilmPlayback) -> Void = { _ in }
    ) {
        plugin.call(member, arguments, of: Self.movie.interface, at: Self.movie.objectPath) { [weak self] answer in
            guard let self else { return }
            guard case .failure(let failure) = answer else { return then(self) }
            if isByKey { complain(service.complaint(failure).message) } else { end(failure) }
        }
    }

    private func learn(_ tracks: [[String: Value]]) {
        self.tracks = tracks
        // It is opened again for another sound, and has none then.
        guard !tracks.isEmpty else { return }
        if isWaitingForTracks {
            chooseSound()
        } else if let number = wish.audio, !isChosen, line.state == "playing" {
            // A film that follows.
            isChosen = true
            if let lack = lack(ofSound: number) { return complain(lack) }
            movieCall("SelectTrack", [.string("audio"), .int32(Int32(number - 1))], isByKey: true)
        }
    }

    /// The next sound; the next subtitles, and after the last ones none.
    private func chooseNext(_ type: String) {
        let found = tracks.filter { $0["type"]?.stringValue == type }
        let next = found.firstIndex { $0["selected"]?.boolValue == true }.map { $0 + 1 } ?? 0
        let number = next < found.count ? next : type == "audio" ? 0 : -1
        guard !found.isEmpty else { return note("the film has no \(type) tracks") }
        movieCall("SelectTrack", [.string(type), .int32(Int32(number))], isByKey: true) { playback in
            let words = number < 0 ? [] : ["language", "title"].compactMap { found[number][$0]?.stringValue?.escaped }
            playback.note(
                ([number < 0 ? "no \(type)s" : "\(type) \(number + 1)"] + words.filter { !$0.isEmpty })
                    .joined(separator: " "))
        }
    }

    override func changed(_ properties: [String: Value]) {
        if let next = properties["CurrentItem"]?.objectPathValue, next != place {
            isChosen = false
            isFirst = place.isEmpty
            place = next
        }
        if let duration = properties["Duration"]?.doubleValue { refuseLateBegin(duration) }
        if let list = properties["Tracks"]?.arrayValue { learn(list.compactMap(\.asProperties)) }
        if let isOn = properties["Fullscreen"]?.boolValue { isFullscreen = isOn }
        if let rate = properties["Rate"]?.doubleValue { self.rate = rate }
        if let loops = properties["Loops"]?.int32Value { self.loops = Int(loops) }
        if properties["Output"]?.stringValue == "none", wish.output == nil, usual == .automatic { tellMissingScreen() }
        if properties["ReadyForDisplay"]?.boolValue == true, isWaitingForWindow {
            isWaitingForWindow = false
            setFullscreen(true)
        }
        super.changed(properties)
    }

    /// The first film ends before the time at which it should begin.
    private func refuseLateBegin(_ duration: Double) {
        guard let from = wish.from?.seconds, isFirst, duration > 0, from >= duration else { return }
        end(
            Complaint.refused(
                "--from \(Wording.clock(from)) is after the end of the film, which lasts \(Wording.clock(duration))"))
    }

    /// The player describes what is not a film as what is not sound.
    override func failed(_ message: String) { super.failed(Self.ofFilm(message)) }
    override func skipped(_ message: String) { super.skipped(Self.ofFilm(message)) }

    private static func ofFilm(_ message: String) -> String {
        message.replacing(
            first: "it is not audio in a known format", with: "it is neither a film nor sound in a known format")
    }

    private func tellMissingScreen() {
        guard !isOutputTold else { return }
        isOutputTold = true
        complain(
            "no X11 server (DISPLAY) and no Wayland compositor (WAYLAND_DISPLAY) can be reached: only the sound is played"
        )
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
        case .editing(.pageUp): movieCall("SkipChapters", [.int32(1)], isByKey: true)
        case .editing(.pageDown): movieCall("SkipChapters", [.int32(-1)], isByKey: true)
        case .letter("."): step(1)
        case .letter(","): step(-1)
        case .letter("#"): chooseNext("audio")
        case .letter("j"): chooseNext("subtitle")
        case .letter("l"):
            plugin.set("Loops", .int32(loops == 0 ? -1 : 0))
            note(loops == 0 ? "repeat" : "once")
        case .space, .left, .right, .letter, .editing: super.pressed(key)
        }
    }

    private func step(_ pictures: Int32) { movieCall("Step", [.int32(pictures)], isByKey: true) }

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
