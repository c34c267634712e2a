import DBus
import Enforcement
import EventLoop
import Logging
import MediaPlayers
import PluginAPI
import Processes
import PulseBackend
import SessionBus
import SessionManager
import State

/// The shell around the rules: passes events to them and carries out their effects. Decides nothing itself.
final class Daemon {
    /// What the daemon knows of a session and the rules do not need.
    struct Record {
        let object: SessionObject
        let client: Client
        /// Whose streams are the session's; 0 once that process has ended, as another one may have its number then.
        var processID: UInt32
        let desktopEntry: String
        /// Whether the client ducks its own sound when it is told to.
        var lowersItself = false
        /// Present for adopted programs.
        var adopted: AdoptedProgram?
        /// Present where the process is another one than the client's.
        var acting: ActingProcess?
    }

    let loop: EventLoop
    let connection: Connection
    let log: Logger
    var settings: Settings
    var arbiter: Arbiter
    var history: History
    var records: [SessionID: Record] = [:]
    /// By unique name.
    var clients: [String: Client] = [:]
    /// Clients that asked for a session and whose credentials are being read, with what to do then.
    var arrivals: [String: [(Result<Client, Failure>) -> Void]] = [:]
    var managerObject: ManagerObject?
    var audio: AudioServer?
    var enforcer: Enforcer?
    private var plugins: PluginSupervisor?
    private var pluginsObject: PluginsObject?
    private(set) var neighbours: Neighbours?
    private var players: MediaPlayers?
    private var playerRules: PlayerRules?
    private var sleepWatch: SleepWatch?
    /// Nil if no state can be stored.
    var state: StateFile?
    /// The id of the bus; empty if unknown.
    var busID = ""
    /// The paused players, as stored in the state file.
    var pausedPlayers: [StateRecord.PausedPlayer] = []
    private var announcements: [Effect] = []
    private var lastClient: UInt64 = 0
    private var deadline: Timer?

    /// The bus of the connection.
    let bus: BusAddress
    let callers: Callers

    /// The limit of open files for plugins.
    private let pluginsMayOpen: OpenFiles?

    init(
        _ settings: Settings, loop: EventLoop, connection: Connection, to bus: BusAddress, pluginsMayOpen: OpenFiles?,
        log: Logger
    ) {
        self.bus = bus
        callers = Callers(connection, isSystem: bus.isSystem)
        self.pluginsMayOpen = pluginsMayOpen
        self.settings = settings
        self.loop = loop
        self.connection = connection
        self.log = log
        arbiter = Arbiter(settings: Arbiter.Settings(settings))
        history = History(capacity: settings.limits.history)
    }

    /// Exports the objects, restores the state of the last daemon, and connects to the sound server. This daemon owns
    /// the name already, and no message is dispatched before the loop runs, so no client sees an incomplete state.
    func start() {
        managerObject = ManagerObject(self, on: connection.objects)
        deadline = Timer(on: loop) { [unowned self] in expireClaims() }
        let saved = restore()
        // Restored sessions were announced by the last daemon; now announce those that have gone since.
        connection.objects.enableObjectManager(at: ObjectPath.root)
        if let saved { catchUp(saved) }
        startPlugins()
        startAudio()
        // Clients must not wait for the connection to another bus.
        loop.later { [weak self] in self?.startSleepWatch() }
        // The users' own players are on the users' session buses.
        if !bus.isSystem { startPlayers() }
    }

    private func startPlugins() {
        let plugins = PluginSupervisor(
            loop: loop, connection: connection, to: bus, callers: callers, openFiles: pluginsMayOpen, log: log
        ) { [unowned self] client in
            records.contains { $1.client.name == client && (arbiter.session($0)?.state ?? .inactive) != .inactive }
        }
        self.plugins = plugins
        let pluginsObject = PluginsObject(plugins, on: connection.objects)
        self.pluginsObject = pluginsObject
        plugins.onStateChanged = { [unowned pluginsObject] in pluginsObject.stateChanged($0, $1, $2) }
    }

    private func startAudio() {
        let backend = PulseBackend(on: loop)
        let enforcer = Enforcer(self, backend, busID: busID)
        self.enforcer = enforcer
        if !bus.isSystem { enforcer.inhibitors = CallInhibitors(connection) }
        let audio = AudioServer(backend, enforcer, on: loop, log: log) { [unowned self] event in submit(event) }
        self.audio = audio
        audio.foresee = { [unowned self] in arbiter.routeChoice(afterLossOn: $0) }
        audio.onVolumeChanged = { [unowned self] in tellActive(["OutputVolume"]) }
        audio.onLatencyChanged = { [unowned self] in
            tellActive(["IOBufferDuration", "OutputLatency", "InputLatency"])
        }
        for session in arbiter.sessions where !session.preferredInput.isEmpty {
            audio.selectInput(session.preferredInput, of: session.id)
        }
        neighbours = Neighbours(connection, isSessionBus: !bus.isSystem) { [unowned self] in
            managerObject?.propertiesChanged(["Neighbours"])
        }
        audio.onPoliciesChanged = { [unowned self, unowned audio] in neighbours?.update(audio.snapshot.policies) }
        audio.start()
    }

    private func startSleepWatch() {
        sleepWatch = SleepWatch(loop: loop, shared: bus.isSystem ? connection : nil, log: log) { [unowned self] in
            audio?.wake()
        }
    }

    private func startPlayers() {
        let rules = PlayerRules(self)
        playerRules = rules
        let players = MediaPlayers(connection, bus, MediaPlayers.Settings(settings), rules)
        self.players = players
        players.onNotice = { [log] in log.notice("\($0)") }
        players.onKeptChanged = { [unowned self, unowned players] in savePaused(players.kept) }
        players.start(keptPauses)
    }

    /// Sent to active sessions only, like everything that may change many times a second.
    private func tellActive(_ properties: [String]) {
        for session in arbiter.sessions where session.state == .active {
            records[session.id]?.object.propertiesChanged(properties)
        }
    }

    /// The adopted sessions whose players play and can be paused.
    var pausablePlayers: Set<SessionID> { playerRules?.pausable ?? [] }

    /// Ends the loop with that code when the sound server is restored; after a timeout also if it does not answer.
    func leave(_ code: Int32) {
        guard let enforcer, let audio else { return loop.quit(code) }
        enforcer.leave { [loop] in audio.leave { loop.quit(code) } }
    }

    /// Leaves the bus.
    func stop() {
        CrashPoint.pass("exiting")
        plugins?.stop()
        players?.stop()
        sleepWatch = nil
        audio = nil
        enforcer = nil
        connection.close()
    }

    /// Applies changed settings, also to what is in progress: ducked sessions get the new gain.
    func reload(_ settings: Settings) {
        let ducking = self.settings.ducking
        self.settings = settings
        history = History(capacity: settings.limits.history, keeping: history)
        // Before the new gain is sent: the ramp times have changed too.
        if settings.ducking != ducking { managerObject?.propertiesChanged(["Ducking"]) }
        submit(.settingsChanged(Arbiter.Settings(settings)))
        enforcer?.reload(settings)
        players?.reload(MediaPlayers.Settings(settings))
    }

    /// All facts enter the rules here.
    func submit(_ event: Event) {
        _ = decide(event)
        announce()
    }

    /// All requests enter the rules here. Changes that the answer implies are announced after it, by ``announce()``.
    @discardableResult
    func request(_ event: Event) throws(SessionError) -> Decision {
        audio?.requested()
        let decision = decide(event)
        if let refusal = decision.refusal { throw refusal }
        return decision
    }

    func decide(_ event: Event) -> Decision {
        announce()
        let now = Instant(microseconds: MonotonicClock.now())
        // A claim that expired before this event must be ended before it is judged.
        if let due = arbiter.nextDeadline, due <= now, event != .timePassed { _ = take(.timePassed, at: now) }
        let decision = take(event, at: now)
        if let due = arbiter.nextDeadline { deadline?.arm(at: due.microseconds) } else { deadline?.disarm() }
        return decision
    }

    private func take(_ event: Event, at now: Instant) -> Decision {
        if history.wantsCheckpoint { history.keep(arbiter) }
        let decision = arbiter.handle(event, at: now)
        execute(decision)
        return decision
    }

    private func expireClaims() { submit(.timePassed) }

    private func execute(_ decision: Decision) {
        history.append(decision)
        // A new session is stored when its owner is known.
        if decision.created == nil { save(decision) }
        // The text is built only if it is logged.
        if decision.isNoteworthy, log.logLevel <= .debug {
            let subject = decision.session.map { " of session \($0)" } ?? ""
            let outcome = decision.refusal.map { "refused: \($0.message)" } ?? "\(decision.effects.count) effects"
            log.debug("\(decision.sequence): \(decision.event.name)\(subject): \(outcome)")
        }
        connection.batch { carryOut(decision) }
        if !decision.effects.isEmpty { audio?.follow(arbiter.routeChoice, after: decision.event) }
        audio?.follow(guards: arbiter.guardsOutput) { arbiter.session($0)?.interruption?.reason }
        enforcer?.decided(decision)
        CrashPoint.pass("before-reply")
        if decision.isNoteworthy { players?.sessionsChanged() }
    }

    /// Exports a session on the bus.
    func add(_ record: Record, _ id: SessionID) {
        records[id] = record
        record.object.export()
        enforcer?.sessionAdded(isPrivileged: arbiter.session(id).map { $0.sessionClass != .app } ?? false)
    }

    private func carryOut(_ decision: Decision) {
        var told = 0
        for effect in decision.effects {
            guard state != nil, Notice(effect) != nil else {
                carryOut(effect, of: decision)
                continue
            }
            // Sent one by one: a daemon that is killed between storing and sending loses one signal, not all.
            told += 1
            if told > 1 { state?.noteTold(told) }
            CrashPoint.pass("told-noted")
            carryOut(effect, of: decision)
            connection.push()
            CrashPoint.pass("told")
            // Other changes of it, and the answer, come after that.
            if told == 1 { connection.giveWay() }
        }
        tellWaits(decision)
    }

    /// Each session whose waits changed gets one signal, however many sessions came or went.
    private func tellWaits(_ decision: Decision) {
        var waiters: SessionSet = []
        for case .waitsChanged(let change) in decision.effects { waiters.formUnion(change.waiters) }
        for id in waiters { records[id]?.object.waitsChanged() }
    }

    private func carryOut(_ effect: Effect, of decision: Decision) {
        switch effect {
        case .created, .activated, .deactivated, .claimDropped, .interruptionIgnored, .mutedChanged, .waitsChanged:
            break
        case .closed(let id): forget(id)
        case .interruptionBegan(let id, let interruption):
            records[id]?.object.interruptionBegan(
                interruption.reason, by: interruption.by, byName: interruption.byName, sequence: decision.sequence)
        case .interruptionEnded(let id, let shouldResume, let microseconds, let reason, _):
            records[id]?.object.interruptionEnded(
                shouldResume: shouldResume, microseconds: microseconds, reason: reason, sequence: decision.sequence)
        case .duckingChanged(let id, let ducked, let gain): records[id]?.object.duckingChanged(ducked, gain: gain)
        case .silenceSecondaryAudioHint(let id, let begin):
            records[id]?.object.silenceSecondaryAudioHint(begin: begin)
        case .routeChanged(let id?, let reason, let previous, let current):
            records[id]?.object.routeChanged(reason, previous: previous, current: current)
        case .routeChanged(nil, let reason, let previous, let current):
            managerObject?.routeChanged(reason, previous: previous, current: current)
        case .servicesLost: managerObject?.servicesLost()
        case .servicesReset: managerObject?.servicesReset()
        // A part of the followed route.
        case .selectOutput: break
        case .selectInput(let id, let uid): audio?.selectInput(uid, of: id)
        case .propertiesChanged(let id, let properties):
            // Changes for others come before the answer; those that the caller knows from the answer must not delay it.
            if id == decision.session {
                announcements.append(effect)
            } else {
                records[id]?.object.propertiesChanged(properties.names)
            }
        case .managerPropertiesChanged: announcements.append(effect)
        }
    }

    /// Announces the changed properties of the caller's own session and of the manager.
    func announce() {
        CrashPoint.pass("replied")
        guard !announcements.isEmpty else { return }
        connection.giveWay()
        let due = announcements
        announcements.removeAll(keepingCapacity: true)
        connection.batch {
            for effect in due {
                switch effect {
                case .propertiesChanged(let id, let properties): records[id]?.object.propertiesChanged(properties.names)
                case .managerPropertiesChanged(let properties): managerObject?.propertiesChanged(properties.names)
                default: break
                }
            }
        }
    }

    private func forget(_ id: SessionID) {
        guard let record = records.removeValue(forKey: id) else { return }
        record.object.remove()
        audio?.sessionClosed(id)
        record.client.sessionCount -= 1
        if record.client.sessionCount == 0 {
            record.client.watch = nil
            clients[record.client.name] = nil
        }
    }
}

// MARK: - Clients

extension Daemon {
    /// The client of that connection, when the bus has identified it; it is watched from then on.
    func withClient(_ name: String, _ body: @escaping (Result<Client, Failure>) -> Void) {
        if let client = clients[name] {
            body(.success(client))
        } else if arrivals[name] != nil {
            arrivals[name]?.append(body)
        } else {
            arrivals[name] = [body]
            // The answer comes after the watch is in place, so no disconnect in between is missed.
            let watch = connection.watchName(name) { [unowned self] in vanished(name) }
            connection.credentials(of: name) { [unowned self] result in
                let waiting = arrivals.removeValue(forKey: name) ?? []
                switch result {
                case .failure(let failure): waiting.forEach { $0(.failure(failure)) }
                case .success(let credentials):
                    let client = Client(
                        id: newClientID(), name: name, credentials: credentials,
                        startTime: credentials.startTime ?? 0)
                    client.watch = watch
                    clients[name] = client
                    waiting.forEach { $0(.success(client)) }
                    if client.sessionCount == 0 { clients[name] = nil }
                }
            }
        }
    }

    /// A number that no client had before.
    func newClientID() -> ClientID {
        lastClient += 1
        return ClientID(lastClient)
    }

    /// A client from before a restart keeps its number.
    func reserve(_ id: ClientID) { lastClient = max(lastClient, id.number) }

    func watch(_ client: Client) {
        client.watch = connection.watchName(client.name) { [unowned self] in vanished(client.name) }
    }

    private func vanished(_ name: String) {
        guard let client = clients[name] else { return }
        log.debug("\(name) has left the bus")
        submit(.clientVanished(client.id))
    }
}

extension Arbiter.Settings {
    init(_ settings: Settings) {
        self.init()
        grace = settings.interruption.grace
        maxAge = settings.interruption.maxAge
        duckGain = settings.ducking.gain
        pausesOnUnplug = settings.routes.unplug
        replug = settings.routes.replug
        maxSessions = settings.limits.sessions
        maxSessionsPerClient = settings.limits.sessionsPerClient
    }
}
