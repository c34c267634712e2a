import DBus
import GStreamerBackend
import Installation
import MediaValues
import PluginAPI
import PluginKit
import VideoBackend

/// The program of the movie player.
public enum MovieProgram {
    public static func main() -> Never { PluginProgram(.moviePlayer).main(serve) }

    /// Creates the player with GStreamer, and plays the film of the command line.
    private static func serve(_ host: PluginHost, _ arguments: PluginArguments) throws(Failure) -> any Plugin {
        var session = arguments.session
        if session.category == .playback, session.mode == .default { session.mode = .moviePlayback }
        let (engine, screen) = FilmPlayer.make(on: host.loop, StreamIdentity(clientName: session.name))
        let movie = MoviePlugin(engine, on: screen, session, on: host.connection, host.loop)
        let settings = SettingsFiles(isSystem: host.bus.isSystem).read { host.complain($0) }.movie
        do throws(SessionError) {
            try screen.choose(output: settings.output.word)
        } catch {
            host.complain("the setting output = \(settings.output.word) of [movie] has no effect: \(error.reason)")
        }
        engine.locator = movie.player.cachedMedia {
            SettingsFiles(isSystem: host.bus.isSystem).read { host.complain($0) }.player.cache
        } complain: {
            host.complain($0)
        }
        // The films of an app begin where the app says.
        if !arguments.session.isHosted, settings.resume {
            movie.places = PlaceKeeper(on: host.loop) { host.complain($0) }
        }
        movie.onBusyChanged = { host.isBusy = $0 }
        movie.player.onQuit = { host.quit(0, ending: movie) }
        guard let item = arguments.item else { return movie }
        movie.onFinished = { reason, message in
            if let message { host.complain(message) }
            host.quit(reason == .error ? 1 : 0, ending: movie)
        }
        movie.player.onServicesLost = { message in
            // After it was heard, it is paused and can be resumed.
            guard engine.position == 0 else { return host.complain("paused: \(message)") }
            host.complain(message)
            host.quit(1, ending: movie)
        }
        try movie.player.load(uri: FileURI.uri(item))
        movie.player.play { result in
            guard case .failure(let failure) = result, engine.state != .failed else { return }
            host.complain(failure)
            host.quit(1, ending: movie)
        }
        return movie
    }
}
