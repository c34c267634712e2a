import EventLoop
import Logging
import PluginAPI
import SessionManager

/// Passes the sound server's state to the rules as events, and the requests of the rules to the server.
final class AudioServer {
    private let backend: any AudioBackend
    private let enforcer: Enforcer
    private let log: Logger
    private let submit: (Event) -> Void
    /// The last reported state; nil: nothing yet.
    private var isMicrophoneMuted: Bool?
    private let keeper: RouteKeeper
    private let preferredInputs: PreferredInputs
    /// The route's volume or latencies changed.
    var onVolumeChanged: (() -> Void)?
    var onLatencyChanged: (() -> Void)?
    /// The server began or stopped to apply its own rules, or is gone.
    var onPoliciesChanged: (() -> Void)?
    private let outputGuard: OutputGuard
    /// The output to request after a loss; nil if the loss must be reported at once.
    var foresee: ((Audio) -> RouteChoice?)?
    /// The route of which a part is gone, while the server is asked to switch to another port than it did by itself. It
    /// is reported when the server has switched, as one change instead of two. Nil: none is pending.
    private var left: Route?
    private var isSettling: Bool { left != nil }
    private var patience: Timer?
    /// Seconds that the server may take to switch.
    private static let patience = 1.0

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
        patience = Timer(on: loop) { [unowned self] in settle() }
    }

    var snapshot: AudioSnapshot { backend.snapshot }

    func start() {
        backend.onServicesLost = { [unowned self] in
            log.warning("no connection to the sound server; sessions are still decided, but streams are not changed")
            left = nil
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
        backend.onRouteChanged = { [unowned self] reason, previous, _ in
            // A new device is reported separately.
            if reason == .newDeviceAvailable { settle() }
            if reason == .oldDeviceUnavailable || isSettling, isOnItsWay(from: previous) { return }
            if isSettling { return settle() }
            submit(.routeChanged(reason, audio))
            updateMicrophone()
        }
        backend.onPortsChanged = { [unowned self] in
            if let left { return isOnItsWay(from: left) ? () : settle() }
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
    /// - Parameter reason: why that session is interrupted; rarely called.
    func follow(guards: Bool, reason: (SessionID) -> InterruptionReason?) {
        outputGuard.follow(guards: guards) {
            !(enforcer.sounding?.sessions ?? []).contains { reason($0) == .routeDisconnected }
        }
    }

    /// Removes what was prepared, then calls `done`.
    func leave(_ done: @escaping () -> Void) { outputGuard.dismiss(done) }

    func sessionClosed(_ id: SessionID) {
        preferredInputs.prefer(nil, of: id)
        placeRecordings()
    }

    /// Requests the route that is wanted after the reported change; false if it is already in use.
    private func isOnItsWay(from previous: Route) -> Bool {
        guard let choice = foresee?(audio) else { return false }
        keeper.follow(choice, idle: { Arbiter.idleRouteChoice(on: audio) }, reason: .oldDeviceUnavailable)
        guard keeper.isMoving else { return false }
        if left == nil {
            left = previous
            patience?.arm(after: AudioServer.patience)
        }
        return true
    }

    /// Reports a pending route change now, so that no request is judged by an old route.
    func settle() {
        guard let old = left else { return }
        left = nil
        patience?.disarm()
        let audio = audio
        func uids(_ route: Route) -> [String] { (route.outputs + route.inputs).map(\.uid) }
        if audio.route == old {
            // It is already back.
            submit(.portsChanged(audio))
        } else {
            let isBack = uids(audio.route) == uids(old)
            submit(.routeChanged(isBack ? .routeConfigurationChange : .oldDeviceUnavailable, audio))
        }
        updateMicrophone()
    }

    /// Requests the route that the sessions want, after that event.
    func follow(_ choice: RouteChoice, after event: Event) {
        let choice = isSettling ? foresee?(audio) ?? choice : choice
        keeper.follow(choice, idle: { Arbiter.idleRouteChoice(on: audio) }, reason: event.routeReason(choice))
    }

    /// Lets the session's recordings use that port; nil: the default.
    func selectInput(_ uid: String?, of session: SessionID) {
        preferredInputs.prefer(uid, of: session)
        placeRecordings()
    }

    /// The machine has woken up.
    func wake() {
        settle()
        if snapshot.isConnected { submit(.routeChanged(.wakeFromSleep, audio)) }
    }

    private func placeRecordings() {
        preferredInputs.place { enforcer.owners(of: $0) }
    }

    /// Reports whether the microphone is muted, also if it was muted before the start, or changed while no daemon was
    /// running.
    private func updateMicrophone() {
        let snapshot = snapshot
        guard snapshot.isConnected, !isSettling else { return }
        // Only the mute of the built-in microphone interrupts: other microphones can be unplugged.
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
