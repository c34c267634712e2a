import DBus
import Glibc
import SessionBus

/// Why a command fails: the message and the exit code.
struct Complaint: Error {
    let code: Int32
    let message: String

    static func refused(_ message: String) -> Complaint { Complaint(code: 1, message: message) }
    static func unreachable(_ message: String) -> Complaint { Complaint(code: 69, message: message) }

    init(code: Int32, message: String) {
        self.code = code
        self.message = message
    }

    /// From a bus error: 69 if the daemon did not answer, 1 if it refused.
    init(_ failure: Failure, system: Bool = false) {
        switch failure.name {
        case _ where failure.isDaemonMissing:
            self = .unreachable("sessiond is not running: start it with \(Complaint.howToStart(system: system))")
        case Failure.Name.accessDenied:
            self = .refused(
                system
                    ? "AccessDenied: the policy of the system bus allows this only to root and the group audio"
                    : "AccessDenied: the bus does not allow it: \(failure.message.escaped)")
        case Failure.Name.noReply, "org.freedesktop.DBus.Error.Timeout", "org.freedesktop.DBus.Error.TimedOut":
            self = .unreachable("sessiond does not answer; its process may be stopped: \(failure.message.escaped)")
        case Failure.Name.disconnected: self = .unreachable("the bus connection was lost")
        default:
            if failure.name.hasPrefix("org.freedesktop.DBus.Error.Spawn") {
                self = .unreachable("sessiond could not be started by the bus: \(failure.message.escaped)")
            } else {
                self = .refused("\(Complaint.shortName(failure.name).escaped): \(failure.message.escaped)")
            }
        }
    }

    /// Our own error names without their prefix; others unchanged.
    private static func shortName(_ name: String) -> String {
        name.hasPrefix(BusName.errorPrefix) ? String(name.dropFirst(BusName.errorPrefix.count)) : name
    }

    private static func howToStart(system: Bool) -> String {
        let direct = system ? "'sessiond --system'" : "'sessiond &'"
        guard access("/run/systemd/system", F_OK) == 0 else { return direct }
        return "'systemctl \(system ? "" : "--user ")start sessiond' or \(direct)"
    }
}
