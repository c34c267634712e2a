import MediaControl
import MediaPlayers
import PluginAPI
import SessionManager

/// Which sessions an MPRIS player belongs to, and what follows for it.
final class PlayerRules: PlayerPolicy {
    private unowned let daemon: Daemon
    /// The processes above each player's and each session's, itself first; read once in its life.
    private var playerLines: [Player.ID: [UInt32]] = [:]
    private var sessionLines: [SessionID: [UInt32]] = [:]

    init(_ daemon: Daemon) { self.daemon = daemon }

    func demand(of player: Player) -> Demand { .free }

    func isNowPlaying(_ player: Player) -> Bool {
        daemon.arbiter.nowPlaying.map { belongs(player, to: $0) } ?? false
    }

    func takeBack(_ player: Player) {}

    func gone(_ player: Player) { playerLines[player.id] = nil }

    /// A player may be what a session's process started; and a browser's sound comes from processes below the one that
    /// is the player.
    private func belongs(_ player: Player, to id: SessionID) -> Bool {
        guard let process = daemon.records[id]?.processID, process != 0, player.processID != 0 else { return false }
        return line(of: player).contains(process) || line(of: id, process).contains(player.processID)
    }

    private func line(of player: Player) -> [UInt32] {
        if let known = playerLines[player.id] { return known }
        let line = Process(id: player.processID).ancestry
        playerLines[player.id] = line
        return line
    }

    private func line(of id: SessionID, _ process: UInt32) -> [UInt32] {
        if let known = sessionLines[id] { return known }
        sessionLines = sessionLines.filter { daemon.records[$0.key] != nil }
        let line = Process(id: process).ancestry
        sessionLines[id] = line
        return line
    }
}

extension MediaPlayers.Settings {
    init(_ settings: Settings) {
        self.init(
            pauses: settings.mpris.pause, servesMediaKeys: settings.mpris.mediaKeys,
            maxAge: UInt64(settings.interruption.maxAge * 1_000_000))
    }
}
