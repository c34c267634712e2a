public import DBus
import EventLoop
@_exported public import PluginAPI
import SessionBus

/// An app's say in who may be heard, in the words of AVAudioSession.
///
/// Five lines make an app a session:
///
///     let session = try await AudioSession(name: "Radio", category: .playback)
///     let interruptions = session.interruptions
///     try await session.setActive(true)
///     for await interruption in interruptions {
///         switch interruption { … }
///     }
///
/// The session is there for as long as this object is. It registers again by itself when the daemon was restarted:
/// one that is back within three seconds and remembers goes on where it was, and nothing is told; one that does not
/// remember is told category, preferences and, where the session was active, to activate it again, which
/// ``mediaServicesEvents`` tells.
///
/// Safe to use from any task. What comes from the daemon is handled on a thread of its own, in the order in which it
/// came, together with the calls made here.
public actor AudioSession {
    /// The loop's thread: messages from the bus and calls from tasks take turns on it.
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

    /// Connects to the session bus and creates the session, starting the daemon where the bus can.
    ///
    /// Where there is no daemon at all the session is created as soon as there is one; until then, ``setActive(_:options:)``
    /// says so.
    /// - Parameters:
    ///   - name: for people: what `sessionctl status` and other apps show.
    ///   - sessionClass: the daemon grants more than `.app` only where its settings allow.
    ///   - desktopEntry: the app's desktop file without its ending, such as `org.example.Radio`.
    ///   - bus: where the daemon is.
    /// - Throws: `MediaServicesFailed` where there is no bus, else the daemon's refusal.
    public init(
        name: String, category: Category = .soloAmbient, mode: Mode = .default, options: CategoryOptions = [],
        sessionClass: SessionClass = .app, desktopEntry: String = "", bus: BusAddress = .session
    ) async throws(SessionError) {
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
    }

    isolated deinit { end() }

    // MARK: Configuring

    /// Sets all three, or none and throws.
    /// - Throws: `BadParameter` where mode or options do not go with the category.
    public func setCategory(
        _ category: Category, mode: Mode = .default, options: CategoryOptions = []
    ) async throws(SessionError) {
        try await ask { $0.setCategory(category, mode: mode, options: options, $1) }
    }

    /// Asks for the sound, or gives it back.
    ///
    /// When it returns everybody else has been told what follows. What is interrupted later is told by
    /// ``interruptions`` and comes back by activating again, never by itself.
    /// - Throws: why the sound cannot be had, such as `InsufficientPriority` during a call.
    public func setActive(_ active: Bool, options: SetActiveOptions = []) async throws(SessionError) {
        if active {
            try await ask { $0.activate($1) }
        } else {
            try await ask { $0.deactivate(notifyOthers: options.contains(.notifyOthersOnDeactivation), $1) }
        }
    }

    /// `.speaker` plays through the loudspeaker whatever else is plugged in, until the route changes; `.none` ends that.
    /// - Throws: `IncompatibleCategory` in any category but `.playAndRecord`.
    public func overrideOutputAudioPort(_ portOverride: PortOverride) async throws(SessionError) {
        try await ask { $0.overrideOutput(portOverride, $1) }
    }

    /// Which of ``availableInputs`` to record from; nil leaves it to the system.
    public func setPreferredInput(_ port: Port?) async throws(SessionError) {
        try await ask { $0.setPreferredInput(uid: port?.uid ?? "", $1) }
    }

    /// Hertz, 1,000…768,000. Asked of the output while this session decides it: ``sampleRate`` says what is.
    public func setPreferredSampleRate(_ rate: Double) async throws(SessionError) {
        try await prefer(\.sampleRate, rate)
    }

    /// Seconds, above 0 and up to 10. Asked of the output while this session decides it: ``ioBufferDuration`` says what is.
    public func setPreferredIOBufferDuration(_ duration: Double) async throws(SessionError) {
        try await prefer(\.ioBufferDuration, duration)
    }

    /// Whether losing the output in use, as by unplugging headphones, is an interruption; it is unless set to false.
    public func setPrefersInterruptionOnRouteDisconnect(_ value: Bool) async throws(SessionError) {
        try await prefer(\.interruptsOnRouteDisconnect, value)
    }

    /// Whether alerts leave it playing; they interrupt it unless set to true.
    public func setPrefersNoInterruptionsFromSystemAlerts(_ value: Bool) async throws(SessionError) {
        try await prefer(\.noInterruptionsFromAlerts, value)
    }

    /// Gives everything back and ends every sequence; what is asked for later throws. Dropping the object does the same.
    public func close() async {
        if let client {
            await withCheckedContinuation { continuation in client.close { _ in continuation.resume() } }
        }
        end()
    }

    // MARK: What is told

    /// Every interruption from now on. Ask for it before activating: what was told earlier is not told again.
    public nonisolated var interruptions: AsyncStream<Interruption> { interruptionBroadcast.stream() }

    /// Every change of the route that concerns this session, from now on.
    public nonisolated var routeChanges: AsyncStream<RouteChange> { routeBroadcast.stream() }

    /// When sound that is not the point, such as a game's music, should fall silent for somebody else's, and when not.
    public nonisolated var silenceSecondaryAudioHints: AsyncStream<SilenceSecondaryAudioHintType> {
        hintBroadcast.stream()
    }

    /// The sound server going and coming back; the daemon too, where it stayed away for three seconds or forgot.
    public nonisolated var mediaServicesEvents: AsyncStream<MediaServicesEvent> { servicesBroadcast.stream() }

    /// How loud the session may be: lowered while somebody speaks over it, muted under the silent switch.
    ///
    /// iOS does this to an app; here an app that follows it does it without a seam, and any other is lowered from
    /// outside.
    public nonisolated var loudnessChanges: AsyncStream<Loudness> { loudnessBroadcast.stream() }

    // MARK: Reading

    /// What the session is set to; as last set here, without asking the daemon.
    public var category: Category { client?.description.category ?? .soloAmbient }
    /// As last set here, like ``category``.
    public var mode: Mode { client?.description.mode ?? .default }
    /// As last set here, like ``category``.
    public var categoryOptions: CategoryOptions { client?.description.options ?? [] }
    /// As the daemon last said; `.inactive` while there is none.
    public var state: SessionState { client?.state ?? .inactive }
    /// As the daemon last said: full and not muted while there is none.
    public var loudness: Loudness { Loudness(gain: client?.duckGain ?? 0, isMuted: client?.isMuted ?? false) }

    /// The properties of `org.sessiond1.Session`, by name, as they are now.
    func fields() async throws(SessionError) -> [String: Value] {
        guard let client else { throw AudioSession.closed }
        let answer = await withCheckedContinuation { continuation in
            client.properties { continuation.resume(returning: $0) }
        }
        switch answer {
        case .success(let fields): return fields
        case .failure(let failure): throw SessionError(failure)
        }
    }

    // MARK: Asking

    private static let closed = SessionError(.expiredSession, "the session was closed; create a new one")

    private func ask(
        _ request: (AudioSessionClient, @escaping AudioSessionClient.Reply) -> Void
    ) async throws(SessionError) {
        guard let client else { throw AudioSession.closed }
        let answer = await withCheckedContinuation { continuation in
            request(client) { continuation.resume(returning: $0) }
        }
        if case .failure(let failure) = answer { throw SessionError(failure) }
    }

    /// What is refused is forgotten: it shall not be asked for again with the next wish.
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

    // MARK: Hearing

    private func heard(_ event: AudioSessionClient.Event) {
        switch event {
        case .registered: registered(nil)
        case .refused(let failure): registered(failure)
        case .servicesLost, .daemonLost: servicesBroadcast.send(.lost)
        case .servicesReset: servicesBroadcast.send(.reset)
        case .session(.interruptionBegan(let reason, _, let name, _)):
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
            // There was a daemon before, or none so far.
            servicesBroadcast.send(.reset)
        }
    }

    private func busIsGone() {
        servicesBroadcast.send(.lost)
        registered(.disconnected)
        end()
    }

    private func end() {
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
