import MediaControl
import PluginAPI
import SessionManager

/// The players on the bus, by the unique names of their connections: a restarted player is another one.
struct Players: Sendable, Codable {
    struct Player: Sendable, Codable {
        let origin: PlayerOrigin
        /// Nil until it has answered; from then on it takes part.
        var facts: PlayerFacts?
        /// As ``PlayerEvent/told(_:order:)``.
        var order: UInt64 = 0
        /// Whether it is heard.
        var sound = PlayerSound()

        /// Whether it plays, or is paused by the daemon, and can be paused.
        func isPausable(isPaused: Bool) -> Bool {
            facts.map { ($0.status == .playing || isPaused) && $0.canPause && $0.canControl } ?? false
        }
    }

    private(set) var known: [String: Player] = [:]
    /// Which of them the daemon paused.
    var book = PauseBook<String>()
    /// As last stored.
    private(set) var kept: Set<PauseBook<String>.Kept> = []
    /// When ``kept`` must be compared again; nil: when something happens.
    private(set) var keptExpires: Instant?
    /// When another player may come to the front because the sound of one has ended; nil: when something happens.
    private(set) var frontExpires: Instant?
    /// When the players must be checked because time has passed; nil: never.
    var nextDeadline: Instant? {
        [book.nextDeadline.map(Instant.init(microseconds:)), frontExpires].compactMap(\.self).min()
    }
    /// The player that the media keys reach.
    private(set) var front: String?
    /// The adopted sessions whose players play, or are paused by the daemon, and can be paused.
    private(set) var pausable: Set<SessionID> = []
    /// Whether they must be checked after the answer to a request was sent.
    var isCheckDue = false

    /// Those that take part, in a fixed order.
    var present: [(id: String, player: Player)] {
        known.filter { $0.value.facts != nil }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// Continues with the entries of an earlier daemon.
    mutating func keep(_ pauses: some Sequence<PauseBook<String>.Kept>) {
        for pause in pauses { book.keep(pause) }
        kept = Set(pauses)
    }

    /// Applies an event, and returns the resulting commands.
    mutating func handle(_ event: PlayerEvent, of id: String, at now: UInt64) -> [PauseBook<String>.Command] {
        switch event {
        case .appeared(let origin): known[id] = Player(origin: origin)
        case .told(let facts, let order):
            guard let player = known[id] else { return [] }
            if player.facts?.status == .paused, facts.status == .playing { known[id]?.sound.started(at: now) }
            known[id]?.facts = facts
            known[id]?.order = order
            return book.told(facts, by: id, at: now)
        case .answered(let facts): return book.answered(id, facts, at: now)
        case .pauseEnded(let succeeded): return book.pauseEnded(id, succeeded: succeeded, at: now)
        case .playEnded(let succeeded): return book.playEnded(id, succeeded: succeeded, at: now)
        case .touched: book.touched(id)
        case .gone:
            known[id] = nil
            book.forget(id)
        }
        return []
    }

    /// Returns the players that are paused or about to be, if they differ from the stored ones.
    mutating func changedKept(at now: Instant) -> Set<PauseBook<String>.Kept>? {
        keptExpires = book.keptExpires.map(Instant.init(microseconds:)).flatMap { $0 > now ? $0 : nil }
        let current = Set(book.kept(at: now.microseconds))
        guard current != kept else { return nil }
        kept = current
        return current
    }

    /// Returns whether they have changed.
    mutating func setPausable(_ sessions: Set<SessionID>) -> Bool {
        defer { pausable = sessions }
        return pausable != sessions
    }

    /// `sounds`: whether each player is heard, and whether it is silenced. Returns whether anything has changed.
    mutating func observe(_ sounds: [String: (isHeard: Bool, isSilenced: Bool)], at now: UInt64) -> Bool {
        var hasChanged = false
        for (id, (isHeard, isSilenced)) in sounds {
            guard let player = known[id], player.facts != nil else { continue }
            var sound = player.sound
            sound.observe(isHeard: isHeard, isSilenced: isSilenced, at: now)
            guard sound != player.sound else { continue }
            known[id]?.sound = sound
            hasChanged = true
        }
        return hasChanged
    }

    /// The sound of a single player may end without another one that could take its place.
    mutating func awaitSilence(of candidates: some Collection<Player>, at now: UInt64) {
        let due = candidates.count > 1 ? candidates.compactMap { $0.sound.deadline(at: now) }.min() : nil
        frontExpires = due.map(Instant.init(microseconds:))
    }

    /// Returns whether it has changed.
    mutating func setFront(_ id: String?) -> Bool {
        defer { front = id }
        return front != id
    }
}
