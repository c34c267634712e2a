import DBus
import SessionManager

/// One connection that owns, or is about to own, sessions.
final class Client {
    let id: ClientID
    /// Unique name on the bus.
    let name: String
    var credentials: Credentials
    /// When its process started: with its id, that process and no later one. 0: unknown.
    let startTime: UInt64
    /// Ends when the connection does.
    var watch: Subscription?
    var sessionCount = 0

    init(id: ClientID, name: String, credentials: Credentials, startTime: UInt64) {
        self.id = id
        self.name = name
        self.credentials = credentials
        self.startTime = startTime
    }
}
