/// The state of an item's playback: the requests to its pipeline (playing, seeks, loops, the rate), the current seek,
/// and the effects of the pipeline's messages.
///
/// It is a value without a pipeline. Each input returns effects, which the caller carries out in order. Times are
/// nanoseconds of the item.
///
/// ```
///                 prepared          seek              done
///    loading ───────────────▶ steady ────▶ seeking ─────────┐
///                              ▲  ▲ │                       │
///                              │  └─┼───────────────────────┘
///                      crossed │    │ the source ended
///                              │    ▼
///                             crossing
/// ```
struct Playhead: Sendable, Hashable {
    /// The goal of a seek.
    struct Target: Sendable, Hashable {
        let time: UInt
        /// Whether the end of the seek is reported.
        let isTold: Bool
        /// Whether it uses a new stream of the server, which starts only when it contains the beginning.
        var isAnew = false
    }

    /// The item's source has ended, but the sink still plays its rest. The next item, if there is one, is being
    /// decoded.
    struct Crossing: Sendable, Hashable {
        /// When the last sample of the item will be heard, in running time.
        let end: UInt
        /// The position of the last sample in the item, in seconds.
        let place: Double
        /// Whether there is no next item.
        let isEnd: Bool
    }

    /// `next` is the newest seek that is not started yet.
    enum Phase: Sendable, Hashable {
        /// The first sample is not there yet.
        case loading(next: Target?)
        /// It plays, or is ready to. `next` is started by the next message of the pipeline.
        case steady(next: Target?)
        /// The pipeline seeks, and answers with ``Input/done``.
        case seeking(Target, next: Target?)
        case crossing(Crossing)
    }

    enum Input: Sendable, Hashable {
        // Requests.
        /// `position`: where the item is.
        case play(position: UInt)
        case pause
        case seek(Target)
        case rate(Double)
        /// Where the item ends, if before its own end; nil: there.
        case end(UInt?)
        case loops(Int)
        case rewind
        /// A request concerns the item, so the next item counts as heard from now on.
        case crossed
        // Messages of the pipeline.
        /// A change of state or a seek is complete.
        case done
        /// The pipeline cannot seek, so the position stays the same.
        case seekRefused
        case endReached
        case segmentDone
        /// The segment of the current seek was read to its end, and nothing of it comes: one of the streams has nothing after
        /// the goal.
        case nothingComes
        /// The source has ended. The next item, if there is one, has replaced it.
        case sourceEnded(Crossing)
        // Effects that were carried out.
        /// `position`: the current position of the item.
        case seekHere(position: UInt)
        /// The seek began on a new stream of the server.
        case beganAnew
        /// The previous event was reported, and the receiver may have made requests.
        case goOn(isFirst: Bool)
        case finish
        case beginningRefused
    }

    enum Effect: Sendable, Hashable {
        /// Seek to the target, exactly and at once. If the pipeline refuses, pass ``Input/seekRefused``.
        case seek(Target)
        /// Start again from the beginning: at once, or without a gap after the end of the segment. If the pipeline
        /// refuses, pass ``Input/beginningRefused``.
        case beginAgain(isAtOnce: Bool)
        /// Play the rest of the segment as the last one.
        case playOut
        /// Set the pipeline's state again.
        case update
        /// Find out whether the next item must be prepared.
        case lookAhead
        /// Report that it is ready, that the seek is done, that the next item is heard, or that it has ended.
        case tellReady
        case tellSeeked
        case tellAdvanced
        case tellEnded
        /// Pass these inputs.
        case seekHere
        case goOn(isFirst: Bool)
        case finish
    }

    /// The parameters of a seek, in addition to its goal.
    struct Manner: Sendable, Hashable {
        var rate = 1.0
        /// Whether the pipeline posts a message instead of ending at the end of the segment, so that the item can begin
        /// again without a gap.
        var isSegmented = false
        /// Where the segment ends; nil: at the end of the item.
        var end: UInt?
    }

    private(set) var phase = Phase.loading(next: nil)
    private(set) var wantsPlaying = false
    private(set) var rate = 1.0
    /// Where the item ends for its listener; nil: at its own end.
    private(set) var end: UInt?
    /// How often the item begins again, and how often it still does; negative: forever.
    private(set) var loops = 0
    var loopsLeft = 0
    /// The parameters of the last seek.
    private(set) var manner = Manner()
    private let source: SourceTraits

    init(_ source: SourceTraits) { self.source = source }

    var isReady: Bool {
        if case .loading = phase { false } else { true }
    }

    /// Whether no seek is in progress or waiting.
    var isSteady: Bool { phase == .steady(next: nil) }

    var crossing: Crossing? {
        if case .crossing(let crossing) = phase { crossing } else { nil }
    }

    /// The goal of the last requested seek; nil if there is none.
    var target: Target? {
        switch phase {
        case .loading(let next), .steady(let next): next
        case .seeking(let target, let next): next ?? target
        case .crossing: nil
        }
    }

    /// Whether the item may be heard. A faster or looping item must not be heard before its first seek. A stream must
    /// not be heard before it is known whether enough data has arrived.
    var mayPlay: Bool {
        switch phase {
        case .loading(let next): !source.needsBuffering && !needsSeek && next == nil
        case .seeking(let target, _): !target.isAnew
        case .steady, .crossing: true
        }
    }

    private var needsSegments: Bool { loopsLeft != 0 && source.canSeek }
    private var wanted: Manner { Manner(rate: rate, isSegmented: needsSegments, end: source.canSeek ? end : nil) }
    private var needsSeek: Bool { manner != wanted }

    mutating func handle(_ input: Input) -> [Effect] {
        switch input {
        case .play(let position): play(position)
        case .pause: pause()
        case .seek(let target): seek(target)
        case .rate(let rate): change(rate)
        case .end(let end): change(end: end)
        case .seekHere(let position): seekHere(position)
        case .loops(let loops): change(loops)
        case .rewind: rewind()
        case .crossed: crossed()
        case .done: done()
        case .seekRefused: seekRefused()
        case .endReached: endReached()
        case .segmentDone: segmentDone()
        case .nothingComes: nothingComes()
        case .sourceEnded(let crossing): sourceEnded(crossing)
        case .beganAnew: beganAnew()
        case .goOn(let isFirst): goOn(isFirst)
        case .finish: finish()
        case .beginningRefused: beginningRefused()
        }
    }

    // MARK: Requests

    private mutating func play(_ position: UInt) -> [Effect] {
        wantsPlaying = true
        guard case .steady = phase, needsSeek else { return [.update] }
        return start(Target(time: position, isTold: false)) + [.update]
    }

    private mutating func pause() -> [Effect] {
        wantsPlaying = false
        return [.update]
    }

    private mutating func seek(_ target: Target) -> [Effect] {
        switch phase {
        case .loading: phase = .loading(next: target)
        case .seeking(let present, _): phase = .seeking(present, next: target)
        case .steady: return start(target)
        case .crossing: return crossed() + start(target)
        }
        return []
    }

    private mutating func start(_ target: Target) -> [Effect] {
        var next: Target?
        if case .steady(let waiting) = phase { next = waiting }
        phase = .seeking(target, next: next)
        manner = wanted
        return [.seek(target)]
    }

    private mutating func change(_ rate: Double) -> [Effect] {
        guard rate != self.rate else { return [] }
        self.rate = rate
        return isReady ? crossed() + [.seekHere] : []
    }

    private mutating func change(end: UInt?) -> [Effect] {
        guard end != self.end else { return [] }
        self.end = end
        return isReady ? crossed() + [.seekHere] : []
    }

    private mutating func seekHere(_ position: UInt) -> [Effect] {
        // Uses the goal of the current seek, because the seek may take long.
        seek(Target(time: target?.time ?? position, isTold: target?.isTold == true))
    }

    private mutating func change(_ loops: Int) -> [Effect] {
        (self.loops, loopsLeft) = (loops, loops)
        return [.lookAhead]
    }

    /// Goes to the beginning without playing, and resets the loops.
    private mutating func rewind() -> [Effect] {
        loopsLeft = loops
        return pause() + seek(Target(time: 0, isTold: false))
    }

    private mutating func crossed() -> [Effect] {
        guard let crossing else { return [] }
        phase = .steady(next: nil)
        return crossing.isEnd ? [.tellEnded] : [.tellAdvanced, .lookAhead]
    }

    // MARK: Messages of the pipeline

    private mutating func done() -> [Effect] {
        switch phase {
        case .loading(let next):
            phase = .steady(next: next)
            return [.tellReady, .goOn(isFirst: true)]
        case .seeking: return endSeek()
        case .steady, .crossing: return [.goOn(isFirst: false)]
        }
    }

    /// If another seek waits, it is started, and only its end is reported.
    private mutating func endSeek() -> [Effect] {
        guard case .seeking(let target, let next) = phase else { return [] }
        phase = .steady(next: next)
        return (target.isTold && next == nil ? [.tellSeeked] : []) + [.goOn(isFirst: false)]
    }

    /// Starts the waiting seek, or the first seek of an item that loops or has another rate.
    private mutating func goOn(_ isFirst: Bool) -> [Effect] {
        guard case .steady(let waiting) = phase else { return [.update] }
        guard let target = waiting ?? (isFirst && needsSeek ? Target(time: 0, isTold: false) : nil) else {
            return [.update]
        }
        phase = .steady(next: nil)
        return start(target) + [.update]
    }

    private mutating func seekRefused() -> [Effect] {
        guard case .seeking = phase else { return [] }
        manner = Manner()
        return endSeek()
    }

    private mutating func endReached() -> [Effect] {
        switch phase {
        case .steady(nil), .crossing: crossed() + [.finish]
        // The end was reported before the seek, so it does not count.
        case .loading, .steady, .seeking: []
        }
    }

    private mutating func finish() -> [Effect] { needsSegments ? beginAgain(isAtOnce: true) : [.tellEnded] }

    private mutating func segmentDone() -> [Effect] {
        switch phase {
        case .loading(next: nil), .steady(next: nil), .crossing: break
        case .loading, .steady, .seeking: return []
        }
        if needsSegments { return beginAgain(isAtOnce: false) }
        // The loops were removed in the meantime. An empty last segment without the message ends the item after its
        // rest was played.
        manner.isSegmented = false
        return [.playOut]
    }

    /// The end of a segment does not complete a seek; the end of the item does, and then it begins again.
    private mutating func nothingComes() -> [Effect] {
        guard case .seeking(let target, let next) = phase, manner.isSegmented else { return [] }
        if let next {
            phase = .steady(next: nil)
            return start(next)
        }
        manner.isSegmented = false
        return [.seek(target)]
    }

    /// Plays again from the beginning. The last time, it does so without the message, so that the item ends.
    private mutating func beginAgain(isAtOnce: Bool) -> [Effect] {
        if loopsLeft > 0 { loopsLeft -= 1 }
        manner = wanted
        if isAtOnce { phase = .seeking(Target(time: 0, isTold: false), next: nil) }
        return [.beginAgain(isAtOnce: isAtOnce)]
    }

    private mutating func beginningRefused() -> [Effect] {
        if case .seeking(_, let next) = phase { phase = .steady(next: next) }
        return [.tellEnded]
    }

    private mutating func sourceEnded(_ crossing: Crossing) -> [Effect] {
        guard isSteady else { return [] }
        if !crossing.isEnd { loopsLeft = loops }
        phase = .crossing(crossing)
        return []
    }

    private mutating func beganAnew() -> [Effect] {
        if case .seeking(var target, let next) = phase {
            target.isAnew = true
            phase = .seeking(target, next: next)
        }
        return []
    }
}
