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
            exit(withError: error)
        }
    }
}
