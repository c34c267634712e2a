import MediaControl

/// The MPRIS players of a scenario. They carry out all requests at once.
struct SimulatedPlayers: Sendable {
    struct Player: Sendable {
        let label: String
        /// The stream that it plays.
        let stream: String
        /// The program of the stream.
        let program: String
        var facts: PlayerFacts
        /// As ``PlayerEvent/told(_:order:)``.
        var order: UInt64
    }

    private(set) var all: [Player] = []
    private var order: UInt64 = 0

    func player(_ label: String) -> Player? { all.first { $0.label == label } }

    /// Adds a player that plays. Returns the events for the daemon.
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

    /// Changes the player, on its own or because the user uses it. Returns the events for the daemon: none without a
    /// change.
    mutating func set(_ label: String, _ status: PlaybackStatus) -> [PlayerEvent] {
        guard let place = all.firstIndex(where: { $0.label == label }), all[place].facts.status != status else {
            return []
        }
        order += 1
        all[place].facts.status = status
        all[place].order = order
        return [.told(all[place].facts, order: order)]
    }

    /// Carries out a request. Returns the events for the daemon.
    mutating func carryOut(_ request: PlayerRequest, by label: String) -> [PlayerEvent] {
        guard let player = player(label) else { return [] }
        switch request {
        case .ask: return [.answered(player.facts)]
        case .pause: return set(label, .paused) + [.pauseEnded(succeeded: true)]
        case .play: return set(label, .playing) + [.playEnded(succeeded: true)]
        }
    }

    /// Removes the players that leave the bus with their program, and returns them.
    mutating func end(program: String) -> [Player] {
        defer { all.removeAll { $0.program == program } }
        return all.filter { $0.program == program }
    }
}

/// The playback status of a player in a scenario.
enum PlayerCondition: String, CaseIterable, Sendable {
    case playing, paused, stopped

    var status: PlaybackStatus {
        switch self {
        case .playing: .playing
        case .paused: .paused
        case .stopped: .stopped
        }
    }
}
