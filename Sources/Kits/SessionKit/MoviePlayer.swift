import DBus
import EventLoop
public import PluginAPI
import SessionBus

/// Plays one film with its pictures (MPMoviePlayerController).
///
///     let player = MoviePlayer(contentURL: "/home/me/holiday.mp4")
///     let notices = player.notices
///     try await player.prepareToPlay()
///     try await player.play()
///     for await notice in notices { print(notice) }
///
/// It plays in the session of the app, as an ``AudioPlayer`` does, and in a process of its own, which ends with this object.
/// The pictures are in a window of X11: one of its own, or one of the app (``Output``). At its end, a film is paused at its last
/// picture.
public actor MoviePlayer {
    public nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    /// MPMoviePlaybackState.
    public enum PlaybackState: String, Sendable, Hashable, CaseIterable {
        case stopped, playing, paused, interrupted, failed
        case seekingForward = "seeking-forward"
        case seekingBackward = "seeking-backward"
    }

    /// MPMovieFinishReason. The raw value is the word on the bus.
    public enum FinishReason: String, Sendable, Hashable, CaseIterable {
        case playbackEnded = "ended"
        case playbackError = "error"
        /// The window was closed.
        case userExited = "user-exited"
    }

    /// MPMovieLoadState.
    public struct LoadState: OptionSet, Sendable, Hashable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
        public static let playable = LoadState(rawValue: 1)
        public static let playthroughOK = LoadState(rawValue: 2)
        public static let stalled = LoadState(rawValue: 4)
    }

    /// MPMovieMediaTypeMask.
    public struct MediaTypes: OptionSet, Sendable, Hashable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
        public static let video = MediaTypes(rawValue: 1)
        public static let audio = MediaTypes(rawValue: 2)
    }

    /// MPMovieSourceType.
    public enum SourceType: String, Sendable, Hashable, CaseIterable {
        case unknown, file, streaming
    }

    /// Where the pictures are.
    public enum Output: Sendable, Hashable {
        /// A window of its own if there is a server for it, otherwise nowhere.
        case automatic
        /// A window of the app, by its number at the X11 server.
        case window(UInt32)
        /// A node of PipeWire of that name, from which other programs read the pictures.
        case node(String)
        case none

        var word: String {
            let output: MovieOutput =
                switch self {
                case .automatic: .automatic
                case .window(let id): .window(id)
                case .node(let name): .pipewire(node: name)
                case .none: .none
                }
            return output.word
        }
    }

    /// The notifications of MPMoviePlayerController, each with what it is about.
    public enum Notice: Sendable, Hashable {
        case scalingModeDidChange(MovieScaling)
        case playbackDidFinish(FinishReason)
        case playbackStateDidChange(PlaybackState)
        case loadStateDidChange(LoadState)
        case nowPlayingMovieDidChange(url: String)
        case willEnterFullscreen, didEnterFullscreen, willExitFullscreen, didExitFullscreen
        case readyForDisplayDidChange(Bool)
        case mediaTypesAvailable(MediaTypes)
        case sourceTypeAvailable(SourceType)
        /// Seconds.
        case durationAvailable(Double)
        case naturalSizeAvailable(PictureSize)
        case isPreparedToPlayDidChange(Bool)
        /// A picture of ``MoviePlayer/requestThumbnailImages(atTimes:timeOption:)``.
        case thumbnailImageRequestDidFinish(Thumbnail)
    }

    /// MPMovieTimeOption. The raw value is the word on the bus.
    public enum TimeOption: String, Sendable, Hashable, CaseIterable {
        case exact
        /// Faster; the picture may be seconds away.
        case nearestKeyFrame = "nearest-key-frame"
    }

    /// A picture of the film, in a file which is removed with the process of the player.
    public struct Thumbnail: Sendable, Hashable {
        /// Seconds of the film.
        public var requestedTime: Double
        /// The time at which the picture begins.
        public var actualTime: Double
        /// Empty: there is no picture.
        public var path: String
        /// The reason why there is none, or nil.
        public var error: SessionError.Code?
    }

    /// A stream of the film.
    public struct Track: Sendable, Hashable {
        public var kind: TrackKind
        /// Among those of its kind, from 0.
        public var number: Int
        public var isSelected: Bool
        /// Empty if unknown, as ``title``.
        public var language: String
        public var title: String
    }

    /// The URI of the film.
    public nonisolated let contentURL: String
    private let output: Output
    private let plugin: HostedPlugin
    private let broadcast = Broadcast<Notice>()
    /// The last known values of both interfaces.
    private var known: [String: Value] = [:]
    /// The jobs that take pictures.
    private var thumbnailJobs: [String] = []
    /// Where the film begins, and where it ends, in seconds; nil: at its own ends.
    private var (start, end): (Double?, Double?) = (nil, nil)
    private var isLoaded = false
    /// The film is being loaded: requests wait for that.
    private var loading: Task<Result<Void, SessionError>, Never>?
    /// How often it was closed.
    private var closings = 0
    private static let movie = PluginKind.moviePlayer.interface

    /// - Parameters:
    ///   - contentURL: a path, a URI or a URL.
    ///   - session: nil: that of ``AudioSession/sharedInstance(bus:)``.
    public init(contentURL: some MediaAddress, output: Output = .automatic, session: AudioSession? = nil) {
        self.init(contentURL: contentURL, output: output, session: session, environment: [:])
    }

    /// - Parameter environment: changed variables of the player's process.
    package init(
        contentURL: some MediaAddress, output: Output, session: AudioSession?, environment: [String: String]
    ) {
        (self.contentURL, self.output) = (MediaPath.uri(contentURL), output)
        plugin = HostedPlugin(.moviePlayer, in: session, environment: environment)
    }

    deinit { broadcast.finish() }

    /// All of them from now on.
    public nonisolated var notices: AsyncStream<Notice> { broadcast.stream() }

    // MARK: Playing

    /// Opens the film, and answers when it can be played.
    /// - Throws: `DecodeFailed` with the reason if it cannot be played; `ResourceNotAvailable` if the player
    ///   (`sessiond-movie`) is not installed.
    public func prepareToPlay() async throws(SessionError) {
        try await load()
        let answer = try await plugin.ask("Prepare", of: BusName.player)
        guard answer.first?.boolValue == true else {
            throw SessionError(.decodeFailed, "'\(contentURL)' cannot be played")
        }
    }

    private func load() async throws(SessionError) {
        guard !isLoaded else { return }
        let loading = loading ?? Task { await open(closings) }
        self.loading = loading
        try await loading.value.get()
    }

    private func open(_ closings: Int) async -> Result<Void, SessionError> {
        defer { if closings == self.closings { loading = nil } }
        await plugin.follow({ [weak self] news in self?.assumeIsolated { $0.heard(news) } }, silenced: {})
        do throws(SessionError) {
            known = try await plugin.requests.properties(of: Self.movie)
            try await plugin.ask("SetOutput", [.string(output.word)], of: Self.movie)
            // The app says when it plays.
            try await plugin.set("ShouldAutoplay", .bool(false))
            if let start { try await plugin.set("InitialPlaybackTime", .double(start)) }
            if let end { try await plugin.set("EndPlaybackTime", .double(end)) }
            try await plugin.ask("Load", [.string(contentURL)], of: BusName.player)
            guard closings == self.closings else { throw SessionError(.cancelled, "the film was closed") }
            isLoaded = true
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Plays from where it is; after the end, from the beginning.
    /// - Throws: the reason why the session may not play, or why the film cannot be played.
    public func play() async throws(SessionError) {
        try await load()
        try await plugin.sound("Play", of: BusName.player)
    }

    public func pause() async { await plugin.fallSilent("Pause", of: BusName.player) }

    /// Pauses, and goes back to the beginning.
    public func stop() async { await plugin.fallSilent("Stop", of: BusName.player) }

    /// Closes the window, and ends the process. ``play()`` begins anew.
    public func close() async {
        (isLoaded, loading, thumbnailJobs) = (false, nil, [])
        closings += 1
        known = [:]
        await plugin.close()
    }

    /// - Parameter seconds: from the beginning of the film.
    public func setCurrentPlaybackTime(_ seconds: Double) async throws(SessionError) {
        try await load()
        try await plugin.ask("SeekTo", [.double(seconds)], of: BusName.player)
    }

    /// Seconds; 0 before the film is loaded.
    public var currentPlaybackTime: Double {
        get async {
            guard isLoaded else { return 0 }
            return (try? await plugin.requests.get("Position", of: BusName.player))?.doubleValue ?? 0
        }
    }

    /// Where the film begins when it is loaded; nil: at its beginning.
    /// - Parameter seconds: 0 or more.
    public func setInitialPlaybackTime(_ seconds: Double?) async throws(SessionError) {
        start = seconds
        if isLoaded { try await plugin.set("InitialPlaybackTime", .double(seconds ?? -1)) }
    }

    /// Where the film ends, if that is before its own end; nil: there.
    /// - Parameter seconds: more than 0.
    public func setEndPlaybackTime(_ seconds: Double?) async throws(SessionError) {
        end = seconds
        if isLoaded { try await plugin.set("EndPlaybackTime", .double(seconds ?? -1)) }
    }

    /// Takes pictures of the film, which plays on. ``Notice/thumbnailImageRequestDidFinish(_:)`` comes for each time, in their
    /// order.
    /// - Parameter times: seconds, 1 to 10,000 of them.
    /// - Throws: `NotSupported` for a film that is not a file; `BadParameter`.
    public func requestThumbnailImages(
        atTimes times: [Double], timeOption: TimeOption = .nearestKeyFrame
    ) async throws(SessionError) {
        try await load()
        let answer = try await plugin.ask(
            "RequestThumbnails", [.array(of: "d", times.map(Value.double)), .string(timeOption.rawValue)],
            of: Self.movie)
        if let job = answer.first?.objectPathValue { thumbnailJobs.append(job) }
    }

    /// The pictures that are not taken yet come with the error `Cancelled`.
    public func cancelAllThumbnailImageRequests() async {
        let jobs = thumbnailJobs
        thumbnailJobs = []
        for job in jobs { _ = try? await plugin.requests.ask("Cancel", of: BusName.job, at: job) }
    }

    /// Pauses, and shows a picture that many after the one that is shown, or before it.
    public func step(byCount pictures: Int) async throws(SessionError) {
        try await load()
        try await plugin.ask("Step", [.int32(Int32(clamping: pictures))], of: Self.movie)
    }

    // MARK: The window

    /// - Throws: `NotReady` before a picture is shown; `NotSupported` in a window of the app, and without one.
    public func setFullscreen(_ isFull: Bool) async throws(SessionError) {
        try await load()
        try await plugin.ask("SetFullscreen", [.bool(isFull)], of: Self.movie)
    }

    public func setScalingMode(_ mode: MovieScaling) async throws(SessionError) {
        try await load()
        try await plugin.set("ScalingMode", .string(mode.rawValue))
    }

    // MARK: Sound and subtitles

    public var tracks: [Track] {
        var counts: [TrackKind: Int] = [:]
        return (known["Tracks"]?.arrayValue ?? []).compactMap(\.asProperties).compactMap { fields in
            guard let kind = TrackKind(rawValue: fields["type"]?.stringValue ?? "") else { return nil }
            defer { counts[kind, default: 0] += 1 }
            return Track(
                kind: kind, number: counts[kind, default: 0], isSelected: fields["selected"]?.boolValue == true,
                language: fields["language"]?.stringValue ?? "", title: fields["title"]?.stringValue ?? "")
        }
    }

    /// Chooses a track of that kind by its number; nil: none.
    public func select(_ kind: TrackKind, _ number: Int?) async throws(SessionError) {
        try await load()
        try await plugin.ask(
            "SelectTrack", [.string(kind.rawValue), .int32(Int32(clamping: number ?? -1))], of: Self.movie)
    }

    /// Shows the subtitles in a file: SubRip, WebVTT or SubStation Alpha.
    public func addSubtitles(_ file: some MediaAddress) async throws(SessionError) {
        try await load()
        try await plugin.ask("AddSubtitles", [.string(MediaPath.uri(file))], of: Self.movie)
    }

    // MARK: Chapters

    /// Those of the film, in the order of their times; empty if it has none.
    public var chapters: [MediaChapter] {
        [MediaChapter](known["Chapters"])
    }

    /// Goes to the beginning of the chapter that many after the one that is played, or before it.
    public func skipChapters(byCount chapters: Int) async throws(SessionError) {
        try await load()
        try await plugin.ask("SkipChapters", [.int32(Int32(clamping: chapters))], of: Self.movie)
    }

    // MARK: What is known

    public var playbackState: PlaybackState {
        PlaybackState(rawValue: known["State"]?.stringValue ?? "") ?? .stopped
    }
    public var loadState: LoadState { Self.loadState(known["LoadState"]) }
    /// Seconds; 0 if unknown.
    public var duration: Double { known["Duration"]?.doubleValue ?? 0 }
    /// As the film is meant to be seen; 0 × 0 if unknown.
    public var naturalSize: PictureSize { Self.size(known["NaturalSize"]) }
    public var movieMediaTypes: MediaTypes { Self.types(known["MediaTypes"]) }
    public var movieSourceType: SourceType { SourceType(rawValue: known["SourceType"]?.stringValue ?? "") ?? .unknown }
    public var scalingMode: MovieScaling {
        MovieScaling(rawValue: known["ScalingMode"]?.stringValue ?? "") ?? .aspectFit
    }
    public var isFullscreen: Bool { known["Fullscreen"]?.boolValue == true }
    public var readyForDisplay: Bool { known["ReadyForDisplay"]?.boolValue == true }
    public var isPreparedToPlay: Bool { known["PreparedToPlay"]?.boolValue == true }
    /// There is no AirPlay here.
    public nonisolated var isAirPlayVideoActive: Bool { false }

    private static func loadState(_ value: Value?) -> LoadState {
        let words = value?.stringsValue ?? []
        var state: LoadState = []
        if words.contains("playable") { state.insert(.playable) }
        if words.contains("playthrough-ok") { state.insert(.playthroughOK) }
        if words.contains("stalled") { state.insert(.stalled) }
        return state
    }

    private static func types(_ value: Value?) -> MediaTypes {
        let words = value?.stringsValue ?? []
        var types: MediaTypes = []
        if words.contains("video") { types.insert(.video) }
        if words.contains("audio") { types.insert(.audio) }
        return types
    }

    private static func size(_ value: Value?) -> PictureSize {
        guard case .structure(let sides) = value, sides.count == 2 else { return .unknown }
        return PictureSize(width: Int(sides[0].uint32Value ?? 0), height: Int(sides[1].uint32Value ?? 0))
    }

    // MARK: Events

    private func heard(_ news: PluginClient.News) {
        switch news {
        case .found: break
        case .lost:
            (known, isLoaded) = ([:], false)
            broadcast.send(.playbackStateDidChange(.stopped))
        case .changed(let interface, let properties):
            guard interface == Self.movie || interface == BusName.player else { return }
            known.merge(properties) { $1 }
            for name in properties.keys.sorted() { if let notice = notice(of: name) { broadcast.send(notice) } }
        case .signal("PlaybackDidFinish", let values):
            guard let reason = FinishReason(rawValue: values.first?.stringValue ?? "") else { return }
            // The player has removed the film.
            if reason == .userExited { isLoaded = false }
            broadcast.send(.playbackDidFinish(reason))
        case .signal("ThumbnailImage", let values):
            guard values.count == 5 else { return }
            let code = values[4].stringValue?.split(separator: ".").last.flatMap {
                SessionError.Code(rawValue: String($0))
            }
            broadcast.send(
                .thumbnailImageRequestDidFinish(
                    Thumbnail(
                        requestedTime: values[1].doubleValue ?? 0, actualTime: values[2].doubleValue ?? 0,
                        path: values[3].stringValue ?? "", error: code)))
        case .signal("WillEnterFullscreen", _): broadcast.send(.willEnterFullscreen)
        case .signal("DidEnterFullscreen", _): broadcast.send(.didEnterFullscreen)
        case .signal("WillExitFullscreen", _): broadcast.send(.willExitFullscreen)
        case .signal("DidExitFullscreen", _): broadcast.send(.didExitFullscreen)
        case .signal: break
        }
    }

    private func notice(of property: String) -> Notice? {
        switch property {
        case "ScalingMode": .scalingModeDidChange(scalingMode)
        case "State": .playbackStateDidChange(playbackState)
        case "LoadState": .loadStateDidChange(loadState)
        case "Uri": .nowPlayingMovieDidChange(url: known["Uri"]?.stringValue ?? "")
        case "ReadyForDisplay": .readyForDisplayDidChange(readyForDisplay)
        case "MediaTypes": .mediaTypesAvailable(movieMediaTypes)
        case "SourceType": .sourceTypeAvailable(movieSourceType)
        case "Duration": .durationAvailable(duration)
        case "NaturalSize": .naturalSizeAvailable(naturalSize)
        case "PreparedToPlay": .isPreparedToPlayDidChange(isPreparedToPlay)
        case _: nil
        }
    }
}
