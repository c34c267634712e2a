import CPulse
public import EventLoop
public import PluginAPI

/// The sound server over libpulse: PulseAudio, or PipeWire speaking its protocol.
///
/// One connection. Events only mark what to read again; a round of questions follows, and when its answers are in, the
/// whole picture is compared with what was told last. The server answers in order, so by then it has also sent whatever
/// else the same cause changed: a sink's removal and the new default are one route change, told without any waiting.
public final class PulseBackend: AudioBackend {
    public private(set) var snapshot = AudioSnapshot.disconnected

    public var onServicesLost: (() -> Void)?
    public var onServicesReset: (() -> Void)?
    public var onRouteChanged: ((RouteChangeReason, Route, Route) -> Void)?
    public var onPortsChanged: (() -> Void)?
    public var onStreamsChanged: (() -> Void)?
    public var onInputMuteChanged: ((Bool) -> Void)?
    public var onOutputVolumeChanged: ((Double) -> Void)?
    public var onLatencyChanged: (() -> Void)?
    public var onPoliciesChanged: (() -> Void)?
    public var guardsOutput = false { didSet { if guardsOutput != oldValue { keepGuard() } } }
    public var outputWish = OutputWish() { didSet { if outputWish != oldValue { keepTuning() } } }
    public var onMemoryChanged: (() -> Void)?
    public var watchesMemory = false {
        didSet { if watchesMemory != oldValue { connection?.watchMemory(watchesMemory) } }
    }

    let loop: EventLoop
    let server: String?
    let patience: Double

    // The connection's life.
    var connection: PulseConnection?
    var isReady = false
    private var isLost = false
    private var failures = 0
    private var retry: Timer?
    private var watch: SocketWatch?
    private(set) var isWaitingForSocketOnly = false
    var completions: [UInt64: Completion] = [:]
    /// Whether the server has been asked to make the place for held streams, and it is not gone since.
    var hasHold = false
    public var wantedStandIns: [StreamMemory] = [] { didSet { if wantedStandIns != oldValue { keepStandIns() } } }
    /// By the name that they are remembered under.
    var standIns: [String: PulseStandIn] = [:]
    /// Streams that were let go and are still seen where they were held.
    var leavingHold: Set<UInt32> = []
    /// What moves streams that were let go while they were paused, and wait until the place has taken back what it fetched.
    var takingBack: [UInt32: () -> Void] = [:]
    /// Who waits until it is there, and no longer than ``holdTimer``.
    var holdWaiters: [(Bool) -> Void] = []
    var holdTimer: Timer?
    /// Until the place for held streams is taken away, unless it is needed again.
    var holdIdleTimer: Timer?
    var nextCompletion: UInt64 = 0
    /// Streams on their way to or from where they are held, and how often they are still to be looked at.
    var awaitedMoves: [UInt32: Int] = [:]
    var moveTimer: Timer?

    // The picture, and what of it is old.
    var model = PulseModel()
    var dirty: [Item: Bool] = [:]
    var outstanding = 0
    var isScheduled = false
    var dirtySince: UInt64 = 0
    private var settle: Timer?
    /// When what was put off while devices were enumerated is done.
    private var enumerated: Timer?
    private var unsettledSince: UInt64?
    var toldDevices: [PulseDevice] = []
    /// What we asked for, by uid, until it is the route or too old to be what a change is due to.
    var requested: [String: (reason: RouteChangeReason, until: UInt64)] = [:]
    /// The output that was asked for last: the route is on its way there for as long as it is among ``requested``.
    var requestedOutput: String?
    /// A port that is to be the route once it is there, as its card changes its profile.
    var awaited: (input: String?, output: String?) = (nil, nil)
    /// The profiles of cards before we made them hands-free, by card.
    var profilesBefore: [String: String] = [:]

    // What keeps sound from where it must not go.
    /// Whether the guard is being made (true) or removed; nil: neither.
    var awaitedGuard: Bool?
    var isGuardRefused = false
    /// Whether the second guard is to be there, and whether it is being made.
    var isFirstWanted = false
    var isFirstComing = false
    /// Called once the second guard has gone that has yet to come.
    var firstLeft: ((Bool) -> Void)?
    /// The configured default, as far as it is known: what we made it, until it is another.
    var pinnedOutput: String?
    /// Until when the guard may take to become the default, because a port of a device that stays went; nil: it was not
    /// asked to.
    var flight: UInt64?

    /// Asks of the output what ``outputWish`` says.
    var tuning: PulseTuning? { didSet { oldValue?.close() } }

    // Whether the default is what the server shows here.
    /// Asks the server the same once more.
    var witness: PulseConnection?
    var doubt: Timer?
    /// When ``doubt`` fires; nil: it does not.
    var doubtDue: UInt64?
    /// Something happened since the last witness was sent.
    var isDoubtNew = false
    /// The defaults as the last witness saw them too.
    var witnessed: (sink: String, source: String)?

    struct Item: Hashable {
        let facility: PulseConnection.Facility
        let index: UInt32
    }

    /// How long a flicker may last on PipeWire, whose session manager chooses a default in steps, in seconds.
    static let settleTime = 0.05
    private static let longestSettleTime = 0.25
    /// What appeared becomes the route by that appearance's doing within that many microseconds.
    static let recently: UInt64 = 2_000_000

    /// `server` as for `pa_context_connect`; nil is the environment's choice. `patience` is how many seconds the server
    /// may owe an answer before it counts as lost.
    public init(on loop: EventLoop, server: String? = nil, patience: Double = 2) {
        self.loop = loop
        self.server = server
        self.patience = patience
        retry = Timer(on: loop) { [weak self] in self?.connect() }
        settle = Timer(on: loop) { [weak self] in self?.evaluate(isSettled: true) }
        enumerated = Timer(on: loop) { [weak self] in self?.evaluate(isSettled: true) }
        moveTimer = Timer(on: loop) { [weak self] in self?.lookAtMoves() }
        holdTimer = Timer(on: loop) { [weak self] in self?.settleHold(isThere: false) }
        holdIdleTimer = Timer(on: loop) { [weak self] in self?.dropIdleHold() }
        doubt = Timer(on: loop) { [weak self] in self?.callWitness() }
    }

    deinit {
        connection?.close()
        witness?.close()
    }

    public func start() { connect() }

    // MARK: Connecting

    private func connect() {
        guard connection == nil else { return }
        retry?.disarm()
        guard let made = PulseConnection(loop: loop, name: "sessiond", patience: patience) else { return failed(false) }
        use(made)
        made.connect(to: server)
    }

    /// From now on that one is the connection.
    func use(_ made: PulseConnection) {
        tuning = nil
        connection = made
        made.onState = { [weak self] state in
            switch state {
            case .ready: self?.ready()
            case .failed(let refused): self?.failed(refused)
            }
        }
        made.onEvent = { [weak self] in self?.mark($0, $1, isRemoved: $2) }
        made.onSilence = { [weak self] in self?.failed(false) }
        made.onMemoryChanged = { [weak self] in self?.onMemoryChanged?() }
    }

    private func ready() {
        isReady = true
        failures = 0
        watch = nil
        model = PulseModel()
        (awaitedGuard, isGuardRefused, flight, pinnedOutput) = (nil, false, nil, nil)
        // One that an earlier daemon left is let go as what it holds is.
        (isFirstWanted, isFirstComing, firstLeft) = (true, false, nil)
        hasHold = false
        awaitedMoves = [:]
        takingBack = [:]
        dirty = [:]
        outstanding = 0
        witnessed = nil
        readEverything()
    }

    /// The connection is over, or never was. `refused`: nobody listens there.
    private func failed(_ refused: Bool) {
        // Kept until here, because this is called from its own callbacks.
        let old = connection
        tuning = nil
        connection = nil
        isReady = false
        old?.close()
        dismissWitness()
        outstanding = 0
        dirty = [:]
        settle?.disarm()
        standIns = [:]
        holdTimer?.disarm()
        holdIdleTimer?.disarm()
        holdWaiters = []
        enumerated?.disarm()
        unsettledSince = nil
        requested = [:]
        awaited = (nil, nil)
        profilesBefore = [:]
        toldDevices = []
        let sockets = ServerAddress.sockets(server, environment: ServerAddress.environment)
        if watch == nil, !sockets.isEmpty {
            watch = SocketWatch(on: loop, paths: sockets) { [weak self] in
                self?.failures = 0
                self?.connect()
            }
        }
        failures += 1
        // A socket that nobody answers will be made anew when somebody does: the watch tells, no clock needs to.
        isWaitingForSocketOnly = refused && watch != nil && failures > 8
        if !isWaitingForSocketOnly { retry?.arm(after: min(2, 0.05 * Double(1 << min(failures - 1, 6)))) }

        let waiting = completions.sorted { $0.key < $1.key }.map(\.value)
        completions = [:]
        snapshot = .disconnected
        if !isLost {
            isLost = true
            onServicesLost?()
        }
        for completion in waiting { completion(.failure(PulseBackend.away)) }
    }

    static let away = SessionError(
        .mediaServicesFailed, "the sound server does not answer; it will be used again when it is back")

    // MARK: Telling

    func evaluate(isSettled: Bool) {
        guard isReady else { return }
        let now = MonotonicClock.now()
        if isSettled {
            unsettledSince = nil
            // Answers are on their way: what they say is told when they are in.
            if outstanding > 0 { return }
        }
        if model.asksForClients(isLate: isSettled || model.isOnGuard) { return readClients() }
        model.tuning = tuning.flatMap { tuning in tuning.index.map { ($0, tuning.latency) } }
        var current = model.snapshot(now: now)
        let previous = snapshot
        if !previous.isConnected {
            // Who comes to a running system finds the route as somebody wants it.
            current.route.outputs.forEach { model.prefer($0, isInput: false) }
            current.route.inputs.forEach { model.prefer($0, isInput: true) }
            return tellFirst(model.snapshot(now: now))
        }

        if !model.isOnGuard, model.defaultSink != pinnedOutput { pinnedOutput = nil }
        dropFirst()
        // That the guard has taken over is no flicker: it does so only where an output went.
        flee(previous, current, now)
        awaitMoves()
        doubtDefault(previous, current)
        if model.isPipeWire, !isSettled, !hasFallenBack(previous, current),
            differs(previous, current) || model.isOnGuard && !previous.isOutputHeld
        {
            let since = unsettledSince ?? now
            unsettledSince = since
            if now &- since < MonotonicClock.microseconds(PulseBackend.longestSettleTime) {
                settle?.arm(after: PulseBackend.settleTime)
                // Streams need no settling; the rest stays as it was told.
                current.route = previous.route
                current.availableInputs = previous.availableInputs
                current.availableOutputs = previous.availableOutputs
                current.isInputMuted = previous.isInputMuted
                current.outputVolume = previous.outputVolume
                (current.outputLatency, current.inputLatency) = (previous.outputLatency, previous.inputLatency)
                // Whoever lets go what is held must know first who is to fall silent.
                current.isOutputHeld = previous.isOutputHeld
                snapshot = current
                if current.streams != previous.streams { onStreamsChanged?() }
                return
            }
            unsettledSince = nil
        }
        settle?.disarm()

        requested = requested.filter { now < $0.value.until }
        var judge = RouteJudge(
            previous: previous, current: current,
            recent: model.recent(current, now, within: PulseBackend.recently))
        judge.requested = requested.mapValues(\.reason)
        judge.reprofiled = reprofiled()
        judge.returned = returned().subtracting(judge.reprofiled)
        let verdict = judge.verdict
        let chosen = (judge.chosenOutput, judge.chosenInput)
        let isFound = preferWhatTheServerFound(previous, current)
        chosen.0.map { model.prefer($0, isInput: false) }
        chosen.1.map { model.prefer($0, isInput: true) }
        if isFound || chosen.0 != nil || chosen.1 != nil { current = model.snapshot(now: now) }
        current.isOutputHeld = model.isOnGuard || flight != nil
        snapshot = current
        toldDevices = [model.output, model.input].compactMap { $0 }
        for port in current.route.inputs + current.route.outputs { requested[port.uid] = nil }
        if let verdict { onRouteChanged?(verdict.reason, verdict.previous, verdict.current) }
        if previous.availableInputs != current.availableInputs || previous.availableOutputs != current.availableOutputs
        {
            onPortsChanged?()
        }
        if previous.streams != current.streams { onStreamsChanged?() }
        if previous.isInputMuted != current.isInputMuted { onInputMuteChanged?(current.isInputMuted) }
        if previous.outputVolume != current.outputVolume { onOutputVolumeChanged?(current.outputVolume) }
        if previous.outputLatency != current.outputLatency || previous.inputLatency != current.inputLatency {
            onLatencyChanged?()
        }
        selectAwaited()
        if let end = model.enumerationEnd(now) { enumerated?.arm(at: end) }
        if previous.policies != current.policies { onPoliciesChanged?() }
        keepGuard()
        keepTuning()
    }

    private func tellFirst(_ current: AudioSnapshot) {
        snapshot = current
        snapshot.isOutputHeld = model.isOnGuard
        defer {
            if let end = model.enumerationEnd(MonotonicClock.now()) { enumerated?.arm(at: end) }
            keepGuard()
            keepTuning()
            keepStandIns()
        }
        toldDevices = [model.output, model.input].compactMap { $0 }
        if isLost {
            isLost = false
            onServicesReset?()
        } else {
            onPortsChanged?()
            onStreamsChanged?()
            if !current.policies.isEmpty { onPoliciesChanged?() }
        }
    }
}
