public import PluginAPI

/// Sees to it that streams are as the sessions they belong to: whose a stream is, what programs that never spoke to us
/// count as, and what is done to each stream.
///
/// A value without a clock or a server, and level-triggered: it is given all facts, and says what is missing to make
/// them as they must be. First ``steps(_:at:)`` until there are none, then ``commands(_:at:)``.
public struct Enforcement: Sendable {
    /// Everything there is. Times are microseconds on the monotonic clock.
    public struct Facts: Sendable {
        public var sessions: [SessionFacts]
        public var streams: [StreamFacts]
        /// ``AudioSnapshot/canHold``.
        public var canHold: Bool
        /// Whether a stream may be held that is not yet: nobody else loses track of one that is moved.
        public var mayHold: Bool
        /// Where new streams go: a stream there goes back to where new ones go, wherever that is by then.
        public var defaultDevice: String?
        /// Processes that are no more.
        public var gone: Set<UInt32>
        /// Programs that say by other means that they are in a call: one that is on does not end.
        public var sustainedCalls: Set<Program.Key>

        public init(
            sessions: [SessionFacts], streams: [StreamFacts], canHold: Bool, mayHold: Bool = true,
            defaultDevice: String?, gone: Set<UInt32>, sustainedCalls: Set<Program.Key> = []
        ) {
            self.sessions = sessions
            self.streams = streams
            self.canHold = canHold
            self.mayHold = mayHold
            self.defaultDevice = defaultDevice
            self.gone = gone
            self.sustainedCalls = sustainedCalls
        }
    }

    /// What is to happen to adopted sessions.
    public enum Step: Sendable, Hashable {
        /// `evidence`: of a call that is guessed, what shows it; else empty.
        case adopt(AdoptedProgram, Program, evidence: String)
        /// It counts as something else of the same class, by other settings.
        case change(SessionID, to: AdoptedProgram)
        case activate(SessionID)
        /// The sound is over; whoever waits may go on.
        case deactivate(SessionID)
        case close(SessionID)
    }

    /// What follows from the facts for the server, and for what people are told.
    public struct Outcome: Sendable {
        /// In order.
        public var commands: [StreamCommand] = []
        /// Told sessions that played on past their time.
        public var ignoring: Set<SessionID> = []
        /// When to look again; nil: when something changes.
        public var deadline: UInt64?
        /// Whether a call may begin soon, which will hold what plays.
        public var expectsCall = false
    }

    public var settings: Settings { didSet { if former == nil { former = .settings(oldValue) } } }
    /// By what the sessions of the streams were adopted, until ``steps(_:at:)`` has seen to it that they are as the
    /// settings say.
    private var former: Former? = .earlierDaemon

    private enum Former {
        case settings(Settings)
        /// By settings that nobody knows any more.
        case earlierDaemon
    }

    /// Who is in a call that nobody declared.
    var calls = CallEvidence()
    /// Who is in a call that its streams declare, and what that counts as.
    var declaredCalls: [Program.Key: Settings.Role] = [:]
    private var controls: [AudioStream.ID: StreamControl] = [:]
    private var treatments: [AudioStream.ID: Treatment] = [:]
    /// Streams of told sessions that played on and were silenced, until their person or their program stops them.
    private var ignoring: Set<AudioStream.ID> = []
    /// Microseconds after falling silent in which what the streams do may be the server's doing, and is nobody's hand.
    /// How long a player's own word may be late is another matter (`PauseBook.echoTime`).
    private static let aftermath: UInt64 = 500_000
    /// Streams that were there, and that were not paused, when last looked at.
    private var known: Set<AudioStream.ID> = []
    private var playing: Set<AudioStream.ID> = []
    /// Since when each stream plays, as far as we saw it, and since when it is paused after that.
    private var began: [AudioStream.ID: (time: UInt64, paused: UInt64?)] = [:]
    /// Since when an adopted session that is active makes no sound.
    private var quiet: [SessionID: UInt64] = [:]
    /// Adopted sessions that asked for the sound since they last fell silent.
    private var asked: Set<SessionID> = []
    var stepDeadline: UInt64?
    /// Until when streams that belonged to a session of somebody's own may be about to end like it; `.max`: it is there.
    private var farewells: [AudioStream.ID: UInt64] = [:]
    private static let farewell: UInt64 = 200_000

    /// How long an app may be silent between two pieces, in microseconds; calls and alerts end at once.
    public static let pause: UInt64 = 1_000_000

    public init(_ settings: Settings) { self.settings = settings }

    // MARK: Whose

    /// The sessions each stream belongs to. Told ones by the table of evidence, else the one adopted for it.
    public func owners(_ facts: Facts) -> [AudioStream.ID: [SessionID]] {
        let told = facts.sessions.filter { $0.kind == .told }
        var adopted: [AdoptedProgram: SessionID] = [:]
        for session in facts.sessions { if case .adopted(let program) = session.kind { adopted[program] = session.id } }
        var result: [AudioStream.ID: [SessionID]] = [:]
        for stream in facts.streams {
            let owners = Evidence.owners(of: stream, among: told)
            if !owners.isEmpty {
                result[stream.stream.id] = owners
            } else if let program = program(of: stream, by: settings), let id = adopted[program] {
                result[stream.stream.id] = [id]
            }
        }
        return result
    }

    private func program(of facts: StreamFacts, by settings: Settings) -> AdoptedProgram? {
        adoption(by: settings).adopted(facts)
    }

    func adoption(by settings: Settings) -> Adoption {
        Adoption(settings: settings, call: { calls.call(of: $0) }, labelledCall: { declaredCalls[$0] })
    }

    /// Why the program has a session, and counts as what it does, for people. One that is paused may have no stream.
    public func reason(for adopted: AdoptedProgram, _ facts: Facts) -> String {
        let streams = facts.streams.filter { program(of: $0, by: settings) == adopted }
        let session = facts.sessions.first { $0.kind == .adopted(adopted) }
        let reason = adoption(by: settings).reason(
            for: adopted, evidence: session?.evidence ?? "", of: streams.first)
        let latest = streams.compactMap { began[$0.stream.id] }.filter { $0.paused == nil }.map(\.time).max()
        guard let latest, let session,
            session.state == .inactive, isHushed(session, by: facts.sessions, since: latest)
        else { return reason }
        return reason + "; it played before the call or alert that is on, and is silent until that ends"
    }

    // MARK: Adopted sessions

    /// What adopted sessions are to do now. Ask again with new facts once that is done, until it is nothing.
    public mutating func steps(_ facts: Facts, at now: UInt64) -> [Step] {
        stepDeadline = nil
        noteBeginnings(facts, at: now)
        let told = facts.sessions.filter { $0.kind == .told }
        lookForCalls(facts, told, at: now)
        if let former {
            if let step = changed(from: former, facts, told) { return [step] }
            self.former = nil
        }
        var present: Set<AdoptedProgram> = []
        var sounding: [AdoptedProgram] = []
        var fresh: Set<AdoptedProgram> = []
        var names: [AdoptedProgram: Program] = [:]
        var latest: [AdoptedProgram: UInt64] = [:]
        for stream in facts.streams where isNobodys(stream, told, at: now) {
            guard let program = program(of: stream, by: settings) else { continue }
            present.insert(program)
            // What plays has the better name: Chromium calls its recordings "Chromium input".
            if names[program] == nil || stream.stream.direction == .playback { names[program] = stream.program }
            guard program.isGuess || !stream.stream.isCorked else { continue }
            if !sounding.contains(program) { sounding.append(program) }
            if !playing.contains(stream.stream.id) { fresh.insert(program) }
            latest[program] = max(latest[program] ?? 0, began[stream.stream.id]?.time ?? now)
        }
        var steps: [Step] = []
        for session in facts.sessions {
            guard case .adopted(let program) = session.kind else { continue }
            // A call goes on for a while without any stream.
            let isInCall = program.isGuess && calls.call(of: program.program) != nil
            let isSounding = sounding.contains(program) || isInCall
            sounding.removeAll { $0 == program }
            if program.isGuess
                ? isOver(session, program.program, isInCall, facts, told, at: now)
                : !present.contains(program) && isGone(session, program.program, facts, told)
            {
                steps.append(.close(session.id))
            } else if session.state == .inactive, isHushed(session, by: facts.sessions, since: latest[program] ?? now) {
                // It sounded before that, and counts only now: settings were read anew, or who spoke for it went.
                continue
            } else if let step = step(session, isSounding: isSounding, isFresh: fresh.contains(program), at: now) {
                steps.append(step)
            }
        }
        for program in sounding {
            guard let name = names[program] else { continue }
            let evidence = program.isGuess ? calls.call(of: program.program)?.words : nil
            steps.append(.adopt(program, name, evidence: evidence ?? ""))
        }
        if steps.isEmpty { playing = Set(facts.streams.filter { !$0.stream.isCorked }.map(\.stream.id)) }
        return steps
    }

    private mutating func noteBeginnings(_ facts: Facts, at now: UInt64) {
        let streams = facts.streams.map(\.stream)
        let present = Set(streams.map(\.id))
        began = began.filter { present.contains($0.key) }
        // What is held, or let go, may be shown as paused meanwhile.
        for stream in streams {
            if stream.isCorked, !stream.isHeld {
                if began[stream.id]?.paused == nil { began[stream.id]?.paused = now }
            } else if let paused = began[stream.id]?.paused, now < paused + Enforcement.aftermath {
                began[stream.id]?.paused = nil
            } else if began[stream.id]?.paused != nil || began[stream.id] == nil {
                began[stream.id] = (now, nil)
            }
        }
    }

    /// A session whose streams count as something else by the settings than by the former ones goes on as that: the
    /// claims and waits are its program's. Where the class is another, or somebody is that already, it ends.
    private func changed(from former: Former, _ facts: Facts, _ told: [SessionFacts]) -> Step? {
        for stream in facts.streams where Evidence.owners(of: stream, among: told).isEmpty {
            let new = program(of: stream, by: settings)
            let old =
                switch former {
                case .settings(let former): program(of: stream, by: former)
                case .earlierDaemon: orphan(of: stream, as: new, facts)
                }
            guard let old, old != new, let session = facts.sessions.first(where: { $0.kind == .adopted(old) }) else {
                continue
            }
            guard let new, new.role.sessionClass == old.role.sessionClass,
                !facts.sessions.contains(where: { $0.kind == .adopted(new) })
            else { return .close(session.id) }
            return .change(session.id, to: new)
        }
        return nil
    }

    /// What the program of a stream that has no session counted as, where nothing that it plays counts as that now.
    private func orphan(of stream: StreamFacts, as new: AdoptedProgram?, _ facts: Facts) -> AdoptedProgram? {
        guard stream.stream.direction == .playback, let program = stream.program else { return nil }
        if let new, facts.sessions.contains(where: { $0.kind == .adopted(new) }) { return nil }
        let backed = Set(facts.streams.compactMap { self.program(of: $0, by: settings) })
        for session in facts.sessions {
            guard case .adopted(let adopted) = session.kind else { continue }
            if adopted.program == program.key, !backed.contains(adopted) { return adopted }
        }
        return nil
    }

    /// Whether it is to count as a session of our making; not for a while where it had one that went: who ends leaves the
    /// bus first, and its sound some milliseconds later.
    private mutating func isNobodys(_ facts: StreamFacts, _ told: [SessionFacts], at now: UInt64) -> Bool {
        let id = facts.stream.id
        guard Evidence.owners(of: facts, among: told).isEmpty else {
            farewells[id] = .max
            return false
        }
        guard var due = farewells[id] else { return true }
        if due == .max { due = now + Enforcement.farewell }
        farewells[id] = due > now ? due : nil
        if due > now { stepDeadline = min(stepDeadline ?? due, due) }
        return due <= now
    }

    /// Of one that has no stream.
    private func isGone(
        _ session: SessionFacts, _ program: Program.Key, _ facts: Facts, _ told: [SessionFacts]
    ) -> Bool {
        if settings.adoption.isOff { return true }
        switch program {
        // It has come to speak to us itself.
        case .process(let id): return facts.gone.contains(id) || told.contains { $0.process == id }
        // Nobody says when it ends. Players close their stream while they are paused, and are to be resumed.
        case .sandbox, .name: return session.state != .interrupted && !session.mayResume
        }
    }

    private mutating func step(
        _ session: SessionFacts, isSounding: Bool, isFresh: Bool, at now: UInt64
    ) -> Step? {
        if isSounding || session.state != .active { quiet[session.id] = nil }
        if !isSounding { asked.remove(session.id) }
        switch session.state {
        case .active:
            guard !isSounding else { return nil }
            let since = quiet[session.id] ?? now
            quiet[session.id] = since
            let due = since + (session.sessionClass == .app ? Enforcement.pause : 0)
            if due <= now { return .deactivate(session.id) }
            stepDeadline = min(stepDeadline ?? due, due)
            return nil
        case .inactive:
            guard isSounding else { return nil }
            // It is asked to come back; or nobody would mind; or it is new, or a person has started it: then the rules
            // say whether it may. A program that cannot be told must not stay silent for ever.
            let isFirst = asked.insert(session.id).inserted
            if session.mayResume || (isFirst || isFresh) && !session.holdsClaim { return .activate(session.id) }
            return session.isFreeToActivate && (isFresh || !session.holdsClaim) ? .activate(session.id) : nil
        case .interrupted:
            // Against a declared call nothing but its end helps; against an app, or a call that was guessed, the user may
            // start it again (R9). Not at once:
            // PipeWire shows a stream as paused while it is taken from a device that went, and as playing again.
            guard now >= session.since + Enforcement.aftermath else { return nil }
            return isSounding && isFresh && session.mayBeTakenBack ? .activate(session.id) : nil
        }
    }

    // MARK: Streams

    /// What the server is to do now.
    public mutating func commands(_ facts: Facts, at now: UInt64) -> Outcome {
        var outcome = Outcome()
        outcome.deadline = stepDeadline
        outcome.expectsCall = calls.isBeginning
        let owners = owners(facts)
        let present = Set(facts.streams.map(\.stream.id))
        controls = controls.filter { present.contains($0.key) }
        treatments = treatments.filter { present.contains($0.key) }
        ignoring.formIntersection(present)
        farewells = farewells.filter { present.contains($0.key) }
        // What is paused comes last: its server can take back what it fetched ahead of it once nothing else is held.
        let streams = facts.streams.map(\.stream)
        for stream in streams.filter({ !$0.isCorked }) + streams.filter(\.isCorked) {
            let sessions = facts.sessions.filter { owners[stream.id, default: []].contains($0.id) }
            let target = treatment(of: stream, sessions, among: facts.sessions, at: now, &outcome)
            treatments[stream.id] = target
            let isUntouched = controls[stream.id] == nil
            if isUntouched, target == .free(lowered: 0), !stream.isHeld { continue }
            var control =
                controls[stream.id]
                ?? StreamControl(
                    stream, device: stream.isHeld || stream.deviceName == facts.defaultDevice ? nil : stream.deviceName,
                    isNew: !known.contains(stream.id))
            control.observe(stream)
            let pace = StreamControl.Pace(settings.ducking, stream.rendering)
            outcome.commands += control.advance(
                to: target, stream, at: now, pace, canHold: facts.canHold, mayHold: facts.mayHold, &outcome.deadline)
            let isDone = target == .free(lowered: 0) && control.isSettled
            controls[stream.id] = isDone ? nil : control
        }
        known = present
        return outcome
    }

    private mutating func treatment(
        of stream: AudioStream, _ sessions: [SessionFacts], among all: [SessionFacts], at now: UInt64,
        _ outcome: inout Outcome
    ) -> Treatment {
        let before = treatments[stream.id] ?? .free(lowered: 0)
        var result: Treatment?
        for session in sessions {
            let verdict = verdict(on: stream, of: session, among: all, before, at: now, &outcome)
            result = result.map { Treatment.milder($0, verdict) } ?? verdict
        }
        return result ?? .free(lowered: 0)
    }

    private mutating func verdict(
        on stream: AudioStream, of session: SessionFacts, among all: [SessionFacts], _ before: Treatment,
        at now: UInt64, _ outcome: inout Outcome
    ) -> Treatment {
        let isPlaying = stream.direction == .playback
        let category = session.configuration.category
        // A recording of what plays takes nobody's microphone.
        if !isPlaying, stream.portUID == nil || session.kind != .told { return .free(lowered: 0) }
        switch (settings.enforcement.mode, session.kind) {
        case (.off, _), (.cooperative, .adopted): return .free(lowered: 0)
        case (.cooperative, .told), (.full, _): break
        }
        let may = isPlaying ? category.hasOutput : category.hasInput
        switch (session.state, session.kind) {
        case (.active, _):
            ignoring.remove(stream.id)
            if !may || isPlaying && session.isMuted { return .muted }
            return .free(lowered: isPlaying && !session.lowersItself ? Int(session.lowered.rounded()) : 0)
        case (.interrupted, .told):
            let due = session.since + UInt64(settings.enforcement.deadline * 1_000_000)
            if now < due {
                if !stream.isCorked { outcome.deadline = min(outcome.deadline ?? due, due) }
                return before
            }
            // Who paused by itself in time is left alone.
            guard before == .held || before == .muted || !stream.isCorked else { return before }
            if !stream.isCorked {
                outcome.ignoring.insert(session.id)
                ignoring.insert(stream.id)
            }
            return isPlaying ? .held : .muted
        case (.interrupted, .adopted): return stream.isCorked && before != .held ? .free(lowered: 0) : .held
        case (.inactive, .told):
            if isPlaying && session.isMuted { return .muted }
            // R2: who was silenced comes back by activating itself, or as its person starts it again.
            if ignoring.contains(stream.id), !stream.isCorked, !session.mayResume { return isPlaying ? .held : .muted }
            ignoring.remove(stream.id)
            return isPlaying && !stream.isCorked && isHushed(session, by: all) ? .held : .free(lowered: 0)
        case (.inactive, .adopted): return stream.isCorked ? .free(lowered: 0) : .held
        }
    }

    /// Whether a call or an alert of somebody else's, begun at `since` or later, silences an app that did not ask then
    /// whether it may sound.
    private func isHushed(_ session: SessionFacts, by sessions: [SessionFacts], since: UInt64 = 0) -> Bool {
        session.sessionClass == .app
            && sessions.contains {
                $0.state == .active && $0.sessionClass != .app && $0.id != session.id && $0.since >= since
            }
    }

    // MARK: What became of it

    /// The server has done it, or refused.
    public mutating func answered(_ command: StreamCommand, succeeded: Bool, at now: UInt64) {
        controls[command.stream]?.answered(command, succeeded: succeeded, at: now)
    }

    /// A stream that an earlier daemon, or connection, was not done with. `isNew`: one that started as it left another.
    public mutating func takeOver(_ stream: AudioStream, _ base: StreamBase, isNew: Bool) {
        controls[stream.id] = StreamControl(stream, found: base, isNew: isNew)
    }

    /// Whether it is the first time that this stream is looked at.
    public func isNew(_ id: AudioStream.ID) -> Bool { !known.contains(id) && controls[id] == nil }

    /// The server is away: what was told to it is no longer known.
    public mutating func forgetStreams() {
        controls = [:]
        treatments = [:]
        ignoring = []
        farewells = [:]
        known = []
        playing = []
        began = [:]
    }

    /// Every stream that is not, or not certainly, as its person left it.
    public var kept: [AudioStream.ID: StreamBase] { controls.mapValues(\.base) }

    /// Everything at once as its person left it.
    public mutating func restore(_ streams: [AudioStream]) -> [StreamCommand] {
        streams.flatMap { controls[$0.id]?.restore($0) ?? [] }
    }
}
