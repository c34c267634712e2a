import Enforcement
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
        _ = observeSounds(at: now)
        let present = players.present
        var next: [Work] = [.keepPauses]
        for (id, player) in present {
            // If pausing is turned off, no player may stay paused.
            var demand = settings.mpris.pause ? demand(of: player) : .resume
            if settings.mpris.pause, !settings.mpris.resume, demand == .resume { demand = .free }
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
        let unreached = settings.mpris.noMediaKeys
        let candidates =
            settings.mpris.mediaKeys
            ? present.filter { _, player in
                player.facts?.canControl == true && !unreached.contains(where: player.origin.isNamed)
            } : []
        players.awaitSilence(of: candidates.map(\.player), at: now.microseconds)
        let front = front(of: candidates, at: now)
        if players.setFront(front) { next.append(.act(.showPlayer(front))) }
        push(next)
    }

    /// The user started the player while its session was interrupted. Only for apps that cannot activate a session
    /// themselves.
    mutating func takeBack(_ id: String) {
        guard let player = players.known[id] else { return }
        let sessions = members.filter { $0.value.adopted != nil && belongs(player, to: $0.value) }.keys.sorted()
        push(sessions.filter { arbiter.session($0)?.sessionClass == .app }.map(Work.takeBackSession))
    }

    /// The user started the program of the session while that was interrupted: it is heard. The rules decide whether the
    /// session becomes active. If they refuse, because of an alert, only its streams are let go.
    mutating func takeBack(_ id: SessionID, at now: Instant) {
        guard arbiter.session(id)?.state == .interrupted else { return }
        if arbiter.mayActivate(id) { return push([.expire, .event(.activate(id))]) }
        enforcement.hear(id, at: now.microseconds)
        push([.treat, .treatPlayers])
    }

    /// Whether what a player of the session does now may be an effect of the daemon's own commands.
    func isPausing(_ member: Member, at now: Instant) -> Bool {
        players.known.contains { id, player in
            players.book.isPausing(id, at: now.microseconds) && belongs(player, to: member)
        }
    }

    func hasPausedPlayer(_ member: Member) -> Bool {
        players.known.values.contains { $0.facts?.status == .paused && belongs($0, to: member) }
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

    func work(_ command: PauseBook<String>.Command) -> Work {
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
            var owner = Demand.Owner(enforcement.isHeard(id) ? .active : session.state)
            owner.since = session.since.microseconds
            owner.isAdopted = member.adopted != nil
            owner.isSilencedAtServer = session.ignoredSince != nil
            owner.mayResume = session.mayResume
            owner.cameBack = session.cause.kind == .cameBack
            return owner
        }
        return Demand(of: owners, isAdoptionOff: settings.adoption.isOff)
    }

    private func front(of candidates: [(id: String, player: Players.Player)], at now: Instant) -> String? {
        let nowPlaying = arbiter.nowPlaying.flatMap { members[$0] }
        return FrontPlayer.choose(
            candidates.map { id, player in
                FrontPlayer.Candidate(
                    id, player.facts?.status ?? .stopped, player.sound.sound(at: now.microseconds),
                    isNowPlaying: nowPlaying.map { belongs(player, to: $0) } ?? false, order: player.order)
            })
    }

    /// Streams have changed, or are treated otherwise: another player may be heard.
    mutating func hearPlayers(at now: Instant) {
        if observeSounds(at: now) { push([.treatPlayers]) }
    }

    /// Returns whether a player began or ceased to be heard.
    private mutating func observeSounds(at now: Instant) -> Bool {
        if players.known.isEmpty { return false }
        let playing = seen.streams.filter { $0.stream.direction == .playback && !$0.stream.isCorked }
        return players.observe(players.known.mapValues { sounds(of: $0, in: playing) }, at: now.microseconds)
    }

    /// Whether the player is heard, and whether it plays and is silenced.
    private func sounds(
        of player: Players.Player, in playing: [StreamFacts]
    ) -> (isHeard: Bool, isSilenced: Bool) {
        // Without a sound server, what the players say must do.
        guard seen.isConnected else { return (player.facts?.status == .playing, false) }
        let own = playing.filter { belongs(player, to: $0) }.map(\.stream)
        let silenced = own.filter { $0.isHeld || enforcement.isSilenced($0.id) }
        return (silenced.count < own.count, !silenced.isEmpty)
    }

    /// A player may be a child of the session's process; a browser plays from child processes of the player; and in a
    /// sandbox process ids mean nothing.
    private func belongs(_ player: Players.Player, to member: Member) -> Bool {
        let origin = player.origin
        guard origin.process != 0 else { return false }
        if case .name(let phone)? = member.adopted?.program, origin.isPhone(phone) { return true }
        if let sandbox = origin.sandbox { return sandbox == member.desktopEntry }
        guard member.process != 0 else { return false }
        return origin.ancestry.contains(member.process) || member.ancestry?.contains(origin.process) == true
    }

    /// As above, for a stream.
    private func belongs(_ player: Players.Player, to stream: StreamFacts) -> Bool {
        let origin = player.origin
        guard origin.process != 0 else { return false }
        if let phone = stream.stream.inputName, origin.isPhone(phone) { return true }
        if let sandbox = origin.sandbox { return sandbox == stream.sandbox }
        guard stream.sandbox == nil else { return false }
        if stream.ancestry.contains(origin.process) { return true }
        guard case .process(let program)? = stream.program?.key else { return false }
        return origin.ancestry.contains(program)
    }
}
