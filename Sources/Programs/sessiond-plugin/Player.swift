import DBus
import GStreamerBackend
import Installation
import MediaValues
import PluginAPI
import PluginKit

/// Creates the player with GStreamer, and plays the item of the command line.
func servePlayer(_ host: PluginHost, _ arguments: PluginArguments) throws(Failure) -> any Plugin {
    let engine = GStreamerPlayer(loop: host.loop, identity: StreamIdentity(clientName: arguments.session.name))
    let player = PlayerPlugin(engine, arguments.session, on: host.connection, host.loop)
    engine.locator = player.cachedMedia {
        SettingsFiles(isSystem: host.bus.isSystem).read { host.complain($0) }.player.cache
    } complain: {
        host.complain($0)
    }
    player.onQuit = { host.quit(0, ending: player) }
    player.offerPlaylists { () throws(Failure) in try Connection(host.bus, loop: host.loop) }
    guard let item = arguments.item else {
        // The shared player, which the daemon starts, restores its queue after a restart. A player that an app started for
        // itself loses its queue when it ends.
        if arguments.isService { player.keeper = QueueKeeper(restoring: player, on: host.loop) { host.complain($0) } }
        return player
    }
    player.onFinished = { _ in host.quit(0, ending: player) }
    player.onFailed = { message in
        host.complain(message)
        host.quit(1, ending: player)
    }
    player.onServicesLost = { message in
        // After it was heard, it is paused and can be resumed.
        guard engine.position == 0 else { return host.complain("paused: \(message)") }
        host.complain(message)
        host.quit(1, ending: player)
    }
    try player.load(uri: FileURI.uri(item))
    player.play { result in
        guard case .failure(let failure) = result, engine.state != .failed else { return }
        host.complain(failure)
        host.quit(1, ending: player)
    }
    return player
}
