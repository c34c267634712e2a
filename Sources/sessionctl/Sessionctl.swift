import ArgumentParser
import Glibc
import PluginAPI
import Processes

/// Inspects and controls the audio session service.
@main
struct Sessionctl: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessionctl", abstract: "Inspect and control the audio session service.",
        discussion: "Without a subcommand, it shows the status.", version: version,
        groupedSubcommands: [
            CommandGroup(
                name: "See what plays, and why",
                subcommands: [
                    StatusCommand.self, ExplainCommand.self, TimelineCommand.self, HistoryCommand.self,
                    MonitorCommand.self, ListCommand.self, ShowCommand.self,
                ]),
            CommandGroup(
                name: "Play, record and run",
                subcommands: [
                    PlayCommand.self, WatchCommand.self, RecordCommand.self, LiveCommand.self, EffectCommand.self,
                    RunCommand.self,
                ]),
            CommandGroup(name: "Change what is heard", subcommands: [RouteCommand.self, SilentCommand.self]),
            CommandGroup(
                name: "Films, music and files",
                subcommands: [
                    CameraCommand.self, InspectCommand.self, ThumbnailCommand.self, ExportCommand.self,
                    RepairCommand.self, UploadCommand.self, CacheCommand.self, LibraryCommand.self,
                    JobsCommand.self, CancelCommand.self,
                ]),
            CommandGroup(
                name: "When something is wrong",
                subcommands: [DoctorCommand.self, PluginsCommand.self, SimulateCommand.self]),
        ], defaultSubcommand: StatusCommand.self)

    static func main() {
        FailedWrites.ignoreSignals()
        do {
            let arguments = FileArgument.all
            if let script = CompletionScript.text(for: arguments) {
                Output.line(script)
                Output.end(0, keeping: ())
            }
            if let unknown = CommandNames.unknown(in: arguments, of: Sessionctl.self) { throw unknown }
            var command = try parseAsRoot(arguments)
            try command.run()
        } catch let complaint as Complaint {
            Output.complain(complaint.message)
            Glibc.exit(complaint.code)
        } catch {
            end(error)
        }
    }

    /// Prints the message of the parser: help on standard output, or an error. A name of a file that was given as an
    /// argument may have any character.
    private static func end(_ error: any Error) -> Never {
        let code = exitCode(for: error)
        var message = fullMessage(for: error)
        guard !code.isSuccess else {
            // Completions for a shell may have any character.
            if !message.isEmpty { Output.write(withoutRepetition(message) + "\n") }
            Glibc.exit(code.rawValue)
        }
        for argument in CommandLine.arguments.dropFirst() where argument != argument.escaped {
            message = message.split(separator: argument, omittingEmptySubsequences: false)
                .joined(separator: argument.escaped)
        }
        if !message.isEmpty { Output.note(message) }
        Glibc.exit(code.rawValue)
    }

    /// The help with the titles of groups as they are named: the parser appends a word to each.
    private static func withoutRepetition(_ help: String) -> String {
        help.split(separator: " SUBCOMMANDS:\n", omittingEmptySubsequences: false).joined(separator: ":\n")
    }
}
