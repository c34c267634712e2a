import DBus
import SessionManager

/// One connection that owns, or is about to own, sessions.
final class Client {
    let id: ClientID
    /// Unique name on the bus.
    let name: String
    let credentials: Credentials
    /// Ends when the connection does.
    var watch: Subscription?
    var sessionCount = 0

    init(id: ClientID, name: String, credentials: Credentials) {
        self.id = id
        self.name = name
        self.credentials = credentials
    }
}
