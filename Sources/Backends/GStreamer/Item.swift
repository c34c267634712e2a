import CGStreamer
import EventLoop
import PluginAPI

/// One item in its pipeline: knows what is asked of it (playing, where, how fast, how often) and what is under way.
final class Item {
    enum Event {
        /// The first sample waits, or is heard: duration and channels are known.
        case ready
        case durationChanged
        case seeked(Double)
        case tags(MediaTags)
        /// It waits for the network, or no longer.
        case stalled
        /// What was to follow is heard now and is the item.
        case advanced
        case ended
        case failed(Failure)
    }

    var source: MediaSource { chain.source }
    let volume: GainRamp
    let duck: GainRamp
    var onEvent: ((Event) -> Void)?
    private(set) var isReady = false
    private(set) var channels = 0

    let pipeline: Pipeline
    private let outlet: Outlet
    private let splice: Splice
    let succession: Succession
    var chain: Chain
    var meter = Meter()
    var missing: String?
    var knownDuration: Int?

    var wantsPlaying = false
    private lazy var buffering = Buffering(on: loop) { [unowned self] in networkTakesTooLong() }
    /// What followed, or nothing, flows already, and is not yet heard.
    var crossing: Crossing?
    lazy var crossed = Timer(on: loop) { [unowned self] in lookAtCrossing() }
    /// It cannot follow without a gap.
    var isAlone = false
    lazy var ahead = Timer(on: loop) { [unowned self] in lookAhead() }
    private let loop: EventLoop
    /// The seek under way; the pipeline answers with ASYNC_DONE.
    var seeking: Target?
    /// The newest seek asked for while another is under way.
    var next: Target?
    /// How often it is still to begin again.
    var loopsLeft = 0
    /// The last seek asked for a SEGMENT_DONE instead of an end, so that the beginning follows without a gap.
    private var isSegmented = false
    private var seekRate = 1.0

    struct Target {
        let time: GstClockTime
        let told: Bool
        /// On a stream of its own, which sounds only when the beginning waits in it.
        var isAnew = false
    }

    init(_ source: MediaSource, identity: StreamIdentity, device: String?, loop: EventLoop) throws(PipelineError) {
        self.loop = loop
        let pipeline = try Pipeline(
            "audioconvert name=head ! volume name=volume ! volume name=duck ! pulsesink name=sink", on: loop,
            reachesServer: true)
        let chain = try Chain(source, in: pipeline)
        guard let head = pipeline.child("head"), let volume = pipeline.child("volume"),
            let duck = pipeline.child("duck"),
            let outlet = Outlet(in: pipeline, after: duck, identity: identity, device: device, title: source.title),
            let splice = Splice(in: pipeline, from: "head", to: "volume", on: loop),
            let succession = Succession(in: pipeline, to: head), succession.link(chain)
        else { throw PipelineError(message: "the pipeline is incomplete") }
        (self.pipeline, self.splice, self.succession, self.chain) = (pipeline, splice, succession, chain)
        self.volume = GainRamp(volume, gain: 1)
        self.duck = GainRamp(duck, gain: 1)
        self.outlet = outlet
        pipeline.onMessage = { [weak self] in self?.take($0) }
        succession.onFailed = { [weak self] in self?.isAlone = true }
    }

    deinit { pipeline.close() }

    func close() {
        retire()
        pipeline.close()
    }

    /// Tells and does nothing any more.
    func retire() {
        onEvent = nil
        pipeline.onMessage = nil
        buffering.stop()
        crossed.disarm()
        ahead.disarm()
    }

    // MARK: What is asked of it

    func prepare() { pipeline.setState(GST_STATE_PAUSED) }

    func play() {
        wantsPlaying = true
        if isReady, seeking == nil, needsSeek { seek(to: GstClockTime(clamping: pipeline.position ?? 0), told: false) }
        applyState()
    }

    func pause() {
        wantsPlaying = false
        applyState()
    }

    /// Silent and at the beginning; all loops are ahead again. For local files: many servers cannot seek, and to be
    /// asked ends their stream.
    func rewind() {
        pause()
        loopsLeft = loops
        meter.clear()
        seek(to: 0, told: false)
    }

    var loops = 0 {
        didSet {
            loopsLeft = loops
            lookAhead()
        }
    }

    /// The URI of what is to follow without a gap, where it can.
    var following: String? {
        didSet {
            guard following != oldValue else { return }
            isAlone = false
            succession.forget()
            lookAhead()
        }
    }

    var rate = 1.0 {
        didSet {
            guard rate != oldValue, isReady else { return }
            finishCrossing()
            // Where it is going, if it is: the way there may be long.
            seek(to: place, told: (next ?? seeking)?.told == true)
        }
    }

    func seek(to time: GstClockTime, told: Bool) {
        let target = Target(time: min(time, knownDuration.map { GstClockTime(clamping: $0) } ?? time), told: told)
        guard isReady, seeking == nil else {
            next = target
            return
        }
        start(target)
    }

    func apply(filters: Set<Splice.Filter>, pan: Double) {
        splice.onChanged = { [weak self] in
            guard let element = self?.pipeline.child("pan") else { return }
            shim_set_float(element, "panorama", pan)
        }
        if !filters.contains(.level) { meter.clear() }
        splice.want(filters, flowing: pipeline.isStarted)
        if let element = pipeline.child("pan") { shim_set_float(element, "panorama", pan) }
    }

    // MARK: What it tells

    /// Where it is, or is going, in the item's time.
    var place: GstClockTime { (next ?? seeking)?.time ?? GstClockTime(clamping: pipeline.position ?? 0) }

    var position: Double {
        if let crossing {
            let rest = crossing.end - min(pipeline.runningTime ?? 0, crossing.end)
            return max(0, crossing.place - Double(rest) / 1e9)
        }
        if let target = next ?? seeking { return Double(target.time) / 1e9 }
        return Runtime.seconds(pipeline.position ?? 0)
    }

    /// As ``position``, when the server has gone and the sink's clock with it: what was decoded, less what waited in the
    /// sink's buffer.
    var lastPosition: Double {
        if next != nil || seeking != nil { return position }
        guard let head = volume.head else { return position }
        let heard = Double(head) / 1e9 - Double(Outlet.bufferTime) / 1e6
        let asked = position
        return abs(asked - heard) < 0.5 ? asked : max(0, heard)
    }

    var duration: Double? {
        guard isReady else { return nil }
        if knownDuration == nil { knownDuration = pipeline.duration }
        return knownDuration.map(Runtime.seconds) ?? source.estimatedDuration
    }

    var isStalled: Bool { isReady && buffering.isShort && wantsPlaying }

    /// The item's seconds that need no waiting: all of a file's, of a stream what came, by its share of the bytes.
    var loadedRanges: [ClosedRange<Double>] {
        guard isReady else { return [] }
        let here = position
        guard !source.isLocal else { return [0...max(0, duration ?? here)] }
        guard let duration, let bytes = chain.bytesRead else { return [here...here] }
        return [here...max(here, duration * Double(bytes.done) / Double(bytes.whole))]
    }

    func levels() -> [ChannelLevel] { meter.levels(at: pipeline.position.map { GstClockTime(clamping: $0) }) }

    // MARK: Under way

    private var needsSegments: Bool { loopsLeft != 0 && source.isLocal }
    private var needsSeek: Bool { seekRate != rate || isSegmented != needsSegments }

    private func applyState() {
        // Before its first seek nothing of a faster or looping item may sound, and of a stream nothing before it is known
        // whether enough of it is there.
        let mayStart = isReady ? seeking?.isAnew != true : source.isLocal && !needsSeek && next == nil
        let sounds = wantsPlaying && !buffering.isShort && mayStart
        if sounds { outlet.isFresh = false }
        pipeline.setState(sounds ? GST_STATE_PLAYING : GST_STATE_PAUSED)
        if crossing != nil { lookAtCrossing() }
        lookAhead()
        buffering.watch(isStalled)
    }

    private func start(_ target: Target) {
        var target = target
        // Elsewhere in the item nobody misses a hundredth of a second.
        if !outlet.isFresh, target.time == 0 || outlet.isLost {
            target.isAnew = true
            pipeline.setState(GST_STATE_PAUSED)
            outlet.renew()
        }
        seeking = target
        isSegmented = needsSegments
        seekRate = rate
        let flags = GST_SEEK_FLAG_FLUSH.rawValue | GST_SEEK_FLAG_ACCURATE.rawValue | segmentFlag
        let isSent = send(flags, to: target.time)
        outlet.open()
        if !isSent { seekIsRefused() }
    }

    /// A stream that cannot seek stays where it is.
    private func seekIsRefused() {
        guard let target = seeking else { return }
        seeking = nil
        (isSegmented, seekRate) = (false, 1)
        if target.told { onEvent?(.seeked(position)) }
    }

    private var segmentFlag: UInt32 { isSegmented ? GST_SEEK_FLAG_SEGMENT.rawValue : 0 }

    private func send(_ flags: UInt32, to time: GstClockTime) -> Bool {
        let seek = { [element = pipeline.element, rate] in
            gst_element_seek(
                element, rate, GST_FORMAT_TIME, GstSeekFlags(rawValue: flags), GST_SEEK_TYPE_SET, Int(clamping: time),
                GST_SEEK_TYPE_NONE, -1) != 0
        }
        return pipeline.perform(
            seek,
            late: { [element = pipeline.element] isSent in
                guard !isSent else { return }
                let origin = UnsafeMutableRawPointer(element).assumingMemoryBound(to: GstObject.self)
                let structure = gst_structure_new_empty(Item.refusedSeek)
                gst_element_post_message(element, gst_message_new_application(origin, structure))
            }) ?? true
    }

    /// Told on the bus where the loop did not wait for it.
    private static let refusedSeek = "seek-refused"

    private func take(_ message: UnsafeMutablePointer<GstMessage>) {
        if succession.take(message, after: chain) { return }
        switch message.pointee.type {
        case GST_MESSAGE_ASYNC_DONE: isAsyncDone()
        case GST_MESSAGE_EOS: hasEnded()
        case GST_MESSAGE_SEGMENT_DONE: segmentIsDone()
        case GST_MESSAGE_DURATION_CHANGED:
            knownDuration = pipeline.duration
            if isReady { onEvent?(.durationChanged) }
        case GST_MESSAGE_ERROR: onEvent?(.failed(Failure(message, item: source.name, missing: missing)))
        case GST_MESSAGE_TAG:
            // Of what is not yet heard, it is told with the rest.
            if chain.tags.take(message), crossing == nil { onEvent?(.tags(chain.tags)) }
        case GST_MESSAGE_BUFFERING:
            var percent: gint = 0
            gst_message_parse_buffering(message, &percent)
            buffered(Int(percent))
        case GST_MESSAGE_APPLICATION:
            if Succession.isEnd(message) {
                sourceHasEnded()
            } else if gst_message_has_name(message, Item.refusedSeek) != 0 {
                seekIsRefused()
                applyState()
            } else {
                splice.take(message)
            }
        case GST_MESSAGE_ELEMENT:
            if let structure = gst_message_get_structure(message),
                gst_structure_has_name(structure, "missing-plugin") != 0,
                let name = gst_structure_get_string(structure, "name")
            {
                missing = String(cString: name)
            } else {
                meter.take(message)
            }
        default: break
        }
    }

    private func isAsyncDone() {
        pipeline.settle()
        if !isReady {
            isReady = true
            knownDuration = pipeline.duration
            channels = countChannels()
            onEvent?(.ready)
            if next == nil, needsSeek { next = Target(time: 0, told: false) }
        } else if let done = seeking {
            seeking = nil
            if done.told, next == nil { onEvent?(.seeked(position)) }
        }
        if seeking == nil, let target = next {
            next = nil
            start(target)
        }
        applyState()
    }

    private func hasEnded() {
        // An end from before the seek under way is not the end.
        guard isReady, seeking == nil, next == nil else { return }
        finishCrossing()
        if needsSegments { return again(flags: GST_SEEK_FLAG_FLUSH.rawValue) }
        onEvent?(.ended)
    }

    private func segmentIsDone() {
        guard seeking == nil, next == nil else { return }
        if needsSegments { return again(flags: 0) }
        // The loops were taken back meanwhile: an empty rest without the flag ends it, once all is heard.
        isSegmented = false
        if !send(0, to: GstClockTime(clamping: knownDuration ?? 0)) { onEvent?(.ended) }
    }

    /// From the beginning, the last time without the flag, so that its end is the end.
    private func again(flags: UInt32) {
        if loopsLeft > 0 { loopsLeft -= 1 }
        isSegmented = needsSegments
        seekRate = rate
        if flags != 0 { seeking = Target(time: 0, told: false) }
        if !send(flags | segmentFlag, to: 0) {
            seeking = nil
            onEvent?(.ended)
        }
    }

    private func countChannels() -> Int {
        guard let head = pipeline.child("head"), let pad = gst_element_get_static_pad(head, "src") else { return 0 }
        defer { gst_object_unref(pad) }
        guard let caps = gst_pad_get_current_caps(pad) else { return 0 }
        defer { gst_caps_unref(caps) }
        var count: gint = 0
        gst_structure_get_int(gst_caps_get_structure(caps, 0), "channels", &count)
        return Int(count)
    }
}

// The network.
extension Item {
    private func buffered(_ percent: Int) {
        let was = isStalled
        buffering.take(percent)
        if isReady { applyState() }
        if isStalled != was { onEvent?(.stalled) }
    }

    private func networkTakesTooLong() {
        guard isStalled else { return }
        let seconds = Int(Buffering.patience)
        onEvent?(
            .failed(
                Failure("'\(source.name)': no data arrived for \(seconds) s", isAboutFormat: false)))
    }
}
