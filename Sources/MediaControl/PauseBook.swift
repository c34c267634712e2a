/// The players that the daemon paused, and which of them it may resume: only those that it paused, that are still
/// paused on the same track, that the user did not use since, and whose pause is not too old.
///
/// It gets facts and demands and returns commands, in order. A demand is the wanted state, not a change: the same
/// demand twice does nothing. Before each command, the player is asked for its state, because some players toggle on
/// `Pause`, and some do not signal their changes. A player that does not answer gets no command, and nothing waits for
/// it. Times are microseconds of a monotonic clock.
///
/// `Player` identifies the connection of a player; a restarted player is another one.
public struct PauseBook<Player: Hashable & Sendable>: Sendable {
    /// A command for a player, in order.
    public enum Command: Sendable, Hashable {
        /// Read the player's properties, and report the result with ``answered(_:_:at:)``.
        case ask(Player)
        /// Call `Pause`, and report the result with ``pauseEnded(_:succeeded:at:)``.
        case pause(Player)
        /// Call `Play`, and report the result with ``playEnded(_:succeeded:at:)``.
        case play(Player)
        /// The user started it while it should be silent: its session takes the sound back (R9).
        case takeBack(Player)
    }

    /// A player that the daemon has paused or is about to pause, and may resume. It is stored for the next daemon.
    public struct Kept: Sendable, Hashable {
        public let player: Player
        /// The track at that time: it is resumed only on this track.
        public let track: Track
        /// When it was asked to pause.
        public let since: UInt64
        /// Whether it was seen paused; false if it was only asked to pause, or will be asked next.
        public let isSeen: Bool

        public init(player: Player, track: Track, since: UInt64, isSeen: Bool) {
            self.player = player
            self.track = track
            self.since = since
            self.isSeen = isSeen
        }
    }

    /// A command that silences a player.
    private struct Pause: Sendable {
        let track: Track
        /// When it was sent.
        let since: UInt64
        /// When the player confirmed it; nil: not yet.
        var answered: UInt64?
    }

    private enum Step: Sendable {
        /// The daemon has not changed this player.
        case idle
        /// Asked for its state, to be paused if it plays.
        case lookingToPause
        /// Asked to pause, and not yet seen paused. `answered`: when it confirmed.
        case pausing(since: UInt64, answered: UInt64?)
        /// Asked to pause by an earlier daemon, or about to be, with unknown result.
        case perhapsPaused(Pause)
        /// Paused by the daemon.
        case paused(Pause)
        /// Asked for its state, to be resumed if it is unchanged.
        case lookingToPlay(Pause)
        /// Asked to play, and not yet seen playing. `answered` as above.
        case resuming(Pause, answered: UInt64?)
        /// The user, or the player itself, changed it last; `after`: a command of ours whose signal may still arrive.
        case left(after: Pause?)
    }

    private struct Entry: Sendable {
        var facts: PlayerFacts?
        var demand = Demand.free
        var step = Step.idle
    }

    /// How long after the confirmation of a command its signal may still arrive, in microseconds. A later signal is
    /// from the user.
    public static var echoTime: UInt64 { 1_000_000 }

    /// Microseconds after which a paused player stays paused; 0: no limit.
    public var maxAge: UInt64 = 0
    private var entries: [Player: Entry] = [:]

    public init() {}

    // MARK: Events

    /// The rules have this demand on the player now. This, or a signal of the player, adds the player to the book.
    public mutating func demand(_ demand: Demand, of player: Player, at now: UInt64) -> [Command] {
        var entry = entries[player] ?? Entry()
        guard entry.demand != demand || entries[player] == nil else { return [] }
        entry.demand = demand
        switch entry.step {
        case .left where demand == .free || demand == .resume: entry.step = .idle
        // It did not obey in the previous interruption.
        case .pausing(_, let answered?) where demand == .silent && !isEcho(of: answered, now): entry.step = .idle
        case .resuming(_, let answered?) where demand == .silent && !isEcho(of: answered, now): entry.step = .idle
        // It was interrupted again before it played. It must be resumed as before.
        case .resuming(let pause, .some) where demand == .resume: entry.step = .paused(pause)
        case .idle, .lookingToPause, .pausing, .perhapsPaused, .paused, .lookingToPlay, .resuming, .left: break
        }
        defer { entries[player] = entry }
        return settle(player, &entry, at: now)
    }

    /// The player signalled a change.
    public mutating func told(_ facts: PlayerFacts, by player: Player, at now: UInt64) -> [Command] {
        var entry = entries[player] ?? Entry()
        defer { entries[player] = entry }
        return see(facts, player, &entry, at: now) + settle(player, &entry, at: now)
    }

    /// The answer to ``Command/ask(_:)``; nil if there was none.
    public mutating func answered(_ player: Player, _ facts: PlayerFacts?, at now: UInt64) -> [Command] {
        guard var entry = entries[player] else { return [] }
        defer { entries[player] = entry }
        var commands: [Command] = []
        if let facts { commands += see(facts, player, &entry, at: now) }
        switch entry.step {
        case .lookingToPause:
            if entry.demand == .silent, let facts, facts.status == .playing, facts.canPause, facts.canControl {
                entry.step = .pausing(since: now, answered: nil)
                commands.append(.pause(player))
            } else {
                entry.step = entry.demand == .silent ? .left(after: nil) : .idle
            }
        case .lookingToPlay(let pause):
            // The player is unchanged, because ``see`` detects changes.
            if facts == nil {
                entry.step = .left(after: nil)
            } else if entry.demand == .resume, !isOld(pause, now) {
                entry.step = .resuming(pause, answered: nil)
                commands.append(.play(player))
            } else {
                entry.step = .paused(pause)
            }
        case .idle, .pausing, .perhapsPaused, .paused, .resuming, .left: break
        }
        return commands + settle(player, &entry, at: now)
    }

    /// The result of ``Command/pause(_:)``. A player that refuses or does not answer gets no further command.
    public mutating func pauseEnded(_ player: Player, succeeded: Bool, at now: UInt64) -> [Command] {
        guard var entry = entries[player] else { return [] }
        defer { entries[player] = entry }
        switch entry.step {
        case .pausing(let since, nil):
            guard succeeded else {
                entry.step = .left(after: nil)
                break
            }
            // Some players send no signals. Then the answer shows the result.
            entry.step = .pausing(since: since, answered: now)
            return [.ask(player)] + settle(player, &entry, at: now)
        case .paused(var pause) where pause.answered == nil:
            pause.answered = now
            entry.step = .paused(pause)
        case .lookingToPlay(var pause) where pause.answered == nil:
            pause.answered = now
            entry.step = .lookingToPlay(pause)
        case .left(after: var pause?) where pause.answered == nil:
            pause.answered = now
            entry.step = .left(after: pause)
        case .idle, .lookingToPause, .pausing, .perhapsPaused, .paused, .lookingToPlay, .resuming, .left: return []
        }
        return settle(player, &entry, at: now)
    }

    /// The result of ``Command/play(_:)``.
    public mutating func playEnded(_ player: Player, succeeded: Bool, at now: UInt64) -> [Command] {
        guard var entry = entries[player] else { return [] }
        defer { entries[player] = entry }
        guard case .resuming(let pause, nil) = entry.step else { return [] }
        // The player refused. The daemon sends it nothing more for this pause: a second request would not help.
        guard succeeded else {
            entry.step = .left(after: nil)
            return settle(player, &entry, at: now)
        }
        entry.step = .resuming(pause, answered: now)
        return [.ask(player)] + settle(player, &entry, at: now)
    }

    /// The user used the media keys: this has priority over the daemon's pause.
    public mutating func touched(_ player: Player) {
        guard var entry = entries[player] else { return }
        switch entry.step {
        case .paused, .perhapsPaused, .lookingToPlay, .resuming, .pausing: entry.step = .left(after: nil)
        case .idle, .lookingToPause, .left: return
        }
        entries[player] = entry
    }

    /// The player left the bus, or has no sessions any more.
    public mutating func forget(_ player: Player) { entries[player] = nil }

    // MARK: State for the next daemon

    /// The entries for the next daemon, in any order. They must be stored before the commands of the same call are
    /// carried out, because the next daemon must know of a pause that was sent.
    public func kept(at now: UInt64) -> [Kept] {
        entries.compactMap { player, entry in
            switch entry.step {
            // If the daemon ends before it resumes a player, the next daemon resumes it.
            case .paused(let pause), .lookingToPlay(let pause), .resuming(let pause, _):
                Kept(player: player, track: pause.track, since: pause.since, isSeen: true)
            case .perhapsPaused(let pause): Kept(player: player, track: pause.track, since: pause.since, isSeen: false)
            case .pausing(let since, let answered) where answered.map { isEcho(of: $0, now) } ?? true:
                entry.facts.map { Kept(player: player, track: $0.track, since: since, isSeen: false) }
            case .idle, .lookingToPause, .pausing, .left: nil
            }
        }
    }

    /// When ``kept(at:)`` becomes smaller without an event: a player confirmed a pause but plays on; nil: never.
    public var keptExpires: UInt64? {
        entries.values.compactMap { entry in
            if case .pausing(_, let answered?) = entry.step { answered + Self.echoTime + 1 } else { nil }
        }
        .min()
    }

    /// Continues with an entry of an earlier daemon, before the player has sent anything. If the player has another
    /// state, the user has used it in the meantime. If it was not seen paused and still plays, it was not paused, and
    /// is asked again.
    public mutating func keep(_ kept: Kept) {
        var entry = Entry()
        entry.demand = .silent
        let pause = Pause(track: kept.track, since: kept.since, answered: kept.since)
        entry.step = kept.isSeen ? .paused(pause) : .perhapsPaused(pause)
        entries[kept.player] = entry
    }

    // MARK: Decisions

    /// Applies the player's state, and finds out whether the daemon caused the change.
    private func see(_ facts: PlayerFacts, _ player: Player, _ entry: inout Entry, at now: UInt64) -> [Command] {
        let before = entry.facts?.status
        entry.facts = facts
        let isStarted = facts.status == .playing && before != nil && before != .playing
        /// Whether it started while its session should be silent, and not by the daemon.
        var isByHand = false
        switch entry.step {
        case .idle, .lookingToPause: break
        case .pausing(let since, let answered):
            switch facts.status {
            case .playing: break
            // A stopped player is not paused: Play would start it from the beginning.
            case .stopped: entry.step = .left(after: nil)
            case .paused:
                let isOurs = answered.map { isEcho(of: $0, now) } ?? true
                entry.step =
                    isOurs ? .paused(Pause(track: facts.track, since: since, answered: answered)) : .left(after: nil)
            }
        case .perhapsPaused(let pause):
            switch facts.status {
            case .playing: entry.step = .idle
            case .stopped: entry.step = .left(after: nil)
            // It played when the command was sent, or is about to be sent.
            case .paused: entry.step = facts.track.mayBe(pause.track) ? .paused(pause) : .left(after: nil)
            }
        case .paused(let pause), .lookingToPlay(let pause):
            guard facts.status != .paused || !facts.track.mayBe(pause.track) else { break }
            entry.step = .left(after: pause)
            isByHand = isStarted && !mayEcho(pause, now)
        case .resuming(_, let answered):
            // The daemon has sent Play, and the player has not handled it yet.
            guard facts.status != .paused else { break }
            let isOurs = facts.status == .playing && answered.map { isEcho(of: $0, now) } ?? true
            // If the next interruption came before the daemon's own Play, that must be undone. A Play of the user must
            // not.
            entry.step = isOurs ? .idle : .left(after: nil)
            isByHand = isStarted && !isOurs
        case .left(let pause): isByHand = isStarted && !(pause.map { mayEcho($0, now) } ?? false)
        }
        return isByHand && entry.demand == .silent ? [.takeBack(player)] : []
    }

    /// The commands for the current demand, unless a command is pending.
    private func settle(_ player: Player, _ entry: inout Entry, at now: UInt64) -> [Command] {
        switch (entry.step, entry.demand) {
        case (.idle, .silent):
            entry.step = .lookingToPause
            return [.ask(player)]
        case (.paused(let pause), .resume):
            guard !isOld(pause, now), entry.facts?.canPlay ?? true, entry.facts?.canControl ?? true else {
                entry.step = .idle
                return []
            }
            entry.step = .lookingToPlay(pause)
            return [.ask(player)]
        case (.paused, .free), (.left, .free), (.left, .resume):
            entry.step = .idle
            return []
        case (_, .either), (.idle, .free), (.idle, .resume), (.lookingToPause, _), (.pausing, _), (.perhapsPaused, _),
            (.paused, .silent), (.lookingToPlay, _), (.resuming, _), (.left, .silent):
            return []
        }
    }

    private func isOld(_ pause: Pause, _ now: UInt64) -> Bool { maxAge > 0 && now &- pause.since > maxAge }

    /// Whether a change now may still be the effect of the daemon's own Pause, so that it is not taken for the user's.
    /// Known error: if the user and the daemon pause a player that toggles at the same time, it plays again.
    private func mayEcho(_ pause: Pause, _ now: UInt64) -> Bool { pause.answered.map { isEcho(of: $0, now) } ?? true }

    private func isEcho(of answer: UInt64, _ now: UInt64) -> Bool { now &- answer <= Self.echoTime }
}
