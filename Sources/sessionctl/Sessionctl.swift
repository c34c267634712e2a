import ArgumentParser
import Glibc
import Processes

/// Inspects and controls the audio session service.
@main
struct Sessionctl: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessionctl", abstract: "Inspect and control the audio session service.", version: version,
        subcommands: [
            StatusCommand.self, ListCommand.self, ShowCommand.self, ExplainCommand.self, HistoryCommand.self,
            MonitorCommand.self, RunCommand.self, PlayCommand.self, RecordCommand.self, EffectCommand.self,
            RouteCommand.self, SilentCommand.self, InspectCommand.self, ThumbnailCommand.self, ExportCommand.self,
            UploadCommand.self, LibraryCommand.self, PluginsCommand.self, JobsCommand.self, CancelCommand.self,
            DoctorCommand.self,
            SimulateCommand.self,
        ])

    static func main() {
        FailedWrites.ignoreSignals()
        do {
            var command = try parseAsRoot(FileArgument.all)
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
            if !message.isEmpty { Output.write(message + "\n") }
            Glibc.exit(code.rawValue)
        }
        for argument in CommandLine.arguments.dropFirst() where argument != argument.escaped {
            message = message.split(separator: argument, omittingEmptySubsequences: false)
                .joined(separator: argument.escaped)
        }
        if !message.isEmpty { Output.note(message) }
        Glibc.exit(code.rawValue)
    }
}
