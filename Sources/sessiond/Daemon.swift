import DBus
import Decider
import Enforcement
import EventLoop
import Logging
import PluginAPI
import Processes
import PulseBackend
import Routing
import SessionBus
import SessionManager
import State

/// The shell around the decisions: passes facts to the ``Decider`` and carries out its actions. Decides nothing itself.
final class Daemon {
    /// The data of a session that no decision needs.
    struct Record {
        let object: SessionObject
        let owner: Owner
        /// Set if another process than the client plays for the session.
        var acting: ActingProcess?
    }

    /// Whose session it is.
    enum Owner {
        case client(Client)
        /// A program that was adopted. `start`: when its process started; nil: unknown, or it is not known by its process.
        case adopted(start: UInt64?)

        var client: Client? { if case .client(let client) = self { client } else { nil } }
    }

    let loop: EventLoop
    let connection: Connection
    let log: Logger
    private(set) var settings: Settings
    /// Why changed settings were not read; empty: they were.
    private(set) var settingsError = ""
    /// Changed only by ``run(_:)`` and what is stored of a new session.
    private(set) var decider: Decider
    var records: [SessionID: Record] = [:]
    /// By unique name.
    var clients: [String: Client] = [:]
    /// Clients that asked for a session and whose credentials are being read, with what to do then.
    var arrivals: [String: [(Result<Client, Failure>) -> Void]] = [:]
    var managerObject: ManagerObject?
    private(set) var audio: AudioServer?
    private var streams: StreamKeeper?
    private var plugins: PluginSupervisor?
    private var pluginsObject: PluginsObject?
    private(set) var neighbours: Neighbours?
    private var players: PlayerKeeper?
    private var sleepWatch: SleepWatch?
    /// As decided last, also before there is a ``sleepWatch``.
    private var delaysSleep = false
    /// Nil if no state can be stored.
    var state: StateFile?
    /// The id of the bus; empty if unknown.
    var busID = ""
    /// The paused players, as stored in the state file.
    var pausedPlayers: [StateRecord.PausedPlayer] = []
    /// Changed properties of the caller's own session and of the manager, which are sent after the answer.
    private var announcements: [Announcement] = []

    private enum Announcement {
        case session(SessionID, SessionProperties)
        case manager(ManagerProperties)
    }

    /// Whether ``run(_:then:)`` carries out actions. A fact that an action submits waits for its turn.
    private var isRunning = false
    /// What is done when a fact is handled, in the order of the facts.
    private var continuations: [(fact: Decider.Ticket, body: () -> Void)] = []
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
        decider = Decider(settings)
    }

    /// The rules of the sessions, read-only.
    var arbiter: Arbiter { _read { yield decider.arbiter } }

    /// Exports the objects, restores the state of the last daemon, and connects to the sound server. This daemon owns
    /// the name already, and no message is dispatched before the loop runs, so no client sees an incomplete state.
    func start() {
        managerObject = ManagerObject(self, on: connection.objects)
        deadline = Timer(on: loop) { [unowned self] in submit(.timePassed) }
        let saved = restore()
        prepareAudio()
        // Restored sessions were announced by the last daemon; now announce those that have gone since.
        connection.objects.enableObjectManager(at: ObjectPath.root)
        if let saved { catchUp(saved) }
        startPlugins()
        audio?.start()
        // Clients must not wait for the connection to another bus.
        loop.later { [weak self] in self?.startSleepWatch() }
        // The users' own players are on the users' session buses.
        if !bus.isSystem { startPlayers() }
    }

    private func startPlugins() {
        let plugins = PluginSupervisor(
            loop: loop, connection: connection, to: bus, callers: callers, openFiles: pluginsMayOpen, log: log
        ) { [unowned self] client in
            records.contains {
                $1.owner.client?.name == client && (arbiter.session($0)?.state ?? .inactive) != .inactive
            }
        }
        self.plugins = plugins
        let pluginsObject = PluginsObject(plugins, on: connection.objects)
        self.pluginsObject = pluginsObject
        plugins.onStateChanged = { [unowned pluginsObject] in pluginsObject.stateChanged($0, $1, $2) }
    }

    private func prepareAudio() {
        let backend = PulseBackend(on: loop)
        let streams = StreamKeeper(self, backend, busID: busID)
        self.streams = streams
        if !bus.isSystem { streams.inhibitors = CallInhibitors(connection) }
        let audio = AudioServer(backend, streams, on: loop, log: log) { [unowned self] in submit($0) }
        self.audio = audio
        audio.onVolumeChanged = { [unowned self] in tellActive(["OutputVolume"]) }
        audio.onLatencyChanged = { [unowned self] in
            tellActive(["IOBufferDuration", "OutputLatency", "InputLatency"])
        }
        neighbours = Neighbours(connection, isSessionBus: !bus.isSystem) { [unowned self] in
            managerObject?.propertiesChanged(["Neighbours"])
        }
        audio.onPoliciesChanged = { [unowned self, unowned audio] in neighbours?.update(audio.snapshot.policies) }
    }

    private func startSleepWatch() {
        sleepWatch = SleepWatch(
            loop: loop, shared: bus.isSystem ? connection : nil, wasAsleep: arbiter.isAsleep, log: log
        ) { [unowned self] isAsleep in submit(isAsleep ? .machineSleeps : .machineWoke) }
        sleepWatch?.delaysSleep = delaysSleep
    }

    private func startPlayers() {
        submit(.pausesKept(Set(keptPauses)))
        let players = PlayerKeeper(self)
        self.players = players
        players.start(keptPauses)
    }

    /// Sends changed properties only to active sessions, because they may change many times a second.
    private func tellActive(_ properties: [String]) {
        for session in arbiter.sessions where session.state == .active {
            records[session.id]?.object.propertiesChanged(properties)
        }
    }

    /// Ends the loop with that code when the sound server is restored; after a timeout also if it does not answer.
    func leave(_ code: Int32) {
        guard let streams, let audio else { return loop.quit(code) }
        streams.leave { [loop] in audio.leave { loop.quit(code) } }
    }

    /// Leaves the bus.
    func stop() {
        CrashPoint.pass("exiting")
        plugins?.stop()
        players?.stop()
        sleepWatch = nil
        audio = nil
        streams = nil
        connection.close()
    }

    /// The changed settings are wrong, so the old ones are kept; empty: they are right.
    func tellSettingsError(_ problem: String) {
        guard settingsError != problem else { return }
        settingsError = problem
        managerObject?.propertiesChanged(["SettingsError"])
    }

    /// Applies changed settings, also to what is in progress: ducked sessions get the new gain.
    func reload(_ settings: Settings) {
        tellSettingsError("")
        let ducking = self.settings.ducking
        self.settings = settings
        // Before the new gain is sent: the ramp times have changed too.
        if settings.ducking != ducking { managerObject?.propertiesChanged(["Ducking"]) }
        submit(.settings(settings))
        streams?.look()
    }

    // MARK: Facts and actions

    /// All facts enter the decisions here. `then` is called when everything that follows from the fact was carried out:
    /// before this returns, or later if an action has submitted it.
    func submit(_ fact: Fact, then: (() -> Void)? = nil) {
        run(fact, then: then)
        announce()
    }

    /// All requests enter the decisions here. Changes that the answer implies are sent after it.
    @discardableResult
    func request(_ event: Event) throws(SessionError) -> Decision { try decide(.request(event)) }

    /// A client's request for a session.
    func create(_ new: NewSession, _ member: Member) throws(SessionError) -> Decision {
        try decide(.create(new, member))
    }

    private func decide(_ fact: Fact) throws(SessionError) -> Decision {
        let ticket = run(fact)
        guard let decision = decider.answer(to: ticket) else { preconditionFailure("every request is decided") }
        announceSoon()
        if let refusal = decision.refusal { throw refusal }
        return decision
    }

    /// Carries out everything that follows from a fact, unless an action has submitted it: then it waits for its turn.
    @discardableResult
    func run(_ fact: Fact, then: (() -> Void)? = nil) -> Decider.Ticket {
        announce()
        let ticket = decider.submit(fact)
        if let then { continuations.append((ticket, then)) }
        if isRunning { return ticket }
        isRunning = true
        carryOutAll()
        isRunning = false
        return ticket
    }

    private func carryOutAll() {
        repeat {
            while let action = decider.next(
                at: Instant(microseconds: MonotonicClock.now()),
                view: { [audio] in audio?.view ?? Routing.View() })
            {
                while let first = continuations.first, first.fact < decider.current { goOn() }
                carryOut(action)
            }
            // What goes on may submit a fact.
            if !continuations.isEmpty { goOn() }
        } while !continuations.isEmpty || decider.isBusy
        if let due = decider.nextDeadline { deadline?.arm(at: due.microseconds) } else { deadline?.disarm() }
    }

    private func goOn() { continuations.removeFirst().body() }

    private func carryOut(_ action: Action) {
        switch action {
        case .decided(let decision): carryOut(decision)
        case .ask(let request, let reason): audio?.ask(request, reason)
        case .wish(let wish): audio?.wish(wish)
        case .guardOutput(let isGuarding): audio?.guardOutput(isGuarding)
        case .releaseOutput: audio?.releaseOutput()
        case .move(let move): audio?.move(move)
        case .prepareHold: audio?.prepareHold()
        case .measure(let streams): audio?.measure(streams)
        case .streams(let commands): streams?.run(commands)
        case .look: streams?.lookAgain()
        case .checkPlayers: players?.checkSoon()
        case .keepPauses(let pauses): players?.kept(pauses)
        case .player(let id, let request): players?.send(request, to: id)
        case .showPlayer(let id): players?.show(id)
        case .delaySleep(let delays):
            delaysSleep = delays
            // The signals are on their way before the machine sleeps.
            connection.push()
            sleepWatch?.delaysSleep = delays
        case .ping(let client): ping(client)
        case .warn(let text): log.warning("\(text)")
        case .notice(let text): log.notice("\(text)")
        }
    }

    private func carryOut(_ decision: Decision) {
        // A client's new session is stored when its owner is known.
        if decision.created == nil { save(decision) }
        // The text is built only if it is logged.
        if decision.isNoteworthy, log.logLevel <= .debug {
            let subject = decision.session.map { " of session \($0)" } ?? ""
            let outcome = decision.refusal.map { "refused: \($0.message)" } ?? "\(decision.effects.count) effects"
            log.debug("\(decision.sequence): \(decision.event.name)\(subject): \(outcome)")
        }
        connection.batch { carryOutEffects(of: decision) }
        if let id = decision.created, let member = decider.members[id] { addAdopted(id, member, decision) }
        streams?.decided(decision)
        CrashPoint.pass("before-reply")
    }

    /// Looks at the streams after this turn of the loop, so that no answer waits for it.
    func lookAtStreamsSoon() { streams?.lookSoon() }

    /// Continues where the last daemon ended. Called before the first fact.
    func restore(_ memory: Memory, _ members: [SessionID: Member]) throws(MemoryError) {
        decider = try Decider(settings, restoring: memory, members)
    }

    /// A number that no client had before.
    private func newClientID() -> ClientID {
        let id = decider.freeClientID
        run(.client(id))
        return id
    }

    func export(_ record: Record, _ id: SessionID) {
        records[id] = record
        record.object.export()
        streams?.lookSoon()
    }

    private func carryOutEffects(of decision: Decision) {
        var told = 0
        for effect in decision.effects {
            guard let notice = Notice(effect) else {
                carryOut(effect, of: decision)
                continue
            }
            guard state != nil else {
                tell(notice, sequence: decision.sequence)
                continue
            }
            // Sent one by one: a daemon that is killed between storing and sending loses one signal, not all.
            told += 1
            if told > 1 { state?.noteTold(told) }
            CrashPoint.pass("told-noted")
            tell(notice, sequence: decision.sequence)
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
        // Notices (``tell(_:sequence:)``).
        case .interruptionBegan, .interruptionEnded, .duckingChanged, .silenceSecondaryAudioHint, .servicesLost,
            .servicesReset:
            break
        case .closed(let id): forget(id)
        case .routeChanged(let id?, let reason, let previous, let current):
            records[id]?.object.routeChanged(reason, previous: previous, current: current)
        case .routeChanged(nil, let reason, let previous, let current):
            managerObject?.routeChanged(reason, previous: previous, current: current)
        // Parts of the route, and of where recordings are placed.
        case .selectOutput, .selectInput: break
        case .propertiesChanged(let id, let properties):
            // Changes for others come before the answer; those that the caller knows from the answer must not delay it.
            if id == decision.session {
                announcements.append(.session(id, properties))
            } else {
                records[id]?.object.propertiesChanged(properties.names)
            }
        case .managerPropertiesChanged(let properties): announcements.append(.manager(properties))
        }
    }

    /// Sends the announcements when the answer is on its way.
    private func announceSoon() {
        if !announcements.isEmpty { loop.later { [weak self] in self?.announce() } }
    }

    private func announce() {
        CrashPoint.pass("replied")
        guard !announcements.isEmpty else { return }
        connection.giveWay()
        let due = announcements
        announcements.removeAll(keepingCapacity: true)
        connection.batch {
            for announcement in due {
                switch announcement {
                case .session(let id, let properties): records[id]?.object.propertiesChanged(properties.names)
                case .manager(let properties): managerObject?.propertiesChanged(properties.names)
                }
            }
        }
    }

    private func forget(_ id: SessionID) {
        guard let record = records.removeValue(forKey: id) else { return }
        record.object.remove()
        guard let client = record.owner.client else { return }
        client.sessionCount -= 1
        if client.sessionCount == 0 {
            client.watch = nil
            clients[client.name] = nil
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

    /// Asks the client whether it still runs. An error is an answer, too, unless the bus gave it.
    private func ping(_ id: ClientID) {
        guard let client = clients.values.first(where: { $0.id == id }),
            let message = try? Message.methodCall(
                destination: client.name, path: "/", interface: "org.freedesktop.DBus.Peer", member: "Ping")
        else { return }
        message.autoStart = false
        connection.call(message, timeout: HangingClients.patience) { [weak self] result in
            let unanswered = [
                Failure.Name.noReply, Failure.Name.disconnected, Failure.Name.serviceUnknown,
                Failure.Name.nameHasNoOwner,
            ]
            if case .failure(let failure) = result, unanswered.contains(failure.name) { return }
            self?.submit(.pingAnswered(id))
        }
    }

    func watch(_ client: Client) {
        client.watch = connection.watchName(client.name) { [unowned self] in vanished(client.name) }
    }

    private func vanished(_ name: String) {
        guard let client = clients[name] else { return }
        log.debug("\(name) has left the bus")
        submit(.event(.clientVanished(client.id)))
    }
}
