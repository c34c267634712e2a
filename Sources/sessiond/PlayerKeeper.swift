import DBus
import Decider
import EventLoop
import Logging
import MediaControl
import MediaPlayers
import Processes
import State

/// Reports the events of the players on the bus, with the kernel's data of their processes, and carries out the
/// requests to them. Decides nothing itself.
final class PlayerKeeper {
    private unowned let daemon: Daemon
    private let players: MediaPlayers

    init(_ daemon: Daemon) {
        self.daemon = daemon
        players = MediaPlayers(daemon.connection, daemon.bus) { player in
            let process = Process(id: player.processID)
            var sandbox: String?
            if case .application(let id, _) = process.confinement { sandbox = id }
            return PlayerOrigin(
                name: player.names.min() ?? "", process: player.processID, ancestry: process.ancestry, sandbox: sandbox,
                names: process.names.union(sandbox.map { [$0] } ?? []))
        }
        players.onNotice = { [log = daemon.log] in log.notice("\($0)") }
        players.onEvent = { [unowned self] id, event in
            readAncestry()
            self.daemon.submit(.player(id, event))
        }
    }

    /// Searches for players now and later. `kept`: the players that the last daemon had paused.
    func start(_ kept: some Collection<PauseBook<Player.ID>.Kept>) {
        players.observeCalls(!kept.isEmpty)
        players.start()
    }

    func stop() { players.stop() }

    /// Sessions changed: the players are checked after this turn of the loop, so that no answer waits for it.
    func checkSoon() {
        daemon.loop.later { [weak self] in
            guard let self else { return }
            readAncestry()
            daemon.submit(.players)
        }
    }

    func send(_ request: PlayerRequest, to id: Player.ID) { players.send(request, to: id) }

    func show(_ id: Player.ID?) { players.show(id) }

    /// The players that are paused, or about to be.
    func kept(_ pauses: Set<PauseBook<Player.ID>.Kept>) {
        players.observeCalls(!pauses.isEmpty)
        daemon.savePaused(pauses)
    }

    /// Reads the ancestors of the sessions' processes. Not needed without players.
    private func readAncestry() {
        for (id, member) in daemon.decider.members where member.ancestry == nil && member.process != 0 {
            daemon.submit(.ancestry(id, Process(id: member.process).ancestry))
        }
    }
}
