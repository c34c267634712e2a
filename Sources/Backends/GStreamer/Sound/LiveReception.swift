import CGStreamer
import CStreaming
import EventLoop
import GStreamerBase
import LiveStreaming

/// Receives a live stream, and connects again when its server goes. What it receives is shown by an ``Item``; it keeps that near
/// the newest.
final class LiveReception {
    enum Event {
        /// An item can show it.
        case ready
        /// A stream came that was not waited for, such as the first picture after seconds of sound: another item must show it.
        case grew
        /// It is stalled, or not any more.
        case stalled
        /// Its server said that it is over.
        case ended
        case failed(String)
    }

    let source: LiveSource
    let store = LiveStore()
    var onEvent: ((Event) -> Void)?
    /// Where the item is that shows it, in nanoseconds of the stream; nil while none plays.
    var position: (() -> Int?)?

    private let loop: EventLoop
    private var link: LiveLink
    private var pipeline: Pipeline?
    private var catchUp: CatchUp
    /// What had arrived before this connection.
    private var before: guint64 = 0
    private var isReady = false
    /// The streams that the item knows.
    private var streams: guint = 0
    /// What was older than the wanted delay when it was joined has been left out.
    private var isSettled = false
    /// How far the newest is ahead of the time that has passed, at the last look: servers send the last seconds at once to one
    /// who joins.
    private var ahead = -1.0
    /// Whether the stream is over, asked of its list.
    private var question: PlaylistFetch?
    private lazy var look = Timer(on: loop) { [unowned self] in observe() }
    private lazy var deadline = Timer(on: loop) { [unowned self] in take(.timePassed) }

    /// Seconds between two looks, and while it joins.
    private static let (interval, joining) = (0.1, 0.02)

    /// - Parameter delay: the wanted one in seconds; nil: the usual one.
    init(_ source: LiveSource, delay: Double?, on loop: EventLoop) {
        (self.source, self.loop) = (source, loop)
        link = LiveLink()
        catchUp = CatchUp(target: delay ?? source.usualDelay)
    }

    deinit { pipeline?.close() }

    func start() { take(.start) }

    func close() {
        (onEvent, position) = (nil, nil)
        take(.stop)
        look.disarm()
        deadline.disarm()
    }

    // MARK: Facts

    /// Seconds that what is shown is behind what is sent; nil: unknown.
    private(set) var delay: Double?
    var isStalled: Bool { catchUp.isStalled }
    var skipped: UInt64 { UInt64(store.facts.skipped) }

    var target: Double {
        get { catchUp.target }
        set {
            catchUp.target = newValue
            isSettled = false
        }
    }

    /// The next that is shown is as near as is wanted.
    func goToLive() { isSettled = false }

    // MARK: The connection

    private func take(_ input: LiveLink.Input) {
        for effect in link.handle(input, at: MonotonicClock.now()) {
            switch effect {
            case .connect(let number): connect(number)
            case .disconnect: disconnect()
            case .wait(let time): deadline.arm(at: time)
            case .fail(let trouble, let text): fail(trouble, text)
            }
        }
        if link.liveSince != nil { deadline.disarm() }
    }

    private func fail(_ trouble: LiveLink.Trouble, _ text: String) {
        look.disarm()
        deadline.disarm()
        let reason =
            switch trouble {
            case .unreachable: "cannot be reached"
            case .refused: "refused it"
            case .closed: "ended it"
            case .stalled: "sends nothing"
            case .insecure: "cannot be reached securely"
            }
        onEvent?(.failed("'\(source.uri)' cannot be watched: its server \(reason) (\(text))"))
    }

    private func connect(_ number: UInt64) {
        do throws(PipelineError) {
            let made = try Pipeline(source.description, on: loop)
            guard let origin = made.child("source") else { throw PipelineError(message: "the pipeline is incomplete") }
            shim_set_string(origin, source.property, source.uri)
            let parser = made.child("parser")
            shim_pull_receive(store.pull, guint(truncatingIfNeeded: number), parser, parser == nil ? origin : nil)
            made.onMessage = { [weak self] in self?.heard($0, number) }
            pipeline = made
            before = store.facts.arrived
            (ahead, isSettled) = (-1, false)
            made.setState(GST_STATE_PLAYING)
            look.arm(after: Self.joining)
        } catch {
            let message = error.message
            pipeline = nil
            look.disarm()
            onEvent?(.failed("'\(source.uri)' cannot be watched: \(message)"))
        }
    }

    private func disconnect() {
        question = nil
        shim_pull_disconnect(store.pull)
        pipeline?.close()
        pipeline = nil
    }

    private func heard(_ message: UnsafeMutablePointer<GstMessage>, _ number: UInt64) {
        switch Notice(message) {
        case .failed(let fault):
            let hasBegun = store.facts.arrived > before
            let trouble: LiveLink.Trouble =
                fault.insecurity != nil
                ? .insecure : hasBegun ? .closed : fault.reason == .notAuthorized ? .refused : .unreachable
            lost(number, trouble, fault.insecurity?.text ?? fault.text + (hasBegun ? "" : source.hint))
        case .ended:
            // A list of segments says when it is over. Other servers only close the connection, as if they had crashed.
            if case .hls = source.method, store.facts.arrived > before { return finish() }
            lost(number, .closed, "the connection ended")
        case .lacksPlugin(let plugin):
            look.disarm()
            onEvent?(.failed(Failure(lacking: plugin, item: source.uri).message))
        case .prerolled, .segmentDone, .durationChanged, .tags, .buffered, .application, .element, .other: break
        }
    }

    /// One that was never there is not asked again: its address is probably wrong.
    private func lost(_ number: UInt64, _ trouble: LiveLink.Trouble, _ text: String) {
        guard isReady || store.facts.arrived > 0 else {
            take(.stop)
            return fail(trouble, text)
        }
        take(.lost(number, trouble, text))
    }

    /// Nothing has come for too long: the stream is over, or its server is away. GStreamer 1.26 does not tell the end of a list that
    /// ends while it waits for the next segment.
    private func fellSilent(_ number: UInt64) {
        guard question == nil else { return }
        let lost = { [weak self] in
            guard let self, link.connection == number else { return }
            take(.lost(number, .stalled, "for \(Int(source.patience)) s"))
        }
        guard case .hls = source.method else { return lost() }
        question = try? PlaylistFetch(source.uri, loop: loop) { [weak self] outcome in
            guard let self else { return }
            question = nil
            // A list without an end would be that of a live stream.
            if case .entries(nil) = outcome { finish() } else { lost() }
        }
        if question == nil { lost() }
    }

    private func finish() {
        take(.stop)
        look.disarm()
        deadline.disarm()
        shim_pull_finish(store.pull)
        if !isReady { onEvent?(.ended) }
    }

    // MARK: Near the newest

    private func observe() {
        let facts = store.facts
        let silence = Double(facts.silence) / 1e6
        look.arm(after: isReady && isSettled ? Self.interval : Self.joining)
        if let number = link.connection {
            if link.liveSince == nil {
                if facts.arrived > before { take(.connected(number)) }
            } else if silence > source.patience {
                fellSilent(number)
            }
        }
        let isQuiet = link.liveSince != nil && isBurstOver(facts, silence)
        if !isReady {
            guard facts.is_ready != 0, isQuiet else { return }
            (isReady, streams) = (true, facts.streams)
            onEvent?(.ready)
            return
        }
        if facts.is_ready != 0, facts.streams > streams {
            (streams, isSettled) = (facts.streams, false)
            onEvent?(.grew)
            return
        }
        guard let place = position?() else {
            delay = nil
            return
        }
        let now = MonotonicClock.now()
        let behind = Times.seconds(facts.newest) - Times.seconds(UInt(clamping: place))
        let seen = CatchUp.Observation(behind: behind, silence: silence, late: Int(facts.late), slow: Int(facts.slow))
        let wasStalled = catchUp.isStalled
        delay = seen.delay
        if !isSettled {
            catchUp.beganAnew(late: Int(facts.late), slow: Int(facts.slow))
            if isQuiet, place > 0 {
                isSettled = true
                store.play(rate: 1)
                store.skip(to: catchUp.aim(at: now))
            }
        }
        switch catchUp.observe(seen, at: now) {
        case .play(let rate): store.play(rate: rate)
        case .skip: store.skip(to: catchUp.aim(at: now))
        case nil: break
        }
        if catchUp.isStalled != wasStalled { onEvent?(.stalled) }
    }

    /// What a server had kept has arrived; from now on each part comes when it is made.
    private func isBurstOver(_ facts: shim_pull_facts, _ silence: Double) -> Bool {
        guard !isSettled else { return true }
        guard source.pause == 0 else { return silence >= source.pause }
        let former = ahead
        ahead = Times.seconds(facts.newest) - Double(MonotonicClock.now()) / 1e6
        return former != -1 && ahead <= former + 0.02
    }
}
