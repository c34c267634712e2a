import PluginAPI
import SessionManager

/// Which clients are asked whether they still run, and which of them hang (rules §5, "A client that hangs").
///
/// A client is asked only if it has kept others quiet for too long without playing, once in each such time.
public struct HangingClients: Sendable, Codable {
    /// An active session of a client that keeps others quiet.
    struct Owner: Sendable, Hashable {
        let session: SessionID
        let client: ClientID
        /// Since when it has done so without a break.
        let since: Instant
        /// How long it may do so, in seconds.
        let longest: Double
        /// Whether a stream of it plays.
        let isPlaying: Bool
    }

    enum Command: Sendable, Hashable {
        case ping(ClientID)
        case hangs(SessionID)
    }

    private struct Ping: Sendable, Codable {
        let time: Instant
        var isAnswered = false
    }

    /// Seconds that a client may take for its answer.
    public static let patience = 5.0

    /// The last Ping to each client that keeps others quiet.
    private var pings: [ClientID: Ping] = [:]
    /// When ``look(_:at:)`` is due again; nil: when something changes.
    private(set) var deadline: Instant?

    /// `owners`: all of them; a session that both lowers and interrupts others is there twice.
    mutating func look(_ owners: [Owner], at now: Instant) -> [Command] {
        deadline = nil
        if owners.isEmpty, pings.isEmpty { return [] }
        let clients = Set(owners.map(\.client))
        pings = pings.filter { clients.contains($0.key) }
        var commands: [Command] = []
        func wait(until due: Instant) { deadline = min(deadline ?? due, due) }
        for owner in owners where !owner.isPlaying {
            let due = owner.since.advanced(bySeconds: owner.longest)
            switch pings[owner.client] {
            case let ping? where !ping.isAnswered && due <= ping.time:
                let limit = ping.time.advanced(bySeconds: HangingClients.patience)
                guard limit <= now else {
                    wait(until: limit)
                    continue
                }
                let command = Command.hangs(owner.session)
                if !commands.contains(command) { commands.append(command) }
            case let ping:
                // An answer counts for the whole time after it.
                let next = ping.map { max(due, $0.time.advanced(bySeconds: owner.longest)) } ?? due
                guard next <= now else {
                    wait(until: next)
                    continue
                }
                pings[owner.client] = Ping(time: now)
                commands.append(.ping(owner.client))
                wait(until: now.advanced(bySeconds: HangingClients.patience))
            }
        }
        return commands
    }

    mutating func answered(_ client: ClientID) { pings[client]?.isAnswered = true }
}
