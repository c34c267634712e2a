import DBus
import EventLoop
import Glibc
import SessionManager

/// One connection that owns sessions, or is about to.
final class Client {
    let id: ClientID
    /// Unique name on the bus.
    let name: String
    private(set) var credentials: Credentials
    /// The start time of its process: together with its id it identifies the process. 0: unknown, or it has ended.
    let startTime: UInt64
    /// Ends with the connection.
    var watch: Subscription?
    var sessionCount = 0

    init(id: ClientID, name: String, credentials: Credentials, startTime: UInt64) {
        self.id = id
        self.name = name
        self.credentials = credentials.withoutProof
        self.startTime = startTime
    }

    /// Updates the credentials from the bus; the process is the same.
    func confirm(_ credentials: Credentials) { self.credentials = credentials.withoutProof }

    /// Its process; nil if unknown or ended, because another process may have the id now.
    var process: Process? {
        guard startTime != 0, let process = credentials.processID.map(Process.init) else { return nil }
        return process.startTime == startTime ? process : nil
    }
}

/// A process that plays for a client. It is identified by its start time, because a later process may have its number.
struct ActingProcess {
    /// Its start time. With the process id, it identifies the process, also for the next daemon.
    let startTime: UInt64
    /// Nil if the process has ended.
    let watch: ProcessWatch?

    /// Watches the process that has this number now, if there is one.
    init(_ process: UInt32, on loop: EventLoop, _ ended: @escaping () -> Void) {
        // In this order: if the watched process has not ended yet, it still had its number when the start time was
        // read.
        let watch = ProcessWatch(process, on: loop, ended)
        startTime = Process(id: process).startTime ?? 0
        self.watch = startTime == 0 ? nil : watch
    }
}

extension Credentials {
    /// When the process started, in clock ticks since boot; nil if unknown or ended. If the bus passes a descriptor of
    /// the process, another process with the same id is not mistaken for it.
    var startTime: UInt64? {
        let time = processID.flatMap { Process(id: $0).startTime }
        // In this order: if it has not ended now, the time was read from the right process.
        return hasEnded ? nil : time
    }

    /// From here on the start time identifies the process, so that no client keeps a descriptor open.
    var withoutProof: Credentials { Credentials(processID: processID, userID: userID, groupIDs: groupIDs) }
}
