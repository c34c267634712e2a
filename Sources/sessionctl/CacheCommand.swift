import ArgumentParser
import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus

/// `sessionctl cache`.
struct CacheCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache", abstract: "Play media of the web while they are kept, and see what is kept.",
        discussion: """
            mpv "$(sessionctl cache url https://example.org/film.mp4)" plays while the film is fetched, every byte once. Seeking \
            works at once, and what is whole plays without the network. See also 'play --cache'.
            """,
        subcommands: [
            CacheListCommand.self, CacheURLCommand.self, CacheFetchCommand.self, CacheRemoveCommand.self,
            CacheClearCommand.self,
        ], defaultSubcommand: CacheListCommand.self)
}

/// The plugin for the cache.
final class CachePlace: PluginPlace {
    init(_ service: Service) throws { try super.init(.cache, for: "https:", "the cache", service) }

    /// - Parameter options: more options of `Open` and `Prefetch`.
    static func options(_ headers: [String], _ options: [(String, Value)] = []) throws -> Value {
        let pairs = try headers.flatMap(HeaderArgument.lines).map(HeaderArgument.pair)
        let entries = pairs.map { DictionaryEntry(key: .string($0.name), value: .string($0.value)) }
        return .properties(options + [("headers", .dictionary(key: "s", value: "s", entries))])
    }

    /// The address to play.
    func open(_ url: String, _ options: Value) throws -> String {
        try ask("Open", [.string(url), options]).first?.stringValue ?? ""
    }
}

/// `sessionctl cache list`.
struct CacheListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List what is kept, the most recently used first.")

    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let service = try Service(bus)
        let place = try CachePlace(service)
        let all = try place.ask("List", []).first?.arrayValue ?? []
        let limits: [String: Value] =
            try service.wait { reply in
                service.connection.call(
                    place.place, place.kind.objectPath, StandardName.properties, "GetAll",
                    [.string(place.kind.interface)],
                    timeout: Service.timeout, reply)
            }.first?.asProperties ?? [:]
        if output.json {
            return Output.line(
                JSON.object(
                    .cache,
                    [
                        ("Resources", .array(of: "a{sv}", all)), ("Size", limits["Size"] ?? .uint64(0)),
                        ("Limit", limits["Limit"] ?? .uint64(0)), ("Folder", limits["Folder"] ?? .string("")),
                    ]))
        }
        var table = Table()
        if all.isEmpty { table.add([Table.Cell("Nothing is kept.", .dim)]) }
        if !all.isEmpty { table.addHeader(["HERE", "SIZE", "STATE", "ADDRESS"]) }
        for resource in all.reversed().compactMap(\.asProperties) { table.add(Self.row(resource)) }
        Output.write(table)
        if !all.isEmpty {
            let size = Wording.bytes(limits["Size"]?.uint64Value ?? 0)
            Output.line("\(size) of at most \(Wording.bytes(limits["Limit"]?.uint64Value ?? 0))")
        }
    }

    private static func row(_ resource: [String: Value]) -> [Table.Cell] {
        let size = resource["size"]?.uint64Value ?? 0
        let here = (resource["ranges"]?.arrayValue ?? []).reduce(UInt64(0)) { sum, range in
            let ends = range.structureValue?.compactMap(\.uint64Value) ?? []
            return ends.count == 2 && ends[1] > ends[0] ? sum + (ends[1] - ends[0]) : sum
        }
        let share = size > 0 ? "\(Wording.whole(Double(here) / Double(size) * 100, 0...100)) %" : ""
        let isComplete = resource["complete"]?.boolValue == true
        let isOpen = resource["open"]?.boolValue == true
        let state = isComplete ? "whole" : resource["kept"]?.boolValue == false ? "passed on" : isOpen ? "open" : "part"
        return [
            Table.Cell(share), Table.Cell(size > 0 ? Wording.bytes(size) : ""),
            Table.Cell(state, isComplete ? .good : .plain),
            Table.Cell((resource["url"]?.stringValue ?? "").escaped, .strong),
        ]
    }
}

/// `sessionctl cache url`.
struct CacheURLCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "url", abstract: "Print the address at which any player can read a web address through the cache.",
        discussion: """
            The address is valid until 15 minutes after the last player has read it. What is whole already is a file.
            """)

    @Argument(help: "The address, which begins with http:// or https://.")
    var url: String
    @Option(
        help: ArgumentHelp(
            "A header as 'Name: value', or @FILE with one header on each line; may be repeated.", valueName: "header"))
    var header: [String] = []
    @Flag(help: "Keep nothing.")
    var passOnly = false
    @OptionGroup var bus: BusOptions

    func run() throws {
        let options = try CachePlace.options(header, [("detached", .bool(true)), ("keep", .bool(!passOnly))])
        Output.line(try CachePlace(Service(bus)).open(url, options).escaped)
    }
}

/// `sessionctl cache fetch`.
struct CacheFetchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch", abstract: "Fetch all of a web address, to play it later without the network.")

    @Argument(help: "The address, which begins with http:// or https://.")
    var url: String
    @Option(
        help: ArgumentHelp(
            "A header as 'Name: value', or @FILE with one header on each line; may be repeated.", valueName: "header"))
    var header: [String] = []
    @Flag(help: "Do not wait: print the job and exit.")
    var detach = false
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let place = try CachePlace(Service(bus))
        let arguments = [Value.string(url), try CachePlace.options(header, [("detached", .bool(detach))])]
        if detach {
            let job = try place.ask("Prefetch", arguments).first?.objectPathValue ?? ""
            return Output.line(
                output.json ? JSON.object(.fetch, [("Job", .objectPath(job))]) : JobInfo.label(of: job).escaped)
        }
        let job = FollowedJob(place)
        var line = ProgressLine()
        let isDrawn = Terminal.standard.canRedraw && !output.json && tcgetpgrp(STDOUT_FILENO) == getpgrp()
        job.onChanged = {
            guard isDrawn else { return }
            line.title = (job.properties["Name"]?.stringValue ?? "").escaped
            line.show(job.properties)
            line.draw()
            ProgressLine.isDrawn = true
        }
        let code = try job.run("Prefetch", arguments)
        ProgressLine.clearIfDrawn()
        if output.json {
            Output.line(JSON.object(.fetch, job.properties.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }))
        } else if code == 0 {
            let name = (job.properties["Name"]?.stringValue ?? "").escaped
            Output.line("\(name): \(Wording.bytes(job.properties["Total"]?.uint64Value ?? 0))")
        }
        Output.end(code, keeping: job)
    }
}

/// `sessionctl cache remove`.
struct CacheRemoveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Remove what is kept of a web address.")

    @Argument(help: "The address, in full or as 'cache list' shows it.")
    var url: String
    @OptionGroup var bus: BusOptions

    func run() throws { _ = try CachePlace(Service(bus)).ask("Remove", [.string(url)]) }
}

/// `sessionctl cache clear`.
struct CacheClearCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove everything that no player reads.")

    @OptionGroup var bus: BusOptions

    func run() throws { _ = try CachePlace(Service(bus)).ask("Clear", []) }
}
