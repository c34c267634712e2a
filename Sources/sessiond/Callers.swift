import DBus
import Glibc
import PluginAPI

/// Who calls, as far as what they may do depends on it: by what the bus has from the kernel, whatever its policy lets by.
///
/// On the bus of the whole machine the switches and plugins are for those who look after it: the daemon's own user, root
/// and the group audio. On a session's own bus everybody is the same person, but for programs in sandboxes.
final class Callers {
    /// Callers that are remembered, so that the bus is not asked at each call; no name is ever another's.
    private static let limit = 64

    private let connection: Connection
    let isSystem: Bool
    private var trusted: [String: Bool] = [:]

    init(_ connection: Connection, isSystem: Bool) {
        self.connection = connection
        self.isSystem = isSystem
    }

    /// Throws `AccessDenied` where the caller may not do what concerns everybody. Waits for the bus where it is new.
    func requireTrust(_ caller: String, to what: String) throws(Failure) {
        if try isTrusted(caller) { return }
        throw Failure(
            name: Failure.Name.accessDenied,
            message: isSystem
                ? "only root and the group audio may \(what) here" : "a program in a sandbox may not \(what)")
    }

    private func isTrusted(_ caller: String) throws(Failure) -> Bool {
        if let known = trusted[caller] { return known }
        let isTrusted = isTrusted(try connection.credentialsAndWait(of: caller, timeout: 5))
        if trusted.count == Callers.limit { trusted.removeAll(keepingCapacity: true) }
        trusted[caller] = isTrusted
        return isTrusted
    }

    /// Whether the class of a session, or a switch, is for them where `any` is said.
    func isTrusted(_ caller: Credentials) -> Bool {
        guard isSystem else {
            guard caller.startTime != nil, let process = caller.processID.map(Process.init),
                case .none = process.confinement
            else { return false }
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
