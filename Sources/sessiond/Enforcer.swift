import DBus
import Enforcement
import EventLoop
import Logging
import PluginAPI
import SessionManager

/// Makes the streams at the sound server follow their sessions: gives ``Enforcement`` all facts, and carries out its
/// commands. Decides nothing itself.
final class Enforcer {
    private unowned let daemon: Daemon
    private let backend: any AudioBackend
    private let ledger: StreamLedger
    private var enforcement: Enforcement
    private var reader: ProgramReader
    /// Programs that told the desktop of a call; nil on a bus without a desktop.
    var inhibitors: CallInhibitors? {
        didSet { inhibitors?.onChanged = { [weak self] in self?.lookSoon() } }
    }
    private var timer: Timer?
    private var facts = Enforcement.Facts(sessions: [], streams: [], canHold: false, defaultDevice: nil, gone: [])
    /// The sessions that play, by their streams; nil if the server cannot tell.
    private(set) var sounding: Sounding?
    /// For each client's session: the sandboxed application of its process, or its desktop entry.
    private var applications: [SessionID: String] = [:]
    /// The processes of adopted sessions, until they end.
    private var watches: [UInt32: ProcessWatch] = [:]
    private var gone: Set<UInt32> = []
    private var hasTakenOver = false
    /// The sessions at the last check.
    private var hasAdopted = false
    private var isLooking = false
    private var isDue = false
    private var isLeaving = false
    /// Commands wait here until their changes are in the journal.
    private var queue: [StreamCommand] = []
    private var isKeeping = false
    private var unanswered = 0
    private var onQuiet: (() -> Void)?

    /// Seconds that a server may take to restore everything before the daemon exits.
    private static let patience = 0.5

    init(_ daemon: Daemon, _ backend: any AudioBackend, busID: String) {
        self.daemon = daemon
        self.backend = backend
        ledger = StreamLedger(backend, StreamJournal(bus: busID, log: daemon.log))
        enforcement = Enforcement(daemon.settings)
        reader = ProgramReader(isSystem: daemon.bus.isSystem)
        timer = Timer(on: daemon.loop) { [unowned self] in look() }
    }

    // MARK: Events

    func streamsChanged() { look() }

    func serverLost() {
        enforcement.forgetStreams()
        reader.forget()
        hasTakenOver = false
        queue = []
        look()
    }

    /// `isPrivileged`: whether it may silence all others when it becomes active.
    func sessionAdded(isPrivileged: Bool) {
        if isPrivileged, daemon.settings.enforcement.mode == .full { backend.prepareHold() }
        lookSoon()
    }

    func reload(_ settings: Settings) {
        enforcement.settings = settings
        look()
    }

    /// If the decision may affect a stream, checks the streams after the answer was sent.
    func decided(_ decision: Decision) {
        guard !backend.snapshot.streams.isEmpty || hasAdopted, !isLooking, !isDue else { return }
        if decision.effects.contains(where: \.concernsStreams) { lookSoon() }
    }

    /// The sessions to which the stream belongs.
    func owners(of stream: AudioStream) -> [SessionID] { enforcement.owners(facts)[stream.id] ?? [] }

    /// Why the program was adopted, for display.
    func reason(for adopted: AdoptedProgram) -> String { enforcement.reason(for: adopted, facts) }

    /// The list of players that play or can be paused changed.
    func playersChanged() { lookSoon() }

    /// One that acted for a session's client.
    func processEnded() { lookSoon() }

    private func lookSoon() {
        guard !isDue, !isLeaving else { return }
        isDue = true
        daemon.loop.later { [weak self] in
            guard let self, isDue else { return }
            look()
        }
    }

    // MARK: Checks

    private func look() {
        isDue = false
        guard !isLooking, !isLeaving else { return }
        isLooking = true
        defer { isLooking = false }
        let snapshot = backend.snapshot
        gather(snapshot)
        if snapshot.isConnected, !hasTakenOver {
            hasTakenOver = true
            for (stream, base) in ledger.takeOver(snapshot) { enforcement.takeOver(stream, base, isNew: false) }
        }
        for stream in snapshot.streams where enforcement.isNew(stream.id) {
            if let base = ledger.base(of: stream) { enforcement.takeOver(stream, base, isNew: true) }
        }
        // Each step reduces the steps that follow; the limit guards against a bug.
        for _ in 0..<1_000 where snapshot.isConnected {
            let steps = enforcement.steps(facts, at: MonotonicClock.now())
            if steps.isEmpty { break }
            for step in steps { carryOut(step) }
            gather(snapshot)
        }
        hear(snapshot)
        guard snapshot.isConnected else {
            timer?.disarm()
            return
        }
        let outcome = enforcement.commands(facts, at: MonotonicClock.now())
        for id in outcome.ignoring.sorted() where daemon.arbiter.session(id)?.ignoredSince == nil {
            let name = daemon.arbiter.session(id)?.name ?? ""
            daemon.log.notice("\(quoted(name)) plays on although it was interrupted; silenced at the sound server")
            daemon.submit(.interruptionIgnored(id))
        }
        if outcome.expectsCall { backend.prepareHold() }
        run(outcome.commands)
        if let deadline = outcome.deadline { timer?.arm(at: deadline) } else { timer?.disarm() }
    }

    private func gather(_ snapshot: AudioSnapshot) {
        let streams = reader.facts(snapshot.streams, daemon.settings.privileges)
        let isNeeded =
            !streams.isEmpty || !watches.isEmpty
            || daemon.records.values.contains { $0.adopted != nil }
        facts = Enforcement.Facts(
            sessions: isNeeded ? daemon.arbiter.sessions.compactMap(describe) : [], streams: streams,
            canHold: snapshot.canHold,
            // It forgets streams that are moved and would not restore them; what it has ducked cannot be seen.
            mayHold: !snapshot.policies.contains(.roleDucking), defaultDevice: snapshot.defaultDevice, gone: gone)
        facts.sustainedCalls = sustainedCalls
        facts.hasHold = snapshot.hasHold
        hasAdopted = facts.sessions.contains { $0.kind != .told }
        watchPrograms()
    }

    /// Guessed calls of programs that told the desktop of a call.
    private var sustainedCalls: Set<Program.Key> {
        guard let inhibitors else { return [] }
        var result: Set<Program.Key> = []
        for session in facts.sessions {
            guard case .adopted(let adopted) = session.kind, adopted.isGuess else { continue }
            let name: String? =
                switch adopted.program {
                case .process(let id): Process(id: id).executable
                case .sandbox(let id), .name(let id): id
                }
            if let name, inhibitors.names(name) { result.insert(adopted.program) }
        }
        return result
    }

    private func describe(_ session: Session) -> SessionFacts? {
        guard let record = daemon.records[session.id] else { return nil }
        let isAdopted = record.adopted != nil
        return SessionFacts(
            id: session.id, kind: record.adopted.map { .adopted($0) } ?? .told, process: record.processID,
            user: record.client.credentials.userID,
            application: isAdopted ? record.desktopEntry : application(of: session.id, record),
            sessionClass: session.sessionClass, configuration: session.configuration, state: session.state,
            since: session.since.microseconds, isMuted: session.isMuted,
            lowered: session.isDucked ? -daemon.arbiter.settings.duckGain : 0, lowersItself: record.lowersItself,
            evidence: session.evidence, mayResume: session.mayResume, holdsClaim: session.holdsClaim,
            mayBeTakenBack: session.waitingFor.compactMap { daemon.arbiter.session($0) }
                .allSatisfy { $0.sessionClass == .app || $0.isGuessedCall },
            isFreeToActivate: isAdopted && session.state == .inactive && daemon.arbiter.isFreeToActivate(session.id))
    }

    private func application(of id: SessionID, _ record: Daemon.Record) -> String {
        if let known = applications[id] { return known }
        var application = record.desktopEntry
        // Another process may have the id by now, but one of another user is detected.
        let process = Process(id: record.processID)
        if process.userID == record.client.credentials.userID, case .application(let sandbox) = process.confinement {
            application = sandbox
        }
        applications[id] = application
        return application
    }

    /// Adopted sessions close when their programs end.
    private func watchPrograms() {
        var needed: Set<UInt32> = []
        for session in facts.sessions {
            if case .adopted(let adopted) = session.kind, case .process(let id) = adopted.program { needed.insert(id) }
        }
        if needed.isEmpty, watches.isEmpty, gone.isEmpty { return }
        applications = applications.filter { daemon.records[$0.key] != nil }
        gone.formIntersection(needed)
        watches = watches.filter { needed.contains($0.key) }
        for process in needed where watches[process] == nil && !gone.contains(process) {
            watches[process] = ProcessWatch(process, on: daemon.loop) { [unowned self] in
                gone.insert(process)
                lookSoon()
            }
            if watches[process] == nil {
                gone.insert(process)
                lookSoon()
            }
        }
        facts.gone = gone
    }

    private func carryOut(_ step: Enforcement.Step) {
        switch step {
        case .adopt(let adopted, let program, let evidence): _ = daemon.adopt(adopted, program, evidence)
        case .change(let id, let adopted): daemon.change(id, to: adopted)
        case .activate(let id): daemon.submit(.activate(id))
        case .deactivate(let id): daemon.submit(.deactivate(id, notifyOthers: true))
        case .close(let id): daemon.submit(.close(id))
        }
    }

    /// The sessions that play, by their streams; nil if the server cannot tell.
    private func hear(_ snapshot: AudioSnapshot) {
        var now: Sounding?
        if snapshot.isConnected {
            let owners = enforcement.owners(facts)
            var heard = Sounding(sessions: [], others: false)
            for stream in snapshot.streams where stream.direction == .playback && stream.isSounding {
                if let sessions = owners[stream.id] { heard.sessions.formUnion(sessions) } else { heard.others = true }
            }
            // A session that also records is in a conversation, which continues without headphones.
            let listening = snapshot.streams.filter { $0.direction == .record }.flatMap { owners[$0.id] ?? [] }
            heard.pausable = heard.sessions.intersection(daemon.pausablePlayers).subtracting(listening)
            now = heard
        }
        guard now != sounding else { return }
        sounding = now
        daemon.submit(.soundingChanged(now))
    }

    // MARK: Commands

    private func run(_ commands: [StreamCommand]) {
        queue += commands
        guard !isKeeping else { return }
        guard !queue.isEmpty || !ledger.isEmpty else { return }
        isKeeping = true
        ledger.keep(enforcement.kept, backend.snapshot) { [weak self] mayChange in
            guard let self else { return }
            isKeeping = false
            let due = queue
            queue = []
            for command in due {
                if mayChange {
                    send(command)
                } else {
                    enforcement.answered(command, succeeded: false, at: MonotonicClock.now())
                }
            }
            if onQuiet != nil { reportQuiet() }
        }
    }

    private func send(_ command: StreamCommand) {
        unanswered += 1
        let answered: AudioBackend.Completion = { [weak self] result in
            guard let self else { return }
            unanswered -= 1
            var succeeded = true
            if case .failure(let error) = result {
                succeeded = false
                daemon.log.debug("the sound server refused \(command): \(error.message)")
            }
            enforcement.answered(command, succeeded: succeeded, at: MonotonicClock.now())
            if onQuiet != nil { reportQuiet() } else { lookSoon() }
        }
        switch command {
        case .setVolume(let id, let volume): backend.setVolume(volume, stream: id, completion: answered)
        case .setMuted(let id, let muted): backend.setMuted(muted, stream: id, completion: answered)
        case .hold(let id): backend.hold(id, completion: answered)
        case .letGo(let id, let device): backend.letGo(id, to: device, completion: answered)
        }
        CrashPoint.pass("stream-changed")
    }

    // MARK: Exit

    /// Restores all streams as the user left them, then calls `completion`; at the latest after a timeout.
    func leave(_ completion: @escaping () -> Void) {
        guard !isLeaving else { return }
        isLeaving = true
        guard backend.snapshot.isConnected, !ledger.isEmpty || !queue.isEmpty || isKeeping else {
            return removeHold(completion)
        }
        var isOver = false
        let end: () -> Void = {
            if !isOver { completion() }
            isOver = true
        }
        timer = Timer(on: daemon.loop) { end() }
        timer?.arm(after: Enforcer.patience)
        onQuiet = { [weak self] in
            guard let self else { return }
            ledger.keep([:], backend.snapshot) { _ in }
            ledger.repair { [weak self] in self?.removeHold(end) }
        }
        run(enforcement.restore(backend.snapshot.streams))
        reportQuiet()
    }

    private func reportQuiet() {
        guard unanswered == 0, queue.isEmpty, !isKeeping, let onQuiet else { return }
        self.onQuiet = nil
        onQuiet()
    }

    private func removeHold(_ completion: @escaping () -> Void) {
        backend.removeHold { _ in completion() }
    }
}

extension Effect {
    /// Whether it may change how a stream must be, or to which session it belongs.
    fileprivate var concernsStreams: Bool {
        if case .propertiesChanged(_, let properties) = self { return !properties.isDisjoint(with: .configuration) }
        return kind.traits.contains(.concernsStreams)
    }
}
