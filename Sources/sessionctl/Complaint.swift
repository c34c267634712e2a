import DBus
import PluginAPI
import SessionBus

/// Why a command fails: the message and the exit code.
struct Complaint: Error {
    let code: Int32
    let message: String

    static func refused(_ message: String) -> Complaint { Complaint(code: 1, message: message) }
    /// Something is wrong in the arguments.
    static func usage(_ message: String) -> Complaint { Complaint(code: 64, message: message) }
    static func unreachable(_ message: String) -> Complaint { Complaint(code: 69, message: message) }

    init(code: Int32, message: String) {
        self.code = code
        self.message = message
    }

    /// From a bus error: 69 if the daemon did not answer, 1 if it refused.
    init(_ failure: Failure, system: Bool = false) {
        switch failure.name {
        case _ where failure.isDaemonMissing:
            self = .notRunning(system: system)
        case Failure.Name.accessDenied:
            // The bus describes the rejected message; the service says what is not allowed.
            let isOfBus = failure.message.includes("interface=") || failure.message.isEmpty
            let ofBus =
                system
                ? "the system bus allows this only to root and the group audio: use sudo, or join the group"
                : "the bus does not allow it: permit the program's sandbox to talk to sessiond"
            self = .refused(isOfBus ? ofBus : failure.message.escaped)
        case Failure.Name.noReply, "org.freedesktop.DBus.Error.Timeout", "org.freedesktop.DBus.Error.TimedOut":
            // A service that does not answer has been recognized before (``Absence``).
            self = .unreachable("there was no answer in time; 'sessionctl doctor' may tell why")
        case Failure.Name.unknownMethod, Failure.Name.unknownInterface, Failure.Name.unknownProperty:
            self = .refused("the program that was asked does not know this request: update it, or restart it")
        case Failure.Name.unknownObject: self = .refused("it does not exist any more")
        case Failure.Name.disconnected: self = .unreachable("the bus connection was lost")
        default:
            if failure.name.hasPrefix("org.freedesktop.DBus.Error.Spawn") {
                self = .unreachable(
                    "sessiond could not be started by the bus; \(ServiceStart.words(isSystem: system)) starts it, "
                        + "or tells why not")
            } else {
                // The names of errors and the platform's numbers are for programs: `--json` has them.
                var text = Wording.forPeople(failure.message).escaped
                let exists = BusName.errorPrefix + SessionError.Code.fileAlreadyExists.rawValue
                if failure.name == exists, text.hasSuffix(" exists already") { text += ": " + Wording.replacement }
                self = .refused(text.isEmpty ? "it was refused; 'sessionctl doctor' may tell why" : text)
            }
        }
    }

    static func notRunning(system: Bool) -> Complaint {
        .unreachable("sessiond is not running: start it with \(ServiceStart.words(isSystem: system))")
    }
}
