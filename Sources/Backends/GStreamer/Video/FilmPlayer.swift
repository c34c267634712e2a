public import EventLoop
public import GStreamerBackend

/// Makes the engine of a movie player: a player whose films show their pictures on a screen.
public enum FilmPlayer {
    public static func make(
        on loop: EventLoop, _ identity: StreamIdentity, display: String? = nil, wayland: String? = nil
    ) -> (engine: GStreamerPlayer, screen: FilmScreen) {
        let screen = FilmScreen(on: loop, display: display, wayland: wayland)
        var identity = identity
        identity.role = "video"
        return (GStreamerPlayer(loop: loop, identity: identity, pictures: screen), screen)
    }
}
