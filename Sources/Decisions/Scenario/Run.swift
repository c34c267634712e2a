import Decider
import Enforcement
import MediaControl
public import PluginAPI
import Routing
public import SessionManager

/// One run of a scenario: the real rules with a simulated clock, without a bus.
public struct Run {
    /// A step and its effects.
    public struct Outcome {
        /// The line of the step.
        public let line: Scenario.Line
        /// The time of the step, on the scenario's own clock.
        public let time: Instant
        /// The decision of the step, the decisions that follow from it, and those of claims that expired before.
        public let decisions: [Decision]
        /// The requests to the sound server in this step, for display.
        public let requests: [String]
        /// The state after the step.
        public let core: Arbiter
    }

    /// An expectation that was not met.
    public struct Failure: Sendable, Hashable {
        /// From 1.
        public let line: Int
        public let expected: String
        /// The actual result, for display.
        public let seen: String
    }

    /// The state after the steps so far.
    public var core: Arbiter { decider.arbiter }
    /// The failed expectations so far, in order.
    public private(set) var failures: [Failure] = []
    /// The run as an exported history: identical to the file that it came from. Empty if the scenario is not
    /// exact.
    public var transcript: String {
        guard scenario.isExact else { return "" }
        if scenario.hasFacts { return (scenario.head + output).joined(separator: "\n") + "\n" }
        return Transcript.text(
            of: History.Replayable(
                start: start, entries: entries, silent: silent, isWhole: start.memory.isBlank))
    }

    /// The name of each session in the file, in the order of creation.
    public private(set) var labels: [(id: SessionID, label: String)] = []
    private let scenario: Scenario
    private var ids: [String: SessionID] = [:]
    private var names: [SessionID: String] = [:]
    private var clients: [String: ClientID] = [:]
    /// The clients that answer no Ping.
    private var hanging: Set<ClientID> = []
    private var now = Instant(microseconds: 0)
    private var wording: Transcript
    private var decisions: [Decision] = []
    private var requests: [String] = []
    /// As in ``Routing/View``.
    private var former: (output: String?, input: String?) = (nil, nil)
    /// The outputs that were requested in this step.
    private(set) var outputs: [String] = []
    private(set) var decider: Decider
    /// The programs that do not use sessiond, and their streams.
    private(set) var server = SimulatedServer()
    /// The players of these streams.
    private(set) var players = SimulatedPlayers()
    /// The lines of the last decision that were not yet compared, if the scenario is exact.
    private var due: ArraySlice<String> = []
    private var stepLine = 0
    private let start: Arbiter
    private var entries: [History.Entry] = []
    private var silent: [Event] = []
    /// What the server shows, in a scenario with facts.
    private var view = Routing.View()
    /// The lines so far after the head of a scenario with facts, with the results of this run.
    private var output: [String] = []
    /// Whether the session of the step was adopted.
    private var isAdopted = false

    public init(_ scenario: Scenario) {
        self.scenario = scenario
        var settings = Settings()
        settings.adoption = scenario.adoption
        // The parser has checked the memory.
        if let start = scenario.start {
            decider = (try? Decider(start.state, scenario.memory)) ?? Decider(settings)
            view = start.view
        } else {
            decider = (try? Decider(settings, restoring: scenario.memory, [:])) ?? Decider(settings)
        }
        start = decider.arbiter
        wording = Transcript(ports: scenario.ports)
        for session in start.sessions { learn("s\(session.id)", session.id) }
    }

    /// The name of a session: its label in the file, else its number.
    public func label(_ id: SessionID) -> String { names[id] ?? "s\(id)" }

    /// Runs all steps.
    public mutating func perform(_ each: (Run, Outcome) -> Void = { _, _ in }) {
        for line in scenario.lines {
            switch line.content {
            case .step(let step):
                missDue()
                if scenario.hasFacts { output.append(line.text) }
                decisions = []
                requests = []
                outputs = []
                stepLine = line.number
                carryOut(step)
                each(self, Outcome(line: line, time: now, decisions: decisions, requests: requests, core: core))
            case .expect(let expectation):
                if let seen = Check(decider.arbiter, decisions, self, expectation).contradiction {
                    failures.append(Failure(line: line.number, expected: line.text, seen: seen))
                }
            case .part: output.append(line.text)
            case .exactly:
                let seen = due.popFirst()
                if seen != line.text, !Run.isOverride(seen, in: line.text) {
                    failures.append(Failure(line: line.number, expected: line.text, seen: seen ?? "nothing more"))
                }
            }
        }
        missDue()
    }

    func id(_ label: String) -> SessionID? {
        if let id = ids[label] { return id }
        return scenario.isExact ? label.numbered.map(SessionID.init) : nil
    }

    private mutating func learn(_ label: String, _ id: SessionID) {
        ids[label] = id
        names[id] = label
        labels.append((id, label))
    }

    /// Some versions wrote the override in the place of the output: `= s1 override speaker §7`.
    private static func isOverride(_ seen: String?, in line: String) -> Bool {
        guard let seen else { return false }
        let (new, old) = (seen.split(separator: " "), line.split(separator: " "))
        guard new.count > 4, old.count == 5, new[2] == "output", old[2] == "override" else { return false }
        return new[1] == old[1] && (new[3] == "any") == (old[3] == "none")
    }

    /// The results of an exact step that are not in the file.
    private mutating func missDue() {
        for line in due { failures.append(Failure(line: stepLine, expected: "nothing more", seen: line)) }
        due = []
    }

    private mutating func carryOut(_ step: Step) {
        switch step {
        case .wait(let microseconds):
            let (sum, overflows) = now.microseconds.addingReportingOverflow(microseconds)
            pass(to: Instant(microseconds: overflows ? .max : sum))
        case .at(let microseconds): pass(to: max(now, Instant(microseconds: microseconds)))
        case .session(let label, let client, let new, let isAdopted):
            clients[client] = new.client
            self.isAdopted = isAdopted
            defer { self.isAdopted = false }
            let decision = handle(.create(new))
            if let id = decision.created, label != "-" { learn(label, id) }
        case .about(let label, let request):
            // If its creation was refused, the rules refuse this, too.
            handle(event(request, id(label) ?? SessionID(0)))
        case .vanish(let client):
            if let id = clients[client] ?? number(client) { handle(.clientVanished(id)) }
        case .hang(let client):
            if let id = clients[client] ?? number(client) { hanging.insert(id) }
        case .machine(let isAsleep):
            if scenario.isExact { handle(.asleep(isAsleep)) } else { submit(isAsleep ? .machineSleeps : .machineWoke) }
            if server.isUsed { lookAtStreams() }
        case .fact(let event): handle(event)
        case .sounding(let labels, let pausable, let holdable, let exempt, let outputs, let others):
            var sounding = Sounding(
                sessions: Set(labels.compactMap(id)), pausable: Set(pausable.compactMap(id)),
                holdable: Set(holdable.compactMap(id)), exempt: Set(exempt.compactMap(id)), others: others)
            for output in outputs {
                if let id = id(output.session) { sounding.outputs[id, default: []].insert(output.uid) }
            }
            handle(.soundingChanged(sounding))
        case .program(let label, let program): server.add(label, program)
        case .begin(let label, let beginning):
            server.begin(label, beginning)
            lookAtStreams()
        case .pause(let label, let isPaused):
            server.setPaused(label, isPaused)
            lookAtStreams()
        case .volume(let label, let change):
            server.setVolume(label, change)
            lookAtStreams()
        case .move(let label, let output):
            server.move(label, to: output)
            lookAtStreams()
        case .end(let label):
            server.end(label)
            lookAtStreams()
        case .endProgram(let label):
            server.end(program: label)
            lookAtStreams()
            for player in players.end(program: label) { submit(.player(player.label, .gone)) }
        case .player(let label, let stream):
            guard let program = server.program(of: stream) else { return }
            tell(players.add(label, of: stream, program), of: label)
            settle()
        case .use(let label, let condition):
            tell(players.set(label, condition.status), of: label)
            settle()
        case .expire: handle(.timePassed)
        case .recorded(let recorded): replay(recorded)
        }
    }

    /// The actions are not carried out: their effects are facts of the file.
    private mutating func replay(_ recorded: RecordedFact) {
        var (look, shown) = (0, view)
        decider.submit(recorded.fact)
        while let action = decider.next(
            at: now,
            view: {
                shown = recorded.views[look] ?? shown
                look += 1
                return shown
            })
        {
            if case .decided(let decision) = action {
                decisions.append(decision)
                if let id = decision.created { learn("s\(id)", id) }
            }
        }
        view = shown
        guard let record = decider.log.last else { return }
        let lines = wording.results(of: record, decisions.filter(\.isNoteworthy))
        due += lines
        output += lines
        requests += record.requests.map(\.name)
    }

    private func number(_ client: String) -> ClientID? {
        client.utf8.first == UInt8(ascii: "c") ? UInt64(client.dropFirst()).map(ClientID.init) : nil
    }

    private func event(_ request: Step.Request, _ id: SessionID) -> Event {
        request.event(id, core.session(id)?.preferences ?? Preferences())
    }

    /// Claims expire on the way, each at its time; in an exact scenario only at `expire`.
    private mutating func pass(to then: Instant) {
        // A client that keeps others quiet is asked again and again: of a wait of years, only the beginning is decided step
        // by step.
        var left = Run.deadlinesOfAWait
        while !scenario.isExact, let deadline = decider.nextDeadline, deadline <= then {
            left -= 1
            now = left > 0 ? max(now, deadline) : then
            submit(.timePassed)
            if left == 0 { break }
        }
        now = max(now, then)
    }

    /// The most deadlines that are decided one after another while time passes.
    private static let deadlinesOfAWait = 1_000

    /// Returns the decision on that event.
    @discardableResult
    private mutating func handle(_ event: Event) -> Decision {
        let before = decisions.count
        submit(scenario.isExact ? .replayed(event) : .event(event))
        guard let decision = decisions[before...].first(where: { $0.event == event }) else {
            preconditionFailure("every event is decided")
        }
        // The event may have changed how the streams of this and other sessions must be treated.
        server.follow(core.audio)
        if server.isUsed { lookAtStreams() }
        return decision
    }

    /// The stream of a player follows it.
    private mutating func tell(_ events: [PlayerEvent], of label: String) {
        for event in events { decider.submit(.player(label, event)) }
        if let player = players.player(label) { server.setPaused(player.stream, player.facts.status != .playing) }
        decider.submit(.streams(server.seen))
    }

    private mutating func send(_ request: PlayerRequest, to label: String) {
        let before = players.player(label)?.facts.status
        tell(players.carryOut(request, by: label), of: label)
        guard players.player(label)?.facts.status != before else { return }
        requests.append("\(label) \(request == .play ? "resumed" : "paused")")
    }

    private mutating func lookAtStreams() { submit(.streams(server.seen)) }

    private mutating func submit(_ fact: Fact) {
        decider.submit(fact)
        settle()
    }

    /// Carries out all actions that result from the facts.
    private mutating func settle() {
        let audio = decider.arbiter.audio
        var view = Routing.View()
        view.isConnected = audio != nil
        view.audio = audio ?? .none
        (view.formerOutput, view.formerInput) = former
        while let action = decider.next(at: now, view: { view }) {
            carryOut(action)
            (view.formerOutput, view.formerInput) = former
            if let audio = decider.arbiter.audio { view.audio = audio }
            view.isConnected = decider.arbiter.audio != nil
        }
    }

    private mutating func carryOut(_ action: Action) {
        switch action {
        case .decided(let decision): note(decision)
        case .ask(.output(let uid, let isTemporary), _):
            let used = decider.arbiter.audio?.route.outputs.first?.uid ?? ""
            former.output = isTemporary ? former.output ?? used : nil
            outputs.append(uid)
            requests.append("output \(written(uid)) requested")
        case .ask(.input(let uid, let isTemporary), _):
            let used = decider.arbiter.audio?.route.inputs.first?.uid ?? ""
            former.input = isTemporary ? former.input ?? used : nil
            requests.append("input \(written(uid)) requested")
        case .ask(.formerOutput, _):
            if let uid = former.output { outputs.append(uid) }
            former.output = nil
            requests.append("former output requested")
        case .ask(.formerInput, _):
            former.input = nil
            requests.append("former input requested")
        case .ask(.handsFree(let uid), _):
            requests.append(
                uid.map { "hands-free profile of \(written($0)) requested" } ?? "no hands-free profile requested")
        case .move(let move): requests.append("recording moved to \(written(move.input))")
        case .streams(let commands): if !commands.isEmpty { carryOut(commands) }
        case .look: lookAtStreams()
        case .checkPlayers: decider.submit(.players)
        case .ping(let client): if !hanging.contains(client) { decider.submit(.pingAnswered(client)) }
        case .delaySleep: break
        case .player(let label, let request): send(request, to: label)
        case .wish, .guardOutput, .releaseOutput, .prepareHold, .measure, .keepPauses, .showPlayer, .warn, .notice:
            break
        }
    }

    private mutating func carryOut(_ commands: [StreamCommand]) {
        let before = server.streams.map(\.stream.condition)
        for command in commands {
            server.carryOut(command)
            decider.submit(.answered(command, succeeded: true))
        }
        for (entry, before) in zip(server.streams, before) where entry.stream.condition != before {
            requests.append("\(entry.label) \(entry.stream.condition.rawValue)")
        }
        decider.submit(.streams(server.seen))
    }

    private mutating func note(_ decision: Decision) {
        decisions.append(decision)
        // The session of a program has the program's name in the file.
        if !scenario.isExact, let id = decision.created, case .create(let new) = decision.event,
            let adopted = decider.members[id]?.adopted
        {
            let label = server.label(of: adopted.program) ?? server.label(named: new.name) ?? new.name
            learn(freeLabel(new.sessionClass == .app ? label : "\(label)-\(new.sessionClass.rawValue)"), id)
        }
        guard scenario.isExact else { return }
        if decision.isNoteworthy {
            due += wording.lines(of: decision).dropFirst(2)
            let isCreation = if case .create = decision.event { true } else { false }
            entries.append(History.Entry(silent: silent, decision: decision, isAdoption: isAdopted && isCreation))
            silent = []
        } else {
            silent.append(decision.event)
        }
    }

    /// A program may have several sessions, one for each role.
    private func freeLabel(_ label: String) -> String {
        guard ids[label] != nil else { return label }
        return (2...).lazy.map { "\(label)-\($0)" }.first { ids[$0] == nil } ?? label
    }
}
