import ArgumentParser
import DBus
import PluginAPI
import SessionBus

/// `sessionctl jobs`.
struct JobsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "jobs", abstract: "List what plugins are working on, and what ended within the last minute.")

    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let jobs = try Service(bus).jobs()
        if output.json { return Output.line(JSON.object(.jobs, [("Jobs", .array(of: "a{sv}", jobs.map(\.raw)))])) }
        var table = Table()
        if jobs.isEmpty {
            table.add([Table.Cell("No jobs.", .dim)])
        } else {
            table.addHeader(["JOB", "STATE", "DONE", "LEFT", "KIND", "NAME"])
        }
        for job in jobs {
            let message = Wording.forPeople(job["Message"]?.stringValue ?? "").escaped
            table.add([
                Table.Cell(job.label.escaped), Table.Cell(job.state.escaped, Self.style(job.state)),
                Table.Cell(Self.share(job)), Table.Cell(Self.left(job)),
                Table.Cell(job["Kind"]?.stringValue?.escaped ?? ""),
                Table.Cell(job.name.escaped, .strong),
            ])
            // It has the whole width, below its job.
            if !message.isEmpty { table.add([Table.Cell("  → \(message)", job.state == "failed" ? .bad : .dim)]) }
        }
        Output.write(table)
    }

    private static func style(_ state: String) -> Style {
        switch state {
        case "running": .good
        case "failed": .bad
        case "paused", "cancelled": .warning
        default: .plain
        }
    }

    private static func share(_ job: JobInfo) -> String {
        guard let progress = job["Progress"]?.doubleValue, progress >= 0 else { return "" }
        return "\(Wording.whole((progress * 100).rounded(.down), 0...100)) %"
    }

    private static func left(_ job: JobInfo) -> String {
        guard !job.isOver, let seconds = job["Remaining"]?.doubleValue, seconds >= 0 else { return "" }
        return Wording.clock(seconds.rounded(.up))
    }
}

/// `sessionctl cancel`.
struct CancelCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel a job; nothing of its result stays.")

    @Argument(help: "A job: as 'jobs' lists it, its number, its name or its path.", completion: .jobs)
    var job: String
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        let job = try service.jobs().chosen(by: job)
        if job.isOver { throw Complaint.refused("\(job.label.escaped) has ended: it is \(job.state.escaped)") }
        do throws(Failure) {
            _ = try service.connection.callAndWait(
                job.place, job.path, BusName.job, "Cancel", [], timeout: Service.timeout)
        } catch {
            throw service.complaint(error)
        }
        Output.line("\(job.label.escaped) is cancelled: \(job.name.escaped)")
    }
}
