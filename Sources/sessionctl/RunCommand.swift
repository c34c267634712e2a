import ArgumentParser
import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus
import SessionKit

/// `sessionctl run`.
struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run a command as an active session, for as long as it runs.",
        usage: "sessionctl run [<options>] -- <command> [<argument> ...]",
        discussion: """
            The command does not start before its session is active. It is stopped (SIGSTOP) while it is interrupted, \
            and goes on when it should resume. The category is playback unless another is given.
            """)

    @OptionGroup var session: SessionOptions
    @Option(name: .customLong("class"), help: "How privileged it is.")
    var sessionClass: SessionClass = .app
    @Flag(help: "Recommend others to resume even when this program is killed.")
    var notify = false
    @OptionGroup var bus: BusOptions
    @Argument(parsing: .postTerminator, help: "The command and its arguments.")
    var command: [String]

    func validate() throws {
        guard let first = command.first, !first.isEmpty else {
            throw ValidationError("what to run is missing; write it behind --")
        }
    }

    func run() throws {
        let name = session.name ?? command[0].split(separator: "/").last.map(String.init) ?? command[0]
        let service = try Service(bus)
        let guarded = try GuardedCommand(
            command,
            AudioSessionClient.Description(
                name: name, category: session.category ?? .playback, mode: session.mode ?? .default,
                options: session.options, sessionClass: sessionClass, notifiesOnExit: notify),
            service)
        do {
            Output.end(try guarded.run(), keeping: guarded)
        } catch let complaint as Complaint {
            Output.complain(complaint.message)
            Output.end(complaint.code, keeping: guarded)
        }
    }
}
