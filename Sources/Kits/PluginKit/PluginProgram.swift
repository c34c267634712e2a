public import DBus
import EventLoop
import Glibc
public import PluginAPI
import SessionKit

/// The common part of all plugin programs: it parses arguments, serves a plugin on the bus, and returns an exit code.
///
///     PluginProgram(.player).main { host, arguments in
///         PlayerPlugin(MyEngine(host.loop), arguments.session, on: host.connection, host.loop)
///     }
public struct PluginProgram {
    /// Creates the plugin, and starts to play or record the item of the command line.
    public typealias Make = (PluginHost, PluginArguments) throws(Failure) -> any Plugin

    private let kind: PluginKind
    private let words: [String]

    public init(_ kind: PluginKind) { self.init(kind, Array(CommandLine.arguments.dropFirst())) }

    private init(_ kind: PluginKind, _ words: [String]) {
        self.kind = kind
        self.words = words
    }

    /// Several plugins in one executable: runs the one under whose name it was started.
    ///
    /// The executable must be installed under each name as a hard link. With a symbolic link, the kernel reports the
    /// target as the executable of the process, and the user's settings could not distinguish the plugins.
    public static func main(_ plugins: [(kind: PluginKind, make: Make)]) -> Never {
        let words = CommandLine.arguments
        guard let (index, rest) = choose(from: plugins.map(\.kind), words) else {
            let kinds = plugins.map { "  \(words.first ?? "") \($0.kind.word)   as \($0.kind.program)\n" }
            PluginHost.complain(
                "which plugin? Start it under the name of a plugin, or with its kind:\n" + kinds.joined(),
                name: words.first ?? "")
            exit(64)
        }
        PluginProgram(plugins[index].kind, rest).main(plugins[index].make)
    }

    /// The kind that a command line starts, and the arguments of its program. The name of the program determines the
    /// kind, otherwise the first argument.
    static func choose(from kinds: [PluginKind], _ words: [String]) -> (index: Int, arguments: [String])? {
        let name = words.first?.split(separator: "/").last.map(String.init)
        let named = kinds.firstIndex { $0.program == name }
        // Where the first argument cannot be an item, it may be the kind.
        if let named, !kinds[named].item.isEmpty { return (named, Array(words.dropFirst())) }
        if words.count > 1, let index = kinds.firstIndex(where: { $0.word == words[1] }) {
            return (index, Array(words.dropFirst(2)))
        }
        return named.map { ($0, Array(words.dropFirst())) }
    }

    /// Parses the command line, creates the plugin, serves it and exits: 0 done, 1 failed or refused, 64 wrong usage,
    /// 69 no bus.
    ///
    /// `make` also starts to play or record the item of the command line.
    public func main(_ make: Make) -> Never {
        switch PluginArguments.parse(words, kind) {
        case .print(let text):
            print(text, terminator: "")
            exit(0)
        case .wrong(let message):
            complain(message)
            exit(64)
        case .run(let arguments):
            do throws(Failure) {
                // Skips the destructors of a hundred libraries, which would only read memory that is no longer needed.
                _exit(try serve(arguments, make))
            } catch {
                complain("\(error.name): \(error.message)")
                exit(1)
            }
        }
    }

    private func serve(_ arguments: PluginArguments, _ make: Make) throws(Failure) -> Int32 {
        // Frees the memory of the start before the engine loads its libraries. A program that records at once skips
        // this, to start sooner.
        if !kind.records || arguments.item == nil { Footprint.releaseStartUp() }
        let host: PluginHost
        do throws(Failure) {
            host = try PluginHost(name: kind.program, bus: arguments.bus, endsWithParent: arguments.endsWithParent)
        } catch {
            complain("no \(arguments.bus.name) bus: \(error.message)")
            return 69
        }
        let plugin = try make(host, arguments)
        plugin.serve()
        let name = arguments.session.isHosted ? kind.hostedName(onSystemBus: arguments.bus.isSystem) : kind.busName
        try host.claim("\(name).instance\(PluginHost.processID)", in: name)
        if let id = arguments.pluginID {
            host.register(id, kind: kind, name: arguments.session.name)
        }
        return host.run(plugin)
    }

    private func complain(_ text: String) { PluginHost.complain(text, name: kind.program) }
}
