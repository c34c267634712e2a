import DBus
import Decider
import Enforcement
import EventLoop
import Logging
import PluginAPI
import Processes
import SessionManager

/// Looks at the streams of the sound server for the decisions about them, and carries out the commands for them. Decides
/// nothing itself.
final class StreamKeeper {
    private unowned let daemon: Daemon
    private let backend: any AudioBackend
    private let ledger: StreamLedger
    private var reader: ProgramReader
    /// Programs that reported a call to the desktop; nil on a bus without a desktop.
    var inhibitors: CallInhibitors? {
        didSet { inhibitors?.onChanged = { [weak self] in self?.lookSoon() } }
    }
    /// The processes of adopted sessions, until they end.
    private var watches: [UInt32: ProcessWatch] = [:]
    private var gone: Set<UInt32> = []
    private var server = Server.unknown
    private var isLooking = false
    private var isDue = false
    private var isLeaving = false
    /// Commands wait here until their streams are in the journal: `kept` while it is written, `queue` for the next time.
    private var queue: [StreamCommand] = []
    private var kept: [StreamCommand] = []
    private var isKeeping = false
    private var unanswered = 0
    private var onQuiet: (() -> Void)?
    private var onServerKnown: (() -> Void)?
    private var farewell: Timer?

    private enum Server {
        case unknown, absent
        /// Its streams were read, and those that an earlier daemon had changed were taken over.
        case read
    }

    /// Seconds that a server may take to restore everything before the daemon exits.
    private static let patience = 0.5

    init(_ daemon: Daemon, _ backend: any AudioBackend, busID: String) {
        self.daemon = daemon
        self.backend = backend
        ledger = StreamLedger(backend, StreamJournal(bus: busID, log: daemon.log))
        reader = ProgramReader(isSystem: daemon.bus.isSystem)
    }

    // MARK: When to look

    /// The server is gone, and knows no stream any more.
    func serverLost() {
        daemon.submit(.streamsForgotten)
        reader.forget()
        server = .absent
        queue = []
        kept = []
        // A look that waits for its turn has streams that are gone.
        isLooking = false
        look()
    }

    /// If the decision may affect a stream, looks at the streams after the answer was sent.
    func decided(_ decision: Decision) {
        guard !backend.snapshot.streams.isEmpty || daemon.decider.hasAdopted, !isLooking, !isDue else { return }
        if decision.effects.contains(where: \.concernsStreams) { lookSoon() }
    }

    /// Time has passed. In a ramp the server is asked first.
    func lookAgain() { backend.readAgain(daemon.decider.ramping) { [weak self] in self?.look() } }

    /// After this turn of the loop, so that no answer waits for it.
    func lookSoon() {
        guard !isDue, !isLeaving else { return }
        isDue = true
        daemon.loop.later { [weak self] in
            guard let self, isDue else { return }
            look()
        }
    }

    // MARK: Facts about streams

    /// Reports the current state of the streams at the server, with the kernel's data of their processes.
    func look() {
        isDue = false
        guard !isLooking, !isLeaving else { return }
        isLooking = true
        let snapshot = backend.snapshot
        var seen = StreamsSeen()
        seen.isConnected = snapshot.isConnected
        seen.streams = reader.facts(snapshot.streams, daemon.settings.privileges)
        seen.canHold = snapshot.canHold
        seen.hasHold = snapshot.hasHold
        // module-role-ducking forgets a stream that is moved, and would never restore its volume. The server does not show
        // which streams it has ducked.
        seen.mayHold = !snapshot.policies.contains(.roleDucking)
        seen.defaultDevice = snapshot.defaultDevice
        seen.isHeadsetHandsFree = snapshot.isHeadsetHandsFree
        seen.found = found(snapshot)
        if !seen.streams.isEmpty || daemon.decider.hasAdopted {
            readApplications()
            seen.sustainedCalls = sustainedCalls(seen.streams)
        }
        watchPrograms()
        seen.gone = gone
        daemon.submit(.streams(seen)) { [weak self] in
            guard let self else { return }
            ledger.streamsSeen()
            // Adopted just now.
            watchPrograms()
            isLooking = false
            if server != .unknown, let onServerKnown {
                self.onServerKnown = nil
                onServerKnown()
            }
        }
    }

    /// Streams that an earlier daemon or connection had changed.
    private func found(_ snapshot: AudioSnapshot) -> [StreamsSeen.Found] {
        var former: [(AudioStream, KeptStream)] = []
        if snapshot.isConnected {
            former = server == .read ? ledger.arrived(snapshot) : ledger.takeOver(snapshot)
            server = .read
        }
        var found = former.map { StreamsSeen.Found($0, $1, isNew: false) }
        let known = Set(found.map(\.stream.id))
        for stream in snapshot.streams where daemon.decider.isNew(stream.id) && !known.contains(stream.id) {
            guard let base = ledger.base(of: stream) else { continue }
            found.append(StreamsSeen.Found(stream, KeptStream(base: base), isNew: true))
        }
        return found
    }

    /// Programs that reported a call to the desktop.
    private func sustainedCalls(_ streams: [StreamFacts]) -> Set<Program.Key> {
        guard let inhibitors else { return [] }
        let playing = streams.compactMap(\.program?.key)
        let adopted = daemon.decider.members.values.compactMap { $0.adopted?.program }
        return Set(playing + adopted).filter { program in
            switch program {
            case .process(let id): Process(id: id).executable.map(inhibitors.hasCall) ?? false
            case .sandbox(let id), .name(let id): inhibitors.hasCall(id)
            }
        }
    }

    /// The sandboxes of clients' processes; read when the first stream is there.
    private func readApplications() {
        for (id, member) in daemon.decider.members where member.application == nil {
            var application = member.desktopEntry
            // Another process may have the id by now, but one of another user is detected.
            let process = Process(id: member.process)
            if process.userID == member.user, case .application(let sandbox, _) = process.confinement {
                application = sandbox
            }
            daemon.submit(.application(id, application))
        }
    }

    /// Adopted sessions close when their programs end.
    private func watchPrograms() {
        var needed: Set<UInt32> = []
        for case .process(let id)? in daemon.decider.members.values.map(\.adopted?.program) { needed.insert(id) }
        if needed.isEmpty, watches.isEmpty, gone.isEmpty { return }
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
    }

    // MARK: Commands

    /// Stores how the streams are, then changes them.
    func run(_ commands: [StreamCommand]) {
        queue += commands
        guard !isKeeping else { return }
        guard !queue.isEmpty || !ledger.isEmpty else { return }
        isKeeping = true
        kept = queue
        queue = []
        ledger.keep(daemon.decider.kept, backend.snapshot) { [weak self] mayChange in
            guard let self else { return }
            isKeeping = false
            let due = kept
            kept = []
            for command in due {
                unanswered += 1
                if mayChange { send(command) } else { answered(command, succeeded: false) }
            }
            if !queue.isEmpty { run([]) }
            if onQuiet != nil { reportQuiet() }
        }
    }

    private func send(_ command: StreamCommand) {
        let answered: AudioBackend.Completion = { [weak self] result in
            guard let self else { return }
            var succeeded = true
            if case .failure(let error) = result {
                succeeded = false
                // At the end nothing is looked at again: a stream that ended just now would count as restored.
                if isLeaving { ledger.ended.insert(command.stream) }
                daemon.log.debug("the sound server refused \(command): \(error.message)")
            }
            self.answered(command, succeeded: succeeded)
            if onQuiet == nil { lookSoon() }
        }
        switch command {
        case .setVolume(let id, let volume): backend.setVolume(volume, stream: id, completion: answered)
        case .setMuted(let id, let muted): backend.setMuted(muted, stream: id, completion: answered)
        case .hold(let id): backend.hold(id, completion: answered)
        case .letGo(let id, let device): backend.letGo(id, to: device, completion: answered)
        }
        CrashPoint.pass("stream-changed")
    }

    /// A command counts as answered when everything that follows from the answer was decided.
    private func answered(_ command: StreamCommand, succeeded: Bool) {
        daemon.submit(.answered(command, succeeded: succeeded)) { [weak self] in
            guard let self else { return }
            unanswered -= 1
            if onQuiet != nil { reportQuiet() }
        }
    }

    // MARK: Exit

    /// Restores all streams as the user left them, then calls `completion`; at the latest after a timeout.
    func leave(_ completion: @escaping () -> Void) {
        guard farewell == nil else { return }
        var isOver = false
        let end: () -> Void = {
            if !isOver { completion() }
            isOver = true
        }
        farewell = Timer(on: daemon.loop) { end() }
        farewell?.arm(after: StreamKeeper.patience)
        // What a daemon that was killed has changed is known only after the server has reported its streams.
        if server == .unknown { onServerKnown = { [weak self] in self?.restore(end) } } else { restore(end) }
    }

    private func restore(_ completion: @escaping () -> Void) {
        isLeaving = true
        guard backend.snapshot.isConnected, !ledger.isEmpty || !queue.isEmpty || isKeeping else {
            return removeHold(completion)
        }
        onQuiet = { [weak self] in
            guard let self else { return }
            ledger.keep([:], backend.snapshot) { _ in }
            ledger.correctMemory { [weak self] in self?.removeHold(completion) }
        }
        // Its turn may come later, if the streams are looked at just now.
        daemon.submit(.leaving(backend.snapshot.streams)) { [weak self] in self?.reportQuiet() }
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
