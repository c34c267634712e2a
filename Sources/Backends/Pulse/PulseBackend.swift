import CPulse
public import EventLoop
public import PluginAPI

/// The sound server over libpulse: PulseAudio, or PipeWire speaking its protocol.
///
/// One connection. Events only mark what to read again. Then everything marked is read, and when all answers are in,
/// the complete state is compared with the last reported one. The server answers in order, so by then it has also sent
/// all other changes of the same cause: a removed sink and the new default are one route change, without any delay.
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
    /// Whether the server was asked to create the hold sink, and it has not gone since.
    var hasHold = false
    public var wantedStandIns: [StreamMemory] = [] { didSet { if wantedStandIns != oldValue { keepStandIns() } } }
    /// By the name under which the server remembers them.
    var standIns: [String: PulseStandIn] = [:]
    /// Streams that were moved back and are still shown on the hold sink.
    var leavingHold: Set<UInt32> = []
    /// What moves streams that are being moved back and were paused, while they wait until the hold sink has taken back the
    /// data that it had fetched.
    var takingBack: [UInt32: () -> Void] = [:]
    /// Calls that wait for the hold sink, at most until ``holdTimer``.
    var holdWaiters: [(Bool) -> Void] = []
    var holdTimer: Timer?
    /// Until the hold sink is removed, unless it is needed again.
    var holdIdleTimer: Timer?
    var nextCompletion: UInt64 = 0
    /// Streams being moved to or from the hold sink, and how often they are still to be checked.
    var awaitedMoves: [UInt32: Int] = [:]
    var moveTimer: Timer?

    // The state, and which part of it is outdated.
    var model = PulseModel()
    var dirty: [Item: Bool] = [:]
    var outstanding = 0
    var isScheduled = false
    var dirtySince: UInt64 = 0
    private var settle: Timer?
    /// When postponed work is done, after devices were enumerated.
    private var enumerated: Timer?
    private var unsettledSince: UInt64?
    var toldDevices: [PulseDevice] = []
    /// The requested ports by uid, until they are the route or too old to be the reason of a change.
    var requested: [String: (reason: RouteChangeReason, until: UInt64)] = [:]
    /// The output requested last: the route is changing to it while it is in ``requested``.
    var requestedOutput: String?
    var awaitedDefault: DefaultRequest?
    /// A port that becomes the route as soon as it exists, because its card is changing its profile.
    var awaited: (input: String?, output: String?) = (nil, nil)
    /// The profiles of cards before they were switched to hands-free, by card.
    var profilesBefore: [String: String] = [:]

    // The guard.
    /// Whether the guard is being created (true) or removed (false); nil: neither.
    var awaitedGuard: Bool?
    var isGuardRefused = false
    /// Whether the second guard is wanted, and whether it is being created.
    var isFirstWanted = false
    var isFirstComing = false
    /// Called when a second guard that does not exist yet has been removed.
    var firstLeft: ((Bool) -> Void)?
    /// The configured default, if known: the one set here, until it changes.
    var pinnedOutput: String?
    /// Until when the guard may become the default, because a port of a remaining device went; nil: not
    /// requested.
    var flight: UInt64?

    /// Requests ``outputWish`` from the output.
    var tuning: PulseTuning? { didSet { oldValue?.close() } }

    // The check of the default.
    /// Asks the server again.
    var witness: PulseConnection?
    var doubt: Timer?
    /// When ``doubt`` fires; nil: it does not.
    var doubtDue: UInt64?
    /// Something happened since the last check started.
    var isDoubtNew = false
    /// The defaults that the last check confirmed.
    var witnessed: (sink: String, source: String)?

    struct Item: Hashable {
        let facility: PulseConnection.Facility
        let index: UInt32
    }

    /// How long intermediate states may last on PipeWire, whose session manager chooses a default in steps, in seconds.
    static let settleTime = 0.05
    private static let longestSettleTime = 0.25
    /// A port that becomes the route within that many microseconds of its appearance does so because it appeared.
    static let recently: UInt64 = 2_000_000

    /// `server` as for `pa_context_connect`; nil is the environment's choice. `patience`: seconds without an answer
    /// after which the server counts as lost.
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

    /// From now on, uses that connection.
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
        // A guard left by an earlier daemon is released together with the streams on it.
        (isFirstWanted, isFirstComing, firstLeft) = (true, false, nil)
        hasHold = false
        awaitedMoves = [:]
        takingBack = [:]
        dirty = [:]
        outstanding = 0
        witnessed = nil
        readEverything()
    }

    /// The connection has ended, or failed. `refused`: no server is listening.
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
        awaitedDefault = nil
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
        .mediaServicesFailed, "the sound server does not answer; sessiond connects again when it does")

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
