import Decider
import EventLoop
import Logging
import PluginAPI
import Routing
import SessionManager

/// Reports what happens at the sound server, and sends it the requests. Decides nothing itself.
final class AudioServer {
    private let backend: any AudioBackend
    private let streams: StreamKeeper
    private let loop: EventLoop
    private let log: Logger
    private let submit: (Fact) -> Void
    private var farewell: Timer?
    /// The route's volume or latencies changed.
    var onVolumeChanged: (() -> Void)?
    var onLatencyChanged: (() -> Void)?
    /// The server began or stopped applying its own rules, or it is gone.
    var onPoliciesChanged: (() -> Void)?

    /// Seconds that the server may take when the daemon exits.
    private static let patience = 0.5

    init(
        _ backend: any AudioBackend, _ streams: StreamKeeper, on loop: EventLoop, log: Logger,
        _ submit: @escaping (Fact) -> Void
    ) {
        self.backend = backend
        self.streams = streams
        self.loop = loop
        self.log = log
        self.submit = submit
    }

    var snapshot: AudioSnapshot { backend.snapshot }

    /// The part of the server's state that decides the route.
    var view: Routing.View {
        var view = Routing.View(snapshot)
        view.switchedHeadset = backend.switchedHeadset
        let former = backend.formerDefaults
        (view.formerOutput, view.formerInput) = (former.output?.uid, former.input?.uid)
        return view
    }

    // MARK: Facts

    func start() {
        backend.onServicesLost = { [unowned self] in
            log.warning("no connection to the sound server; sessions are still decided, but streams are not changed")
            submit(.server(.servicesLost))
            onPoliciesChanged?()
            streams.serverLost()
        }
        backend.onServicesReset = { [unowned self] in
            log.notice("connected to \(snapshot.serverName)")
            submit(.server(.servicesReset))
            onPoliciesChanged?()
            streams.look()
        }
        backend.onRouteChanged = { [unowned self] reason, previous, _ in
            submit(.server(.routeChanged(reason, previous: previous)))
        }
        backend.onPortsChanged = { [unowned self] in submit(.server(.portsChanged)) }
        backend.onStreamsChanged = { [unowned self] in streams.look() }
        backend.onOutputVolumeChanged = { [unowned self] _ in onVolumeChanged?() }
        backend.onLatencyChanged = { [unowned self] in onLatencyChanged?() }
        backend.onPoliciesChanged = { [unowned self] in onPoliciesChanged?() }
        backend.onInputMuteChanged = { [unowned self] _ in submit(.server(.inputMuteChanged)) }
        backend.start()
    }

    // MARK: Requests

    func ask(_ request: Routing.Request, _ reason: RouteChangeReason) {
        log.debug("asking the server for \(request): \(reason.name)")
        let answered: AudioBackend.Completion = { [weak self] result in
            if case .failure(let error) = result { self?.submit(.server(.refused(request, error))) }
        }
        switch request {
        case .output(let uid, let isTemporary):
            backend.selectOutput(uid, reason: reason, isTemporary: isTemporary, completion: answered)
        case .input(let uid, let isTemporary):
            backend.selectInput(uid, reason: reason, isTemporary: isTemporary, completion: answered)
        case .formerOutput: backend.restoreDefault(isInput: false, reason: reason, completion: answered)
        case .formerInput: backend.restoreDefault(isInput: true, reason: reason, completion: answered)
        case .handsFree(let uid): backend.setHandsFree(uid, reason: reason, completion: answered)
        }
    }

    func wish(_ wish: OutputWish) { backend.outputWish = wish }

    func guardOutput(_ isGuarding: Bool) { backend.guardsOutput = isGuarding }

    func releaseOutput() { backend.releaseOutput() }

    func prepareHold() { backend.prepareHold() }

    func measure(_ streams: Set<AudioStream.ID>) { backend.measured = streams }

    func move(_ move: RecordingPlacement.Move) {
        backend.moveStream(move.stream, to: move.input) { [weak self, log] result in
            guard case .failure(let error) = result else { return }
            log.warning("the recording could not be moved to the preferred input: \(error)")
            self?.submit(.moveRefused(move))
        }
    }

    /// Restores the server, then calls `done`. If the server does not answer, it calls `done` after a timeout.
    func leave(_ done: @escaping () -> Void) {
        farewell = Timer(on: loop, done)
        farewell?.arm(after: AudioServer.patience)
        backend.shutDown { _ in done() }
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
