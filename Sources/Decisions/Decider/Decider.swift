public import Enforcement
import MediaControl
public import PluginAPI
public import Routing
public import SessionManager

/// Makes all decisions: the rules of the sessions (``Arbiter``), the route (``Routing``), the input of each recording
/// (``RecordingPlacement``), the streams of all programs (``Enforcement``), and the players on the bus
/// (`MediaControl`).
///
/// It is a value without a server, a bus or a clock. It gets facts by ``submit(_:)``. Then ``next(at:view:)`` returns
/// one action after the other until there is none. It makes each decision after the previous actions have been carried
/// out, so that the state that is stored and sent with an action is the state after exactly this action.
public struct Decider: Sendable {
    /// The rules of the sessions, read-only.
    public private(set) var arbiter: Arbiter
    /// The latest decisions.
    public private(set) var history: History
    /// The latest facts, from which they followed.
    public private(set) var log: FactLog
    /// The data of each session that the rules do not need.
    public internal(set) var members: [SessionID: Member] = [:]
    /// The sessions that play, by their streams; nil if the server cannot tell.
    public internal(set) var sounding: Sounding?
    private(set) var settings: Settings
    /// The players on the bus.
    var players = Players()
    var routing = Routing()
    var recordings = RecordingPlacement()
    var enforcement: Enforcement
    var seen = StreamsSeen()
    var outputs = OutputsHeard()
    var adoptedCount = 0
    /// How streams must be treated, and since when.
    private var treated: [AudioStream.ID: (treatment: Treatment, since: Instant)] = [:]
    /// As ``Enforcement/Outcome/measured``.
    var measured: Set<AudioStream.ID> = []
    /// When the streams must be looked at again.
    var streamsDeadline: Instant?
    var lastClient: UInt64 = 0
    var suspension = Suspension()
    /// Facts that are not handled yet.
    private var inbox: [Fact] = []
    /// The number of facts that were submitted.
    private var submitted: UInt64 = 0
    /// The latest decision on a client's request, and its fact.
    private var answer: (fact: Ticket, decision: Decision)?
    /// The remaining work for the last fact; the next step is the last element.
    private var work: [Work] = []
    /// When the fact in progress was taken from the inbox; nil: none is in progress.
    private var factTime: Instant?

    /// One step of a decision. The consequences of a step are handled before the steps that were waiting.
    enum Work {
        /// A claim that expired before an event must be ended before that is judged.
        case expire
        case event(Event)
        /// Of a client; the decision answers it. `member`: as in ``Fact/create(_:_:)``.
        case request(Event, Member?)
        case follow(Event, hasEffects: Bool)
        case route(Routing.Fact)
        case effect(Routing.Effect)
        /// `limit`: each step reduces the steps that follow; the limit guards against a bug.
        case adopt(limit: Int)
        case step(Enforcement.Step)
        case create(NewSession, AdoptedProgram)
        case change(SessionID, AdoptedProgram)
        case answered(StreamCommand, succeeded: Bool)
        case hear
        case treat
        case placeRecordings
        case player(String, PlayerEvent)
        /// Stores the paused players for the next daemon.
        case keepPauses
        case treatPlayers
        case hearPlayers
        /// Time has passed for the players.
        case checkPlayers
        case takeBack(String)
        case takeBackSession(SessionID)
        case checkTime
        case sleep
        case wakeSoon
        case checkSleep
        case checkClients
        case act(Action)
    }

    /// Without a past.
    public init(_ settings: Settings) { self.init(settings, Arbiter(settings: Arbiter.Settings(settings))) }

    /// Continues where an earlier daemon ended, with the members of its sessions. Throws if the memory contradicts itself.
    public init(_ settings: Settings, restoring memory: Memory, _ members: [SessionID: Member]) throws(MemoryError) {
        self.init(settings, try Arbiter(memory))
        outputs = OutputsHeard(memory.sounding?.outputs ?? [:])
        for session in arbiter.sessions {
            // A client from before keeps its number.
            lastClient = max(lastClient, session.client.number)
            if !session.preferredInput.isEmpty { recordings.prefer(session.preferredInput, of: session.id) }
            if let member = members[session.id] { join(session.id, member) }
        }
    }

    init(_ settings: Settings, _ arbiter: Arbiter) {
        self.settings = settings
        self.arbiter = arbiter
        history = History(capacity: settings.limits.history)
        log = FactLog(decisions: settings.limits.history)
        enforcement = Enforcement(settings)
        players.book.maxAge = PauseBook<String>.maxAge(settings)
    }

    // MARK: Sessions

    private mutating func join(_ id: SessionID, _ member: Member) {
        guard let session = arbiter.session(id) else { return }
        members[id] = member
        if member.adopted != nil { adoptedCount += 1 }
        if session.sessionClass != .app { push(expectHold) }
    }

    /// Changes the data of a session. Does nothing if it is closed.
    private mutating func update(_ id: SessionID, _ change: (inout Member) -> Void) {
        guard var member = members[id] else { return }
        change(&member)
        members[id] = member
    }

    /// A number that no client had before; it is free until ``Fact/client(_:)``, or until a program is adopted.
    public var freeClientID: ClientID { ClientID(lastClient + 1) }

    // MARK: Facts and actions

    /// Stands for a submitted fact. Later facts have greater ones.
    public struct Ticket: Sendable, Hashable, Comparable {
        fileprivate let number: UInt64

        public static func < (one: Ticket, other: Ticket) -> Bool { one.number < other.number }
    }

    /// Adds a fact. It is handled after all consequences of the earlier facts.
    @discardableResult
    public mutating func submit(_ fact: Fact) -> Ticket {
        inbox.append(fact)
        submitted += 1
        return Ticket(number: submitted)
    }

    /// Whether a fact, or an action that follows from one, is left.
    public var isBusy: Bool { !inbox.isEmpty || !work.isEmpty }

    /// The fact whose actions ``next(at:view:)`` returns; all earlier ones are handled.
    public var current: Ticket { Ticket(number: submitted - UInt64(inbox.count)) }

    /// The decision on a client's request; nil: there is none yet, or another request was decided since.
    public func answer(to ticket: Ticket) -> Decision? { answer?.fact == ticket ? answer?.decision : nil }

    private mutating func handle(_ fact: Fact) {
        switch fact {
        case .request(let event): push([.route(.requested), .expire, .request(event, nil)])
        case .create(let new, let member): push([.route(.requested), .expire, .request(.create(new), member)])
        case .client(let id): lastClient = max(lastClient, id.number)
        case .event(let event): push([.expire, .event(event)])
        case .replayed(let event): push([.event(event)])
        case .server(let fact): push([.route(fact), .placeRecordings])
        case .streams(let seen):
            self.seen = seen
            for found in seen.found { enforcement.takeOver(found.stream, found.kept, isNew: found.isNew) }
            push([.adopt(limit: 1_000), .hear, .treat, .hearPlayers, .placeRecordings, .checkSleep, .checkClients])
        case .application(let id, let application): update(id) { $0.application = application }
        case .ancestry(let id, let ancestry): update(id) { $0.ancestry = ancestry }
        case .processEnded(let id): update(id) { $0.process = 0 }
        case .answered(let command, let succeeded): push([.answered(command, succeeded: succeeded)])
        case .moveRefused(let move): recordings.refused(move)
        case .streamsForgotten:
            enforcement.forgetStreams()
            outputs.forgetStreams()
            treated = [:]
            measured = []
        case .player(let id, let event): push([.player(id, event)])
        case .pausesKept(let kept): players.keep(kept)
        case .leaving(let streams): push([.act(.streams(enforcement.restore(streams)))])
        case .players: push([.treatPlayers])
        case .settings(let settings):
            self.settings = settings
            enforcement.settings = settings
            players.book.maxAge = PauseBook<String>.maxAge(settings)
            history = History(capacity: settings.limits.history, keeping: history)
            log = FactLog(decisions: settings.limits.history, keeping: log)
            push([.expire, .event(.settingsChanged(Arbiter.Settings(settings))), .treatPlayers])
        case .machineSleeps: push([.sleep])
        case .machineWoke: push([.route(.woke), .wakeSoon])
        case .pingAnswered(let client):
            suspension.clients.answered(client)
            push([.checkClients])
        case .timePassed: push([.checkTime])
        }
    }

    /// When ``Fact/timePassed`` is due next; nil: never.
    public var nextDeadline: Instant? {
        var earliest = arbiter.nextDeadline
        for case let due? in [
            routing.nextDeadline, streamsDeadline, outputs.deadline, players.keptExpires, players.nextDeadline,
            suspension.nextDeadline,
        ]
        where earliest.map({ due < $0 }) ?? true {
            earliest = due
        }
        return earliest
    }

    /// The next action, to be carried out before the one after it; nil: nothing is left to do.
    ///
    /// All consequences of a fact have the time at which the first of them was decided, however long the actions between
    /// them took: the same facts at the same times lead to the same decisions at the same times.
    ///
    /// - Parameter now: the time now.
    /// - Parameter view: the server's state now.
    public mutating func next(at now: Instant, view: () -> Routing.View) -> Action? {
        while true {
            if let item = work.popLast() {
                let time = factTime ?? now
                factTime = time
                if let action = handle(item, at: time, view) { return action }
            } else if !inbox.isEmpty {
                factTime = now
                let fact = inbox.removeFirst()
                record(fact, at: now)
                handle(fact)
            } else {
                factTime = nil
                return nil
            }
        }
    }

    private mutating func record(_ fact: Fact, at now: Instant) {
        log.dropStarts(before: history.total - history.count)
        if log.wantsStart(decisions: history.total, capacity: history.capacity) {
            log.keep(withoutHistory, decisions: history.total)
        }
        let content: FactLog.Content =
            if case .streams(let new) = fact { .streams(FactLog.StreamsChange(new, since: seen)) } else { .fact(fact) }
        log.append(content, at: now, decisions: history.total)
    }

    private var withoutHistory: Decider {
        var copy = self
        copy.history = History(capacity: 1)
        copy.log = FactLog(decisions: 1)
        copy.inbox = []
        return copy
    }

    /// What the server shows now; it is recorded.
    private mutating func look(_ view: () -> Routing.View) -> Routing.View {
        let view = view()
        log.look(view)
        return view
    }

    mutating func push(_ items: [Work]) { work.append(contentsOf: items.reversed()) }

    private mutating func handle(_ item: Work, at now: Instant, _ view: () -> Routing.View) -> Action? {
        switch item {
        case .expire:
            if let due = arbiter.nextDeadline, due <= now { return .decided(decide(.timePassed, at: now)) }
        case .event(let event): return .decided(decide(event, at: now))
        case .request(let event, let member):
            let decision = decide(event, at: now)
            if let id = decision.created, let member { join(id, member) }
            answer = (current, decision)
            return .decided(decision)
        case .follow(let event, let hasEffects): follow(event, hasEffects: hasEffects, view)
        case .route(let fact):
            let arbiter = arbiter
            let effects = routing.handle(fact, look(view), at: now) { arbiter.routeChoice(afterLossOn: $0) }
            push(effects.map(Work.effect))
        case .effect(let effect): carryOut(effect)
        case .adopt(let limit):
            guard seen.isConnected, limit > 0 else { return nil }
            let steps = enforcement.steps(facts(at: now), at: now.microseconds)
            if !steps.isEmpty { push(steps.map(Work.step) + [.adopt(limit: limit - 1)]) }
        case .step(let step): carryOut(step)
        case .create(let new, let adopted):
            let decision = decide(.create(new), at: now, isAdoption: true)
            if let id = decision.created { join(id, Member(adopted)) }
            return .decided(decision)
        case .change(let id, let adopted): return .decided(change(id, to: adopted, at: now))
        case .answered(let command, let succeeded):
            enforcement.answered(command, succeeded: succeeded, at: now.microseconds)
        case .hear:
            let heard = soundingNow(at: now)
            guard heard != sounding else { return nil }
            sounding = heard
            push([.expire, .event(.soundingChanged(heard))])
        case .treat: treat(at: now)
        case .placeRecordings:
            guard !recordings.isIdle else { return nil }
            let owners = enforcement.owners(facts)
            let audio = look(view).audio
            let moves = recordings.moves(seen.streams.map(\.stream), route: audio.route, inputs: audio.inputs) {
                owners[$0.id] ?? []
            }
            push(moves.map { .act(.move($0)) })
        case .player(let id, let event): handle(event, of: id, at: now)
        case .keepPauses: return players.changedKept(at: now).map(Action.keepPauses)
        case .treatPlayers: treatPlayers(at: now)
        case .hearPlayers: hearPlayers(at: now)
        case .checkPlayers:
            push([.keepPauses] + players.book.timePassed(at: now.microseconds).map(work) + [.treatPlayers])
        case .takeBack(let id): takeBack(id)
        case .takeBackSession(let id): takeBack(id, at: now)
        case .checkTime: checkTime(at: now)
        case .sleep: machineSleeps(at: now)
        case .wakeSoon: if arbiter.isAsleep { suspension.woke(at: now) }
        case .checkSleep: return checkSleep(at: now)
        case .checkClients: checkClients(at: now)
        case .act(let action):
            note(action, at: now)
            return action
        }
        return nil
    }

    // MARK: The rules of the sessions

    /// Decides about the event. The consequences are handled after the decision was carried out.
    private mutating func decide(_ event: Event, at now: Instant, isAdoption: Bool = false) -> Decision {
        let decision = arbiter.handle(event, at: now)
        history.append(decision, isAdoption: isAdoption)
        var placesRecordings = false
        for effect in decision.effects {
            switch effect {
            case .closed(let id):
                if members.removeValue(forKey: id)?.adopted != nil { adoptedCount -= 1 }
                recordings.prefer(nil, of: id)
                placesRecordings = true
            case .selectInput(let id, let uid):
                recordings.prefer(uid, of: id)
                placesRecordings = true
            default: break
            }
        }
        push([.follow(event, hasEffects: !decision.effects.isEmpty)] + (placesRecordings ? [.placeRecordings] : []))
        return decision
    }

    /// The route follows the sessions.
    private mutating func follow(_ event: Event, hasEffects: Bool, _ view: () -> Routing.View) {
        // An output may come back before its loss is reported. Then nothing has changed for the sessions, but another output
        // may have been requested.
        let mayChangeRoute = hasEffects || event.routeReason != nil
        let wanted: [Work] =
            mayChangeRoute ? [.route(.wanted(arbiter.routeChoice, reason: event.routeReason))] : []
        let guarded: [Work] = [
            .route(.guarded(arbiter.guardsOutput, isSilent: look(view).isOutputHeld && arePausedSilent))
        ]
        var checked: [Work] = []
        if hasEffects, !players.known.isEmpty, !players.isCheckDue {
            players.isCheckDue = true
            checked = [.act(.checkPlayers)]
        }
        let suspended: [Work] = [.checkSleep] + (hasEffects ? [.checkClients] : [])
        push(wanted + guarded + checked + suspended)
    }

    /// Whether no session is heard that was paused because its output was unplugged.
    private var arePausedSilent: Bool {
        !(sounding?.sessions ?? []).contains { arbiter.session($0)?.interruption?.reason == .routeDisconnected }
    }

    private mutating func checkTime(at now: Instant) {
        var due: [Work] = [.expire]
        if let time = routing.nextDeadline, time <= now { due.append(.route(.timePassed)) }
        if let time = streamsDeadline, time <= now {
            streamsDeadline = nil
            due.append(.act(.look))
        }
        if let time = outputs.deadline, time <= now { due.append(.hear) }
        if let time = players.keptExpires, time <= now { due.append(.keepPauses) }
        if let time = players.nextDeadline, time <= now { due.append(.checkPlayers) }
        if let time = suspension.nextDeadline, time <= now {
            if suspension.isAwake(at: now) { due.append(.event(.asleep(false))) }
            due += [.checkSleep, .checkClients]
        }
        push(due)
    }

    private mutating func carryOut(_ effect: Routing.Effect) {
        switch effect {
        case .submit(let event): push([.expire, .event(event)])
        case .then(let fact): push([.route(fact)])
        case .ask(let request, let reason): push([.act(.ask(request, reason: reason))])
        case .wish(let wish): push([.act(.wish(wish))])
        case .guardOutput(let isGuarding): push([.act(.guardOutput(isGuarding))])
        case .releaseOutput: push([.act(.releaseOutput)])
        case .warn(let text): push([.act(.warn(text))])
        }
    }

    // MARK: Adopted programs

    private mutating func carryOut(_ step: Enforcement.Step) {
        switch step {
        case .adopt(let adopted, let program, let evidence):
            // Beside the program's own session for what it plays otherwise.
            let suffix = adopted.isGuess ? Program.callSuffix : ""
            let name =
                (program.name.isEmpty
                    ? "a program" : program.name.prefix(bytes: settings.limits.stringLength - suffix.utf8.count))
                + suffix
            let new = NewSession(
                name: name, client: freeClientID, sessionClass: adopted.role.sessionClass,
                configuration: adopted.role.configuration, notifiesOnExit: true, evidence: evidence)
            lastClient = new.client.number
            push([.expire, .create(new, adopted)])
        case .change(let id, let adopted): push([.expire, .change(id, adopted)])
        case .activate(let id): push([.expire, .event(.activate(id))])
        case .takeBack(let id): push([.takeBackSession(id)])
        case .deactivate(let id): push([.expire, .event(.deactivate(id, notifyOthers: true))])
        case .close(let id): push([.expire, .event(.close(id))])
        }
    }

    /// Adopts the program with another role. If the rules refuse that, it is treated like a new program.
    private mutating func change(_ id: SessionID, to adopted: AdoptedProgram, at now: Instant) -> Decision {
        update(id) { $0.adopted = adopted }
        let wasInterrupted = arbiter.session(id)?.state == .interrupted
        let before = work.count
        let decision = decide(.setCategory(id, adopted.role.configuration), at: now)
        var rest: [Work] = []
        if decision.refusal != nil {
            rest = [.expire, .event(.close(id))]
        } else if wasInterrupted, arbiter.session(id)?.state == .inactive, arbiter.isFreeToActivate(id) {
            // Its former wait no longer applies, and an adopted program cannot be asked to come back.
            rest = [.expire, .event(.activate(id))]
        }
        // After the consequences of the decision itself.
        work.insert(contentsOf: rest.reversed(), at: before)
        return decision
    }

    /// The sessions as far as streams are concerned, with what their players show.
    private func facts(at now: Instant) -> Enforcement.Facts {
        var facts = facts
        if players.known.isEmpty { return facts }
        for place in facts.sessions.indices where facts.sessions[place].state == .interrupted {
            guard let member = members[facts.sessions[place].id] else { continue }
            facts.sessions[place].isPausing = isPausing(member, at: now)
            facts.sessions[place].hasPausedPlayer = hasPausedPlayer(member)
        }
        return facts
    }

    /// The sessions as far as streams are concerned.
    var facts: Enforcement.Facts {
        let isNeeded = !seen.streams.isEmpty || hasAdopted
        var facts = Enforcement.Facts(
            sessions: isNeeded ? arbiter.sessions.compactMap(describe) : [], streams: seen.streams,
            canHold: seen.canHold, mayHold: seen.mayHold, defaultDevice: seen.defaultDevice, gone: seen.gone)
        facts.sustainedCalls = seen.sustainedCalls
        facts.hasHold = seen.hasHold
        facts.isInCall = arbiter.sessions.contains { $0.sessionClass == .call && $0.state == .active }
        facts.isHeadsetHandsFree = seen.isHeadsetHandsFree
        return facts
    }

    private func describe(_ session: Session) -> SessionFacts? {
        guard let member = members[session.id] else { return nil }
        var facts = SessionFacts(
            id: session.id, kind: member.adopted.map { .adopted($0) } ?? .client, process: member.process,
            user: member.user, application: member.application ?? "", sessionClass: session.sessionClass,
            configuration: session.configuration, state: session.state, since: session.since.microseconds,
            isMuted: session.isMuted, lowered: session.isDucked ? -arbiter.settings.duckGain : 0,
            lowersItself: member.lowersItself, evidence: session.evidence, mayResume: session.mayResume,
            holdsClaim: session.holdsClaim,
            mayBeTakenBack: session.sessionClass == .app
                || session.waitingFor.compactMap { arbiter.session($0) }
                    .allSatisfy { $0.sessionClass == .app || $0.isGuessedCall },
            isFreeToActivate: member.adopted != nil && session.state == .inactive
                && arbiter.isFreeToActivate(session.id))
        facts.lostItsOutput = session.ended?.lacksOutput == true
        facts.awaitsUserFrom = arbiter.awaitsUserFrom(session)?.microseconds
        return facts
    }

    /// The sessions that play, by their streams; nil if the server cannot tell.
    private mutating func soundingNow(at now: Instant) -> Sounding? {
        guard seen.isConnected else {
            outputs.forgetStreams()
            return nil
        }
        let owners = enforcement.owners(facts)
        let streams = seen.streams.map(\.stream)
        var heard = Sounding(sessions: [], others: false)
        for facts in seen.streams where facts.stream.direction == .playback && facts.stream.isSounding {
            if let sessions = owners[facts.stream.id] {
                heard.sessions.formUnion(sessions)
            } else if !facts.readsAloud {
                heard.others = true
            }
        }
        // A session that also records is in a conversation, which continues without headphones.
        let listening = streams.filter { $0.direction == .record }.flatMap { owners[$0.id] ?? [] }
        heard.exempt = unplugExempt(owners)
        heard.pausable = players.pausable.subtracting(listening).subtracting(heard.exempt)
        heard.holdable = holdable.subtracting(listening).subtracting(heard.exempt).subtracting(heard.pausable)
        outputs.look(streams, of: arbiter.sessions, at: now) { owners[$0] ?? [] }
        heard.outputs = outputs.outputs
        return heard
    }

    // MARK: Streams

    private mutating func treat(at now: Instant) {
        guard seen.isConnected else {
            streamsDeadline = nil
            return
        }
        let outcome = enforcement.commands(facts(at: now), at: now.microseconds)
        streamsDeadline = outcome.deadline.map(Instant.init(microseconds:))
        outcome.changes.forEach { note($0, at: now) }
        var next: [Work] = []
        for id in outcome.ignoring.sorted() {
            guard let session = arbiter.session(id), session.ignoredSince == nil else { continue }
            next += [
                .act(
                    .notice(
                        "\(quoted(session.name)) plays on although it was interrupted; silenced at the sound server")),
                .expire, .event(.interruptionIgnored(id)),
            ]
        }
        if outcome.expectsCall { next += expectHold }
        if outcome.measured != measured {
            measured = outcome.measured
            next.append(.act(.measure(measured)))
        }
        push(next + [.act(.streams(outcome.commands))])
    }

    /// Streams may be held soon. The server needs time for the first hold.
    private var expectHold: [Work] { settings.enforcement.mode == .full ? [.act(.prepareHold)] : [] }

    /// As ``Enforcement/ramping``.
    public var ramping: Set<AudioStream.ID> { enforcement.ramping }

    /// Whether this stream is seen for the first time.
    public func isNew(_ id: AudioStream.ID) -> Bool { enforcement.isNew(id) }

    /// Every stream that differs, or may differ, from what the user left.
    public var kept: [AudioStream.ID: KeptStream] { enforcement.kept }

    // MARK: History

    /// Adds a request to the server to the history.
    private mutating func note(_ action: Action, at now: Instant) {
        guard let (name, fields) = action.asRequest else { return }
        var session: SessionID?
        var about: [History.Request.Field] = []
        if case .player(let id, _) = action {
            session = self.session(of: id)
            about = [.init("player", .text(players.known[id]?.origin.name.prefix(bytes: 120) ?? ""))]
        }
        note(History.Request(name, at: now, for: session, about + fields))
    }

    private mutating func note(_ request: History.Request) {
        history.note(request)
        log.note(request)
    }

    private mutating func note(_ change: Enforcement.Outcome.Change, at now: Instant) {
        let facts = seen.streams.first { $0.stream.id == change.stream }
        let program = facts?.program?.name ?? facts?.stream.applicationName ?? ""
        treated = treated.filter { id, _ in seen.streams.contains { $0.stream.id == id } }
        treated[change.stream] = (change.treatment, now)
        note(
            History.Request(
                change.treatment.name, at: now, for: change.sessions.first,
                [
                    .init("program", .text(program.prefix(bytes: 120))), .init("stream", .number(change.stream.number)),
                ] + change.treatment.fields))
    }

    // MARK: Answers

    /// Whether a program is adopted.
    public var hasAdopted: Bool { adoptedCount > 0 }

    /// Why the session is as it is (``Arbiter/explain(_:at:adopted:streams:player:)``).
    public func explain(_ id: SessionID, at now: Instant) -> [Explanation] {
        let facts = facts
        let owners = enforcement.owners(facts)
        var silenced: [(text: String, since: Instant)] = []
        for stream in seen.streams.map(\.stream.id) where owners[stream]?.contains(id) == true {
            guard let (treatment, since) = treated[stream] else { continue }
            let isHeld = seen.canHold && !enforcement.isMuted(stream)
            if let text = treatment.text(isHeld: isHeld) {
                silenced.append((text, since))
            }
        }
        return arbiter.explain(
            id, at: now, adopted: members[id]?.adopted.map { enforcement.reason(for: $0, facts) },
            streams: silenced.min { $0.since < $1.since }, player: pausedPlayer(of: id))
    }

    /// The streams at the server, in its order, with their sessions.
    public var streams: [ListedStream] {
        let owners = enforcement.owners(facts)
        return seen.streams.map { facts in
            let sessions = owners[facts.stream.id] ?? []
            return ListedStream(
                facts.stream, program: facts.program?.name ?? facts.stream.applicationName, sessions: sessions,
                reason: sessions.isEmpty ? enforcement.unadopted(facts) : nil)
        }
    }
}

extension Treatment {
    /// The name of the request in the history.
    fileprivate var name: String {
        switch self {
        case .free(lowered: 0): "restore-stream"
        case .free: "duck-stream"
        case .muted: "mute-stream"
        case .held: "hold-stream"
        }
    }

    fileprivate var fields: [History.Request.Field] {
        switch self {
        case .free(lowered: 0), .muted, .held: []
        case .free(let lowered): [.init("gain-db", .decibels(-Double(lowered)))]
        }
    }

    /// A text for the user; nil if the stream is not silenced. Ducking is not mentioned, because it is a state of the
    /// session.
    fileprivate func text(isHeld: Bool) -> String? {
        switch self {
        case .free: nil
        case .held where isHeld: "its stream is held at the sound server, and resumes at the same position"
        case .muted, .held: "its stream is muted at the sound server; what it plays meanwhile is lost"
        }
    }
}

extension Action {
    /// The request in the history; nil: it is none, or is recorded as a change of its stream.
    fileprivate var asRequest: (name: String, fields: [History.Request.Field])? {
        switch self {
        case .ask(.output(let uid, _), let reason):
            ("select-output", [.init("uid", .text(uid)), .init("reason", .number(reason.rawValue))])
        case .ask(.input(let uid, _), let reason):
            ("select-input", [.init("uid", .text(uid)), .init("reason", .number(reason.rawValue))])
        case .ask(.formerOutput, let reason): ("restore-output", [.init("reason", .number(reason.rawValue))])
        case .ask(.formerInput, let reason): ("restore-input", [.init("reason", .number(reason.rawValue))])
        case .ask(.handsFree(let uid), let reason):
            ("hands-free", [.init("uid", .text(uid ?? "")), .init("reason", .number(reason.rawValue))])
        case .move(let move):
            ("move-recording", [.init("uid", .text(move.input)), .init("stream", .number(move.stream.number))])
        case .releaseOutput: ("release-output", [])
        case .player(_, .pause): ("pause-player", [])
        case .player(_, .play): ("resume-player", [])
        case .player(_, .ask), .decided, .wish, .guardOutput, .prepareHold, .measure, .streams, .look, .checkPlayers,
            .keepPauses,
            .showPlayer, .delaySleep, .ping, .warn, .notice:
            nil
        }
    }
}

extension PauseBook {
    fileprivate static func maxAge(_ settings: Settings) -> UInt64 {
        UInt64(settings.interruption.maxAge * 1_000_000)
    }
}

extension Arbiter.Settings {
    public init(_ settings: Settings) {
        self.init()
        grace = settings.interruption.grace
        maxAge = settings.interruption.maxAge
        duckGain = settings.ducking.gain
        ducksAlerts = settings.ducking.alerts
        pausesOnUnplug = settings.routes.unplug != .off
        replug = settings.routes.replug
        pausesForSleep = settings.sleep.pause
        resumesAfterSleep = settings.sleep.resume
        maxSessions = settings.limits.sessions
        maxSessionsPerClient = settings.limits.sessionsPerClient
    }
}
