import DBus
import EventLoop
import GStreamerBackend
import Glibc
import PluginAPI
import SessionKit

// Wiring: arguments in, a player on the bus, an exit code out: 0 done, 1 failed or refused, 64 wrong usage, 69 no bus.

func complain(_ text: String) {
    let bytes = Array("sessiond-player: \(text)\n".utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
}

func play(_ arguments: PluginArguments) throws(Failure) -> Int32 {
    let host: PluginHost
    do throws(Failure) {
        host = try PluginHost(endsWithParent: arguments.endsWithParent)
    } catch {
        complain("no session bus: \(error.message)")
        return 69
    }
    let engine = GStreamerPlayer(loop: host.loop, identity: StreamIdentity(clientName: arguments.session.name))
    let player = PlayerPlugin(engine, arguments.session, on: host.connection, host.loop)
    player.onQuit = { host.quit(0, ending: player) }
    if let item = arguments.item {
        player.onFinished = { _ in host.quit(0, ending: player) }
        player.onFailed = { message in
            complain(message)
            host.quit(1, ending: player)
        }
        player.onServicesLost = { message in
            // Once it was heard, it waits to be played on.
            guard engine.position == 0 else { return complain("paused: \(message)") }
            complain(message)
            host.quit(1, ending: player)
        }
        try player.load(uri: FileURI.uri(item))
        player.play { result in
            guard case .failure(let failure) = result, engine.state != .failed else { return }
            complain("\(failure.name): \(failure.message)")
            host.quit(1, ending: player)
        }
    }
    try host.claim("org.mpris.MediaPlayer2.sessiond_player.instance\(PluginHost.processID)")
    if let id = arguments.pluginID {
        host.register(id, kind: .player, object: PlayerPlugin.objectPath, name: arguments.session.name)
    }
    return host.run(player)
}

switch PluginArguments.parse(
    Array(CommandLine.arguments.dropFirst()), program: "sessiond-player", kind: .player, category: .playback)
{
case .print(let text): print(text, terminator: "")
case .wrong(let message):
    complain(message)
    exit(64)
case .run(let arguments):
    do throws(Failure) {
        exit(try play(arguments))
    } catch {
        complain("\(error.name): \(error.message)")
        exit(1)
    }
}
