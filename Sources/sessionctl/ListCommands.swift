import ArgumentParser
import DBus
import EventLoop
import PluginAPI
import SessionBus

/// `sessionctl list`.
struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "List all sessions, one line each.")

    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let sessions = try Service(bus).sessions()
        if output.json {
            return Output.line(JSON.object(.list, [("Sessions", .array(of: "a{sv}", sessions.map(\.raw)))]))
        }
        var table = Table()
        if sessions.isEmpty {
            table.add([Table.Cell("No sessions.", .dim)])
        } else {
            table.addHeader(["NR", "STATE", "PID", "SESSION", "KIND"])
        }
        for session in sessions {
            table.add([
                Table.Cell(String(session.number)), Table.Cell(session["State"]?.stringValue?.escaped ?? ""),
                Table.Cell(String(session.processID)), Table.Cell(session.name.escaped, .strong),
                Table.Cell(Wording.exactKind(session)),
            ])
        }
        Output.write(table)
    }
}

/// `sessionctl show`.
struct ShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "show", abstract: "Show everything about one session.")

    @Argument(help: "A session: its number, (part of) its name, its process id or its path.", completion: .sessions)
    var session: String
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let sessions = try Service(bus).sessions()
        let chosen = try sessions.chosen(by: session)
        if output.json {
            let members = (chosen.raw.dictionaryValue ?? []).map { ($0.key.stringValue ?? "", $0.value) }
            return Output.line(JSON.object(.show, members))
        }
        var table = Table()
        for entry in chosen.raw.dictionaryValue ?? [] {
            let key = entry.key.stringValue ?? ""
            table.add([Table.Cell(key.escaped, .dim), Table.Cell(text(key, entry.value.unwrapped, sessions))])
        }
        Output.write(table)
    }

    private func text(_ key: String, _ value: Value, _ sessions: [SessionInfo]) -> String {
        if let flag = value.boolValue { return flag ? "yes" : "no" }
        if let string = value.stringValue { return string.isEmpty ? "–" : string.escaped }
        if let strings = value.stringsValue { return strings.isEmpty ? "–" : strings.joined(separator: ", ").escaped }
        if let paths = value.objectPathsValue {
            let names = paths.map { path in sessions.first { $0.path == path }?.name.escaped ?? path }
            return names.isEmpty ? "–" : names.joined(separator: ", ")
        }
        if let number = value.doubleValue {
            let unit = unit(of: key)
            return Wording.tenths(number * unit.scale) + unit.name
        }
        if let time = value.uint64Value, key == "StateSince" { return Wording.age(time, MonotonicClock.now()) + " ago" }
        if key == "CurrentRoute", let route = value.route {
            return "out: \(Wording.ports(route.outputs)), in: \(Wording.ports(route.inputs))"
        }
        if key == "AvailableInputs" { return Wording.ports(value.ports) }
        if let path = value.objectPathValue { return path }
        return JSON.text(value)
    }

    private func unit(of key: String) -> (scale: Double, name: String) {
        switch key {
        case "DuckGain": (1, " dB")
        case "SampleRate": (1, " Hz")
        case "IOBufferDuration", "OutputLatency", "InputLatency": (1000, " ms")
        case "OutputVolume": (100, " %")
        default: (1, "")
        }
    }
}
