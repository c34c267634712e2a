import ArgumentParser
import DBus
import PluginAPI
import SessionBus

/// `sessionctl silent`.
struct SilentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "silent",
        abstract: "Set the silent switch, which mutes ambient and solo-ambient sessions of class app.")

    enum Position: String, ExpressibleByArgument, CaseIterable { case on, off }

    @Argument(help: "on or off.")
    var position: Position
    @OptionGroup var bus: BusOptions

    func run() throws { try Service(bus).ask("SetSilentMode", [.bool(position == .on)]) }
}

/// `sessionctl route`.
struct RouteCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "route", abstract: "Show or change the inputs and outputs in use.",
        subcommands: [RouteList.self, RouteOverride.self, RouteInput.self], defaultSubcommand: RouteList.self)
}

/// `sessionctl route list`.
struct RouteList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List all inputs and outputs, and mark the current route.")

    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        try service.awaitSoundServer()
        let answer = try service.ask(
            "GetAll", [.string(BusName.manager)], interface: StandardName.properties)
        let properties = answer.first?.asProperties ?? [:]
        if output.json {
            let keys = ["CurrentRoute", "AvailableInputs", "AvailableOutputs", "ServerConnected", "ServerName"]
            return Output.line(JSON.object(.route, keys.compactMap { key in properties[key].map { (key, $0) } }))
        }
        let route = properties["CurrentRoute"]?.route ?? .none
        var table = Table()
        table.addHeader(["", "PORT", "TYPE", "CHANNELS", "UID"])
        add(properties["AvailableOutputs"]?.ports ?? [], "out", current: route.outputs, to: &table)
        add(properties["AvailableInputs"]?.ports ?? [], "in", current: route.inputs, to: &table)
        guard properties["ServerConnected"]?.boolValue ?? false else {
            return Output.line("no sound server: there is no route")
        }
        Output.write(table)
    }

    private func add(_ available: [Port], _ direction: String, current: [Port], to table: inout Table) {
        // A port of the route that is no longer available is still in use.
        let ports = current.filter { port in !available.contains { $0.uid == port.uid } } + available
        for port in ports {
            let isCurrent = current.contains { $0.uid == port.uid }
            let style: Style = isCurrent ? .strong : port.isAvailable ? .plain : .dim
            table.add([
                Table.Cell((isCurrent ? "* " : "  ") + direction, style), Table.Cell(port.name.escaped, style),
                Table.Cell(port.type.rawValue, style), Table.Cell(String(port.channels), style),
                Table.Cell(port.uid.escaped, style),
            ])
        }
        if ports.isEmpty { table.add([Table.Cell("  " + direction, .dim), Table.Cell("none", .dim)]) }
    }
}

/// `sessionctl route override`.
struct RouteOverride: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "override",
        abstract: "Override the output of a play-and-record session, until the next route change.",
        discussion: "Only the program that owns a session may override its output.")

    @Argument(help: "A session: its number, (part of) its name, its process id or its path.", completion: .sessions)
    var session: String
    @Argument(help: "speaker or none.")
    var port: OutputOverride
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        try service.sessions().chosen(by: session).tell(
            service, "OverrideOutput", [.string(port.rawValue)], instead: "pactl set-default-sink")
    }
}

/// `sessionctl route input`.
struct RouteInput: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "input", abstract: "Set the input that a session prefers.",
        discussion: "Only the program that owns a session may choose its input.")

    @Argument(help: "A session: its number, (part of) its name, its process id or its path.", completion: .sessions)
    var session: String
    @Argument(
        help: "The uid of an available input, as 'route list' shows it; empty: no preference.", completion: .inputs)
    var uid: String
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        try service.sessions().chosen(by: session).tell(
            service, "SetPreferredInput", [.string(uid)], instead: "pactl set-default-source")
    }
}

extension SessionInfo {
    /// Calls a method that only the owner may call; `instead` is the command that users can run.
    fileprivate func tell(_ service: Service, _ member: String, _ arguments: [Value], instead: String) throws {
        let answer: Result<[Value], Failure> = try service.wait { reply in
            service.call(member, arguments, interface: BusName.session, path: path) { reply(.success($0)) }
        }
        guard case .failure(let failure) = answer else { return }
        guard failure.name == BusName.errorPrefix + SessionError.Code.notOwner.rawValue else {
            throw service.complaint(failure)
        }
        throw Complaint.refused(
            "only the owner of '\(name.escaped)' may change this; for all programs, use '\(instead)'")
    }
}

/// `sessionctl plugins`.
struct PluginsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "plugins", abstract: "List the plugins, installed and running.")

    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        let answer: Result<[Value], Failure> = try service.wait { reply in
            service.call("List", interface: BusName.plugins) { reply(.success($0)) }
        }
        let plugins: Value
        switch answer {
        case .success(let values): plugins = values.first ?? .array(of: "a{sv}", [])
        case .failure(let failure)
        where [Failure.Name.unknownInterface, Failure.Name.unknownMethod].contains(failure.name):
            throw Complaint.refused("this version of sessiond does not support plugins; update it")
        case .failure(let failure): throw service.complaint(failure)
        }
        if output.json { return Output.line(JSON.object(.plugins, [("Plugins", plugins)])) }
        var table = Table()
        let rows = (plugins.arrayValue ?? []).compactMap(\.asProperties)
        if rows.isEmpty {
            table.add([Table.Cell("No plugins are installed.", .dim)])
        } else {
            table.addHeader(["PLUGIN", "KIND", "VERSION", "STATE", "SERVES"])
        }
        for row in rows {
            func text(_ key: String) -> String { row[key]?.stringValue?.escaped ?? "" }
            let serves = (row["schemes"]?.stringsValue ?? []) + (row["mime-types"]?.stringsValue ?? [])
            table.add([
                Table.Cell(text("name").isEmpty ? text("id") : text("name"), .strong), Table.Cell(text("kind")),
                Table.Cell(text("version")), Table.Cell(text("state"), Wording.pluginStyle(text("state"))),
                Table.Cell(serves.map(\.escaped).joined(separator: " ")),
                Table.Cell(row["busy"]?.boolValue == true ? "busy" : text("message"), .dim),
            ])
        }
        Output.write(table)
    }
}
