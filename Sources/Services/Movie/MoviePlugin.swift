public import DBus
public import EventLoop
public import PluginAPI
public import PluginKit
import SessionBus

/// A player of films for the session service: a ``PlayerPlugin`` whose engine also has pictures, and their screen.
///
/// Implements `org.sessiond1.MoviePlayer` beside `org.sessiond1.Player` and MPRIS. When, and whether, it plays is the
/// player's rule; pictures and sound are paused together. The screen saver is off only while pictures play.
public final class MoviePlugin: Plugin {
    /// Why a film is over. The raw value is the word on the wire.
    public enum FinishReason: String, Sendable, Hashable {
        case ended, error
        case userExited = "user-exited"
    }

    /// Whether what a key did is drawn into the pictures. The raw value is the word on the wire.
    enum ControlStyle: String, CaseIterable {
        case none, embedded, fullscreen, `default`
    }

    public let player: PlayerPlugin
    /// The film is over; called after the signal was sent. For an error, the message gives the reason.
    public var onFinished: ((FinishReason, String?) -> Void)?

    let film: any FilmEngine
    let screen: any MovieScreen
    let connection: Connection
    /// Whether a prepared film plays by itself.
    var shouldAutoplay = true
    var controlStyle = ControlStyle.default
    /// Where a film begins, in seconds; −1: where it was left, or at its beginning.
    var initialTime = -1.0
    /// Knows where long films were left; nil: every film begins at its beginning.
    var places: PlaceKeeper?
    private let saver: ScreenSaver
    /// It takes pictures for a client, or does so no more.
    public var onBusyChanged: ((_ isBusy: Bool) -> Void)?
    lazy var thumbnails = ThumbnailRequests(on: connection, loop) { [unowned self] in onBusyChanged?($0) }
    private let loop: EventLoop
    private var announcement: Announcement<MoviePlugin>?
    private var isServed = false

    /// Creates the session. The caller owns the bus name, and calls ``serve()``.
    /// - Parameter screen: where the engine shows its pictures; the plugin owns its callbacks from now on.
    public init(
        _ engine: any FilmEngine, on screen: any MovieScreen, _ description: AudioSessionClient.Description,
        on connection: Connection, _ loop: EventLoop
    ) {
        (film, self.screen, self.connection, self.loop) = (engine, screen, connection, loop)
        player = PlayerPlugin(engine, description, kind: .moviePlayer, on: connection, loop)
        saver = ScreenSaver(description.name, on: connection)
        player.onSettled = { [unowned self] in settle() }
        player.onOpened = { [unowned self] in opened(at: $0) }
        player.onPrepared = { [unowned self] in
            if shouldAutoplay, loadState.contains("playthrough-ok") { player.play { _ in } }
        }
        player.onFinished = { [unowned self] _ in
            if let uri = player.engine.uri { places?.finished(uri) }
            finish(.ended)
        }
        player.onFailed = { [unowned self] message in finish(.error, message) }
        engine.onTracks = { [unowned self] in player.changing {} }
        screen.onChanged = { [unowned self] in player.changing {} }
        screen.onFullscreen = { [unowned self] in tell($0) }
        // The engine reports the failure of the film; with the window, full screen has ended.
        screen.onLost = { [unowned self] _ in player.changing {} }
        screen.onCommand = { [unowned self] in obey($0) }
    }

    public func serve() {
        guard !isServed else { return }
        isServed = true
        player.add(MoviePlugin.interface, of: self)
        player.serve()
        announcement = Announcement(
            self, path: player.path, interface: PluginKind.moviePlayer.interface, MoviePlugin.properties,
            on: connection.objects)
    }

    public func end(_ done: @escaping () -> Void) {
        saver.isInhibited = false
        places?.end()
        screen.hide()
        player.end(done)
    }

    private func settle() {
        saver.isInhibited =
            player.engine.state == .playing && screen.mediaTypes.contains("video") && screen.output != "none"
        places?.settled(film)
        announcement?.update(self)
    }

    /// - Parameter start: where the entry of the queue says.
    private func opened(at start: Double) {
        guard let uri = player.engine.uri else { return screen.begin() }
        if initialTime > 0 {
            player.engine.seek(to: initialTime)
        } else if initialTime < 0, start == 0, let place = places?.place(of: uri) {
            player.engine.seek(to: place)
        }
    }

    private func finish(_ reason: FinishReason, _ message: String? = nil) {
        emit("PlaybackDidFinish", [.string(reason.rawValue)])
        onFinished?(reason, message)
    }

    private func tell(_ change: FullscreenChange) {
        switch change {
        case .willEnter: emit("WillEnterFullscreen")
        case .didEnter: emit("DidEnterFullscreen")
        case .willExit: emit("WillExitFullscreen")
        case .didExit: emit("DidExitFullscreen")
        }
        player.changing {}
    }

    func emit(_ member: String, _ arguments: [Value] = []) {
        connection.objects.emit(
            path: player.path, interface: PluginKind.moviePlayer.interface, member: member, arguments)
    }

    /// Ends the film as the button of the window that closes it.
    func exit() {
        guard player.engine.uri != nil else { return screen.hide() }
        player.stop()
        try? player.load([])
        screen.hide()
        finish(.userExited)
    }

    // MARK: State

    /// What can be said about playing on: nothing before the film is ready.
    var loadState: [String] {
        let engine = player.engine
        guard player.itemStatus == .ready else { return [] }
        if engine.isStalled { return ["stalled"] }
        let loaded = engine.loadedRanges.last { $0.contains(engine.position) }
        let isWhole = engine.duration.map { end in loaded.map { $0.upperBound >= end - 0.1 } ?? false } ?? false
        return isWhole ? ["playable", "playthrough-ok"] : ["playable"]
    }

    var sourceType: String {
        guard let uri = player.engine.uri else { return "unknown" }
        return uri.lowercased().hasPrefix("file:") ? "file" : "streaming"
    }

    // MARK: Commands

    /// The rates of the keys.
    private static let rates = [0.5, 0.75, 1, 1.25, 1.5, 2]

    private func obey(_ command: MovieCommand) {
        let engine = player.engine
        switch command {
        case .playOrPause:
            if player.state == .playing || player.state == .interrupted { player.pause() } else { player.play { _ in } }
        case .seek(let seconds):
            let target = max(0, engine.position + seconds)
            try? player.seek(to: min(target, engine.duration ?? target))
        case .changeRate(let steps):
            let now = MoviePlugin.rates.firstIndex { $0 >= engine.rate } ?? 2
            let next = min(max(now + steps, 0), MoviePlugin.rates.count - 1)
            player.changing { engine.rate = MoviePlugin.rates[next] }
        case .toggleFullscreen: try? screen.setFullscreen(!screen.isFullscreen)
        case .leaveFullscreen: if screen.isFullscreen { try? screen.setFullscreen(false) }
        case .changeVolume(let change):
            let volume = ((engine.volume + change) * 20).rounded() / 20
            player.changing { engine.volume = min(max(volume, 0), 1) }
        case .toggleMute:
            player.changing {
                (engine.volume, volumeBefore) = engine.volume > 0 ? (0, engine.volume) : (volumeBefore, 0)
            }
        case .toggleLoop: player.changing { engine.loops = engine.loops == 0 ? -1 : 0 }
        case .step(let pictures): try? step(pictures)
        case .nextTrack(let kind): chooseNext(kind)
        case .skipChapters(let steps): try? skipChapters(steps)
        case .exit: return exit()
        }
        if controlStyle != .none { screen.note(remark(after: command)) }
    }

    /// Pauses, and shows another picture.
    func step(_ pictures: Int) throws(SessionError) {
        player.pause()
        try player.changing { () throws(SessionError) in try film.step(pictures) }
    }

    /// Goes to the beginning of another chapter; see ``Swift/Array/time(from:by:)``.
    func skipChapters(_ steps: Int) throws(Failure) {
        guard player.itemStatus == .ready else {
            throw Failure(SessionError(.notReady, "no film is ready: load one, and wait until it is prepared"))
        }
        guard !film.chapters.isEmpty else {
            throw Failure(SessionError(.notSupported, "the film has no chapters"))
        }
        guard let time = film.chapters.time(from: player.engine.position, by: steps) else {
            throw Failure(
                SessionError(.badParameter, "there is no such chapter: the film has \(film.chapters.count)"))
        }
        try player.seek(to: time)
    }

    private func chooseNext(_ kind: TrackKind) {
        let tracks = film.tracks.filter { $0.kind == kind }
        let next = tracks.firstIndex(where: \.isSelected).map { $0 + 1 } ?? 0
        // After the last subtitles come none.
        let number = next < tracks.count ? next : kind == .subtitle ? nil : 0
        player.changing { try? film.select(kind, number) }
    }

    /// What is drawn after a key.
    private func remark(after command: MovieCommand) -> String {
        let engine = player.engine
        switch command {
        case .changeVolume, .toggleMute: return "\(Int((engine.volume * 100).rounded())) %"
        case .changeRate: return "× \(engine.rate)"
        case .toggleLoop: return engine.loops == 0 ? "once" : "repeat"
        case .nextTrack(let kind):
            let tracks = film.tracks.filter { $0.kind == kind }
            guard let number = tracks.firstIndex(where: \.isSelected) else { return "no \(kind.rawValue)s" }
            let words = [tracks[number].language, tracks[number].title].filter { !$0.isEmpty }
            return (["\(kind.rawValue) \(number + 1)/\(tracks.count)"] + words).joined(separator: " ")
        case .skipChapters:
            guard let number = film.chapters.index(at: engine.position) else { return "no chapters" }
            let title = film.chapters[number].title
            return "\(number + 1)/\(film.chapters.count)" + (title.isEmpty ? "" : " \(title)")
        case .playOrPause, .seek, .step, .toggleFullscreen, .leaveFullscreen, .exit:
            let sign = player.state == .playing ? "▶" : "▮▮"
            let times = [engine.position, engine.duration ?? 0].map(MoviePlugin.clock)
            return "\(sign) \(times[0])" + (engine.duration == nil ? "" : " / \(times[1])")
        }
    }

    /// `1:02:03`, or `2:03`.
    private static func clock(_ seconds: Double) -> String {
        let all = Int(max(0, seconds.isFinite ? seconds : 0))
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let minutes = all / 60 % 60
        return (all >= 3_600 ? "\(all / 3_600):\(two(minutes))" : "\(minutes)") + ":\(two(all % 60))"
    }

    /// What the volume was before the key that mutes was pressed.
    private var volumeBefore = 1.0
}
