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
    @Flag(
        name: .customLong("private"),
        help: "With --export: print also the titles, tracks and folders, which otherwise have other names.")
    var isPrivate = false
    @Flag(help: "Show also decisions that changed nothing for anybody.")
    var verbose = false
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func validate() throws {
        if isPrivate, !export {
            throw ValidationError("--private is for --export; without it nothing has another name")
        }
        if export, output.json {
            throw ValidationError("--export prints a scenario, not JSON; use only one of the two options")
        }
        if export, all || before != nil {
            throw ValidationError(
                "--export prints as much as can be repeated; it cannot be used with --all or --before")
        }
    }

    private static let page = 64

    /// Oldest first. One answer of the service is a page; more pages are read until there are enough of those that count.
    private func decisions(_ service: Service, where counts: (Value) -> Bool) throws -> [Value] {
        var wanted = all ? Int.max : Int(max)
        var end = before
        var pages: [[Value]] = []
        while wanted > 0 {
            // Decisions that do not count are read, too: a page is not smaller than this.
            let size = Value.uint32(UInt32(clamping: Swift.max(wanted, Self.page)))
            let page: [Value]
            if let end {
                page = try service.ask("HistoryBefore", [.uint64(end), size]).first?.arrayValue ?? []
            } else {
                page = try service.ask("History", [size]).first?.arrayValue ?? []
            }
            guard let first = page.first.flatMap(PastDecision.init) else { break }
            let chosen = page.filter(counts)
            // A page may have more of them than are still wanted.
            pages.append(Array(chosen.suffix(wanted)))
            wanted -= chosen.count
            end = first.sequence
        }
        return pages.reversed().flatMap(\.self)
    }

    func run() throws {
        let service = try Service(bus)
        if export {
            return Output.write(
                try service.ask(isPrivate ? "ExportPrivateHistory" : "ExportHistory").first?.stringValue ?? "")
        }
        if output.json {
            return Output.line(
                JSON.object(.history, [("History", .array(of: "a{sv}", try decisions(service) { _ in true }))]))
        }
        let snapshot = try service.wait { Snapshot.read(service, isExplained: false, $0) }
        var isAnyHidden = false
        let decisions = try decisions(service) { value in
            let isShown = verbose || PastDecision(value)?.changesSomething ?? false
            if !isShown { isAnyHidden = true }
            return isShown
        }
        .compactMap(PastDecision.init)
        var names = Names(snapshot)
        for decision in decisions where !decision.name.isEmpty && names.known(decision.session) == nil {
            names.learn(decision.session, decision.name)
        }
        var table = Table()
        if decisions.isEmpty, all || max > 0 {
            let text =
                isAnyHidden
                ? "Nothing has changed for anybody; --verbose shows all decisions."
                : before == nil ? "Nothing has happened yet." : "Nothing before that is known."
            table.add([Table.Cell(text, .dim)])
        }
        for decision in decisions {
            let consequences = Wording.consequences(decision, names)
            let isAboutSession = decision.session != ObjectPath.none
            table.add([
                Table.Cell("#\(decision.sequence)", .dim),
                // The column is as wide for ages in seconds as for tenths of them.
                Table.Cell((Wording.age(decision.time, snapshot.time) + " ago").padded(to: 9), .dim),
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
