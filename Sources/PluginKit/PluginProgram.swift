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
    private let kind: PluginKind

    public init(_ kind: PluginKind) { self.kind = kind }

    /// Parses the command line, creates the plugin, serves it and exits: 0 done, 1 failed or refused, 64 wrong usage,
    /// 69 no bus.
    ///
    /// `make` also starts to play or record what the command line names.
    public func main(_ make: (PluginHost, PluginArguments) throws(Failure) -> any Plugin) -> Never {
        switch PluginArguments.parse(Array(CommandLine.arguments.dropFirst()), kind) {
        case .print(let text):
            print(text, terminator: "")
            exit(0)
        case .wrong(let message):
            complain(message)
            exit(64)
        case .run(let arguments):
            do throws(Failure) {
                // Without the destructors of a hundred libraries, which would only touch memory that is not needed any
                // more.
                _exit(try serve(arguments, make))
            } catch {
                complain("\(error.name): \(error.message)")
                exit(1)
            }
        }
    }

    private func serve(
        _ arguments: PluginArguments, _ make: (PluginHost, PluginArguments) throws(Failure) -> any Plugin
    ) throws(Failure) -> Int32 {
        // What only the loader needed shall not be there beside what the engine loads; who records now is in a hurry.
        if !kind.records || arguments.item == nil { Footprint.releaseStartUp() }
        let host: PluginHost
        do throws(Failure) {
            host = try PluginHost(name: kind.program, bus: arguments.bus, endsWithParent: arguments.endsWithParent)
        } catch {
            complain("no \(arguments.bus.name) bus: \(error.message)")
            return 69
        }
        let plugin = try make(host, arguments)
        try host.claim("\(kind.busName).instance\(PluginHost.processID)", in: kind.busName)
        if let id = arguments.pluginID {
            host.register(id, kind: kind, name: arguments.session.name)
        }
        return host.run(plugin)
    }

    private func complain(_ text: String) { PluginHost.complain(text, name: kind.program) }
}
