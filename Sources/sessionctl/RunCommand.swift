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
        commandName: "run", abstract: "Run a command as an active session until it ends.",
        usage: "sessionctl run [<options>] -- <command> [<argument> ...]",
        discussion: """
            The command does not start before its session is active. It is stopped (SIGSTOP) while it is interrupted, \
            and continues when it should resume; with --if-interrupted drop it is ended instead, because an instruction to \
            turn left is wrong after a call. The default category is playback.
            """)

    @OptionGroup var session: SessionOptions
    @Option(name: .customLong("class"), help: "The class, which sets the priority.")
    var sessionClass: SessionClass = .app
    @Option(
        name: .customLong("if-interrupted"),
        help: "What happens to the command when it is interrupted: wait, or drop (it is ended, exit code 1).")
    var ifInterrupted: GuardedCommand.Fate = .wait
    @Flag(help: "Give others the should-resume hint even if this program is killed.")
    var notify = false
    @OptionGroup var bus: BusOptions
    @Argument(parsing: .postTerminator, help: "The command and its arguments.")
    var command: [String]

    func validate() throws {
        guard let first = command.first, !first.isEmpty else {
            throw ValidationError("the command is missing; write it after --")
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
            ifInterrupted: ifInterrupted, service)
        do {
            Output.end(try guarded.run(), keeping: guarded)
        } catch let complaint as Complaint {
            Output.complain(complaint.message)
            Output.end(complaint.code, keeping: guarded)
        }
    }
}
