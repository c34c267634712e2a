import ArgumentParser
import DBus
import EventLoop
import SessionBus

/// `sessionctl status`.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status", abstract: "Show all sessions, why they are in their state, and the route.")

    @Flag(help: "Update the screen at every change, until ctrl-C.")
    var watch = false
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        try service.awaitSoundServer()
        let snapshot = try service.wait { Snapshot.read(service, isExplained: !output.json, $0) }
        guard watch else {
            if output.json { return Output.line(snapshot.json) }
            let view = StatusView(snapshot, .standard)
            return Output.write(
                view.lines(width: Terminal.standard.size?.columns, rows: nil).joined(separator: "\n") + "\n")
        }
        let isJSON = output.json
        let watcher = ScreenWatch<Snapshot>(
            service, { Snapshot.read(service, isExplained: !isJSON, $0) },
            lines: { StatusView($0, .standard).lines(width: $1, rows: $2) }, json: isJSON ? \.json : nil)
        watcher.show(snapshot)
        let code = service.loop.run()
        watcher.end()
        Output.end(code, keeping: (service, watcher))
    }
}
