import Processes
import SessionBus

/// A service that owns its name and does not answer: the same advice from every command and from the doctor.
struct SilentService {
    /// Nil: the bus does not tell it.
    let process: UInt32?
    /// Whether its process is stopped, as by SIGSTOP; false if this cannot be seen.
    let isStopped: Bool

    init(process: UInt32?, isStopped: Bool) { (self.process, self.isStopped) = (process, isStopped) }

    /// With the state of that process as the kernel tells it.
    init(process: UInt32?) {
        let bytes = process.flatMap { readFile("/proc/\($0)/stat", limit: 4_096) } ?? []
        // The name of the program is in parentheses and may have any character.
        let state = bytes.lastIndex(of: UInt8(ascii: ")")).flatMap { bytes.dropFirst($0 + 2).first }
        self.init(process: process, isStopped: state == UInt8(ascii: "T"))
    }

    var text: String {
        let number = process.map { " (process \($0))" } ?? ""
        return "sessiond\(number) does not answer" + (isStopped ? ", because its process is stopped" : "")
    }

    /// The command that helps; nil if the process is unknown.
    var remedy: String? { process.map { "kill \(isStopped ? "-CONT" : "-KILL") \($0)" } }

    var sentence: String {
        guard let remedy else { return "\(text): 'sessionctl doctor' may tell why" }
        return "\(text): \(isStopped ? "continue" : "end") it with '\(remedy)'"
    }
}
