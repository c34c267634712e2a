import SessionManager

/// The players that the daemon paused, and which of them it may resume: only those that it paused, that are still
/// paused on the same track, that the user did not use since, and whose pause is not too old.
///
/// It gets facts and demands and returns commands, in order. A demand is the wanted state, not a change: the same
/// demand twice does nothing. Before each command, the player is asked for its state, because some players toggle on
/// `Pause`, and some do not signal their changes. A player that does not answer gets no command, and nothing waits for
/// it. Times are microseconds of a monotonic clock.
///
/// While a player should be silent, it may say that it plays again: ``UsersHand`` decides whether the user started it. If
/// not, it is paused again, at most once in each interruption.
///
/// `Player` identifies the connection of a player; a restarted player is another one.
public struct PauseBook<Player: Hashable & Sendable & Codable>: Sendable, Codable {
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
    public struct Kept: Sendable, Hashable, Codable {
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
    private struct Pause: Sendable, Codable {
        let track: Track
        /// When it was sent.
        let since: UInt64
        /// When the player confirmed it; nil: not yet.
        var answered: UInt64?
    }

    private enum Step: Sendable, Codable {
        /// The daemon has not changed this player.
        ///
        /// Can transition to: `lookingToPause`; also `left`, if it was started while no daemon was there.
        case idle
        /// Asked for its state, to be paused if it plays.
        ///
        /// Can transition to: `pausing`; `idle`, if it may play again; `left`, if it does not play or does not answer.
        case lookingToPause
        /// Asked to pause, and not yet seen paused. `answered`: when it confirmed.
        ///
        /// Can transition to: `paused`; `left`, if it stops, refuses or is used; `lookingToPause`, if it plays again; `idle`, if it
        /// has not obeyed when the next interruption begins.
        case pausing(since: UInt64, answered: UInt64?)
        /// Asked to pause by an earlier daemon, or about to be, with unknown result.
        ///
        /// Can transition to: `paused`; `idle`, if it plays; `left`.
        case perhapsPaused(Pause)
        /// Paused by the daemon.
        ///
        /// Can transition to: `lookingToPlay`; `idle`, if it is not to be resumed; `left`, if it is used; `lookingToPause`.
        case paused(Pause)
        /// Asked for its state, to be resumed if it is unchanged.
        ///
        /// Can transition to: `resuming`; `paused`, if it must stay silent; `left`; `lookingToPause`.
        case lookingToPlay(Pause)
        /// Asked to play, and not yet seen playing. `answered` as above.
        ///
        /// Can transition to: `idle`, when it plays; `paused`, if it is interrupted again first; `left`; `lookingToPause`.
        case resuming(Pause, answered: UInt64?)
        /// The user, or the player itself, changed it last.
        ///
        /// Can transition to: `idle`, when its session may play or another interruption begins; `lookingToPause`.
        case left
    }

    /// The second pause of an interruption.
    private struct Renewal: Sendable, Codable {
        /// Since when the player says that it plays although it should be silent; nil: it does not any more.
        var playing: UInt64?
        /// Whether it is resumed afterwards. A player that plays again before it has confirmed the first pause toggles:
        /// the user had just paused it.
        let mayResume: Bool
    }

    private struct Entry: Sendable, Codable {
        var facts: PlayerFacts?
        var demand = Demand.free
        var step = Step.idle
        /// When the interruption began for which it must be silent, or last was; nil: none was known yet.
        var interruption: UInt64?
        /// Since when it says that it does not play; nil: it plays, or its state is unknown.
        var quiet: UInt64?
        /// Present if it was paused again in this interruption.
        var renewal: Renewal?
        /// Whether the user started it while no daemon was there.
        var isStartedMeanwhile = false
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
        defer { entries[player] = entry }
        let isStartedMeanwhile = entry.isStartedMeanwhile
        entry.isStartedMeanwhile = false
        switch demand {
        case .silent(let since):
            // The interruption that an earlier daemon knew continues.
            if let before = entry.interruption, before != since { begin(&entry, at: now) }
            entry.interruption = since
            if isStartedMeanwhile { return [.takeBack(player)] }
        case .free, .resume:
            if case .left = entry.step { entry.step = .idle }
            // It was interrupted again before it played. It must be resumed as before.
            if demand == .resume, case .resuming(let pause, .some) = entry.step { entry.step = .paused(pause) }
            entry.renewal = nil
        case .either: entry.renewal?.playing = nil
        }
        return settle(player, &entry, at: now)
    }

    /// Another interruption begins, perhaps without any time between it and the one before.
    private func begin(_ entry: inout Entry, at now: UInt64) {
        entry.renewal = nil
        switch entry.step {
        case .left: entry.step = .idle
        // It did not obey in the previous interruption.
        case .pausing(_, let answered?) where !isEcho(of: answered, now): entry.step = .idle
        case .resuming(_, let answered?) where !isEcho(of: answered, now): entry.step = .idle
        case .idle, .lookingToPause, .pausing, .perhapsPaused, .paused, .lookingToPlay, .resuming: break
        }
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
            if !entry.demand.isSilent {
                entry.step = .idle
            } else if let facts, facts.status == .playing, facts.canPause, facts.canControl {
                entry.step = .pausing(since: now, answered: nil)
                commands.append(.pause(player))
            } else {
                entry.step = .left
                if facts != nil { commands += hearIfRenewed(player, &entry) }
            }
        case .lookingToPlay(let pause):
            // The player is unchanged, because ``see`` detects changes.
            if facts == nil {
                entry.step = .left
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
                entry.step = .left
                return hearIfRenewed(player, &entry) + settle(player, &entry, at: now)
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
            entry.step = .left
            return settle(player, &entry, at: now)
        }
        entry.step = .resuming(pause, answered: now)
        return [.ask(player)] + settle(player, &entry, at: now)
    }

    /// The user used the media keys: this has priority over the daemon's pause.
    public mutating func touched(_ player: Player) {
        guard var entry = entries[player] else { return }
        switch entry.step {
        case .paused, .perhapsPaused, .lookingToPlay, .resuming, .pausing: entry.step = .left
        case .idle, .lookingToPause, .left: return
        }
        entries[player] = entry
    }

    /// Time has passed: a player that was paused again, and still says that it plays, is heard (``nextDeadline``).
    public mutating func timePassed(at now: UInt64) -> [Command] {
        var commands: [Command] = []
        for player in entries.filter({ isOverdue($0.value, at: now) }).keys {
            guard var entry = entries[player] else { continue }
            entry.step = .left
            commands += hearIfRenewed(player, &entry)
            entries[player] = entry
        }
        return commands
    }

    /// When ``timePassed(at:)`` is due next; nil: never.
    public var nextDeadline: UInt64? {
        entries.values.compactMap { $0.renewal?.playing }.min().map { $0 + UsersHand.longestSilence }
    }

    /// Whether the next change of the player, and of its streams, may be an effect of the daemon's own commands: of a Pause,
    /// or of a Play that the interruption has overtaken.
    public func isPausing(_ player: Player, at now: UInt64) -> Bool {
        guard let entry = entries[player], entry.demand.isSilent else { return false }
        if entry.renewal?.playing != nil { return true }
        switch entry.step {
        case .pausing(_, let answered): return answered.map { now &- $0 <= UsersHand.echo } ?? true
        case .paused: return entry.quiet.map { now &- $0 <= UsersHand.echo } ?? false
        // The player continues its stream because of the daemon's Play, before or after it says so.
        case .resuming(_, let answered): return answered.map { isEcho(of: $0, now) } ?? true
        // It is about to be paused. A player that does not answer is not waited for.
        case .lookingToPause: return entry.interruption.map { now &- $0 <= Self.echoTime } ?? false
        case .idle, .perhapsPaused, .lookingToPlay, .left: return false
        }
    }

    private func isOverdue(_ entry: Entry, at now: UInt64) -> Bool {
        entry.renewal?.playing.map { $0 + UsersHand.longestSilence <= now } ?? false
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
        // Not known yet.
        entry.demand = .silent(since: 0)
        entry.quiet = kept.isSeen ? kept.since : nil
        let pause = Pause(track: kept.track, since: kept.since, answered: kept.since)
        entry.step = kept.isSeen ? .paused(pause) : .perhapsPaused(pause)
        entries[kept.player] = entry
    }

    // MARK: Decisions

    /// Applies the player's state, and finds out whether the daemon caused the change.
    private func see(_ facts: PlayerFacts, _ player: Player, _ entry: inout Entry, at now: UInt64) -> [Command] {
        let quiet = entry.quiet
        entry.facts = facts
        entry.quiet = facts.status == .playing ? nil : quiet ?? now
        if facts.status != .playing { entry.renewal?.playing = nil }
        /// Whether the daemon may have started it.
        var isOurs = false
        /// Whether the daemon's last pause was confirmed.
        var isConfirmed = true
        switch entry.step {
        case .idle: isOurs = true
        // It is about to be paused, if it plays.
        case .lookingToPause: isOurs = entry.renewal == nil
        case .pausing(let since, let answered):
            switch facts.status {
            case .playing: break
            // A stopped player is not paused: Play would start it from the beginning.
            case .stopped: entry.step = .left
            case .paused:
                let isOurs = answered.map { isEcho(of: $0, now) } ?? true
                let mayResume = isOurs && entry.renewal?.mayResume ?? true
                entry.step = mayResume ? .paused(Pause(track: facts.track, since: since, answered: answered)) : .left
            }
        case .perhapsPaused(let pause):
            switch facts.status {
            case .playing:
                isOurs = true
                entry.step = .idle
            case .stopped: entry.step = .left
            // It played when the command was sent, or is about to be sent.
            case .paused: entry.step = facts.track.mayBe(pause.track) ? .paused(pause) : .left
            }
        case .paused(let pause), .lookingToPlay(let pause):
            guard facts.status != .paused || !facts.track.mayBe(pause.track) else { break }
            entry.step = .left
            isConfirmed = pause.answered != nil
        case .resuming(_, let answered):
            // The daemon has sent Play, and the player has not handled it yet.
            guard facts.status != .paused else { break }
            isOurs = facts.status == .playing && answered.map { isEcho(of: $0, now) } ?? true
            // If the next interruption came before the daemon's own Play, that must be undone. A Play of the user must
            // not.
            entry.step = isOurs ? .idle : .left
        case .left: break
        }
        if facts.status != .playing { entry.isStartedMeanwhile = false }
        guard facts.status == .playing, let quiet, !isOurs, entry.demand.isSilent else { return [] }
        guard entry.interruption != nil else {
            entry.step = .left
            entry.isStartedMeanwhile = true
            return []
        }
        switch UsersHand(.player(afterPause: now &- quiet, isSecond: entry.renewal != nil)) {
        case .started, .none:
            entry.step = .left
            entry.renewal?.playing = nil
            return [.takeBack(player)]
        case .pauseAgain:
            entry.renewal = Renewal(playing: now, mayResume: isConfirmed)
            entry.step = .lookingToPause
            return [.ask(player)]
        }
    }

    /// A player that was paused again and does not obey is heard.
    private func hearIfRenewed(_ player: Player, _ entry: inout Entry) -> [Command] {
        guard entry.renewal?.playing != nil else { return [] }
        entry.renewal?.playing = nil
        return [.takeBack(player)]
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

    private func isEcho(of answer: UInt64, _ now: UInt64) -> Bool { now &- answer <= Self.echoTime }
}
