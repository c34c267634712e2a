import Enforcement
import PluginAPI
import SessionManager

/// What the decider knows of a machine that sleeps and of clients that hang.
struct Suspension: Sendable, Codable {
    var clients = HangingClients()
    /// Whether the machine was last asked to wait before it sleeps.
    fileprivate(set) var isDelayed = false
    /// While the machine waits: until when, at most.
    fileprivate var limit: Instant?
    /// When the sessions learn that the machine has woken up.
    private var wakeDue: Instant?

    /// The most seconds for which the machine waits.
    static let longestDelay = 2.0
    /// Seconds after the machine has woken up, in which the sound server finds out what was unplugged.
    static let settleTime = 1.0

    var nextDeadline: Instant? { [clients.deadline, limit, wakeDue].compactMap(\.self).min() }

    mutating func woke(at now: Instant) { wakeDue = now.advanced(bySeconds: Suspension.settleTime) }

    /// Whether that time has passed; true once.
    mutating func isAwake(at now: Instant) -> Bool {
        guard let wakeDue, wakeDue <= now else { return false }
        self.wakeDue = nil
        return true
    }

    /// The machine is about to sleep, perhaps again.
    fileprivate mutating func sleeps(at now: Instant) {
        wakeDue = nil
        limit = now.advanced(bySeconds: Suspension.longestDelay)
    }
}

extension Decider {
    /// The machine waits while an app is active, and then until what was interrupted is silent.
    mutating func checkSleep(at now: Instant) -> Action? {
        let isNeeded: Bool
        if arbiter.isAsleep {
            let isOver = suspension.limit.map { $0 <= now } ?? false
            isNeeded = suspension.isDelayed && !isOver && !isSilentForSleep
            if !isNeeded { suspension.limit = nil }
        } else {
            suspension.limit = nil
            isNeeded = settings.sleep.pause && arbiter.hasActiveApp
        }
        guard isNeeded != suspension.isDelayed else { return nil }
        suspension.isDelayed = isNeeded
        return .delaySleep(isNeeded)
    }

    mutating func machineSleeps(at now: Instant) {
        suspension.sleeps(at: now)
        push([.expire, .event(.asleep(true)), .checkSleep])
    }

    /// Whether no stream plays or records of the sessions that were interrupted because the machine is about to sleep.
    private var isSilentForSleep: Bool {
        let asleep = Set(arbiter.sessions.filter { $0.interruption?.reason == .appWasSuspended }.map(\.id))
        if asleep.isEmpty || !seen.isConnected { return true }
        let owners = enforcement.owners(facts)
        return !seen.streams.map(\.stream).contains { stream in
            stream.isSounding && !(owners[stream.id] ?? []).filter(asleep.contains).isEmpty
        }
    }

    /// Asks the clients that keep others quiet for too long, and reports those that do not answer.
    mutating func checkClients(at now: Instant) {
        for command in suspension.clients.look(quieting, at: now) {
            switch command {
            case .ping(let client): push([.act(.ping(client))])
            case .hangs(let id):
                let name = quoted(arbiter.session(id)?.name ?? "")
                push([
                    .act(.notice("\(name) kept others quiet without playing, and did not answer; it is inactive now")),
                    .expire, .event(.clientHangs(id)),
                ])
            }
        }
    }

    /// The active sessions of clients that keep others quiet, for those times that the settings limit.
    private var quieting: [HangingClients.Owner] {
        let (lowering, interrupting) = (settings.ducking.longest, settings.interruption.longest)
        guard lowering > 0 || interrupting > 0 else { return [] }
        var found: [(session: Session, since: Instant, longest: Double)] = []
        for session in arbiter.sessions where session.state == .active && session.sessionClass == .app {
            if lowering > 0, let since = arbiter.lowersSince(session.id) { found.append((session, since, lowering)) }
            if interrupting > 0, let since = arbiter.interruptsSince(session.id) {
                found.append((session, since, interrupting))
            }
        }
        found.removeAll { members[$0.session.id].map { $0.adopted != nil } ?? false }
        if found.isEmpty { return [] }
        let owners = enforcement.owners(facts)
        let streams = seen.streams.map(\.stream).filter { $0.direction == .playback && !$0.isCorked }
        let playing = Set(streams.flatMap { owners[$0.id] ?? [] })
        return found.map { session, since, longest in
            HangingClients.Owner(
                session: session.id, client: session.client, since: since, longest: longest,
                isPlaying: playing.contains(session.id))
        }
    }
}
