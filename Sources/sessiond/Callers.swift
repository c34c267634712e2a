import DBus
import Glibc
import PluginAPI
import Processes

/// The permissions of callers, independent of the bus policy. The bus has the user and process from the kernel.
///
/// On the system bus, only the daemon's own user, root and the group audio may use the switches. Only the daemon's user
/// and root may start plugins, which run as the daemon. On a session bus, all callers are the same user, but sandboxed
/// programs are restricted.
final class Callers {
    /// The number of remembered callers, so that the bus is not asked at each call; unique names are never reused.
    private static let limit = 64

    private let connection: Connection
    let isSystem: Bool
    private var known: [String: (user: UInt32?, isTrusted: Bool)] = [:]

    init(_ connection: Connection, isSystem: Bool) {
        self.connection = connection
        self.isSystem = isSystem
    }

    /// Throws `AccessDenied` if the caller may not change shared state. Waits for the bus if the caller is new.
    func requireSwitches(_ caller: String) throws(Failure) {
        guard try verdict(on: caller).isTrusted else {
            throw Callers.denied(
                isSystem
                    ? "only root and the group audio may change this"
                    : "a program in a sandbox may not change this")
        }
    }

    /// The same for starting plugins, which read files and reach the network with the daemon's rights.
    func requirePlugins(_ caller: String) throws(Failure) {
        guard isSystem else {
            guard try verdict(on: caller).isTrusted else {
                throw Callers.denied("a program in a sandbox may not open plugins")
            }
            return
        }
        guard let user = try verdict(on: caller).user, user == geteuid() || user == 0 else {
            throw Callers.denied("only root may open plugins of the system service")
        }
    }

    private static func denied(_ message: String) -> Failure {
        Failure(name: Failure.Name.accessDenied, message: message)
    }

    private func verdict(on caller: String) throws(Failure) -> (user: UInt32?, isTrusted: Bool) {
        if let known = known[caller] { return known }
        let credentials = try connection.credentialsAndWait(of: caller, timeout: 5)
        // In this order: if the process has not ended now, it was the right one that was looked at.
        let verdict = (credentials.userID, isTrusted(credentials) && !credentials.hasEnded)
        if known.count == Callers.limit { known.removeAll(keepingCapacity: true) }
        known[caller] = verdict
        return verdict
    }

    /// Whether the caller may use a class or a switch that is allowed for `any`.
    func isTrusted(_ caller: Credentials) -> Bool {
        guard isSystem else {
            guard let process = caller.processID.map(Process.init), case .none = process.confinement else {
                return false
            }
            return true
        }
        guard let user = caller.userID else { return false }
        return Callers.areTrusted(user, caller.groupIDs)
    }

    /// Whether this user or one of the groups may control the sound of the whole machine.
    static func areTrusted(_ user: UInt32, _ groups: [UInt32]) -> Bool {
        user == geteuid() || user == 0 || getgrnam("audio").map { groups.contains($0.pointee.gr_gid) } ?? false
    }
}
