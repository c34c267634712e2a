import MediaControl

/// The MPRIS players of a scenario. They do at once what they are asked for.
struct SimulatedPlayers: Sendable {
    struct Player: Sendable {
        let label: String
        /// What it plays.
        let stream: String
        /// Of its stream.
        let program: String
        var facts: PlayerFacts
        /// As ``PlayerEvent/told(_:order:)``.
        var order: UInt64
    }

    private(set) var all: [Player] = []
    private var order: UInt64 = 0

    func player(_ label: String) -> Player? { all.first { $0.label == label } }

    /// A player that plays. Returns what the daemon is told of it.
    mutating func add(
        _ label: String, of stream: String, _ program: (label: String, app: SimulatedServer.App)
    ) -> [PlayerEvent] {
        order += 1
        let origin = PlayerOrigin(
            name: label, process: program.app.process, ancestry: [program.app.process],
            sandbox: program.app.sandbox.isEmpty ? nil : program.app.sandbox)
        let facts = PlayerFacts(.playing, track: Track(id: "/" + label))
        all.append(Player(label: label, stream: stream, program: program.label, facts: facts, order: order))
        return [.appeared(origin), .told(facts, order: order)]
    }

    /// The player changes, by itself or because somebody uses it. Returns what the daemon is told of it: nothing if that is
    /// no change.
    mutating func set(_ label: String, _ status: PlaybackStatus) -> [PlayerEvent] {
        guard let place = all.firstIndex(where: { $0.label == label }), all[place].facts.status != status else {
            return []
        }
        order += 1
        all[place].facts.status = status
        all[place].order = order
        return [.told(all[place].facts, order: order)]
    }

    /// Returns what the daemon is told of it.
    mutating func carryOut(_ request: PlayerRequest, by label: String) -> [PlayerEvent] {
        guard let player = player(label) else { return [] }
        switch request {
        case .ask: return [.answered(player.facts)]
        case .pause: return set(label, .paused) + [.pauseEnded(succeeded: true)]
        case .play: return set(label, .playing) + [.playEnded(succeeded: true)]
        }
    }

    /// Returns the players that leave the bus with their program.
    mutating func end(program: String) -> [Player] {
        defer { all.removeAll { $0.program == program } }
        return all.filter { $0.program == program }
    }
}

/// What a player of a scenario does.
enum PlayerCondition: String, CaseIterable, Sendable {
    case playing, paused, stopped

    init(_ status: PlaybackStatus) {
        switch status {
        case .playing: self = .playing
        case .paused: self = .paused
        case .stopped: self = .stopped
        }
    }

    var status: PlaybackStatus {
        switch self {
        case .playing: .playing
        case .paused: .paused
        case .stopped: .stopped
        }
    }
}
