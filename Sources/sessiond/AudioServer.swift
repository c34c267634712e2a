import EventLoop
import Logging
import PluginAPI
import SessionManager

/// What the audio server says, as events of the core; and what the core wants of the server.
final class AudioServer {
    private let backend: any AudioBackend
    private let enforcer: Enforcer
    private let log: Logger
    private let submit: (Event) -> Void
    /// What was said of it last; nil: nothing yet.
    private var isMicrophoneMuted: Bool?
    private let keeper: RouteKeeper
    private let preferredInputs: PreferredInputs
    /// The route's volume or latencies changed.
    var onVolumeChanged: (() -> Void)?
    var onLatencyChanged: (() -> Void)?
    /// The server began or ceased to arbitrate by itself, or went.
    var onPoliciesChanged: (() -> Void)?
    private let outputGuard: OutputGuard

    init(
        _ backend: any AudioBackend, _ enforcer: Enforcer, on loop: EventLoop, log: Logger,
        _ submit: @escaping (Event) -> Void
    ) {
        self.backend = backend
        self.enforcer = enforcer
        self.log = log
        self.submit = submit
        keeper = RouteKeeper(backend, log: log)
        preferredInputs = PreferredInputs(backend, log: log)
        outputGuard = OutputGuard(backend, on: loop)
    }

    var snapshot: AudioSnapshot { backend.snapshot }

    func start() {
        backend.onServicesLost = { [unowned self] in
            log.warning("the audio server is away; sessions are arbitrated all the same")
            submit(.servicesLost)
            onPoliciesChanged?()
            enforcer.serverLost()
        }
        backend.onServicesReset = { [unowned self] in
            log.notice("connected to \(snapshot.serverName)")
            submit(.servicesReset(audio))
            updateMicrophone()
            onPoliciesChanged?()
            enforcer.streamsChanged()
        }
        backend.onRouteChanged = { [unowned self] reason, _, _ in
            submit(.routeChanged(reason, audio))
            updateMicrophone()
        }
        backend.onPortsChanged = { [unowned self] in
            submit(.portsChanged(audio))
            updateMicrophone()
        }
        backend.onStreamsChanged = { [unowned self] in
            enforcer.streamsChanged()
            placeRecordings()
        }
        backend.onOutputVolumeChanged = { [unowned self] _ in onVolumeChanged?() }
        backend.onLatencyChanged = { [unowned self] in onLatencyChanged?() }
        backend.onPoliciesChanged = { [unowned self] in onPoliciesChanged?() }
        backend.onInputMuteChanged = { [unowned self] _ in updateMicrophone() }
        backend.start()
    }

    /// Prepares the server for what the sessions need, after every event.
    ///
    /// - Parameter reason: why that session is interrupted; asked rarely.
    func follow(guards: Bool, reason: (SessionID) -> InterruptionReason?) {
        outputGuard.follow(guards: guards) {
            !(enforcer.sounding?.sessions ?? []).contains { reason($0) == .routeDisconnected }
        }
    }

    /// Takes back what was prepared, then does the rest.
    func leave(_ done: @escaping () -> Void) { outputGuard.dismiss(done) }

    func sessionClosed(_ id: SessionID) {
        preferredInputs.prefer(nil, of: id)
        placeRecordings()
    }

    /// Carries out what the sessions want of the route, after that event.
    func follow(_ choice: RouteChoice, after event: Event) {
        keeper.follow(choice, idle: { Arbiter.idleRouteChoice(on: audio) }, reason: event.routeReason(choice))
    }

    /// Has the session's recordings come from that port; nil: from where everybody's do.
    func selectInput(_ uid: String?, of session: SessionID) {
        preferredInputs.prefer(uid, of: session)
        placeRecordings()
    }

    /// The machine has woken up.
    func wake() { if snapshot.isConnected { submit(.routeChanged(.wakeFromSleep, audio)) } }

    private func placeRecordings() {
        preferredInputs.place { enforcer.owners(of: $0) }
    }

    /// Says whether the microphone is muted, also where that was so from the start, or changed while no daemon was there
    /// to see it.
    private func updateMicrophone() {
        let snapshot = snapshot
        guard snapshot.isConnected else { return }
        // Only the built-in microphone's mute is an interruption: another can be taken out and put back.
        let isMuted = snapshot.isInputMuted && snapshot.route.inputs.contains { $0.type == .microphoneBuiltIn }
        guard isMuted != isMicrophoneMuted else { return }
        isMicrophoneMuted = isMuted
        submit(.microphoneMuted(isMuted))
    }

    private var audio: Audio {
        let snapshot = snapshot
        return Audio(route: snapshot.route, inputs: snapshot.availableInputs, outputs: snapshot.availableOutputs)
    }
}
