import EventLoop
import Logging
import PluginAPI
import Routing
import SessionManager

/// Passes the sound server's state to ``Routing`` and the rules, and carries out their requests at the server. Decides
/// nothing itself.
final class AudioServer {
    private let backend: any AudioBackend
    private let enforcer: Enforcer
    private let loop: EventLoop
    private let log: Logger
    private let submit: (Event) -> Void
    private var routing = Routing()
    private var recordings = RecordingPlacement()
    private var timer: Timer?
    private var farewell: Timer?
    /// The route's volume or latencies changed.
    var onVolumeChanged: (() -> Void)?
    var onLatencyChanged: (() -> Void)?
    /// The server began or stopped to apply its own rules, or is gone.
    var onPoliciesChanged: (() -> Void)?
    /// The output to request after a loss; nil if the loss must be reported at once.
    var foresee: ((Audio) -> RouteChoice?)?

    /// Seconds that the server may take when the daemon exits.
    private static let patience = 0.5

    init(
        _ backend: any AudioBackend, _ enforcer: Enforcer, on loop: EventLoop, log: Logger,
        _ submit: @escaping (Event) -> Void
    ) {
        self.backend = backend
        self.enforcer = enforcer
        self.loop = loop
        self.log = log
        self.submit = submit
        timer = Timer(on: loop) { [unowned self] in tell(.timePassed) }
    }

    var snapshot: AudioSnapshot { backend.snapshot }

    func start() {
        backend.onServicesLost = { [unowned self] in
            log.warning("no connection to the sound server; sessions are still decided, but streams are not changed")
            tell(.servicesLost)
            onPoliciesChanged?()
            enforcer.serverLost()
        }
        backend.onServicesReset = { [unowned self] in
            log.notice("connected to \(snapshot.serverName)")
            tell(.servicesReset)
            onPoliciesChanged?()
            enforcer.streamsChanged()
        }
        backend.onRouteChanged = { [unowned self] reason, previous, _ in tell(.routeChanged(reason, previous: previous))
        }
        backend.onPortsChanged = { [unowned self] in tell(.portsChanged) }
        backend.onStreamsChanged = { [unowned self] in
            enforcer.streamsChanged()
            placeRecordings()
        }
        backend.onOutputVolumeChanged = { [unowned self] _ in onVolumeChanged?() }
        backend.onLatencyChanged = { [unowned self] in onLatencyChanged?() }
        backend.onPoliciesChanged = { [unowned self] in onPoliciesChanged?() }
        backend.onInputMuteChanged = { [unowned self] _ in tell(.inputMuteChanged) }
        backend.start()
    }

    // MARK: What the sessions want

    /// Before a request, so that no request is judged by an old route.
    func requested() { tell(.requested) }

    /// Requests the route that the sessions want after that event.
    func follow(_ choice: RouteChoice, after event: Event) { tell(.wanted(choice, reason: event.routeReason)) }

    /// Prepares the server for what the sessions need, after every event.
    ///
    /// - Parameter reason: why that session is interrupted; rarely called.
    func follow(guards: Bool, reason: (SessionID) -> InterruptionReason?) {
        let isSilent =
            snapshot.isOutputHeld
            && !(enforcer.sounding?.sessions ?? []).contains { reason($0) == .routeDisconnected }
        tell(.guarded(guards, isSilent: isSilent))
    }

    /// Lets the session's recordings use that port; nil: the default.
    func selectInput(_ uid: String?, of session: SessionID) {
        recordings.prefer(uid, of: session)
        placeRecordings()
    }

    func sessionClosed(_ id: SessionID) { selectInput(nil, of: id) }

    /// The machine has woken up.
    func wake() { tell(.woke) }

    /// Leaves the server as it was, then does the rest, and waits for no server that does not answer.
    func leave(_ done: @escaping () -> Void) {
        farewell = Timer(on: loop, done)
        farewell?.arm(after: AudioServer.patience)
        backend.removeGuard { _ in done() }
    }

    // MARK: Carrying out

    private func tell(_ fact: Routing.Fact) {
        let now = Instant(microseconds: MonotonicClock.now())
        let effects = routing.handle(fact, Routing.View(snapshot), at: now) { foresee?($0) }
        for effect in effects { carryOut(effect) }
        if let due = routing.nextDeadline { timer?.arm(at: due.microseconds) } else { timer?.disarm() }
    }

    private func carryOut(_ effect: Routing.Effect) {
        switch effect {
        case .submit(let event): submit(event)
        case .ask(let request, let reason): ask(request, reason)
        case .wish(let wish): backend.outputWish = wish
        case .guardOutput(let guards): backend.guardsOutput = guards
        case .releaseOutput: backend.releaseOutput()
        case .warn(let text): log.warning("\(text)")
        case .then(let fact): tell(fact)
        }
    }

    private func ask(_ request: Routing.Request, _ reason: RouteChangeReason) {
        log.debug("asking the server for \(request): \(reason.name)")
        let answered: AudioBackend.Completion = { [weak self] result in
            if case .failure(let error) = result { self?.tell(.refused(request, error)) }
        }
        switch request {
        case .output(let uid): backend.selectOutput(uid, reason: reason, completion: answered)
        case .input(let uid): backend.selectInput(uid, reason: reason, completion: answered)
        case .handsFree(let uid, let takesOver):
            backend.setHandsFree(uid, takesOver: takesOver, reason: reason, completion: answered)
        }
    }

    private func placeRecordings() {
        let snapshot = snapshot
        let moves = recordings.moves(snapshot.streams, route: snapshot.route) { enforcer.owners(of: $0) }
        for move in moves {
            backend.moveStream(move.stream, to: move.input) { [weak self, log] result in
                guard case .failure(let error) = result else { return }
                log.warning("the recording could not be moved to the preferred input: \(error)")
                self?.recordings.refused(move)
            }
        }
    }
}

extension Routing.View {
    fileprivate init(_ snapshot: AudioSnapshot) {
        self.init()
        isConnected = snapshot.isConnected
        audio = Audio(route: snapshot.route, inputs: snapshot.availableInputs, outputs: snapshot.availableOutputs)
        isEnumerating = snapshot.isEnumerating
        enumerated = snapshot.enumerated
        isOutputHeld = snapshot.isOutputHeld
        pauseDelay = snapshot.pauseDelay
        isInputMuted = snapshot.isInputMuted
    }
}
