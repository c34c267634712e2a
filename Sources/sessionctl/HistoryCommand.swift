import Arguments
import DBus
import SessionBus

/// `sessionctl history`.
struct HistoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Show the latest decisions with their effects, newest last.")

    @Option(help: "The number of decisions.")
    var max: UInt32 = 20
    @Flag(help: "Print the history, as far back as it can be repeated, as a scenario for 'sessionctl simulate'.")
    var export = false
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func validate() throws {
        if export, output.json {
            throw ValidationError("--export prints a scenario, not JSON; use only one of the two options")
        }
    }

    func run() throws {
        let service = try Service(bus)
        if export {
            return Output.write(try service.ask("ExportHistory").first?.stringValue ?? "")
        }
        if output.json {
            let decisions = try service.ask("History", [.uint32(max)]).first ?? .array(of: "a{sv}", [])
            return Output.line(JSON.object([("History", decisions)]))
        }
        let snapshot = try service.wait { Snapshot.read(service, $0) }
        let decisions = try service.ask("History", [.uint32(max)]).first?.arrayValue ?? []
        let names = Names(snapshot)
        var table = Table()
        if decisions.isEmpty, max > 0 { table.add([Table.Cell("Nothing has happened yet.", .dim)]) }
        for decision in decisions.compactMap(PastDecision.init) {
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
