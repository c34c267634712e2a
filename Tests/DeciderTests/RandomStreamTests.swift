import Enforcement
import MediaControl
import PluginAPI
import Routing
import SessionManager
import Testing

@testable import Decider
@testable import ReferenceModel
@testable import Scenario

/// Random programs, their players, and clients. The sessions agree with the second models of the rules and of adoption, the
/// condition of each stream agrees with a simple table, and the daemon resumes only players that it paused and the user did
/// not use since.
@Suite struct RandomStreamTests {
    @Test func randomRuns_agreeWithTheModelAndTheTable() {
        var (pauses, resumes, active) = (0, 0, 0)
        for seed in 1...160 as ClosedRange<UInt64> {
            var run = StreamRun(seed: seed)
            if let fault = run.play(steps: 80) {
                Issue.record("seed \(seed): \(fault)")
                return
            }
            pauses += run.pauses
            resumes += run.resumes
            active += run.activeCount
        }
        #expect(pauses > 100)
        #expect(resumes > 10)
        #expect(active > 100)
    }

    /// Everything is decided again from the exported facts, from wherever the history begins.
    @Test(arguments: [512, 12, 1]) func randomRun_exported_isDecidedAgain(history: Int) throws {
        var requests = 0
        for seed in 1...40 as ClosedRange<UInt64> {
            var run = StreamRun(seed: seed, history: history)
            _ = run.play(steps: 60)
            let lines = try Self.decideAgain(run, seed)
            requests += lines.count { $0.hasPrefix("= request hold-stream") }
        }
        #expect(requests > 40 || history == 1)
    }

    /// The same with clients that do not answer, and a machine that sleeps.
    @Test(arguments: [512, 12, 1]) func randomRunWithSleepAndHangs_exported_isDecidedAgain(history: Int) throws {
        var (hangs, sleeps) = (0, 0)
        for seed in 1...40 as ClosedRange<UInt64> {
            var run = StreamRun(seed: seed, history: history, clientsHang: true)
            run.playUnchecked(steps: 60)
            let lines = try Self.decideAgain(run, seed)
            hangs += lines.count { $0.hasPrefix("= > unanswered ") }
            sleeps += lines.count { $0 == "= > sleep" }
        }
        #expect(hangs > 0 || history < 512)
        #expect(sleeps > 0 || history < 512)
    }

    /// Whenever somebody asks for it: also directly after a fact whose decisions dropped the oldest ones.
    @Test(arguments: [12, 3]) func export_isDecidedAgain_afterEachStep(history: Int) throws {
        for seed in 1...3 as ClosedRange<UInt64> {
            var run = StreamRun(seed: seed, history: history, clientsHang: true)
            for _ in 0..<40 {
                run.playUnchecked(steps: 1)
                _ = try Self.decideAgain(run, seed)
            }
        }
    }

    /// Settings that are not the defaults are no earlier event.
    @Test(arguments: [(512, true), (1, false)]) func export_saysWhetherEarlierEventsAreMissing(
        history: Int, isWhole: Bool
    ) {
        var run = StreamRun(seed: 1, history: history, clientsHang: true)
        run.playUnchecked(steps: 8)
        let lines = Transcript.text(of: run.decider).split(separator: "\n")
        #expect(lines.contains { $0.hasPrefix("# Earlier events ") } == !isWhole, "\(lines.prefix(12))")
    }

    /// Replays the two exports of the run. Returns their lines.
    private static func decideAgain(_ run: StreamRun, _ seed: UInt64) throws -> [Substring] {
        var lines: [Substring] = []
        for isPrivate in [true, false] {
            let text = Transcript.text(of: run.decider, isPrivate: isPrivate)
            var replay = Run(try Scenario(text, file: "seed \(seed)"))
            replay.perform()
            #expect(replay.failures.prefix(3) == [], "seed \(seed)")
            #expect(replay.transcript == text, "seed \(seed)")
            lines += text.split(separator: "\n")
        }
        return lines
    }

    @Test func allProgramsEnd_nothingIsLeft() {
        for seed in 501...530 as ClosedRange<UInt64> {
            var run = StreamRun(seed: seed)
            _ = run.play(steps: 40)
            run.endAll()
            #expect(run.decider.kept.isEmpty, "seed \(seed)")
            #expect(run.decider.arbiter.sessions.allSatisfy { $0.state != .interrupted }, "seed \(seed)")
        }
    }
}

/// One history of programs that play and record, and of clients, with a server that carries out all commands.
struct StreamRun {
    private(set) var decider: Decider
    private var model: ReferenceModel
    /// Nil if calls are guessed.
    private var adoption: AdoptionModel?
    private var server = SimulatedServer()
    private var random: SplitMix64
    private var now = Instant(microseconds: 1_000_000)
    private var nextStream = 0
    private var clients: [SessionID] = []
    private var faults: [String] = []
    private var players = SimulatedPlayers()
    /// The players that the daemon paused and the user did not use since.
    private var pausedByDaemon: Set<String> = []
    /// The players that the user started.
    private var startedByHand: Set<String> = []
    /// When the user last started each program.
    private var byHand: [Program.Key: Instant] = [:]
    private(set) var pauses = 0
    private(set) var resumes = 0
    /// As ``AdoptionModel/activeCount``.
    var activeCount: Int { adoption?.activeCount ?? 0 }
    private let programs = ["player", "game", "phone", "browser"]

    /// Some clients do not answer when they are asked whether they still run, and the machine sleeps now and then.
    private let clientsHang: Bool

    init(seed: UInt64, history: Int = 512, clientsHang: Bool = false) {
        random = SplitMix64(seed: seed)
        self.clientsHang = clientsHang
        var settings = Settings()
        settings.adoption.streams = Bool.random(using: &random) ? .calls : .all
        settings.adoption.calls = Bool.random(using: &random) ? .any : .labelled
        settings.adoption.labelAlone = seed.isMultiple(of: 2)
        settings.ducking.attack = 0
        settings.ducking.release = 0
        settings.ducking.hold = 0
        settings.limits.history = history
        if clientsHang {
            settings.ducking.longest = 1
            settings.interruption.longest = 2
            settings.sleep.resume = Bool.random(using: &random)
        }
        decider = Decider(settings)
        model = ReferenceModel(settings: Arbiter.Settings(settings))
        if settings.adoption.calls == .labelled {
            adoption = AdoptionModel(
                mixes: settings.adoption.streams == .calls, labelAlone: settings.adoption.labelAlone)
        }
        for (index, name) in programs.enumerated() {
            server.add(
                name,
                SimulatedServer.App(name: name, process: UInt32(100 + index), executable: name, sandbox: ""))
        }
    }

    /// Returns the first fault, or nil.
    mutating func play(steps: Int) -> String? {
        for step in 1...steps {
            let what = act()
            // A stream is ducked for a moment before it is held.
            pass(0.3)
            if let fault = faults.first ?? contradiction() { return "step \(step), \(what): \(fault)" }
        }
        return nil
    }

    /// The second models know no machine that sleeps, and no client that hangs.
    mutating func playUnchecked(steps: Int) {
        for _ in 1...steps {
            if clientsHang, Int.random(in: 0..<8, using: &random) == 0 {
                submit(Bool.random(using: &random) ? .machineSleeps : .machineWoke)
            }
            _ = act()
            pass(0.3)
            faults = []
        }
    }

    mutating func endAll() {
        for entry in server.streams { server.end(entry.label) }
        for id in clients { submit(.event(.close(id))) }
        pass(120)
    }

    // MARK: What happens

    private mutating func act() -> String {
        let labels = server.streams.map(\.label)
        // Long enough that a client may be asked, and not answer.
        if Bool.random(using: &random) { pass(Double.random(in: 0...(clientsHang ? 20 : 8), using: &random)) }
        switch Int.random(in: 0..<12, using: &random) {
        case 0...2:
            nextStream += 1
            let program = programs.randomElement(using: &random) ?? ""
            let role = [nil, nil, "music", "phone", "event", "game", "alarm"].randomElement(using: &random) ?? nil
            let isRecording = Int.random(in: 0..<4, using: &random) == 0
            server.begin(
                "stream\(nextStream)",
                SimulatedServer.Beginning(program: program, isRecording: isRecording, role: role, title: ""))
            if !isRecording { startByHand(program) }
            return "\(program) \(isRecording ? "records" : "plays") with role \(role ?? "none")"
        case 3, 4:
            guard let label = labels.randomElement(using: &random) else { return "nothing" }
            let isPaused = Bool.random(using: &random)
            server.setPaused(label, isPaused)
            if !isPaused { startByHand(server.streams.first { $0.label == label }?.program ?? "") }
            return "\(label) is paused or continues"
        case 5, 6:
            guard let label = labels.randomElement(using: &random) else { return "nothing" }
            server.end(label)
            return "\(label) ends"
        case 7: return createClient()
        case 10: return addPlayer()
        case 11: return usePlayer()
        case 8:
            guard let id = clients.randomElement(using: &random) else { return "nothing" }
            let isOn = Bool.random(using: &random)
            submit(.event(isOn ? .activate(id) : .deactivate(id, notifyOthers: Bool.random(using: &random))))
            return "\(isOn ? "activate" : "deactivate") \(id)"
        default:
            let isOn = Bool.random(using: &random)
            submit(.event(.setSilentMode(isOn)))
            return "silent mode \(isOn)"
        }
    }

    /// A program's player for one of its streams that play.
    private mutating func addPlayer() -> String {
        let playing = server.streams.filter { $0.stream.direction == .playback && !$0.stream.isCorked }
        guard let entry = playing.randomElement(using: &random), players.player(entry.program) == nil,
            let program = server.program(of: entry.label)
        else { return "nothing" }
        // A player that appears while its session is interrupted was started in the meantime.
        startedByHand.insert(entry.program)
        tell(players.add(entry.program, of: entry.label, program), of: entry.program)
        return "the player of \(entry.program) appears"
    }

    private mutating func usePlayer() -> String {
        guard let label = players.all.map(\.label).randomElement(using: &random) else { return "nothing" }
        let status = [PlaybackStatus.playing, .playing, .paused, .stopped].randomElement(using: &random) ?? .paused
        let events = players.set(label, status)
        guard !events.isEmpty else { return "nothing" }
        pausedByDaemon.remove(label)
        if status == .playing { startedByHand.insert(label) } else { startedByHand.remove(label) }
        if status == .playing { startByHand(players.player(label)?.program ?? "") }
        tell(events, of: label)
        return "somebody uses the player of \(label): \(status)"
    }

    private mutating func startByHand(_ program: String) {
        byHand[.process(UInt32(100 + (programs.firstIndex(of: program) ?? 0)))] = now
    }

    private mutating func tell(_ events: [PlayerEvent], of label: String) {
        for event in events { decider.submit(.player(label, event)) }
        if let player = players.player(label) { server.setPaused(player.stream, player.facts.status != .playing) }
        submit(.streams(server.seen))
    }

    private mutating func createClient() -> String {
        guard clients.count < 4,
            let category = [PluginAPI.Category.playback, .soloAmbient, .playAndRecord].randomElement(using: &random),
            let sessionClass = [SessionClass.app, .app, .alert, .call].randomElement(using: &random),
            let configuration = try? Configuration(
                category: category,
                options: Bool.random(using: &random) && category != .soloAmbient ? [.duckOthers, .mixWithOthers] : [])
        else { return "nothing" }
        let client = decider.freeClientID
        submit(.client(client))
        submit(
            .create(
                NewSession(
                    name: "client", client: client, sessionClass: sessionClass, configuration: configuration,
                    notifiesOnExit: true),
                Member(process: 1, user: nil, desktopEntry: "")))
        if let id = decider.arbiter.sessions.last?.id { clients.append(id) }
        return "a client's \(sessionClass) with \(category)"
    }

    /// Lets time pass. Everything that is due meanwhile happens at its time.
    private mutating func pass(_ seconds: Double) {
        let end = now.advanced(bySeconds: seconds)
        submit(.streams(server.seen))
        for _ in 0..<10_000 {
            guard let due = decider.nextDeadline, due <= end else {
                now = end
                return
            }
            now = max(now, due)
            submit(.timePassed)
            if !faults.isEmpty { return }
        }
        faults.append("there is always another deadline")
    }

    private mutating func submit(_ fact: Fact) {
        defer { look() }
        decider.submit(fact)
        var count = 0
        while let action = decider.next(at: now, view: { Routing.View() }) {
            count += 1
            guard count < 2_000 else {
                faults.append("endless actions: \(action)")
                return
            }
            switch action {
            case .decided(let decision): note(decision)
            case .streams(let commands) where !commands.isEmpty:
                for command in commands {
                    server.carryOut(command)
                    decider.submit(.answered(command, succeeded: true))
                }
                decider.submit(.streams(server.seen))
            case .look: decider.submit(.streams(server.seen))
            case .checkPlayers: decider.submit(.players)
            case .player(let label, let request): send(request, to: label)
            case .ping(let client):
                if !clientsHang || Int.random(in: 0..<4, using: &random) == 0 { decider.submit(.pingAnswered(client)) }
            case .streams, .ask, .wish, .guardOutput, .releaseOutput, .move, .prepareHold, .measure, .keepPauses,
                .showPlayer, .delaySleep, .warn, .notice:
                break
            }
        }
    }

    private mutating func send(_ request: PlayerRequest, to label: String) {
        let isPlaying = players.player(label)?.facts.status == .playing
        switch request {
        case .ask: break
        case .pause where isPlaying:
            pauses += 1
            pausedByDaemon.insert(label)
        case .pause: faults.append("\(label) is paused again")
        case .play:
            resumes += 1
            if pausedByDaemon.remove(label) == nil { faults.append("\(label) is resumed, which somebody paused") }
        }
        for event in players.carryOut(request, by: label) { decider.submit(.player(label, event)) }
        if let player = players.player(label) { server.setPaused(player.stream, player.facts.status != .playing) }
        decider.submit(.streams(server.seen))
    }

    // MARK: What must be true

    private mutating func look() {
        let sounds = server.streams.map { entry in
            AdoptionModel.Sound(
                id: entry.label, program: entry.program, isRecording: entry.stream.direction == .record,
                role: entry.stream.role,
                isPlaying: !entry.stream.isCorked)
        }
        noteRestriction()
        let interrupted = adopted.filter { $0.session.state == .interrupted && $0.session.sessionClass == .app }
        adoption?.look(sounds, interrupted: Set(interrupted.map(\.program)), at: now)
        adoption?.isInCall = decider.arbiter.sessions.contains { $0.sessionClass == .call && $0.state == .active }
    }

    private mutating func noteRestriction() {
        // Others wait for one that was interrupted itself as long as it may come back.
        if decider.arbiter.sessions.contains(where: { $0.sessionClass != .app && $0.holdsClaim }) {
            adoption?.lastRestriction = now
        }
    }

    /// The sessions of adopted programs, with the names of the programs.
    private var adopted: [(program: String, session: Session)] {
        programs.enumerated().flatMap { index, name in
            decider.members.filter { $0.value.adopted?.program == .process(UInt32(100 + index)) }
                .compactMap { decider.arbiter.session($0.key) }.map { (name, $0) }
        }
            + decider.members.filter { $0.value.adopted?.program == Program.alarm }
            .compactMap { decider.arbiter.session($0.key) }.map { (AdoptionModel.alarm, $0) }
    }

    private mutating func note(_ decision: Decision) {
        let outcome = model.handle(decision.event, at: decision.time)
        if decision.refusal?.code != outcome.refusal {
            faults.append("\(decision.event.name): refused with \(String(describing: decision.refusal))")
        }
        // A call may begin and end before the streams are looked at.
        noteRestriction()
        for session in decider.arbiter.sessions {
            let isActive = model.sessions.first { $0.id == session.id }?.isPlaying
            if isActive != (session.state == .active) {
                faults.append("\(decision.event.name): session \(session.id) is \(session.state)")
            }
        }
    }

    /// A player whose session is interrupted does not play, unless the user started it.
    private var playing: String? {
        for player in players.all where player.facts.status == .playing && !startedByHand.contains(player.label) {
            let program = Program.Key.process(UInt32(100 + (programs.firstIndex(of: player.program) ?? 0)))
            let own = decider.members.filter { $0.value.adopted?.program == program }
                .compactMap { decider.arbiter.session($0.key) }
            if !own.isEmpty, own.allSatisfy({ $0.state == .interrupted }) {
                return "\(player.label) plays, and its sessions are interrupted"
            }
        }
        return nil
    }

    private mutating func contradiction() -> String? {
        if let playing { return playing }
        let adopted = adopted
        if let fault = adoption?.contradiction(adopted, at: now) { return fault }
        let active = decider.arbiter.sessions.filter { $0.state == .active }
        let isCalling = active.contains { $0.sessionClass != .app }
        for entry in server.streams where entry.stream.direction == .playback && !entry.stream.isCorked {
            let condition = entry.stream.condition
            guard let session = session(of: entry) else { continue }
            let expected: StreamCondition
            switch session.state {
            // Its user may have started it, and an alert does not let its session become active.
            case .interrupted where condition == .untouched && heardByHand(session, active): expected = .untouched
            case .interrupted: expected = .held
            case .inactive: expected = .held
            case .active: expected = session.isMuted ? .muted : session.isDucked ? .lowered : .untouched
            }
            if condition != expected {
                return "\(entry.label) of \(entry.program) is \(condition), and its session \(session.state)"
            }
            if isCalling, session.sessionClass == .app, condition == .untouched, !startedSince(session, active),
                !heardByHand(session, active)
            {
                return "\(entry.label) of \(entry.program) plays on in a call"
            }
        }
        return nil
    }

    /// Whether the rules allow no activation, and the user started the program since then.
    private func heardByHand(_ session: Session, _ active: [Session]) -> Bool {
        guard let program = decider.members[session.id]?.adopted?.program, let since = byHand[program] else {
            return false
        }
        return active.contains { $0.sessionClass == .alert } && !session.isMixable
            && active.allSatisfy { $0.sessionClass == .app || $0.since <= since } && session.since < since
    }

    /// An app session that began during a call may mix with it. One that began before must be silent.
    private func startedSince(_ session: Session, _ active: [Session]) -> Bool {
        active.contains { $0.sessionClass != .app && session.since >= $0.since }
            || active.allSatisfy { $0.sessionClass == .app || $0.since > session.since && session.isMixable }
    }

    private func session(of entry: (label: String, program: String, stream: AudioStream)) -> Session? {
        if entry.stream.isAlarm { return nil }
        let program = Program.Key.process(UInt32(100 + (programs.firstIndex(of: entry.program) ?? 0)))
        let own = decider.members.filter { $0.value.adopted?.program == program }
        // A program with several roles has several sessions. Only the simple case is checked here.
        return own.count == 1 ? own.first.flatMap { decider.arbiter.session($0.key) } : nil
    }
}

extension Session {
    fileprivate var isMixable: Bool {
        configuration.category == .ambient || configuration.options.contains(.mixWithOthers)
    }
}
