public import DBus
import EventLoop
import Glibc
public import PluginAPI
import SessionKit

/// What all plugin programs have in common: arguments in, a plugin on the bus, an exit code out.
///
///     PluginProgram(
///         "sessiond-player", .player, category: .playback, busName: "org.mpris.MediaPlayer2.sessiond_player",
///         object: PlayerPlugin.objectPath
///     ).main { host, arguments in
///         PlayerPlugin(MyEngine(host.loop), arguments.session, on: host.connection, host.loop)
///     }
public struct PluginProgram {
    /// As people type it and read it in front of messages.
    private let name: String
    private let kind: PluginManifest.Kind
    private let category: Category
    private let busName: String
    private let object: String

    /// - Parameters:
    ///   - category: the session's, unless the command line says otherwise.
    ///   - busName: the name it takes on the bus, before `.instance` and its process's number.
    ///   - object: where it serves what its kind serves.
    public init(
        _ name: String, _ kind: PluginManifest.Kind, category: Category, busName: String, object: String
    ) {
        (self.name, self.kind, self.category, self.busName, self.object) = (name, kind, category, busName, object)
    }

    /// Reads the command line, makes the plugin, serves it and exits: 0 done, 1 failed or refused, 64 wrong usage,
    /// 69 no bus.
    ///
    /// `make` also begins with what the command line says to play or record.
    public func main(_ make: (PluginHost, PluginArguments) throws(Failure) -> any Plugin) -> Never {
        switch PluginArguments.parse(
            Array(CommandLine.arguments.dropFirst()), program: name, kind: kind, category: category)
        {
        case .print(let text):
            print(text, terminator: "")
            exit(0)
        case .wrong(let message):
            complain(message)
            exit(64)
        case .run(let arguments):
            do throws(Failure) {
                // Without the destructors of a hundred libraries: what they would touch once more was never needed.
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
        if kind != .recorder || arguments.item == nil { Footprint.releaseStartUp() }
        let host: PluginHost
        do throws(Failure) {
            host = try PluginHost(name: name, bus: arguments.bus, endsWithParent: arguments.endsWithParent)
        } catch {
            complain("no \(arguments.bus.name) bus: \(error.message)")
            return 69
        }
        let plugin = try make(host, arguments)
        try host.claim("\(busName).instance\(PluginHost.processID)", in: busName)
        if let id = arguments.pluginID {
            host.register(id, kind: kind, object: object, name: arguments.session.name)
        }
        return host.run(plugin)
    }

    private func complain(_ text: String) { PluginHost.complain(text, name: name) }
}
