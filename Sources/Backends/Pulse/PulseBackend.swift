import CPulse
public import EventLoop
public import PluginAPI

/// The sound server over libpulse: PulseAudio, or PipeWire speaking its protocol.
///
/// It uses one connection. Events only mark objects that must be read again. The marked objects are then read. When all
/// answers have arrived, the complete state is compared with the last reported one. The server answers in order, so it
/// has then also sent all other changes of the same cause: a removed sink and the new default are one route change,
/// without any delay. If more events of the same cause may follow, the change waits (``SettleTime``).
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
    public var measured: Set<AudioStream.ID> = [] { didSet { if measured != oldValue { keepMeters() } } }
    public var outputWish = OutputWish() { didSet { if outputWish != oldValue { keepTuning() } } }
    public var formerProfiles: [String: String] {
        get { headsets.former }
        set { headsets = HeadsetProfiles(newValue) }
    }
    public var onFormerProfilesChanged: (() -> Void)?
    public var formerDefaults = FormerDefaults() {
        didSet { if formerDefaults != oldValue { onFormerDefaultsChanged?() } }
    }
    public var onFormerDefaultsChanged: (() -> Void)?
    public var onMemoryChanged: (() -> Void)?
    public var watchesMemory = false {
        didSet { if watchesMemory != oldValue { connection?.watchMemory(watchesMemory) } }
    }

    let loop: EventLoop
    let server: String?
    let patience: Double
    /// Seconds for which the hold sink is kept after its last use.
    let holdIdleTime: Double

    // The state of the connection.
    private var link = ServerLink()
    var connection: PulseConnection?
    private var retry: Timer?
    private var watch: SocketWatch?
    var completions: [UInt64: Completion] = [:]
    var nextCompletion: UInt64 = 0
    var headsets = HeadsetProfiles() { didSet { if headsets.former != oldValue.former { onFormerProfilesChanged?() } } }
    public var wantedStandIns: [StreamMemory] = [] { didSet { if wantedStandIns != oldValue { keepStandIns() } } }

    // These properties belong to one connection; ``reset()`` clears them.
    /// The server's state, and which part of it is outdated.
    var model = PulseModel()
    var round = ReadRound()
    var reads = RepeatedReads() { didSet { if reads.next != oldValue.next { armReads() } } }
    var requests = RouteRequests()
    var guards = GuardState()
    var configuredSink = ConfiguredDefault()
    var configuredSource = ConfiguredDefault()
    var holds = HoldState()
    var doubt = DefaultDoubt()
    private var settleTime = SettleTime()
    /// The devices of the route that was reported.
    var toldDevices: [PulseDevice] = []
    /// By the name under which the server remembers them.
    var standIns: [String: PulseStandIn] = [:]
    /// Requests ``outputWish`` from the output.
    var tuning: PulseTuning? { didSet { oldValue?.close() } }
    /// What waits for the end of the round (``readAgain(_:completion:)``).
    var waiting: [() -> Void] = []
    /// By the number of the stream that is measured.
    var meters: [UInt32: PulseMeter] = [:] {
        didSet { for (index, meter) in oldValue where meters[index] !== meter { meter.close() } }
    }
    /// Asks the server for its defaults again.
    var witness: PulseConnection?

    private var settle: Timer?
    /// The time for postponed work, after devices were enumerated.
    private var enumerated: Timer?
    /// Ends the waiting for the hold sink.
    var holdTimer: Timer?
    /// Removes the hold sink, unless it is needed again before.
    var holdIdleTimer: Timer?
    private var readTimer: Timer?
    var doubtTimer: Timer?
    /// A port that becomes the route within that many microseconds of its appearance does so because it appeared.
    static let recently: UInt64 = 2_000_000

    /// `server` as for `pa_context_connect`; nil is the environment's choice. `patience`: seconds without an answer
    /// after which the server counts as lost. `holdIdleTime`: seconds for which an unused hold sink is kept.
    public init(on loop: EventLoop, server: String? = nil, patience: Double = 2, holdIdleTime: Double = 60) {
        self.loop = loop
        self.server = server
        self.patience = patience
        self.holdIdleTime = holdIdleTime
        retry = Timer(on: loop) { [weak self] in self?.handle(.connect) }
        settle = Timer(on: loop) { [weak self] in self?.evaluate(isSettled: true) }
        enumerated = Timer(on: loop) { [weak self] in self?.evaluate(isSettled: true) }
        readTimer = Timer(on: loop) { [weak self] in self?.readRepeatedly() }
        holdTimer = Timer(on: loop) { [weak self] in self?.waitedForHold() }
        holdIdleTimer = Timer(on: loop) { [weak self] in self?.dropIdleHold() }
        doubtTimer = Timer(on: loop) { [weak self] in self?.callWitness() }
    }

    deinit {
        connection?.close()
        witness?.close()
    }

    public func start() { handle(.connect) }

    // MARK: Connecting

    var isReady: Bool { link.isReady }
    var isWaitingForSocketOnly: Bool { link.isWaitingForSocketOnly }

    private func handle(_ input: ServerLink.Input) {
        for effect in link.handle(input) {
            switch effect {
            case .connect: connect()
            case .retry(let seconds): retry?.arm(after: seconds)
            case .readEverything:
                watch = nil
                readEverything()
            case .tellLost: onServicesLost?()
            case .tellReset: onServicesReset?()
            case .tellStart:
                onPortsChanged?()
                onStreamsChanged?()
                if !snapshot.policies.isEmpty { onPoliciesChanged?() }
            }
        }
    }

    private func connect() {
        retry?.disarm()
        guard let made = PulseConnection(loop: loop, name: "sessiond", patience: patience) else { return failed(false) }
        use(made)
        made.connect(to: server)
    }

    /// From now on, uses that connection.
    func use(_ made: PulseConnection) {
        tuning = nil
        meters = [:]
        connection = made
        made.onState = { [weak self] state in
            switch state {
            case .ready: self?.handle(.connected)
            case .failed(let refused): self?.failed(refused)
            }
        }
        made.onEvent = { [weak self] in self?.happened($0, $1, isRemoved: $2) }
        made.onClient = { [weak self] in self?.reads.somethingHappened(at: MonotonicClock.now()) }
        made.onSilence = { [weak self] in self?.failed(false) }
        made.onMemoryChanged = { [weak self] in self?.onMemoryChanged?() }
    }

    /// Forgets everything that belongs to one connection. This is the only place where that is done.
    private func reset() {
        for timer in [settle, enumerated, holdTimer, holdIdleTimer, readTimer] { timer?.disarm() }
        dismissWitness()
        model = PulseModel()
        round = ReadRound()
        reads = RepeatedReads()
        requests = RouteRequests()
        headsets = HeadsetProfiles(headsets.former)
        guards = GuardState()
        configuredSink = ConfiguredDefault()
        configuredSource = ConfiguredDefault()
        holds = HoldState()
        doubt = DefaultDoubt()
        settleTime = SettleTime()
        toldDevices = []
        standIns = [:]
        snapshot = .disconnected
    }

    /// The connection has ended, or failed. `refused`: no server is listening.
    private func failed(_ refused: Bool) {
        // It must not be freed in here, because this is called from its own callbacks.
        let old = connection
        tuning = nil
        meters = [:]
        measured = []
        connection = nil
        old?.close()
        reset()
        let sockets = ServerAddress.sockets(server, environment: ServerAddress.environment)
        if watch == nil, !sockets.isEmpty {
            watch = SocketWatch(on: loop, paths: sockets) { [weak self] in self?.handle(.socketAppeared) }
        }
        let requests = completions.sorted { $0.key < $1.key }.map(\.value)
        completions = [:]
        handle(.failed(isRefused: refused, isWatched: watch != nil))
        for completion in requests { completion(.failure(PulseBackend.away)) }
        let read = waiting
        waiting = []
        for completion in read { completion() }
    }

    private func armReads() {
        if let next = reads.next { readTimer?.arm(at: next) } else { readTimer?.disarm() }
    }

    static let away = SessionError(
        .mediaServicesFailed, "the sound server does not answer; sessiond connects again when it does")

    // MARK: Reporting

    func evaluate(isSettled: Bool) {
        guard isReady else { return }
        let now = MonotonicClock.now()
        // Answers are pending: the state is evaluated when all of them have arrived.
        if isSettled, round.isAsking { return }
        if model.asksForClients(isLate: isSettled || model.isOnGuard) { return readClients() }
        lookAtHeadsets()
        model.meters = meters.mapValues { PulseModel.Meter(index: $0.index, hasSound: $0.hasSound) }
        model.tuning = tuning.flatMap { tuning in tuning.index.map { ($0, tuning.latency) } }
        var current = model.snapshot(now: now)
        let previous = snapshot
        if !previous.isConnected {
            // When the daemon starts on a running system, the current route counts as the user's choice.
            current.route.outputs.forEach { model.prefer($0, isInput: false) }
            current.route.inputs.forEach { model.prefer($0, isInput: true) }
            // The default of a session that an earlier daemon served was not chosen.
            let (output, input) = (formerDefaults.output?.uid, formerDefaults.input?.uid)
            current.availableOutputs.first { $0.uid == output }.map { model.prefer($0, isInput: false) }
            current.availableInputs.first { $0.uid == input }.map { model.prefer($0, isInput: true) }
            // But if that session goes on, it keeps the microphone of the headset that was made hands-free for it. No other
            // session may use such a microphone.
            current.route.inputs.first { $0.uid == handsFreeInput }.map { model.prefer($0, isInput: true) }
            return tellFirst(model.snapshot(now: now))
        }

        noteDefaults(at: now)
        dropSecondGuard()
        dropDisplacingGuard(previous, current, now)
        moveToGuard(previous, current, now)
        expectMoves(now)
        keepHold(now)
        doubtDefault(previous, current)
        if let end = settleTime.end(of: change(previous, current), isQuiet: isSettled, at: now) {
            settle?.arm(at: end)
            // Streams are reported at once; everything else stays as it was reported.
            current.route = previous.route
            current.availableInputs = previous.availableInputs
            current.availableOutputs = previous.availableOutputs
            current.isInputMuted = previous.isInputMuted
            current.outputVolume = previous.outputVolume
            current.policies = previous.policies
            current.isHeadsetHandsFree = previous.isHeadsetHandsFree
            (current.outputLatency, current.inputLatency) = (previous.outputLatency, previous.inputLatency)
            // The change of the route must be reported before held sound is released, because it decides which sessions fall
            // silent.
            current.isOutputHeld = previous.isOutputHeld
            snapshot = current
            if current.streams != previous.streams { onStreamsChanged?() }
            keepMeters()
            return
        }
        settle?.disarm()

        requests.forgetOld(at: now)
        var judge = RouteJudge(
            previous: previous, current: current,
            recent: model.recent(current, now, within: PulseBackend.recently))
        judge.requested = requests.ports.mapValues(\.reason)
        judge.reprofiled = reprofiled()
        judge.returned = returned().subtracting(judge.reprofiled)
        let verdict = judge.verdict
        let chosen = (judge.chosenOutput, judge.chosenInput)
        let isFound = preferWhatTheServerFound(previous, current)
        for (port, isInput) in [(chosen.0, false), (chosen.1, true)] {
            guard let port else { continue }
            model.prefer(port, isInput: isInput)
            forgetFormerDefault(isInput: isInput)
        }
        if isFound || chosen.0 != nil || chosen.1 != nil { current = model.snapshot(now: now) }
        current.isOutputHeld = model.isOnGuard || guards.guardDue != nil
        snapshot = current
        toldDevices = [model.output, model.input].compactMap { $0 }
        requests.arrived((current.route.inputs + current.route.outputs).map(\.uid))
        if let verdict { onRouteChanged?(verdict.reason, verdict.previous, verdict.current) }
        if previous.availableInputs != current.availableInputs || previous.availableOutputs != current.availableOutputs
        {
            onPortsChanged?()
        }
        if previous.streams != current.streams || previous.isHeadsetHandsFree != current.isHeadsetHandsFree {
            onStreamsChanged?()
        }
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
        keepMeters()
    }

    private func tellFirst(_ current: AudioSnapshot) {
        snapshot = current
        snapshot.isOutputHeld = model.isOnGuard
        guards.isFound = model.isOnGuard
        noteDefaults(at: MonotonicClock.now())
        defer {
            if let end = model.enumerationEnd(MonotonicClock.now()) { enumerated?.arm(at: end) }
            keepGuard()
            keepTuning()
            keepStandIns()
            // A daemon that was killed may have left it.
            keepHold(MonotonicClock.now())
        }
        toldDevices = [model.output, model.input].compactMap { $0 }
        if isDefaultMissing { doubtDefault() }
        handle(.wasRead)
    }
}
