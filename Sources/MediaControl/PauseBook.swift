/// What we paused, and what of it may be resumed: only what we paused, still paused, on the same track, untouched
/// since, and not older than allowed (behaviour §5).
///
/// Functional: facts and demands in, commands out, in the order to be carried out. Level-triggered: a demand is what is
/// wanted now, not what changed; the same one twice does nothing. Before a player is told anything it is asked how it
/// is, because players toggle on `Pause`, and because not all of them tell of their changes. Whoever did not answer is
/// left alone, and nobody waits for it. Times are microseconds of one clock that only goes forward.
///
/// `Player` identifies one player's connection; a player that starts anew is another one.
public struct PauseBook<Player: Hashable & Sendable>: Sendable {
    /// What is to be done to a player, or asked of it, in order.
    public enum Command: Sendable, Hashable {
        /// Read the player's properties, and say what came of it by ``answered(_:_:at:)``.
        case ask(Player)
        /// Call `Pause`, and say what came of it by ``pauseEnded(_:succeeded:at:)``.
        case pause(Player)
        /// Call `Play`, and say what came of it by ``playEnded(_:succeeded:at:)``.
        case play(Player)
        /// A person started it by hand while it should be silent: its session takes the sound back (R9).
        case takeBack(Player)
    }

    /// A player that is paused by our doing, or about to be, and may be resumed as it is: what the next book must know to
    /// go on from this one.
    public struct Kept: Sendable, Hashable {
        public let player: Player
        /// What it had loaded then: it is resumed on that alone.
        public let track: Track
        /// When it was asked to pause.
        public let since: UInt64
        /// Whether it was seen to be paused; not yet, where it has only been told, or is told next.
        public let isSeen: Bool

        public init(player: Player, track: Track, since: UInt64, isSeen: Bool) {
            self.player = player
            self.track = track
            self.since = since
            self.isSeen = isSeen
        }
    }

    /// What we did to make a player silent.
    private struct Pause: Sendable {
        let track: Track
        /// When we asked for it.
        let since: UInt64
        /// When the player said that it had done so; nil: not yet.
        var answered: UInt64?
    }

    private enum Step: Sendable {
        /// Nothing here is of our doing.
        case idle
        /// Asked how it is, to be paused if it plays.
        case lookingToPause
        /// Told to pause, and not seen paused. `answered`: when it said that it had done so.
        case pausing(since: UInt64, answered: UInt64?)
        /// Told to pause by an earlier book, or about to be, and nothing was seen of it.
        case perhapsPaused(Pause)
        /// Ours.
        case paused(Pause)
        /// Asked how it is, to be resumed if it is as we left it.
        case lookingToPlay(Pause)
        /// Told to play, and not seen playing. `answered` as above.
        case resuming(Pause, answered: UInt64?)
        /// A person, or the player itself, had the last word; `after` what of ours may still have its echo.
        case left(after: Pause?)
    }

    private struct Entry: Sendable {
        var facts: PlayerFacts?
        var demand = Demand.free
        var step = Step.idle
    }

    /// How long after a player said that it had done something its telling so may still come, in microseconds. Later,
    /// it was a person.
    public static var echoTime: UInt64 { 1_000_000 }

    /// Microseconds after which what we paused stays paused; 0: never too old.
    public var maxAge: UInt64 = 0
    private var entries: [Player: Entry] = [:]

    public init() {}

    // MARK: What happens

    /// What the rules want of the player now. This, or what it tells, makes it known.
    public mutating func demand(_ demand: Demand, of player: Player, at now: UInt64) -> [Command] {
        var entry = entries[player] ?? Entry()
        guard entry.demand != demand || entries[player] == nil else { return [] }
        entry.demand = demand
        switch entry.step {
        case .left where demand != .silent: entry.step = .idle
        // It did not do what it was asked to in the interruption before.
        case .pausing(_, let answered?) where demand == .silent && !isEcho(of: answered, now): entry.step = .idle
        case .resuming(_, let answered?) where demand == .silent && !isEcho(of: answered, now): entry.step = .idle
        // Interrupted again before it played: it is to be resumed as before.
        case .resuming(let pause, .some) where demand == .resume: entry.step = .paused(pause)
        case .idle, .lookingToPause, .pausing, .perhapsPaused, .paused, .lookingToPlay, .resuming, .left: break
        }
        defer { entries[player] = entry }
        return settle(player, &entry, at: now)
    }

    /// The player told of a change.
    public mutating func told(_ facts: PlayerFacts, by player: Player, at now: UInt64) -> [Command] {
        var entry = entries[player] ?? Entry()
        defer { entries[player] = entry }
        return see(facts, player, &entry, at: now) + settle(player, &entry, at: now)
    }

    /// The answer to ``Command/ask(_:)``; nil where there was none.
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
            // Still as we left it, or ``see`` would have noticed.
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

    /// What became of ``Command/pause(_:)``. Who refuses, or does not answer, is left alone.
    public mutating func pauseEnded(_ player: Player, succeeded: Bool, at now: UInt64) -> [Command] {
        guard var entry = entries[player] else { return [] }
        defer { entries[player] = entry }
        switch entry.step {
        case .pausing(let since, nil):
            guard succeeded else {
                entry.step = .left(after: nil)
                break
            }
            // Some tell of nothing: then this shows what came of it.
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

    /// What became of ``Command/play(_:)``.
    public mutating func playEnded(_ player: Player, succeeded: Bool, at now: UInt64) -> [Command] {
        guard var entry = entries[player] else { return [] }
        defer { entries[player] = entry }
        guard case .resuming(let pause, nil) = entry.step else { return [] }
        // Refused: it is paused, and by us, but asking again would not help.
        guard succeeded else {
            entry.step = .left(after: nil)
            return settle(player, &entry, at: now)
        }
        entry.step = .resuming(pause, answered: now)
        return [.ask(player)] + settle(player, &entry, at: now)
    }

    /// A person asked for something by the media keys: what they do to what we paused is their wish.
    public mutating func touched(_ player: Player) {
        guard var entry = entries[player] else { return }
        switch entry.step {
        case .paused, .perhapsPaused, .lookingToPlay, .resuming, .pausing: entry.step = .left(after: nil)
        case .idle, .lookingToPause, .left: return
        }
        entries[player] = entry
    }

    /// The player left the bus, or nobody is interested in it any more.
    public mutating func forget(_ player: Player) { entries[player] = nil }

    // MARK: What outlives it

    /// In no order. To be noted before the commands that came with it are carried out: whoever comes after a pause that
    /// was sent must know of it.
    public func kept(at now: UInt64) -> [Kept] {
        entries.compactMap { player, entry in
            switch entry.step {
            // One that is about to be resumed is, or is resumed by the next book.
            case .paused(let pause), .lookingToPlay(let pause), .resuming(let pause, _):
                Kept(player: player, track: pause.track, since: pause.since, isSeen: true)
            case .perhapsPaused(let pause): Kept(player: player, track: pause.track, since: pause.since, isSeen: false)
            case .pausing(let since, let answered) where answered.map { isEcho(of: $0, now) } ?? true:
                entry.facts.map { Kept(player: player, track: $0.track, since: since, isSeen: false) }
            case .idle, .lookingToPause, .pausing, .left: nil
            }
        }
    }

    /// When ``kept(at:)`` is less though nothing happened: a player said that it had paused, and plays on; nil: never.
    public var keptExpires: UInt64? {
        entries.values.compactMap { entry in
            if case .pausing(_, let answered?) = entry.step { answered + Self.echoTime + 1 } else { nil }
        }
        .min()
    }

    /// Goes on from what an earlier book kept, before the player has told anything: where it is not as it was left, it
    /// was touched. One that was not seen paused and still plays was not paused: it is looked at anew.
    public mutating func keep(_ kept: Kept) {
        var entry = Entry()
        entry.demand = .silent
        let pause = Pause(track: kept.track, since: kept.since, answered: kept.since)
        entry.step = kept.isSeen ? .paused(pause) : .perhapsPaused(pause)
        entries[kept.player] = entry
    }

    // MARK: What follows

    /// Takes over what the player says, and finds out whether that was our doing.
    private func see(_ facts: PlayerFacts, _ player: Player, _ entry: inout Entry, at now: UInt64) -> [Command] {
        let before = entry.facts?.status
        entry.facts = facts
        let isStarted = facts.status == .playing && before != nil && before != .playing
        /// Whether it started while its session should be silent, and not by us.
        var isByHand = false
        switch entry.step {
        case .idle, .lookingToPause: break
        case .pausing(let since, let answered):
            switch facts.status {
            case .playing: break
            // Stopped is not paused: Play would start it from its beginning.
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
            // It played when it was told, or about to be.
            case .paused: entry.step = facts.track.mayBe(pause.track) ? .paused(pause) : .left(after: nil)
            }
        case .paused(let pause), .lookingToPlay(let pause):
            guard facts.status != .paused || !facts.track.mayBe(pause.track) else { break }
            entry.step = .left(after: pause)
            isByHand = isStarted && !mayEcho(pause, now)
        case .resuming(_, let answered):
            // Our Play is on its way, whatever happens meanwhile.
            guard facts.status != .paused else { break }
            let isOurs = facts.status == .playing && answered.map { isEcho(of: $0, now) } ?? true
            // Our own Play that the next interruption overtook is to be undone; a person's is not.
            entry.step = isOurs ? .idle : .left(after: nil)
            isByHand = isStarted && !isOurs
        case .left(let pause): isByHand = isStarted && !(pause.map { mayEcho($0, now) } ?? false)
        }
        return isByHand && entry.demand == .silent ? [.takeBack(player)] : []
    }

    /// What the demand asks for, as far as nothing is under way.
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
        case (.idle, .free), (.idle, .resume), (.lookingToPause, _), (.pausing, _), (.perhapsPaused, _),
            (.paused, .silent), (.lookingToPlay, _), (.resuming, _), (.left, .silent):
            return []
        }
    }

    private func isOld(_ pause: Pause, _ now: UInt64) -> Bool { maxAge > 0 && now &- pause.since > maxAge }

    /// A person's pause and ours at the same moment start a player that toggles: nobody wished that.
    private func mayEcho(_ pause: Pause, _ now: UInt64) -> Bool { pause.answered.map { isEcho(of: $0, now) } ?? true }

    private func isEcho(of answer: UInt64, _ now: UInt64) -> Bool { now &- answer <= Self.echoTime }
}
