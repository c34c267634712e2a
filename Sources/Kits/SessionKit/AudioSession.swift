public import DBus
import EventLoop
@_exported public import PluginAPI
import SessionBus

/// The audio session of an app, with the names of AVAudioSession.
///
/// Five lines create and use a session:
///
///     let session = try await AudioSession(name: "Radio", category: .playback)
///     let interruptions = session.interruptions
///     try await session.setActive(true)
///     for await interruption in interruptions {
///         switch interruption { … }
///     }
///
/// The session exists as long as this object. After a restart of the daemon, the object registers it again. If the
/// daemon is back within three seconds with its state, it continues as before, and nothing is reported. A daemon
/// without its state gets the category and the preferences again, and an active session is activated again. Then
/// ``mediaServicesEvents`` reports it.
///
/// Safe to use from any task. Messages from the daemon are handled on a separate thread, in the order in which they
/// arrive, together with the calls made here.
public actor AudioSession {
    /// The thread of the loop: messages from the bus and calls from tasks run on it, one after the other.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { LoopExecutor.shared.asUnownedSerialExecutor() }

    private var connection: Connection?
    private var client: AudioSessionClient?
    private var registration: CheckedContinuation<Failure?, Never>?
    private var preferences = Preferences()
    private let interruptionBroadcast = Broadcast<Interruption>()
    private let routeBroadcast = Broadcast<RouteChange>()
    private let hintBroadcast = Broadcast<SilenceSecondaryAudioHintType>()
    private let servicesBroadcast = Broadcast<MediaServicesEvent>()
    private let loudnessBroadcast = Broadcast<Loudness>()
    /// The bus of the daemon.
    nonisolated let bus: BusAddress
    /// For display, as given.
    nonisolated let name: String
    nonisolated let desktopEntry: String
    /// The players and recorders of this program that sound in this session.
    private var guests: [ObjectIdentifier: SessionGuest] = [:]
    /// A player or a recorder has activated the session, not the app: it is deactivated when they are silent.
    private var isActivatedByGuest = false

    /// Connects to the session bus and creates the session. The bus starts the daemon if it can.
    ///
    /// Without a daemon, the session is created as soon as there is one; until then, ``setActive(_:options:)`` throws
    /// an error.
    /// - Parameters:
    ///   - name: for display: `sessionctl status` and other apps show it.
    ///   - category: nil: `.soloAmbient`, or `.playback` for the class `.alert`.
    ///   - sessionClass: classes above `.app` need the permission of the daemon's settings.
    ///   - desktopEntry: the app's desktop file without its extension, such as `org.example.Radio`.
    ///   - bus: the bus of the daemon.
    /// - Throws: `MediaServicesFailed` if there is no bus, else the daemon's refusal.
    public init(
        name: String, category: Category? = nil, mode: Mode = .default, options: CategoryOptions = [],
        sessionClass: SessionClass = .app, desktopEntry: String = "", bus: BusAddress = .session
    ) async throws(SessionError) {
        (self.bus, self.name, self.desktopEntry) = (bus, name, desktopEntry)
        let description = AudioSessionClient.Description(
            name: name, category: category, mode: mode, options: options, sessionClass: sessionClass,
            desktopEntry: desktopEntry)
        do throws(Failure) {
            let connection = try Connection(bus, loop: LoopExecutor.shared.loop)
            self.connection = connection
            connection.onDisconnect = { [weak self] in self?.assumeIsolated { $0.busIsGone() } }
            client = AudioSessionClient(description, on: connection) { [weak self] event in
                self?.assumeIsolated { $0.heard(event) }
            }
        } catch {
            throw SessionError(error)
        }
        let failure = await withCheckedContinuation { registration = $0 }
        if let failure, failure.refusal != nil {
            end()
            throw SessionError(failure)
        }
        OwnSessions.all.add(self)
    }

    /// A session that could not be created: every call throws that error.
    package init(failed error: SessionError) {
        (bus, name, desktopEntry, closed) = (.session, OwnProcess.programName, "", error)
    }

    isolated deinit { end() }

    // MARK: Configuring

    /// Sets all three, or none and throws.
    /// - Throws: `BadParameter` if the mode or the options are not allowed with the category.
    public func setCategory(
        _ category: Category, mode: Mode = .default, options: CategoryOptions = []
    ) async throws(SessionError) {
        try await ask { $0.setCategory(category, mode: mode, options: options, $1) }
    }

    /// Activates or deactivates the session.
    ///
    /// When it returns, the daemon has sent all signals to other sessions. ``interruptions`` reports later
    /// interruptions. After one, activate the session again, because it never becomes active automatically.
    /// - Throws: the reason why the session cannot be active, such as `InsufficientPriority` during a call.
    public func setActive(_ active: Bool, options: SetActiveOptions = []) async throws(SessionError) {
        isActivatedByGuest = false
        if active {
            try await ask { $0.activate($1) }
        } else {
            silenceGuests()
            try await ask { $0.deactivate(notifyOthers: options.contains(.notifyOthersOnDeactivation), $1) }
        }
    }

    /// `.speaker` plays through the loudspeaker, whatever is plugged in, until the route changes; `.none` ends that.
    /// - Throws: `IncompatibleCategory` in any category but `.playAndRecord`.
    public func overrideOutputAudioPort(_ portOverride: PortOverride) async throws(SessionError) {
        try await ask { $0.overrideOutput(portOverride, $1) }
    }

    /// Which of ``availableInputs`` to record from; nil: the system chooses.
    public func setPreferredInput(_ port: Port?) async throws(SessionError) {
        try await ask { $0.setPreferredInput(uid: port?.uid ?? "", $1) }
    }

    /// Hertz, 1,000…768,000. Applies while this session decides the output; ``sampleRate`` is the actual value.
    public func setPreferredSampleRate(_ rate: Double) async throws(SessionError) {
        try await prefer(\.sampleRate, rate)
    }

    /// Seconds, above 0 and up to 10. Applies while this session decides the output; ``ioBufferDuration`` is the actual
    /// value.
    public func setPreferredIOBufferDuration(_ duration: Double) async throws(SessionError) {
        try await prefer(\.ioBufferDuration, duration)
    }

    /// Whether unplugging the output in use interrupts the session; default true.
    public func setPrefersInterruptionOnRouteDisconnect(_ value: Bool) async throws(SessionError) {
        try await prefer(\.interruptsOnRouteDisconnect, value)
    }

    /// Whether alerts leave the session playing; default false.
    public func setPrefersNoInterruptionsFromSystemAlerts(_ value: Bool) async throws(SessionError) {
        try await prefer(\.noInterruptionsFromAlerts, value)
    }

    /// Closes the session and ends every sequence; later calls throw. Releasing the object does the same.
    public func close() async {
        OwnSessions.all.forgetShared(self)
        if let client {
            await withCheckedContinuation { continuation in client.close { _ in continuation.resume() } }
        }
        end()
    }

    // MARK: Players and recorders of this program

    /// Makes sure that the session is active, for a player or a recorder that is about to sound.
    /// - Throws: the reason why the session cannot be active.
    func admit(_ guest: SessionGuest) async throws(SessionError) {
        guests[ObjectIdentifier(guest)] = guest
        guard state != .active else { return }
        do throws(SessionError) {
            try await ask { $0.activate($1) }
        } catch {
            guests[ObjectIdentifier(guest)] = nil
            throw error
        }
        isActivatedByGuest = true
        // An interruption may have come before the answer.
        guard state == .active, guests[ObjectIdentifier(guest)] != nil else {
            leaveIfUnused()
            throw SessionError(.insufficientPriority, "the session was interrupted before the sound began")
        }
    }

    /// A player or a recorder is silent again, by itself or because the app wants it.
    func dismiss(_ guest: SessionGuest) {
        if guests.removeValue(forKey: ObjectIdentifier(guest)) != nil { leaveIfUnused() }
    }

    /// Nothing sounds any more, and the app did not activate the session itself.
    private func leaveIfUnused() {
        guard guests.isEmpty, isActivatedByGuest, state == .active else { return }
        isActivatedByGuest = false
        client?.deactivate(notifyOthers: true)
    }

    private func silenceGuests() {
        let sounding = guests.values
        guests = [:]
        for guest in sounding { guest.silence() }
    }

    // MARK: Events

    /// Every interruption from now on. Get this sequence before activating: earlier events are not repeated.
    public nonisolated var interruptions: AsyncStream<Interruption> { interruptionBroadcast.stream() }

    /// Every route change that affects this session, from now on.
    public nonisolated var routeChanges: AsyncStream<RouteChange> { routeBroadcast.stream() }

    /// When secondary sound, such as a game's music, should fall silent because another session plays, and when not.
    public nonisolated var silenceSecondaryAudioHints: AsyncStream<SilenceSecondaryAudioHintType> {
        hintBroadcast.stream()
    }

    /// The sound server is gone or back; also the daemon, if it is gone for three seconds or loses its state.
    public nonisolated var mediaServicesEvents: AsyncStream<MediaServicesEvent> { servicesBroadcast.stream() }

    /// How loud the session may be: ducked during a prompt, muted under the silent switch.
    ///
    /// iOS does this for an app. An app that reads this sequence and sets its own volume gets the smoothest result;
    /// other apps are ducked at the sound server.
    public nonisolated var loudnessChanges: AsyncStream<Loudness> { loudnessBroadcast.stream() }

    // MARK: Properties

    /// The category last set here, without asking the daemon.
    public var category: Category { client?.description.category ?? .soloAmbient }
    /// The mode last set here, like ``category``.
    public var mode: Mode { client?.description.mode ?? .default }
    /// The options last set here, like ``category``.
    public var categoryOptions: CategoryOptions { client?.description.options ?? [] }
    /// The state last reported by the daemon; `.inactive` while there is none.
    public var state: SessionState { client?.state ?? .inactive }
    /// The last report of the daemon; full volume and not muted while there is no daemon.
    public var loudness: Loudness { Loudness(gain: client?.duckGain ?? 0, isMuted: client?.isMuted ?? false) }

    /// The current properties of `org.sessiond1.Session`, by name.
    func fields() async throws(SessionError) -> [String: Value] {
        guard let client else { throw closed }
        let answer = await withCheckedContinuation { continuation in
            client.properties { continuation.resume(returning: $0) }
        }
        switch answer {
        case .success(let fields): return fields
        case .failure(let failure): throw SessionError(failure)
        }
    }

    // MARK: Requests

    /// What calls throw without a connection.
    private var closed = SessionError(.expiredSession, "the session was closed; create a new one")

    private func ask(
        _ request: (AudioSessionClient, @escaping AudioSessionClient.Reply) -> Void
    ) async throws(SessionError) {
        guard let client else { throw closed }
        let answer = await withCheckedContinuation { continuation in
            request(client) { continuation.resume(returning: $0) }
        }
        if case .failure(let failure) = answer { throw SessionError(failure) }
    }

    /// Stores a preference. If the daemon refuses it, it is removed, so that the next request does not contain it.
    private func prefer<Wish>(_ wish: WritableKeyPath<Preferences, Wish>, _ value: Wish) async throws(SessionError) {
        let before = preferences[keyPath: wish]
        preferences[keyPath: wish] = value
        let wanted = preferences
        do throws(SessionError) {
            try await ask { $0.setPreferences(wanted, $1) }
        } catch {
            preferences[keyPath: wish] = before
            throw error
        }
    }

    // MARK: Incoming events

    private func heard(_ event: AudioSessionClient.Event) {
        switch event {
        case .registered: registered(nil)
        case .refused(let failure): registered(failure)
        case .servicesLost, .daemonLost: servicesBroadcast.send(.lost)
        case .servicesReset: servicesBroadcast.send(.reset)
        case .session(.interruptionBegan(let reason, _, let name, _)):
            isActivatedByGuest = false
            silenceGuests()
            interruptionBroadcast.send(.began(reason: reason, by: name))
        case .session(.interruptionEnded(let shouldResume, _, _)):
            interruptionBroadcast.send(.ended(options: shouldResume ? .shouldResume : []))
        case .session(.routeChanged(let reason, let previous, let current)):
            routeBroadcast.send(RouteChange(reason: reason, previousRoute: previous, currentRoute: current))
        case .session(.silenceSecondaryAudioHint(let begin)): hintBroadcast.send(begin ? .begin : .end)
        case .session(.duckingChanged), .session(.mutedChanged): loudnessBroadcast.send(loudness)
        }
    }

    private func registered(_ failure: Failure?) {
        if let registration {
            self.registration = nil
            registration.resume(returning: failure)
        } else if failure == nil {
            // There was a daemon before, or there has been none so far.
            servicesBroadcast.send(.reset)
        }
    }

    private func busIsGone() {
        servicesBroadcast.send(.lost)
        registered(.disconnected)
        end()
    }

    private func end() {
        silenceGuests()
        client = nil
        connection?.close()
        connection = nil
        interruptionBroadcast.finish()
        routeBroadcast.finish()
        hintBroadcast.finish()
        servicesBroadcast.finish()
        loudnessBroadcast.finish()
    }
}
