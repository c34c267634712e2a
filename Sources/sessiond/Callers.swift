import DBus
import Glibc
import PluginAPI

/// Who calls, as far as what they may do depends on it: by what the bus has from the kernel, whatever its policy lets by.
///
/// On the bus of the whole machine the switches are for those who look after it, the daemon's own user, root and the group
/// audio; plugins, which run as the daemon, for the former two. On a session's own bus everybody is the same person, but for programs in sandboxes.
final class Callers {
    /// Callers that are remembered, so that the bus is not asked at each call; no name is ever another's.
    private static let limit = 64

    private let connection: Connection
    let isSystem: Bool
    private var known: [String: Credentials] = [:]

    init(_ connection: Connection, isSystem: Bool) {
        self.connection = connection
        self.isSystem = isSystem
    }

    /// Throws `AccessDenied` where the caller may not change what is for everybody. Waits for the bus where it is new.
    func requireSwitches(_ caller: String) throws(Failure) {
        guard isTrusted(try credentials(of: caller)) else {
            throw Callers.denied(
                isSystem
                    ? "only root and the group audio may change this"
                    : "a program in a sandbox may not change this")
        }
    }

    /// The same for having the daemon start what does as the caller says.
    func requirePlugins(_ caller: String) throws(Failure) {
        guard isSystem else { return }
        guard let user = try credentials(of: caller).userID, user == geteuid() || user == 0 else {
            throw Callers.denied("only root may open plugins of the system service")
        }
    }

    private static func denied(_ message: String) -> Failure {
        Failure(name: Failure.Name.accessDenied, message: message)
    }

    private func credentials(of caller: String) throws(Failure) -> Credentials {
        if let known = known[caller] { return known }
        let credentials = try connection.credentialsAndWait(of: caller, timeout: 5).withoutProof
        if known.count == Callers.limit { known.removeAll(keepingCapacity: true) }
        known[caller] = credentials
        return credentials
    }

    /// Whether the class of a session, or a switch, is for them where `any` is said.
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

    /// Of the whole machine.
    static func areTrusted(_ user: UInt32, _ groups: [UInt32]) -> Bool {
        user == geteuid() || user == 0 || getgrnam("audio").map { groups.contains($0.pointee.gr_gid) } ?? false
    }
}
