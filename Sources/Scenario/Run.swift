public import PluginAPI
public import SessionManager

/// One run of a scenario: the real rules with a simulated clock, without a bus.
public struct Run {
    /// A step and its effects.
    public struct Outcome {
        /// The line of the step.
        public let line: Scenario.Line
        /// The time of the step, on the scenario's own clock.
        public let time: Instant
        /// The decision of the step, and those of claims that expired on the way.
        public let decisions: [Decision]
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
    public private(set) var core: Arbiter
    /// The failed expectations so far, in order.
    public private(set) var failures: [Failure] = []
    /// The run as an exported history: identical to the file that it came from. Empty if the scenario is not
    /// exact.
    public var transcript: String {
        guard scenario.isExact else { return "" }
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
    private var now = Instant(microseconds: 0)
    private var wording: Transcript
    private var decisions: [Decision] = []
    /// The lines of the last decision that were not yet compared, if the scenario is exact.
    private var due: ArraySlice<String> = []
    private var stepLine = 0
    private let start: Arbiter
    private var entries: [History.Entry] = []
    private var silent: [Event] = []

    public init(_ scenario: Scenario) {
        self.scenario = scenario
        // The parser has checked this.
        core = (try? Arbiter(scenario.memory)) ?? Arbiter()
        start = core
        wording = Transcript(ports: scenario.ports)
        for session in core.sessions { learn("s\(session.id)", session.id) }
    }

    /// The name of a session: its label in the file, else its number.
    public func label(_ id: SessionID) -> String { names[id] ?? "s\(id)" }

    /// Runs all steps.
    public mutating func perform(_ each: (Run, Outcome) -> Void = { _, _ in }) {
        for line in scenario.lines {
            switch line.content {
            case .step(let step):
                missDue()
                decisions = []
                stepLine = line.number
                carryOut(step)
                each(self, Outcome(line: line, time: now, decisions: decisions, core: core))
            case .expect(let expectation):
                if let seen = Check(core, decisions, self, expectation).contradiction {
                    failures.append(Failure(line: line.number, expected: line.text, seen: seen))
                }
            case .exactly:
                let seen = due.popFirst()
                if seen != line.text {
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
        case .session(let label, let client, let new):
            clients[client] = new.client
            let decision = handle(.create(new))
            if let id = decision.created, label != "-" { learn(label, id) }
        case .about(let label, let request):
            // If its creation was refused, the rules refuse this, too.
            handle(event(request, id(label) ?? SessionID(0)))
        case .vanish(let client):
            if let id = clients[client] ?? number(client) { handle(.clientVanished(id)) }
        case .fact(let event): handle(event)
        case .sounding(let labels, let pausable, let others):
            handle(
                .soundingChanged(
                    Sounding(
                        sessions: Set(labels.compactMap(id)), pausable: Set(pausable.compactMap(id)), others: others)))
        case .expire: handle(.timePassed)
        }
    }

    private func number(_ client: String) -> ClientID? {
        client.utf8.first == UInt8(ascii: "c") ? UInt64(client.dropFirst()).map(ClientID.init) : nil
    }

    private func event(_ request: Step.Request, _ id: SessionID) -> Event {
        switch request {
        case .activate: .activate(id)
        case .deactivate(let notifyOthers): .deactivate(id, notifyOthers: notifyOthers)
        case .setCategory(let configuration): .setCategory(id, configuration)
        case .override(let override): .overrideOutput(id, override)
        case .preferInput(let uid): .setPreferredInput(id, uid: uid)
        case .prefer(let wishes): .setPreferences(id, preferences(of: id, wishes))
        case .close: .close(id)
        case .foreground(let isForeground): .setForeground(id, isForeground)
        case .ignored: .interruptionIgnored(id)
        }
    }

    private func preferences(of id: SessionID, _ wishes: [Step.Preference]) -> Preferences {
        var preferences = core.session(id)?.preferences ?? Preferences()
        for wish in wishes { preferences.apply(wish) }
        return preferences
    }

    /// Claims expire on the way, each at its time; in an exact scenario only at `expire`.
    private mutating func pass(to then: Instant) {
        while !scenario.isExact, let deadline = core.nextDeadline, deadline <= then {
            now = max(now, deadline)
            handle(.timePassed)
        }
        now = max(now, then)
    }

    @discardableResult
    private mutating func handle(_ event: Event) -> Decision {
        let decision = core.handle(event, at: now)
        decisions.append(decision)
        guard scenario.isExact else { return decision }
        if decision.isNoteworthy {
            due += wording.lines(of: decision).dropFirst(2)
            entries.append(History.Entry(silent: silent, decision: decision))
            silent = []
        } else {
            silent.append(event)
        }
        return decision
    }
}
