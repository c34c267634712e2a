public import PluginAPI
import SessionManager

/// Makes streams follow their sessions: decides which session a stream belongs to, which programs are adopted, and
/// which streams are ducked, muted or held.
///
/// It is a value without a clock or a server: it gets all facts each time, and returns the missing changes. First call
/// ``steps(_:at:)`` until there are none, then ``commands(_:at:)``.
public struct Enforcement: Sendable, Codable {
    /// All facts. Times are microseconds on the monotonic clock.
    public struct Facts: Sendable {
        public var sessions: [SessionFacts]
        public var streams: [StreamFacts]
        /// ``AudioSnapshot/canHold``.
        public var canHold: Bool
        /// ``AudioSnapshot/hasHold``.
        public var hasHold = true
        /// Whether a further stream may be held: false while other software loses track of moved streams.
        public var mayHold: Bool
        /// The default device. A held stream of this device is moved back to the device that is the default then.
        public var defaultDevice: String?
        /// Processes that have ended.
        public var gone: Set<UInt32>
        /// Programs that report a call by other means: their current call does not end.
        public var sustainedCalls: Set<Program.Key>
        /// Whether a call of any session is active: it refuses alerts.
        public var isInCall = false
        /// ``AudioSnapshot/isHeadsetHandsFree``.
        public var isHeadsetHandsFree = false

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

    /// A change of adopted sessions.
    public enum Step: Sendable, Hashable {
        /// `evidence`: that of a guessed call; else empty.
        case adopt(AdoptedProgram, Program, evidence: String)
        /// The program is adopted with another role of the same class, by changed settings.
        case change(SessionID, to: AdoptedProgram)
        case activate(SessionID)
        /// The user started the program while its session was interrupted: it is heard.
        case takeBack(SessionID)
        /// The sound ended; sessions that wait may resume.
        case deactivate(SessionID)
        case close(SessionID)
    }

    /// The results for the server and for the log.
    public struct Outcome: Sendable {
        /// In order.
        public var commands: [StreamCommand] = []
        /// The streams whose required state changed; the commands lead to that.
        public var changes: [Change] = []
        /// Clients' sessions that played on after their deadline.
        public var ignoring: Set<SessionID> = []
        /// When to check again; nil: when something changes.
        public var deadline: UInt64?
        /// Whether a call may begin soon, which will hold streams.
        public var expectsCall = false
        /// As ``AudioBackend/measured``.
        public var measured: Set<AudioStream.ID> = []

        /// A stream must be treated otherwise from now on.
        public struct Change: Sendable, Hashable {
            public let stream: AudioStream.ID
            /// The sessions to which it belongs.
            public let sessions: [SessionID]
            public let treatment: Treatment
        }
    }

    public var settings: Settings {
        didSet {
            if former == nil { former = .settings(oldValue) }
            refused = [:]
        }
    }
    /// The settings by which the current sessions were adopted, until ``steps(_:at:)`` has changed them to the new
    /// settings.
    private var former: Former? = .earlierDaemon

    private enum Former: Codable {
        case settings(Settings)
        /// By unknown settings of an earlier daemon.
        case earlierDaemon
    }

    /// The guessed calls.
    var calls = CallEvidence()
    /// The calls that streams declare by their label, and how they are adopted.
    var declaredCalls: [Program.Key: Settings.Role] = [:]
    /// The streams that are alarms, and whether they began during a call.
    private var alarms: [AudioStream.ID: Bool] = [:]
    private var controls: [AudioStream.ID: StreamControl] = [:]
    private var treatments: [AudioStream.ID: Treatment] = [:]
    private var following = DefaultFollowing()
    /// Streams of clients that played on and were silenced, until the user or the program stops them.
    private var ignoring: Set<AudioStream.ID> = []
    /// What programs do with their streams.
    private var activity = StreamActivity()
    /// Interrupted sessions that are heard because the user started their programs, and since when (``hear(_:at:)``).
    private var heard: [SessionID: UInt64] = [:]
    /// All streams at the last check.
    private var known: Set<AudioStream.ID> = []
    /// Those of them that were not paused, recordings included.
    private var playing: Set<AudioStream.ID> = []
    /// Since when each stream plays, as observed, and since when it is paused after that.
    private var began: [AudioStream.ID: Beginning] = [:]

    private struct Beginning: Codable {
        let time: UInt64
        var paused: UInt64?
    }

    /// The streams that are judged by their sound and make none.
    private var silent: Set<AudioStream.ID> = []
    /// Since when an active adopted session is silent.
    private var quiet: [SessionID: UInt64] = [:]
    /// Adopted sessions that were activated since they last fell silent.
    private var asked: Set<SessionID> = []
    /// Adopted sessions whose activation was requested in this look at the streams: if the rules refused it, they would
    /// refuse it again.
    private var tried: Set<SessionID> = []
    /// Programs without a session whose adoption was requested, with the number of sessions at the last look. If the rules
    /// refused it, it is requested again when there are fewer sessions, or after the settings have changed.
    private var refused: [AdoptedProgram: Int] = [:]
    var stepDeadline: UInt64?
    /// Streams on the hold sink at the last check, and when one was last seen to arrive there.
    private var held: Set<AudioStream.ID> = []
    private var lastHeld: UInt64 = 0
    /// Until when the streams of a closed client session may still end; ``exists``: the session exists.
    private var farewells: [AudioStream.ID: UInt64] = [:]
    private static let farewell: UInt64 = 200_000
    /// Later than any time.
    private static let exists: UInt64 = 1 << 62

    /// How long an app may be silent between two pieces, in microseconds; calls and alerts end at once.
    public static let pause: UInt64 = 1_000_000
    /// How long an alarm may be silent before it rings again, in microseconds.
    public static let alarmPause: UInt64 = 5_000_000

    /// `isOpen`: its program has a stream that is judged by its sound, and is open.
    private func pause(of session: SessionFacts, isOpen: Bool) -> UInt64 {
        if session.isAlarm { return Enforcement.alarmPause }
        guard session.sessionClass == .app else { return 0 }
        return isOpen ? Enforcement.afterSound - AudioStream.soundSpan : Enforcement.pause
    }

    public init(_ settings: Settings) { self.settings = settings }

    // MARK: Sessions of streams

    /// The sessions of each stream: clients' sessions by ``StreamOwnership``, else the adopted one.
    public func owners(_ facts: Facts) -> [AudioStream.ID: [SessionID]] {
        let clients = facts.sessions.filter { $0.kind == .client }
        var adopted: [AdoptedProgram: SessionID] = [:]
        for session in facts.sessions { if case .adopted(let program) = session.kind { adopted[program] = session.id } }
        var result: [AudioStream.ID: [SessionID]] = [:]
        for stream in facts.streams {
            let owners = StreamOwnership.owners(of: stream, among: clients)
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
        Adoption(
            settings: settings, call: { calls.call(of: $0) }, labelledCall: { declaredCalls[$0] },
            isQuietAlarm: { alarms[$0] == true })
    }

    /// Why and how the program was adopted, for display. A paused program may have no stream.
    public func reason(for adopted: AdoptedProgram, _ facts: Facts) -> String {
        let streams = facts.streams.filter { program(of: $0, by: settings) == adopted }
        let session = facts.sessions.first { $0.kind == .adopted(adopted) }
        let reason = adoption(by: settings).reason(
            for: adopted, evidence: session?.evidence ?? "", of: streams.first)
        let latest = streams.compactMap { began[$0.stream.id] }.filter { $0.paused == nil }.map(\.time).max()
        guard let latest, let session,
            session.state == .inactive, isHushed(session, by: facts.sessions, since: latest)
        else { return reason }
        return reason + "; it played before the current call or alert began, and is silent until that ends"
    }

    /// Why a stream that belongs to no session gets none.
    public func unadopted(_ stream: StreamFacts) -> Unadopted {
        switch adoption(by: settings).verdict(on: stream) {
        case .not(let reason): reason
        case .adopted where stream.stream.isCorked: .paused
        case .adopted(let program): refused[program] == nil ? .soon : .refused
        }
    }

    // MARK: Adopted sessions

    /// The next changes of adopted sessions. Call again with new facts afterwards, until there are none.
    public mutating func steps(_ facts: Facts, at now: UInt64) -> [Step] {
        let look = activity.look(facts.streams, at: now)
        stepDeadline = look.deadline
        var facts = facts
        facts.streams = look.streams
        forgetHeard(facts.sessions)
        silent = silentStreams(facts)
        noteBeginnings(facts, at: now)
        noteAlarms(facts)
        let clients = facts.sessions.filter { $0.kind == .client }
        lookForCalls(facts, clients, at: now)
        var isRestart = false
        if let former {
            if let step = changed(from: former, facts, clients) { return [step] }
            if case .earlierDaemon = former { isRestart = true }
            self.former = nil
        }
        var present: Set<AdoptedProgram> = []
        var sounding: [AdoptedProgram] = []
        var fresh: Set<AdoptedProgram> = []
        var open: Set<AdoptedProgram> = []
        /// Those that the user started, if their sessions are interrupted: by a stream that had been paused, or by a new one.
        var started: Set<AdoptedProgram> = []
        var startedAnew: Set<AdoptedProgram> = []
        var names: [AdoptedProgram: Program] = [:]
        var latest: [AdoptedProgram: UInt64] = [:]
        for stream in facts.streams where isNobodys(stream, clients, at: now) {
            guard let program = program(of: stream, by: settings) else { continue }
            present.insert(program)
            // Playing streams have the better name: Chromium calls its recordings "Chromium input".
            if names[program] == nil || stream.stream.direction == .playback { names[program] = stream.program }
            if silent.contains(stream.stream.id) { open.insert(program) }
            guard program.isGuess || !isPaused(stream.stream) else { continue }
            if !sounding.contains(program) { sounding.append(program) }
            if !playing.contains(stream.stream.id) { fresh.insert(program) }
            if let beginning = look.beginnings[stream.stream.id], UsersHand(beginning) == .started {
                if case .newStream = beginning { startedAnew.insert(program) } else { started.insert(program) }
            }
            latest[program] = max(latest[program] ?? 0, began[stream.stream.id]?.time ?? now)
        }
        var steps: [Step] = []
        for session in facts.sessions {
            guard case .adopted(let program) = session.kind else { continue }
            // A call continues for a while without any stream.
            let isInCall = program.isGuess && calls.call(of: program.program) != nil
            let isSounding = sounding.contains(program) || isInCall
            sounding.removeAll { $0 == program }
            if program.isGuess
                ? isOver(session, program.program, isInCall, facts, clients, at: now)
                : !present.contains(program) && isGone(session, program.program, facts, clients)
            {
                steps.append(.close(session.id))
                continue
            }
            if session.state == .inactive, isHushed(session, by: facts.sessions, since: latest[program] ?? now) {
                // It played before, and is adopted only now: settings were reloaded, or its own session ended.
                continue
            }
            // The earlier daemon has requested its activation, and then silenced its streams.
            if isRestart, isSounding, !fresh.contains(program) { asked.insert(session.id) }
            // A program that its player has paused says by the player that it plays: another page of a browser does not.
            let isStarted =
                started.contains(program) || !session.hasPausedPlayer && startedAnew.contains(program)
            if let step = step(
                session, isSounding: isSounding, isOpen: open.contains(program),
                isFresh: fresh.contains(program), isStarted: isStarted, at: now)
            {
                steps.append(step)
            }
        }
        refused = refused.filter { sounding.contains($0.key) }
        for program in sounding {
            guard let name = names[program] else { continue }
            let count = facts.sessions.count
            let isRefused = refused[program].map { $0 <= count } ?? false
            refused[program] = count
            if isRefused { continue }
            let evidence = program.isGuess ? calls.call(of: program.program)?.words : nil
            steps.append(.adopt(program, name, evidence: evidence ?? ""))
        }
        steps.removeAll { step in
            switch step {
            case .activate(let id), .takeBack(let id): !tried.insert(id).inserted
            case .adopt, .change, .deactivate, .close: false
            }
        }
        if steps.isEmpty {
            playing = Set(facts.streams.filter { !$0.stream.isCorked }.map(\.stream.id))
            tried = []
            let adopted = Set(facts.sessions.compactMap(\.adopted?.program))
            activity.note(look, keeping: adopted.contains)
        }
        return steps
    }

    private mutating func noteBeginnings(_ facts: Facts, at now: UInt64) {
        let streams = facts.streams.map(\.stream)
        let present = Set(streams.map(\.id))
        began = began.filter { present.contains($0.key) }
        // A stream that is being held or moved back may be shown as paused during that time.
        for stream in streams {
            if isPaused(stream), !stream.isHeld {
                if began[stream.id]?.paused == nil { began[stream.id]?.paused = now }
            } else if let paused = began[stream.id]?.paused, now < paused + UsersHand.move {
                began[stream.id]?.paused = nil
            } else if began[stream.id]?.paused != nil || began[stream.id] == nil {
                began[stream.id] = Beginning(time: now)
            }
        }
    }

    private mutating func noteAlarms(_ facts: Facts) {
        var present: [AudioStream.ID: Bool] = [:]
        for stream in facts.streams.map(\.stream) where stream.isAlarm {
            // One that is held was interrupted by the call.
            present[stream.id] = alarms[stream.id] ?? (facts.isInCall && !stream.isHeld)
        }
        alarms = present
    }

    /// Paused by its program, or without a sound although it is judged by that.
    private func isPaused(_ stream: AudioStream) -> Bool { stream.isCorked || silent.contains(stream.id) }

    /// If changed settings adopt a program with another role, its session continues with that role and keeps claims and
    /// waits. If the class differs, or another session has that role already, it is closed.
    private func changed(from former: Former, _ facts: Facts, _ clients: [SessionFacts]) -> Step? {
        for stream in facts.streams where StreamOwnership.owners(of: stream, among: clients).isEmpty {
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

    /// The former role of a program whose playing streams no longer have a session.
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

    /// Whether it is to be adopted. After its own session closed, not for a while: a program that exits disconnects
    /// from the bus first, and its sound ends some milliseconds later.
    private mutating func isNobodys(_ facts: StreamFacts, _ clients: [SessionFacts], at now: UInt64) -> Bool {
        let id = facts.stream.id
        guard StreamOwnership.owners(of: facts, among: clients).isEmpty else {
            farewells[id] = Enforcement.exists
            return false
        }
        guard var due = farewells[id] else { return true }
        if due == Enforcement.exists { due = now + Enforcement.farewell }
        farewells[id] = due > now ? due : nil
        if due > now { stepDeadline = min(stepDeadline ?? due, due) }
        return due <= now
    }

    /// For a session without a stream.
    private func isGone(
        _ session: SessionFacts, _ program: Program.Key, _ facts: Facts, _ clients: [SessionFacts]
    ) -> Bool {
        if settings.adoption.isOff { return true }
        switch program {
        // Its program has created its own session.
        case .process(let id): return facts.gone.contains(id) || clients.contains { $0.process == id }
        // The end is unknown. Players close their stream while they are paused, and must be resumed.
        case .sandbox, .name:
            if session.isAlarm { return session.state == .inactive && !session.holdsClaim }
            return session.state != .interrupted && !session.mayResume
        }
    }

    private mutating func step(
        _ session: SessionFacts, isSounding: Bool, isOpen: Bool, isFresh: Bool, isStarted: Bool, at now: UInt64
    ) -> Step? {
        if isSounding || session.state != .active { quiet[session.id] = nil }
        if !isSounding { asked.remove(session.id) }
        switch session.state {
        case .active:
            guard !isSounding else { return nil }
            let since = quiet[session.id] ?? now
            quiet[session.id] = since
            let due = since + pause(of: session, isOpen: isOpen)
            if due <= now { return .deactivate(session.id) }
            stepDeadline = min(stepDeadline ?? due, due)
            return nil
        case .inactive:
            // A program that is not paused does not wait for anything: it plays where the server puts it.
            if session.lostItsOutput, isSounding { return .deactivate(session.id) }
            // An alarm that rang before a call, and does not ring any more, will not come back.
            if session.isAlarm, session.holdsClaim, !isSounding { return .deactivate(session.id) }
            guard isSounding else { return nil }
            // It is activated if it should resume, or if it would interrupt no other session. If it is new, or the user
            // started it, the rules decide. A program that gets no signals must not stay silent forever.
            let isFirst = asked.insert(session.id).inserted
            if session.mayResume || (isFirst || isFresh) && !session.holdsClaim { return .activate(session.id) }
            return session.isFreeToActivate && (isFresh || !session.holdsClaim) ? .activate(session.id) : nil
        case .interrupted:
            // What its streams show just after its player was asked to pause or to play may be the effect of that.
            return isStarted && session.mayBeTakenBack && !session.isPausing ? .takeBack(session.id) : nil
        }
    }

    // MARK: The user's hand

    /// The user started the program of an interrupted session, and the rules do not let the session become active: an alert
    /// is on. Its streams are let go until another call or alert begins.
    public mutating func hear(_ id: SessionID, at now: UInt64) { heard[id] = now }

    /// Whether it is heard although it is interrupted.
    public func isHeard(_ id: SessionID) -> Bool { heard[id] != nil }

    /// Whether the daemon holds or mutes the stream.
    public func isSilenced(_ id: AudioStream.ID) -> Bool {
        switch treatments[id] {
        case .held, .muted: true
        case .free, nil: false
        }
    }

    private mutating func forgetHeard(_ sessions: [SessionFacts]) {
        if heard.isEmpty { return }
        heard = heard.filter { id, time in
            sessions.contains {
                $0.id == id && $0.state == .interrupted && !isHushed($0, by: sessions, since: time + 1)
            }
        }
    }

    // MARK: Streams

    /// The commands for the server.
    public mutating func commands(_ facts: Facts, at now: UInt64) -> Outcome {
        var facts = facts
        facts.streams = activity.look(facts.streams, at: now).streams
        forgetHeard(facts.sessions)
        var outcome = Outcome()
        outcome.deadline = stepDeadline
        let adoption = adoption(by: settings)
        outcome.expectsCall =
            calls.isBeginning
            || facts.streams.contains { isNew($0.stream.id) && adoption.mayDeclareCall($0) != nil }
        outcome.measured = judgedBySound(facts)
        let owners = owners(facts)
        let present = Set(facts.streams.map(\.stream.id))
        controls = controls.filter { present.contains($0.key) }
        treatments = treatments.filter { present.contains($0.key) }
        ignoring.formIntersection(present)
        farewells = farewells.filter { present.contains($0.key) }
        // Paused streams come last: the server can take back data it prepared for them only when no other stream is
        // held.
        let streams = facts.streams.map(\.stream)
        following.look(streams, defaultDevice: facts.defaultDevice, at: now)
        let arrived = Set(streams.filter(\.isHeld).map(\.id))
        if !arrived.isSubset(of: held) { lastHeld = now }
        held = arrived
        let readers = Set(facts.streams.filter(\.readsAloud).map(\.stream.id))
        for stream in streams.filter({ !$0.isCorked }) + streams.filter(\.isCorked) {
            let sessions = facts.sessions.filter { owners[stream.id, default: []].contains($0.id) }
            let target =
                readers.contains(stream.id)
                ? .free(lowered: 0) : treatment(of: stream, sessions, among: facts.sessions, at: now, &outcome)
            if target != treatments[stream.id, default: .free(lowered: 0)] {
                outcome.changes.append(
                    Outcome.Change(stream: stream.id, sessions: sessions.map(\.id), treatment: target))
            }
            treatments[stream.id] = target
            let isUntouched = controls[stream.id] == nil
            if isUntouched, target == .free(lowered: 0), !stream.isHeld { continue }
            var control =
                controls[stream.id]
                ?? StreamControl(
                    stream, device: stream.isHeld || following.contains(stream.id) ? nil : stream.deviceName,
                    isNew: !known.contains(stream.id))
            control.observe(stream, at: now)
            let pace = StreamControl.Pace(settings.ducking, stream.rendering)
            outcome.commands += control.advance(
                to: target, stream, at: now, pace, canHold: facts.canHold, hasHold: facts.hasHold,
                mayHold: facts.mayHold, progress: lastHeld, &outcome.deadline)
            let isDone = target == .free(lowered: 0) && control.isSettled
            controls[stream.id] = isDone ? nil : control
        }
        known = present
        for command in outcome.commands where command.isMove { activity.moved(command.stream, at: now) }
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
        // The hold sink takes no encoded sound: the server would end the stream. What comes from an input does not wait.
        if result == .held, stream.isEncoded || stream.inputName != nil { return .muted }
        return result ?? .free(lowered: 0)
    }

    private mutating func verdict(
        on stream: AudioStream, of session: SessionFacts, among all: [SessionFacts], _ before: Treatment,
        at now: UInt64, _ outcome: inout Outcome
    ) -> Treatment {
        let isPlaying = stream.direction == .playback
        let category = session.configuration.category
        // A recording of a monitor does not use a microphone.
        if !isPlaying, stream.portUID == nil || session.kind != .client { return .free(lowered: 0) }
        switch (settings.enforcement.mode, session.kind) {
        case (.off, _), (.cooperative, .adopted): return .free(lowered: 0)
        case (.cooperative, .client), (.full, _): break
        }
        let may = isPlaying ? category.hasOutput : category.hasInput
        switch (session.state, session.kind) {
        case (.active, _):
            ignoring.remove(stream.id)
            if !may || isPlaying && session.isMuted { return .muted }
            return .free(lowered: isPlaying && !session.lowersItself ? Int(session.lowered.rounded()) : 0)
        case (.interrupted, .client):
            let due = session.since + UInt64(settings.enforcement.deadline * 1_000_000)
            if now < due {
                if !stream.isCorked { outcome.deadline = min(outcome.deadline ?? due, due) }
                return before
            }
            // A stream whose program paused it in time is not changed.
            guard before == .held || before == .muted || !stream.isCorked else { return before }
            if !stream.isCorked {
                outcome.ignoring.insert(session.id)
                ignoring.insert(stream.id)
            }
            return isPlaying ? .held : .muted
        case (.interrupted, .adopted):
            if heard[session.id] != nil { return .free(lowered: 0) }
            guard stream.isCorked else { return .held }
            return before != .held || isLeftToUser(session, at: now, &outcome) ? .free(lowered: 0) : .held
        case (.inactive, .client):
            if isPlaying && session.isMuted { return .muted }
            // R2: a silenced client comes back by activating its session, or when the user starts it again.
            if ignoring.contains(stream.id), !stream.isCorked, !session.mayResume { return isPlaying ? .held : .muted }
            ignoring.remove(stream.id)
            return isPlaying && !stream.isCorked && isHushed(session, by: all) ? .held : .free(lowered: 0)
        case (.inactive, .adopted):
            if silent.contains(stream.id) { return session.isMuted ? .muted : .free(lowered: 0) }
            return stream.isCorked ? .free(lowered: 0) : .held
        }
    }

    /// Whether nothing but its user will start its paused player again. Then its paused streams need no hold, which might
    /// last for days.
    private func isLeftToUser(_ session: SessionFacts, at now: UInt64, _ outcome: inout Outcome) -> Bool {
        guard session.hasPausedPlayer, let due = session.awaitsUserFrom else { return false }
        if now < due { outcome.deadline = min(outcome.deadline ?? due, due) }
        return now >= due
    }

    /// Whether a call or alert of another session, begun at `since` or later, silences an app that has not asked since
    /// then.
    private func isHushed(_ session: SessionFacts, by sessions: [SessionFacts], since: UInt64 = 0) -> Bool {
        session.sessionClass == .app
            && sessions.contains {
                $0.state == .active && $0.sessionClass != .app && $0.id != session.id && $0.since >= since
            }
    }

    // MARK: Results

    /// The server has carried it out, or refused.
    public mutating func answered(_ command: StreamCommand, succeeded: Bool, at now: UInt64) {
        controls[command.stream]?.answered(command, succeeded: succeeded, at: now)
    }

    /// A stream that an earlier daemon or connection had changed. `isNew`: it started with the values of its
    /// predecessor.
    public mutating func takeOver(_ stream: AudioStream, _ kept: KeptStream, isNew: Bool) {
        controls[stream.id] = StreamControl(stream, found: kept.base, isNew: isNew)
        if kept.ignoresInterruption { ignoring.insert(stream.id) }
        // It played before it was silenced: the user has not started it now.
        if !isNew, let time = kept.began, stream.isHeld || stream.isMuted && !kept.base.isMuted {
            began[stream.id] = Beginning(time: time)
            playing.insert(stream.id)
        }
    }

    /// The streams whose level is on its way: a volume that the user sets in between must be seen before the next step
    /// replaces it.
    public var ramping: Set<AudioStream.ID> { Set(controls.filter { $0.value.isRamping }.keys) }

    /// Whether this stream is checked for the first time.
    public func isNew(_ id: AudioStream.ID) -> Bool { !known.contains(id) && controls[id] == nil }

    /// The server is gone: the state of pending commands is unknown.
    public mutating func forgetStreams() {
        controls = [:]
        treatments = [:]
        held = []
        ignoring = []
        farewells = [:]
        known = []
        playing = []
        activity.forgetStreams()
        began = [:]
    }

    /// Whether this stream is muted. A stream that should be held is if it cannot be moved, or is not moved yet.
    public func isMuted(_ id: AudioStream.ID) -> Bool { controls[id]?.isMuted == true }

    /// Every stream that differs, or may differ, from what the user left.
    public var kept: [AudioStream.ID: KeptStream] {
        var kept: [AudioStream.ID: KeptStream] = [:]
        for (id, control) in controls {
            kept[id] = KeptStream(
                base: control.base, ignoresInterruption: ignoring.contains(id), began: began[id]?.time)
        }
        return kept
    }

    /// Restores all streams at once.
    public mutating func restore(_ streams: [AudioStream]) -> [StreamCommand] {
        streams.flatMap { controls[$0.id]?.restore($0) ?? [] }
    }
}

/// What the next daemon must know about a stream that differs, or may differ, from what the user left.
public struct KeptStream: Sendable, Hashable, Codable {
    /// The values to restore.
    public var base: StreamBase
    /// Whether it belongs to a client that played on after it was interrupted: it stays silent until the user or the
    /// program stops it, also when the interruption is over.
    public var ignoresInterruption: Bool
    /// Since when it plays, in microseconds on the monotonic clock; nil: it was not seen playing.
    public var began: UInt64?

    public init(base: StreamBase, ignoresInterruption: Bool = false, began: UInt64? = nil) {
        self.base = base
        self.ignoresInterruption = ignoresInterruption
        self.began = began
    }
}
