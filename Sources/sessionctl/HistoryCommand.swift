import ArgumentParser
import DBus
import SessionBus

/// `sessionctl history`.
struct HistoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Show the latest decisions with their effects, newest last.")

    @Option(help: "The number of decisions.")
    var max: UInt32 = 20
    @Option(help: "Show the decisions before the one with this number.")
    var before: UInt64?
    @Flag(help: "Show all decisions that the service still has.")
    var all = false
    @Flag(help: "Print the history, as far back as it can be repeated, as a scenario for 'sessionctl simulate'.")
    var export = false
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func validate() throws {
        if export, output.json {
            throw ValidationError("--export prints a scenario, not JSON; use only one of the two options")
        }
        if export, all || before != nil {
            throw ValidationError(
                "--export prints as much as can be repeated; it cannot be used with --all or --before")
        }
    }

    /// Oldest first. One answer of the service is a page; more pages are read until there are enough.
    private func decisions(_ service: Service) throws -> [Value] {
        var wanted = all ? Int.max : Int(max)
        var end = before
        var pages: [[Value]] = []
        while wanted > 0 {
            let size = Value.uint32(UInt32(clamping: wanted))
            let page: [Value]
            if let end {
                page = try service.ask("HistoryBefore", [.uint64(end), size]).first?.arrayValue ?? []
            } else {
                page = try service.ask("History", [size]).first?.arrayValue ?? []
            }
            guard let first = page.first.flatMap(PastDecision.init) else { break }
            pages.append(page)
            wanted -= page.count
            end = first.sequence
        }
        return pages.reversed().flatMap(\.self)
    }

    func run() throws {
        let service = try Service(bus)
        if export {
            return Output.write(try service.ask("ExportHistory").first?.stringValue ?? "")
        }
        if output.json {
            return Output.line(JSON.object(.history, [("History", .array(of: "a{sv}", try decisions(service)))]))
        }
        let snapshot = try service.wait { Snapshot.read(service, isExplained: false, $0) }
        let decisions = try decisions(service).compactMap(PastDecision.init)
        var names = Names(snapshot)
        for decision in decisions where !decision.name.isEmpty && names.known(decision.session) == nil {
            names.learn(decision.session, decision.name)
        }
        var table = Table()
        if decisions.isEmpty, all || max > 0 {
            table.add([Table.Cell(before == nil ? "Nothing has happened yet." : "Nothing before that is known.", .dim)])
        }
        for decision in decisions {
            let consequences = Wording.consequences(decision, names)
            let isAboutSession = decision.session != ObjectPath.none
            table.add([
                Table.Cell("#\(decision.sequence)", .dim),
                Table.Cell(Wording.age(decision.time, snapshot.time) + " ago", .dim),
                Table.Cell(isAboutSession ? names[decision.session] : "", .strong),
                Table.Cell(
                    Wording.event(decision)
                        + (consequences.isEmpty ? "" : ": " + consequences.joined(separator: "; ")),
                    decision.error == nil ? .plain : .warning),
            ])
            for text in Wording.requests(decision, names) {
                table.add([Table.Cell(""), Table.Cell(""), Table.Cell(""), Table.Cell(text, .dim)])
            }
        }
        Output.write(table)
    }
}
