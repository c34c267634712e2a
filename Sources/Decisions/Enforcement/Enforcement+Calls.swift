import PluginAPI

/// Guessed calls.
extension Enforcement {
    /// Whether a guessed call is closed: its program has gone, or the call ended a while ago, in which time the players
    /// that it paused are resumed.
    mutating func isOver(
        _ session: SessionFacts, _ program: Program.Key, _ isInCall: Bool, _ facts: Facts, _ clients: [SessionFacts],
        at now: UInt64
    ) -> Bool {
        if settings.adoption.isOff { return true }
        if case .process(let id) = program, facts.gone.contains(id) || clients.contains(where: { $0.process == id }) {
            return true
        }
        guard session.state == .inactive, !isInCall, !session.mayResume else { return false }
        let due = session.since + Enforcement.afterCall
        if due > now { stepDeadline = min(stepDeadline ?? due, due) }
        return due <= now
    }

    /// Updates which programs are in a call, declared or guessed.
    mutating func lookForCalls(_ facts: Facts, _ clients: [SessionFacts], at now: UInt64) {
        // A program with its own session declares what it does.
        let streams = facts.streams.filter { StreamOwnership.owners(of: $0, among: clients).isEmpty }
        let adoption = adoption(by: settings)
        var players = Set(
            streams.filter { $0.stream.direction == .playback && !$0.stream.isCorked }.compactMap(\.program?.key))
        // A program whose player was paused for its own call would play otherwise.
        for session in facts.sessions where session.state == .interrupted && session.sessionClass == .app {
            if case .adopted(let adopted) = session.kind, declaredCalls[adopted.program] != nil {
                players.insert(adopted.program)
            }
        }
        var declared: [Program.Key: Settings.Role] = [:]
        for stream in streams where !stream.stream.isCorked {
            if let key = stream.program?.key, let role = adoption.declaredCall(stream, players: players) {
                declared[key] = role
            }
        }
        var known: [Program.Key: String] = [:]
        for session in facts.sessions {
            if case .adopted(let adopted) = session.kind, adopted.isGuess, session.state != .inactive {
                known[adopted.program] = session.evidence
            }
        }
        let labelled = Set(streams.filter(adoption.saysCall).compactMap(\.program?.key))
        let suspects = streams.filter { stream in
            adoption.maySuggestCall(stream, labelled: labelled)
                && stream.program.map { declared[$0.key] == nil } ?? false
        }
        declaredCalls = declared
        if suspects.isEmpty, known.isEmpty, calls.isEmpty { return }
        calls.forget { key in
            if case .process(let id) = key { return facts.gone.contains(id) }
            return false
        }
        let due = calls.look(
            suspects, known: known, sustained: facts.sustainedCalls.contains,
            isHandsFree: facts.isHeadsetHandsFree, at: now)
        if let due { stepDeadline = min(stepDeadline ?? due, due) }
    }

    /// How long a guessed call is kept after its end, in microseconds.
    private static let afterCall: UInt64 = 10_000_000
}
