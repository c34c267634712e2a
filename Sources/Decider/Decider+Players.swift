import MediaControl
import PluginAPI
import SessionManager

/// Makes the players on the bus follow the sessions that their sound belongs to.
extension Decider {
    /// Handles an event of a player. The order is fixed: the state for the next daemon is stored before the requests
    /// that it must know of.
    mutating func handle(_ event: PlayerEvent, of id: String, at now: Instant) {
        let commands = players.handle(event, of: id, at: now.microseconds)
        let changesWhoPlays =
            switch event {
            case .told, .gone: true
            case .appeared, .answered, .pauseEnded, .playEnded, .touched: false
            }
        push([.keepPauses] + commands.map(work) + (changesWhoPlays ? [.treatPlayers] : []))
    }

    /// Decides which players to pause or resume, which one media keys reach, and which sessions an unplug may pause.
    mutating func treatPlayers(at now: Instant) {
        players.isCheckDue = false
        let present = players.present
        var next: [Work] = [.keepPauses]
        for (id, player) in present {
            // If pausing is turned off, no player may stay paused.
            let demand = settings.mpris.pause ? demand(of: player) : .resume
            next += players.book.demand(demand, of: id, at: now.microseconds).map(work)
        }
        // Also one that the daemon has paused, because it may be about to resume it.
        let paused = Set(players.book.kept(at: now.microseconds).map(\.player))
        let pausablePlayers =
            settings.mpris.pause ? present.filter { $0.player.isPausable(isPaused: paused.contains($0.id)) } : []
        let pausable = members.filter { id, member in
            member.adopted != nil && pausablePlayers.contains { belongs($0.player, to: member) }
        }
        if players.setPausable(Set(pausable.keys)) { next.append(.hear) }
        let front = settings.mpris.mediaKeys ? front(of: present) : nil
        if players.setFront(front) { next.append(.act(.showPlayer(front))) }
        push(next)
    }

    /// The user started the player while its session was interrupted: the session takes the sound back, if allowed. Only
    /// for programs that cannot activate a session themselves.
    mutating func takeBack(_ id: String) {
        guard let player = players.known[id] else { return }
        for (id, member) in members.sorted(by: { $0.key < $1.key })
        where member.adopted != nil && belongs(player, to: member) {
            if arbiter.session(id)?.state == .interrupted { push([.expire, .event(.activate(id))]) }
        }
    }

    /// The session that the sound of the player belongs to; the first one, if there are several.
    func session(of id: String) -> SessionID? {
        guard let player = players.known[id] else { return nil }
        return members.filter { belongs(player, to: $0.value) }.keys.min()
    }

    /// A text for the user about the player of the session that the daemon paused; nil: none.
    func pausedPlayer(of id: SessionID) -> (text: String, since: Instant)? {
        guard let member = members[id] else { return nil }
        let paused = players.kept.filter { pause in
            pause.isSeen && players.known[pause.player].map { belongs($0, to: member) } == true
        }
        return paused.min { ($0.since, $0.player) < ($1.since, $1.player) }.map { pause in
            let name = players.known[pause.player]?.origin.name ?? ""
            return (
                "its player \(quoted(name)) was paused, and is resumed if nobody uses it meanwhile",
                Instant(microseconds: pause.since)
            )
        }
    }

    private func work(_ command: PauseBook<String>.Command) -> Work {
        switch command {
        case .ask(let id): .act(.player(id, .ask))
        case .pause(let id): .act(.player(id, .pause))
        case .play(let id): .act(.player(id, .play))
        case .takeBack(let id): .takeBack(id)
        }
    }

    private func demand(of player: Players.Player) -> Demand {
        let owners = members.compactMap { id, member -> Demand.Owner? in
            guard belongs(player, to: member), let session = arbiter.session(id) else { return nil }
            // The player of a browser in a call plays another page. But a stream that is labelled as a call may be the
            // player's own.
            if session.isGuessedCall { return nil }
            var owner = Demand.Owner(session.state)
            owner.isAdopted = member.adopted != nil
            owner.isSilencedAtServer = session.ignoredSince != nil
            owner.mayResume = session.mayResume
            owner.cameBack = session.cause.kind == .cameBack
            return owner
        }
        return Demand(of: owners, isAdoptionOff: settings.adoption.isOff)
    }

    private func front(of present: [(id: String, player: Players.Player)]) -> String? {
        let nowPlaying = arbiter.nowPlaying.flatMap { members[$0] }
        return FrontPlayer.choose(
            present.lazy.filter { $0.player.facts?.canControl == true }.map { id, player in
                FrontPlayer.Candidate(
                    id, player.facts?.status ?? .stopped,
                    isNowPlaying: nowPlaying.map { belongs(player, to: $0) } ?? false, order: player.order)
            })
    }

    /// A player may be a child of the session's process; a browser plays from child processes of the player; and in a
    /// sandbox process ids mean nothing.
    private func belongs(_ player: Players.Player, to member: Member) -> Bool {
        let origin = player.origin
        guard origin.process != 0 else { return false }
        if let sandbox = origin.sandbox { return sandbox == member.desktopEntry }
        guard member.process != 0 else { return false }
        return origin.ancestry.contains(member.process) || member.ancestry?.contains(origin.process) == true
    }
}
