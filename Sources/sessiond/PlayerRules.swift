import Decider
import MediaControl
import MediaPlayers
import PluginAPI
import Processes
import SessionManager

/// The sessions of MPRIS players, and what the rules want from the players.
final class PlayerRules: PlayerPolicy {
    /// The process of a player, its ancestors, and its sandbox. All of it comes from the kernel.
    private struct Origin {
        let line: [UInt32]
        let sandbox: String?
    }

    private unowned let daemon: Daemon
    /// Read once for each player.
    private var origins: [Player.ID: Origin] = [:]
    private var sessionLines: [SessionID: [UInt32]] = [:]
    /// The adopted sessions whose players play and can be paused.
    private(set) var pausable: Set<SessionID> = []

    init(_ daemon: Daemon) { self.daemon = daemon }

    func demand(of player: Player) -> Demand {
        let owners = daemon.decider.members.compactMap { id, member -> Demand.Owner? in
            guard belongs(player, to: id, member), let session = daemon.arbiter.session(id) else { return nil }
            var owner = Demand.Owner(session.state)
            owner.isAdopted = member.adopted != nil
            owner.isSilencedAtServer = session.ignoredSince != nil
            owner.mayResume = session.mayResume
            owner.cameBack = session.cause.kind == .cameBack
            return owner
        }
        return Demand(of: owners, isAdoptionOff: daemon.settings.adoption.isOff)
    }

    func isNowPlaying(_ player: Player) -> Bool {
        guard let id = daemon.arbiter.nowPlaying, let member = daemon.decider.members[id] else { return false }
        return belongs(player, to: id, member)
    }

    /// Only for programs that cannot activate a session themselves.
    func takeBack(_ player: Player) {
        for (id, member) in daemon.decider.members.sorted(by: { $0.key < $1.key })
        where member.adopted != nil && belongs(player, to: id, member) {
            if daemon.arbiter.session(id)?.state == .interrupted { daemon.submit(.event(.activate(id))) }
        }
    }

    func gone(_ player: Player) { origins[player.id] = nil }

    func playing(_ players: [Player]) {
        var found: Set<SessionID> = []
        for (id, member) in daemon.decider.members where member.adopted != nil {
            if players.contains(where: { belongs($0, to: id, member) }) { found.insert(id) }
        }
        guard found != pausable else { return }
        pausable = found
        daemon.lookSoon()
    }

    /// A player may be a child of the session's process; a browser plays from child processes of the player; and in a
    /// sandbox process ids mean nothing.
    private func belongs(_ player: Player, to id: SessionID, _ member: Member) -> Bool {
        guard player.processID != 0 else { return false }
        let origin = origin(of: player)
        if let sandbox = origin.sandbox { return sandbox == member.desktopEntry }
        guard member.process != 0 else { return false }
        return origin.line.contains(member.process) || line(of: id, member.process).contains(player.processID)
    }

    private func origin(of player: Player) -> Origin {
        if let known = origins[player.id] { return known }
        let process = Process(id: player.processID)
        var sandbox: String?
        if case .application(let id) = process.confinement { sandbox = id }
        let origin = Origin(line: process.ancestry, sandbox: sandbox)
        origins[player.id] = origin
        return origin
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
