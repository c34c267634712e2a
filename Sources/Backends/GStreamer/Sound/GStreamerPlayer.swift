import CGStreamer
public import EventLoop
import FileFormats
import GStreamerBase
import LiveStreaming
public import PluginAPI

/// A ``PlayerEngine`` on GStreamer and PulseAudio.
///
/// One pipeline for each item: source, decoder, filters while they are wanted, the user's volume, the duck's volume,
/// pulsesink. State changes and seeks are requested on the loop; their results are read from the pipeline's bus.
/// The volume and mute of pulsesink are never changed: the server would remember them for the next stream.
public final class GStreamerPlayer: QueueingEngine {
    private let loop: EventLoop
    private let identity: StreamIdentity
    /// The end of the pictures; nil: it plays sound alone.
    let pictures: (any PictureTail)?
    /// What was chosen of the loaded film.
    var choice = FilmChoice()
    /// Steps from picture to picture that wait for the end of a seek.
    var steps = 0
    /// A film was played to its end, and shows its last picture.
    var isAtEnd = false
    private var content = Content.nothing
    /// The previous item, which is silent. It keeps the connection to the server until the next item uses it.
    private var retired: Item?
    private lazy var retirement = Timer(on: loop) { [weak self] in self?.closeRetired() }
    /// What ``later(_:)`` calls next. A timer, not deferred work of the loop: of a queue in which nothing can be played, each
    /// failure opens the next item, and the bus must be read in between.
    private var pending: ((GStreamerPlayer) -> Void)?
    private lazy var turn = Timer(on: loop) { [weak self] in self?.callPending() }
    private lazy var watchdog = Timer(on: loop) { [weak self] in self?.loadingTakesTooLong() }
    private lazy var ramping = Timer(on: loop) { [weak self] in self?.settleRamps() }

    /// The loaded content.
    private enum Content {
        /// Nothing is loaded, or it failed, or its failure or its list will be reported soon.
        case nothing
        /// It is being asked where the item is read; it begins at that position, in seconds.
        case locating(position: Double)
        /// It may be a playlist, and is read as one.
        case list(PlaylistFetch)
        case item(Item)
        /// A live stream is being joined; an item shows it when it has arrived.
        case joining(MediaSource)
        /// The item is closed, and opened again when it is to play: the sound server is away, or it is a live stream that
        /// is paused.
        case away(Kept)
    }

    private struct Kept {
        let source: MediaSource
        let duration: Double?
        let channels: Int
        var position: Double
        /// It continues where it is then, not at the position.
        var isLive = false
    }

    var item: Item? {
        if case .item(let item) = content { item } else { nil }
    }

    private var kept: Kept? {
        if case .away(let kept) = content { kept } else { nil }
    }

    /// The position at which the item will begin that is being located; nil: none is.
    private var locatingPosition: Double? {
        if case .locating(let position) = content { position } else { nil }
    }

    /// Knows where items of the web are read; nil: at their addresses. Set before the first ``load(uri:)``.
    public var locator: (any MediaLocator)?
    /// Receives the live stream that is loaded and not paused.
    private var reception: LiveReception?
    /// The wanted delay of live streams in seconds; nil: the usual one of each.
    private var wantedDelay: Double?

    /// Counts the questions to the locator: an answer to an older one does not count.
    private var questions = 0

    public private(set) var state = PlayerState.stopped {
        didSet { if state != oldValue { onStateChanged?(state) } }
    }
    public private(set) var uri: String?
    public private(set) var duckGain = 0.0

    public var onStateChanged: ((PlayerState) -> Void)?
    public var onFinished: ((Bool) -> Void)?
    public var onFailed: ((String) -> Void)?
    public var onServicesLost: ((String) -> Void)?
    public var onItemChanged: (() -> Void)?
    public var onSeeked: ((Double) -> Void)?
    public var onTags: ((MediaTags) -> Void)?
    public var onTracks: (() -> Void)?
    public var onAdvanced: (() -> Void)?
    public var onPlaylist: (([PlaylistEntry]) -> Void)?

    /// Connects to nothing before the first ``load(uri:)``.
    public convenience init(loop: EventLoop, identity: StreamIdentity) {
        self.init(loop: loop, identity: identity, pictures: nil)
    }

    /// With an end for pictures, it plays films: at its end, a film is paused at its last picture.
    package init(loop: EventLoop, identity: StreamIdentity, pictures: (any PictureTail)?) {
        (self.loop, self.identity, self.pictures) = (loop, identity, pictures)
        pictures?.onStale = { [weak self] in
            guard let self, state != .playing, !isAtEnd, let item, item.isReady else { return }
            item.seek(to: item.place, told: false)
        }
        pictures?.onFailed = { [weak self] reason in
            guard let self, let item else { return }
            fail("'\(item.source.name)' cannot be shown any more: \(reason)")
        }
    }

    // MARK: Volume, pan and rate

    public var volume = 1.0 {
        didSet {
            volume = volume.isNaN ? oldValue : min(max(volume, 0), 1)
            if volume != oldValue { applyVolume() }
        }
    }

    public var isMuted = false {
        didSet { if isMuted != oldValue { applyVolume() } }
    }

    public var pan = 0.0 {
        didSet {
            pan = pan.isNaN ? oldValue : min(max(pan, -1), 1)
            if pan != oldValue { applyFilters() }
        }
    }

    public var rate = 1.0 {
        didSet {
            rate = rate.isNaN ? oldValue : min(max(rate, 0.5), 2)
            guard rate != oldValue, let item else { return }
            applyFilters()
            item.rate = rate
        }
    }

    public var loops = 0 {
        didSet { item?.loops = loops }
    }

    public var endTime: Double? {
        didSet { if endTime != oldValue { item?.end = endTime.map(Times.nanoseconds) } }
    }

    public var meteringEnabled = false {
        didSet { if meteringEnabled != oldValue { applyFilters() } }
    }

    public var device: String? {
        didSet {
            guard device != oldValue else { return }
            openAgain()
        }
    }

    /// Opens the item again, and continues where it is.
    func openAgain() {
        item?.finishCrossing()
        if let item { reopen(at: item.place, loopsLeft: item.loopsLeft) }
    }

    public func duck(to gainDB: Double, over seconds: Double) {
        guard !gainDB.isNaN else { return }
        duckGain = min(max(gainDB, GainRamp.floor), 0)
        guard let item else { return }
        item.duck.move(to: GainRamp.gain(duckGain), over: seconds, rate: rate)
        ramping.arm(after: 0.5)
    }

    private func applyVolume() {
        guard let item else { return }
        // Long enough not to click, short enough to follow a fader.
        item.volume.move(to: isMuted ? 0 : volume, over: 0.02, rate: rate)
        ramping.arm(after: 0.5)
    }

    private func applyFilters() { item?.apply(filters: filters, pan: pan) }

    private var filters: Set<Splice.Filter> {
        var wanted: Set<Splice.Filter> = []
        if rate != 1 { wanted.insert(.tempo) }
        if meteringEnabled { wanted.insert(.level) }
        if pan != 0 { wanted.insert(.pan) }
        return wanted
    }

    private func settleRamps() {
        guard let item else { return }
        item.volume.settle()
        item.duck.settle()
        // A ramp of a paused item continues when the item plays; play() arms the timer again.
        if state == .playing, item.volume.isMoving || item.duck.isMoving { ramping.arm(after: 0.5) }
    }

    // MARK: The item

    public var position: Double {
        if isAtEnd, let duration { return min(duration, endTime ?? duration) }
        return item?.position ?? kept?.position ?? locatingPosition ?? 0
    }
    public var duration: Double? { item?.duration ?? kept?.duration }
    public var channels: Int { item?.channels ?? kept?.channels ?? 0 }
    public var loadedRanges: [ClosedRange<Double>] { item?.loadedRanges ?? [] }
    public var isStalled: Bool {
        state == .playing && (item?.isStalled == true || item?.source.live != nil && reception?.isStalled == true)
    }
    public var isLive: Bool {
        if case .joining = content { true } else { item?.isLive ?? kept?.isLive ?? false }
    }

    public var following: String? {
        // The pictures of a film cannot follow without a gap.
        didSet { if pictures == nil { item?.following = following } }
    }

    public func meters() -> [ChannelLevel] {
        guard meteringEnabled, let item else { return [] }
        guard state == .playing else { return Array(repeating: .silence, count: item.channels) }
        let levels = item.levels()
        return levels.isEmpty ? Array(repeating: .silence, count: item.channels) : levels
    }

    public func load(uri: String) {
        retire()
        unload(keepingRetired: true)
        self.uri = uri
        locator?.release(except: [uri])
        if pictures != nil { choice = FilmChoice(besideFilmAt: uri) }
        guard let locator, GStreamerPlayer.isOfTheWeb(uri), !Playlist.isNamedAsList(uri) else {
            return open(uri, at: nil, from: 0)
        }
        ask(from: 0) { locator.locate(uri, $0) }
    }

    private static func isOfTheWeb(_ uri: String) -> Bool {
        ["http://", "https://"].contains { uri.lowercased().hasPrefix($0) }
    }

    /// Asks where the item is read, and opens it there.
    private func ask(from position: Double, _ question: (@escaping (String) -> Void) -> Void) {
        guard let uri else { return }
        content = .locating(position: position)
        questions += 1
        let number = questions
        question { [weak self] place in
            // Another item was loaded meanwhile, or none.
            guard let self, questions == number, let position = locatingPosition else { return }
            content = .nothing
            open(uri, at: place, from: position)
        }
    }

    /// Opens an address; a film of the web, a sound, or a playlist.
    private func open(_ uri: String, at place: String?, from position: Double) {
        do throws(MediaSource.Refusal) {
            let source =
                try pictures == nil
                ? MediaSource(uri: uri, readAt: place) : MediaSource(filmAt: uri, readAt: place)
            if let list = source.list {
                later { $0.take(list) }
            } else if !source.traits.isFile, Playlist.isNamedAsList(uri) {
                read(source, instead: nil)
            } else {
                open(source)
                if position > 0 { item?.seek(to: Times.nanoseconds(position), told: false) }
            }
        } catch {
            let message = error.message
            later { $0.fail(message) }
        }
    }

    /// An item could not be read where its bytes were said to be: it goes on where they are now.
    private func readElsewhere(_ lost: Item, because reason: String) {
        guard let locator else { return fail(reason) }
        let (source, position, hasPlayed) = (lost.source, lost.position, lost.isReady)
        watchdog.disarm()
        closeItem()
        ask(from: position) { [weak self] answer in
            let number = self?.questions
            locator.relocate(source.uri, from: source.place, hasPlayed: hasPlayed, because: reason) { place in
                // Another item may have been loaded meanwhile.
                if let place { answer(place) } else if self?.questions == number { self?.failLocating(reason) }
            }
        }
    }

    /// There is no other place.
    private func failLocating(_ reason: String) { later { if $0.locatingPosition != nil { $0.fail(reason) } } }

    public func unload() { unload(keepingRetired: false) }

    private func unload(keepingRetired: Bool) {
        if !keepingRetired { closeRetired() }
        pending = nil
        turn.disarm()
        watchdog.disarm()
        closeItem()
        questions += 1
        if !keepingRetired { locator?.release(except: []) }
        (uri, choice) = (nil, FilmChoice())
        following = nil
        state = .stopped
    }

    private func closeItem() {
        item?.close()
        content = .nothing
        leaveStream()
    }

    private func leaveStream() {
        reception?.close()
        reception = nil
    }

    /// Closes a silent item later: closing takes as long as opening the next one, which must not wait for it.
    private func retire() {
        closeRetired()
        guard state != .playing, let item else { return }
        item.retire()
        retired = item
        content = .nothing
        retirement.arm(after: GStreamerPlayer.retirementTime)
    }

    private func closeRetired() {
        retirement.disarm()
        retired?.close()
        retired = nil
    }

    /// Longer than the next item needs until it is heard, in seconds.
    private static let retirementTime = 0.5

    /// Reads the source as a playlist. If it is none, it is played. If `failure` is given, playing has failed before,
    /// and the failure is reported.
    private func read(_ source: MediaSource, instead failure: String?) {
        watchdog.arm(after: source.traits.openingTime)
        do throws(PipelineError) {
            let fetch = try PlaylistFetch(source.uri, loop: loop) { [weak self] outcome in
                guard let self else { return }
                content = .nothing
                switch outcome {
                case .liveStream(let segment) where pictures != nil:
                    join(MediaSource(liveFilmAt: source.uri, segment: segment))
                case .entries(let list?) where !list.isEmpty: take(list)
                case .entries(_?): fail("'\(source.name)' is a playlist without any item to play")
                case .entries(nil), .liveStream: if let failure { fail(failure) } else { open(source) }
                case .failed(let problem): fail(failure ?? problem.message)
                }
            }
            content = .list(fetch)
        } catch {
            let message = failure ?? "'\(source.name)' cannot be read: \(error.message)"
            later { $0.fail(message) }
        }
    }

    private func take(_ list: [PlaylistEntry]) {
        unload()
        onPlaylist?(list)
    }

    private func open(_ source: MediaSource) {
        guard source.live == nil || source.store != nil else { return join(source) }
        (isAtEnd, steps) = (false, 0)
        do throws(PipelineError) {
            let made = try Item(
                source, identity: identity, device: device, pictures: pictures, hearing: choice.sound, loop: loop)
            made.volume.set(isMuted ? 0 : volume)
            made.duck.set(GainRamp.gain(duckGain))
            made.apply(filters: filters, pan: pan)
            made.rate = rate
            made.loops = loops
            made.locator = locator
            made.end = endTime.map(Times.nanoseconds)
            if pictures == nil { made.following = following }
            made.onEvent = { [weak self] in self?.take($0) }
            content = .item(made)
            made.prepare()
            if state == .playing { made.play() }
            watchdog.arm(after: source.traits.openingTime)
        } catch {
            // The chosen decoder is not installed; there may be another one.
            if source.isGuess { return open(MediaSource(anyDecoderFor: source)) }
            let message = "'\(source.name)' cannot be played: \(error.message)"
            later { $0.fail(message) }
        }
    }

    /// Receives a live stream, and shows it when it has arrived.
    private func join(_ source: MediaSource) {
        guard let live = source.live else { return }
        leaveStream()
        content = .joining(source)
        let made = LiveReception(live, delay: wantedDelay, on: loop)
        reception = made
        made.position = { [unowned self] in
            guard state == .playing, let item, item.isReady else { return nil }
            return item.pipeline.position
        }
        made.onEvent = { [unowned self, unowned made] in take($0, source, made) }
        loop.later { [weak made] in made?.start() }
    }

    private func take(_ event: LiveReception.Event, _ source: MediaSource, _ stream: LiveReception) {
        switch event {
        case .ready:
            guard case .joining = content else { return }
            var source = source
            source.store = stream.store
            content = .nothing
            open(source)
        case .grew: reopen(at: 0, loopsLeft: 0)
        case .stalled: onItemChanged?()
        case .ended: fail("'\(source.name)' is over")
        case .failed(let message): fail(message)
        }
    }

    /// Seconds that what is shown of a live stream is behind what is sent; nil: unknown, or it is none.
    public var latency: Double? { state == .playing ? reception?.delay : nil }

    public var targetLatency: Double? {
        get { reception?.target ?? wantedDelay }
        set {
            wantedDelay = newValue.map { min(max($0, CatchUp.targets.lowerBound), CatchUp.targets.upperBound) }
            if let reception { reception.target = wantedDelay ?? reception.source.usualDelay }
        }
    }

    public var droppedPictures: UInt64 { (reception?.skipped ?? 0) + (item == nil ? 0 : pictures?.dropped ?? 0) }

    public func goToLive() {
        guard isLive else { return }
        if let reception, item != nil { return reception.goToLive() }
        // What has arrived of a radio is heard before what is sent now.
        if let item, item.isReady { reopen(at: 0, loopsLeft: 0) }
    }

    private func take(_ event: Item.Event) {
        switch event {
        case .ready:
            watchdog.disarm()
            if retired != nil { retirement.arm(after: GStreamerPlayer.retirementTime) }
            onItemChanged?()
        case .durationChanged, .stalled: onItemChanged?()
        case .advanced:
            uri = item?.source.uri
            following = nil
            locator?.release(except: uri.map { [$0] } ?? [])
            onAdvanced?()
            onItemChanged?()
        case .tracks:
            if let tracks = item?.tracks { choice.apply(to: tracks) }
            onTracks?()
            onItemChanged?()
        case .chapters: onTracks?()
        case .words: drawAgain()
        case .seeked(let position): onSeeked?(position)
        case .steady: stepOn()
        case .tags(let tags): onTags?(tags)
        case .ended:
            guard state == .playing, let item else { return }
            if item.source.live != nil {
                state = .paused
                closeLiveStream()
            } else if pictures != nil {
                item.pause()
                isAtEnd = true
                state = .paused
            } else if item.source.traits.canSeek {
                // The state changes before the end is reported: opening a new stream takes some time.
                item.rewind()
                state = .stopped
            } else if item.loopsLeft != 0 {
                return reopen(at: 0, loopsLeft: max(item.loopsLeft - 1, -1))
            } else {
                // In the state playing, the reopened item would play.
                state = .stopped
                reopen(at: 0, loopsLeft: loops)
            }
            onFinished?(true)
            if isAtEnd, self.item === item { showLastPicture() }
        case .failed(let failure): take(failure)
        }
    }

    private func take(_ failure: Failure) {
        guard let item else { return }
        let source = item.source
        if failure.isAboutServer { return loseServices(failure.message, at: item) }
        if source.isGuess, failure.isAboutFormat, !item.isReady {
            // The format is not what the first bytes suggested: GStreamer must find the elements.
            return reopen(MediaSource(anyDecoderFor: source), at: item.place, loopsLeft: item.loopsLeft)
        }
        if source.place != source.uri, !failure.isAboutFormat || !item.isReady {
            return readElsewhere(item, because: failure.message)
        }
        if !source.traits.isFile, source.live == nil, failure.isAboutFormat, !item.isReady {
            // It is not audio. It may be a playlist whose name does not show that.
            closeItem()
            return read(source, instead: failure.message)
        }
        fail(failure.message)
    }

    private func loseServices(_ message: String, at lost: Item) {
        watchdog.disarm()
        lost.finishCrossing()
        let place = lost.lastPosition
        let kept = Kept(
            source: lost.source.notReceived, duration: lost.duration, channels: lost.channels, position: place,
            isLive: lost.isLive)
        closeItem()
        content = .away(kept)
        state = place > 0 ? .paused : .stopped
        onServicesLost?(message)
    }

    /// Reopens the item that was closed because the server was lost, or because it was a live stream that was paused.
    private func reopen() {
        guard let kept else { return }
        content = .nothing
        open(kept.source)
        guard kept.position > 0 else { return }
        if kept.isLive {
            later { $0.onSeeked?($0.position) }
        } else {
            item?.seek(to: Times.nanoseconds(kept.position), told: false)
        }
    }

    /// A live stream goes on while it is paused. What has arrived of it would be heard afterwards, and everything else
    /// later by the same time for ever: so its connection is closed, and it is opened again when it is to play.
    private func closeLiveStream() {
        guard let item, item.isLive else { return }
        watchdog.disarm()
        let kept = Kept(
            source: item.source.notReceived, duration: nil, channels: item.channels, position: item.position,
            isLive: true)
        retire()
        // The last picture of a film stays until there is another.
        if pictures != nil { retirement.disarm() }
        leaveStream()
        content = .away(kept)
    }

    /// Changes the position at which the item continues that was closed because the server was lost, or that is located.
    private func keepPosition(_ seconds: Double) {
        if locatingPosition != nil { content = .locating(position: seconds) }
        guard var kept else { return }
        kept.position = seconds
        content = .away(kept)
    }

    private func rewind() {
        guard let item else { return }
        if item.source.traits.canSeek { item.rewind() } else { reopen(at: 0, loopsLeft: loops) }
    }

    /// Opens the item again, for example with another sink or decoder, and continues at `place`.
    private func reopen(_ source: MediaSource? = nil, at place: GstClockTime, loopsLeft: Int) {
        guard let old = item else { return }
        // What has arrived of a live stream is shown by the next one.
        let stream = old.source.live == nil ? nil : reception
        if stream != nil { reception = nil }
        closeItem()
        if stream != nil { reception = stream }
        open(source ?? old.source)
        guard let item, item.source.live == nil else { return }
        item.loopsLeft = loopsLeft
        if place > 0 { item.seek(to: place, told: false) }
    }

    private func loadingTakesTooLong() {
        guard item?.isReady != true else { return }
        fail("'\(item?.source.name ?? uri ?? "")' cannot be played: it did not start in time")
    }

    private func fail(_ message: String) {
        isAtEnd = false
        watchdog.disarm()
        closeItem()
        state = .failed
        onFailed?(message)
    }

    /// Calls `body` after the current call, unless something else was loaded in the meantime.
    private func later(_ body: @escaping (GStreamerPlayer) -> Void) {
        pending = body
        turn.arm(after: 0)
    }

    private func callPending() {
        let body = pending
        pending = nil
        body?(self)
    }

    // MARK: Transport

    public func play() throws(SessionError) {
        guard state != .playing else { return }
        guard uri != nil else { throw SessionError(.cannotStartPlaying, "nothing is loaded: load a file first") }
        guard state != .failed else {
            throw SessionError(.cannotStartPlaying, "the loaded item failed: load it again, or another one")
        }
        reopen()
        if isAtEnd {
            isAtEnd = false
            item?.loopsLeft = loops
            item?.seek(to: 0, told: false)
        }
        item?.play()
        state = .playing
        if let item, item.volume.isMoving || item.duck.isMoving { ramping.arm(after: 0.5) }
    }

    public func pause() {
        guard state == .playing else { return }
        item?.pause()
        state = .paused
        closeLiveStream()
    }

    public func stop() {
        guard state == .playing || state == .paused else { return }
        isAtEnd = false
        item?.finishCrossing()
        keepPosition(0)
        state = .stopped
        if item?.source.live == nil { rewind() } else { closeLiveStream() }
    }

    public func seek(to seconds: Double) {
        guard !seconds.isNaN, item != nil || kept != nil || locatingPosition != nil else { return }
        // It cannot go back.
        guard item?.source.live == nil, kept?.source.live == nil else { return }
        (isAtEnd, steps) = (false, 0)
        item?.finishCrossing()
        if let item {
            item.seek(to: Times.nanoseconds(seconds), told: true)
        } else {
            let place = locatingPosition == nil ? min(max(seconds, 0), kept?.duration ?? 0) : max(seconds, 0)
            keepPosition(place)
            loop.later { [weak self] in self?.onSeeked?(place) }
        }
        // Stopped means silent at the beginning; anywhere else it is paused.
        if state == .stopped, seconds > 0 { state = .paused }
    }

    /// The picture is another one than that at the beginning.
    func leftTheBeginning() {
        if state == .stopped { state = .paused }
    }
}
