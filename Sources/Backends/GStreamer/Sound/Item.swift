import CGStreamer
import CStreaming
import EventLoop
import FileFormats
import GStreamerBase
import PluginAPI

/// One item in its pipeline. Its ``Playhead`` decides what to request from the pipeline.
final class Item {
    enum Event {
        /// The first sample is ready or heard: duration and channels are known.
        case ready
        case durationChanged
        case seeked(Double)
        /// No seek is in progress or waiting any more.
        case steady
        case tags(MediaTags)
        /// It has begun or stopped waiting for the network.
        case stalled
        /// The streams of a film are known.
        case tracks
        /// The chapters of a film are known.
        case chapters
        /// There are subtitles that may belong to the picture which is shown.
        case words
        /// The next item is heard now, and has become the item.
        case advanced
        case ended
        case failed(Failure)
    }

    var source: MediaSource { chain.source }
    var volume: GainRamp { tail.volume }
    var duck: GainRamp { tail.duck }
    var onEvent: ((Event) -> Void)?
    private(set) var channels = 0
    /// From GStreamer, which reads those of Matroska and others, but not those of MPEG-4.
    private(set) var chapters: [MediaChapter] = []

    let pipeline: Pipeline
    let tail: SoundTail
    /// The end of the pictures; nil: only sound is played.
    private let pictures: (any PictureTail)?
    let succession: Succession
    var chain: Chain
    var missing: String?
    var knownDuration: Int?

    private(set) var playhead: Playhead
    /// How many seeks were sent.
    private var seeks = 0
    /// Neither played nor sought yet: the first picture is shown as the film was opened. In Matroska, its time may be that of
    /// a segment which the demuxer corrects after it.
    private(set) var isUntouched = true
    /// A seek has set another end than that of the film.
    private var hasHadEnd = false
    /// GStreamer's number of the last seek, and whether its segment was read to the end before the seek was done.
    private var seekNumber: guint32 = 0
    private var isReadToEnd = false
    private lazy var rest = Timer(on: loop) { [unowned self] in
        isReadToEnd = false
        handle(.nothingComes)
    }
    /// Seconds in which what was read passes the decoders on a busy machine. If they take longer, only the next loop has a gap.
    private static let restTime = 0.5
    private lazy var buffering = Buffering(patience: source.traits.patience, on: loop) {
        [unowned self] in networkTakesTooLong()
    }
    lazy var crossed = Timer(on: loop) { [unowned self] in lookAtCrossing() }
    /// The next item cannot follow without a gap.
    var nextNeedsGap = false
    lazy var ahead = Timer(on: loop) { [unowned self] in lookAhead() }
    private let loop: EventLoop
    private var hasLeftStore = false

    init(
        _ source: MediaSource, identity: StreamIdentity, device: String?, pictures: (any PictureTail)? = nil,
        hearing heard: Int = 0, loop: EventLoop
    ) throws(PipelineError) {
        self.loop = loop
        self.pictures = pictures
        let pipeline = try Pipeline(SoundTail.description, on: loop, reachesServer: true)
        let chain = try Chain(source, hearing: heard, in: pipeline)
        let tail = try SoundTail(
            in: pipeline, identity: identity, device: device, title: source.title, isLive: source.live != nil,
            on: loop)
        guard let succession = Succession(in: pipeline, to: tail.head), succession.link(chain)
        else { throw PipelineError(message: "the pipeline is incomplete") }
        (self.pipeline, self.tail, self.succession, self.chain) = (pipeline, tail, succession, chain)
        playhead = Playhead(source.traits)
        if let pictures, let film = chain.film {
            do throws(Elements.Missing) {
                try pictures.enter(pipeline.element, from: film.pictures, with: film.tracks, title: source.title)
            } catch {
                throw PipelineError(message: error.message)
            }
        }
        if let store = source.store { shim_pull_set_screen(store.pull, pipeline.element) }
        pipeline.onMessage = { [weak self] in self?.take($0) }
        succession.onFailed = { [weak self] in self?.nextNeedsGap = true }
    }

    deinit {
        leaveStore()
        pipeline.close()
        pictures?.leave(pipeline.element)
    }

    func close() {
        retire()
        pipeline.close()
        pictures?.leave(pipeline.element)
    }

    /// Another item shows the live stream from now on, or none.
    private func leaveStore() {
        guard let store = source.store, !hasLeftStore else { return }
        hasLeftStore = true
        shim_pull_leave(store.pull, pipeline.element)
    }

    /// From now on it reports nothing and does nothing.
    func retire() {
        onEvent = nil
        pipeline.onMessage = nil
        leaveStore()
        buffering.stop()
        rest.disarm()
        crossed.disarm()
        ahead.disarm()
    }

    // MARK: Requests

    func prepare() { pipeline.setState(GST_STATE_PAUSED) }

    func play() { handle(.play(position: pipelinePosition)) }

    func pause() { handle(.pause) }

    /// Silent at the beginning, with all loops ahead. Only for sources that can seek.
    func rewind() {
        tail.clearMeter()
        handle(.rewind)
    }

    var isReady: Bool { playhead.isReady }
    /// Whether no seek is in progress or waiting.
    var isSteady: Bool { playhead.isSteady }

    var loops: Int {
        get { playhead.loops }
        set { handle(.loops(newValue)) }
    }

    /// How often the item begins again from now on.
    var loopsLeft: Int {
        get { playhead.loopsLeft }
        set { playhead.loopsLeft = newValue }
    }

    /// The URI of the next item, which follows without a gap if possible.
    var following: String? {
        didSet {
            guard following != oldValue else { return }
            nextNeedsGap = false
            placeOfNext = nil
            succession.forget()
            lookAhead()
        }
    }
    /// Knows where the next item is read; nil: at its address.
    var locator: (any MediaLocator)?
    /// Where the next item is read; empty: that is being asked.
    private(set) var placeOfNext: String?

    /// Asks where the next item is read, and looks ahead again when that is known.
    func locateNext(_ uri: String) {
        guard placeOfNext == nil else { return }
        placeOfNext = ""
        guard let locator else {
            placeOfNext = uri
            return
        }
        locator.locate(uri) { [weak self] place in
            guard let self, following == uri, placeOfNext == "" else { return }
            placeOfNext = place
            // The answer may come during the call.
            ahead.arm(after: 0)
        }
    }

    var rate: Double {
        get { playhead.rate }
        set { handle(.rate(newValue)) }
    }

    /// Where it ends, if before its own end.
    var end: UInt? {
        get { playhead.end }
        set { handle(.end(newValue)) }
    }

    func seek(to time: GstClockTime, told: Bool) {
        // An MP4 in fragments without an index has the length of those that were read, and GStreamer does not tell that it grows.
        if isReady, let now = pipeline.duration, now > knownDuration ?? 0 { knownDuration = now }
        handle(.seek(Playhead.Target(time: min(time, knownEnd ?? time), isTold: told)))
    }

    /// The streams of a film; nil: it is sound alone.
    var tracks: FilmTracks? { chain.film?.tracks }

    /// Seeks to where it is: a change to its streams takes effect.
    func refresh() { handle(.seekHere(position: pipelinePosition)) }

    private var knownEnd: GstClockTime? {
        guard let knownDuration else { return end }
        return min(GstClockTime(clamping: knownDuration), end ?? .max)
    }

    private var pipelinePosition: GstClockTime {
        let position = GstClockTime(clamping: pipeline.position ?? 0)
        return min(position, knownEnd ?? position)
    }

    func apply(filters: Set<Splice.Filter>, pan: Double) { tail.apply(filters: filters, pan: pan) }

    // MARK: State

    /// The position in the item, or the goal of the current seek.
    var place: GstClockTime { playhead.target?.time ?? GstClockTime(clamping: pipeline.position ?? 0) }

    var position: Double {
        if let crossing = playhead.crossing {
            let rest = crossing.end - min(pipeline.runningTime ?? 0, crossing.end)
            return max(0, crossing.place - Times.seconds(rest))
        }
        if let target = playhead.target { return Times.seconds(target.time) }
        return Times.seconds(pipeline.position ?? 0)
    }

    /// The position after the server, and with it the sink's clock, is gone.
    var lastPosition: Double {
        guard playhead.target == nil, let heard = tail.heardBeforeLoss else { return position }
        let asked = position
        return abs(asked - heard) < 0.5 ? asked : max(0, heard)
    }

    var duration: Double? {
        guard isReady else { return nil }
        if knownDuration == nil { knownDuration = pipeline.duration }
        return knownDuration.map(Times.seconds) ?? source.estimatedDuration
    }

    /// Whether it comes from the network and has no length: a radio, or the live stream of a film.
    var isLive: Bool { source.live != nil || isReady && !source.traits.isFile && duration == nil }

    var isStalled: Bool { isReady && buffering.isShort && playhead.wantsPlaying }

    /// The parts of the item in seconds that play without waiting: the whole file, or what has arrived of a stream,
    /// estimated by bytes.
    var loadedRanges: [ClosedRange<Double>] {
        guard isReady else { return [] }
        let here = position
        guard source.traits.needsBuffering else { return [0...max(0, duration ?? here)] }
        guard let duration, let bytes = chain.bytesRead else { return [here...here] }
        return [here...max(here, duration * Double(bytes.done) / Double(bytes.whole))]
    }

    func levels() -> [ChannelLevel] { tail.levels(at: pipeline.position.map { GstClockTime(clamping: $0) }) }

    // MARK: Effects of the playhead

    func handle(_ input: Playhead.Input) {
        for effect in playhead.handle(input) {
            switch effect {
            case .seek(let target): start(target)
            case .beginAgain(let isAtOnce):
                if !send(isAtOnce ? GST_SEEK_FLAG_FLUSH.rawValue : 0, to: 0) { handle(.beginningRefused) }
            case .playOut: if !send(0, to: knownEnd ?? 0) { onEvent?(.ended) }
            case .update: applyState()
            case .lookAhead: lookAhead()
            case .tellReady:
                knownDuration = pipeline.duration
                channels = tail.channels
                onEvent?(.ready)
            case .tellSeeked:
                fetchEarlierWords(than: GstClockTime(clamping: pipeline.position ?? 0))
                onEvent?(.seeked(position))
            case .tellAdvanced:
                onEvent?(.advanced)
                onEvent?(.tags(chain.tags))
            case .tellEnded: onEvent?(.ended)
            case .goOn(let isFirst): handle(.goOn(isFirst: isFirst))
            case .seekHere: handle(.seekHere(position: pipelinePosition))
            case .finish: handle(.finish)
            }
        }
    }

    private func applyState() {
        let plays = playhead.wantsPlaying && !buffering.isShort && playhead.mayPlay
        if plays { (tail.outlet.isFresh, isUntouched) = (false, false) }
        pipeline.setState(plays ? GST_STATE_PLAYING : GST_STATE_PAUSED)
        if playhead.crossing != nil { lookAtCrossing() }
        lookAhead()
        buffering.watch(isStalled)
    }

    /// Subtitles that begin before a place in a film.
    func readEarlierWords(than time: GstClockTime) {
        if let path = source.path, source.traits.isFile { tracks?.readEarlier(than: time, in: path) }
    }

    /// The same of the web, when its pictures have come: they are needed first.
    func fetchEarlierWords(than time: GstClockTime) {
        guard !source.traits.isFile, source.live == nil else { return }
        tracks?.fetchEarlier(than: time, from: source.place)
    }

    private func start(_ target: Playhead.Target) {
        readEarlierWords(than: target.time)
        // Only at the beginning; elsewhere a lost hundredth of a second is not noticed.
        if !tail.outlet.isFresh, target.time == 0 || tail.outlet.isLost {
            handle(.beganAnew)
            pipeline.setState(GST_STATE_PAUSED)
            tail.outlet.renew()
        }
        let isSent = send(GST_SEEK_FLAG_FLUSH.rawValue | GST_SEEK_FLAG_ACCURATE.rawValue, to: target.time)
        tail.outlet.open()
        if !isSent { handle(.seekRefused) }
    }

    private func send(_ flags: UInt32, to time: GstClockTime) -> Bool {
        seeks += 1
        isUntouched = false
        if playhead.manner.end != nil { hasHadEnd = true }
        let flags = flags | (playhead.manner.isSegmented ? GST_SEEK_FLAG_SEGMENT.rawValue : 0)
        let event = gst_event_new_seek(
            rate, GST_FORMAT_TIME, GstSeekFlags(rawValue: flags), GST_SEEK_TYPE_SET, Int(clamping: time),
            // NONE would keep an end that was set before.
            hasHadEnd ? GST_SEEK_TYPE_SET : GST_SEEK_TYPE_NONE,
            playhead.manner.end.map { Int(clamping: $0) } ?? -1)
        (seekNumber, isReadToEnd) = (gst_event_get_seqnum(event), false)
        let seek = { [element = pipeline.element] in gst_element_send_event(element, event) != 0 }
        return pipeline.perform(
            seek,
            late: { [element = pipeline.element, refusal] isSent in
                guard !isSent else { return }
                let origin = UnsafeMutableRawPointer(element).assumingMemoryBound(to: GstObject.self)
                let structure = gst_structure_new_empty(refusal)
                gst_element_post_message(element, gst_message_new_application(origin, structure))
            }) ?? true
    }

    /// Posted on the bus if the last seek was refused after the loop stopped waiting for it. Each seek has another name, so
    /// that a refusal is not taken for that of a later seek.
    private var refusal: String { "seek-refused-\(seeks)" }

    /// GStreamer reads no chapters of MP4 files.
    private func readChapters() {
        guard chain.film != nil, chapters.isEmpty, let path = source.path else { return }
        chapters = MovieIndex.chapters(path.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })
        if !chapters.isEmpty { onEvent?(.chapters) }
    }

    private func take(_ message: UnsafeMutablePointer<GstMessage>) {
        if succession.take(message, after: chain) { return }
        if let tracks, tracks.take(message) {
            if let plugin = tracks.missing { return lacks(plugin) }
            if tracks.isPicture { return onEvent?(.failed(Failure(picture: source.name, tracks.isAnimation))) ?? () }
            onEvent?(.tracks)
        }
        if let pictures, pictures.take(message, of: pipeline.element) == .hasNoSound { tail.outlet.remove() }
        if chain.film != nil, let found = Chapters.read(message), found != chapters {
            chapters = found
            onEvent?(.chapters)
        }
        switch Notice(message) {
        case .prerolled:
            pipeline.settle()
            if !isReady { readChapters() }
            rest.disarm()
            handle(.done)
            if playhead.isSteady { onEvent?(.steady) }
            if isReadToEnd, playhead.isSteady {
                isReadToEnd = false
                handle(.segmentDone)
            }
        case .ended: handle(.endReached)
        case .segmentDone:
            // The queues of a film may take all of a short rest.
            isReadToEnd = !playhead.isSteady && gst_message_get_seqnum(message) == seekNumber
            // Not all demuxers number it. One that belongs to the seek before costs nothing but a gap.
            if !playhead.isSteady { rest.arm(after: Self.restTime) }
            handle(.segmentDone)
        case .durationChanged:
            knownDuration = pipeline.duration
            if isReady { onEvent?(.durationChanged) }
        case .failed(let fault): onEvent?(.failed(Failure(fault, item: source.name, missing: missing)))
        case .lacksPlugin(let plugin): missing = plugin
        case .tags:
            // The tags of an item that is not heard yet are reported when it is.
            if chain.tags.take(message), playhead.crossing == nil { onEvent?(.tags(chain.tags)) }
        case .buffered(let percent): buffered(percent)
        case .application:
            if FilmTracks.haveCome(in: message) {
                onEvent?(.words)
            } else if Succession.isEnd(message) {
                sourceHasEnded()
            } else if gst_message_has_name(message, refusal) != 0 {
                handle(.seekRefused)
            } else {
                tail.take(message)
            }
        case .element: tail.take(message)
        case .other: break
        }
    }
}

// Streams from the network.
extension Item {
    /// Other streams of the film would be played without what is lost.
    private func lacks(_ plugin: String) {
        let failure = Failure(lacking: plugin, item: source.name)
        onEvent?(.failed(Failure(failure.message, isAboutFormat: false)))
    }

    private func buffered(_ percent: Int) {
        let was = isStalled
        buffering.take(percent)
        if isReady { applyState() }
        if isStalled != was { onEvent?(.stalled) }
    }

    private func networkTakesTooLong() {
        guard isStalled else { return }
        let seconds = Int(source.traits.patience)
        onEvent?(
            .failed(
                Failure("'\(source.name)': no data arrived for \(seconds) s", isAboutFormat: false)))
    }
}
