import CGStreamer
import CWayland
import EventLoop
import GStreamerBase
import PluginAPI

/// The window of a movie player in Wayland. Pictures are drawn in it here: the sink of GStreamer drops the picture of a seek while
/// the compositor is busy, and has neither keys nor a title.
final class WaylandWindow {
    var onCommand: ((MovieCommand) -> Void)?
    var onFullscreen: ((FullscreenChange) -> Void)?
    /// Its size has changed, or is known.
    var onResized: (() -> Void)?
    /// The compositor is gone.
    var onLost: (() -> Void)?

    private(set) var size = PictureSize.unknown
    private(set) var isFullscreen = false
    /// Whether it was requested.
    private var isRequested = false
    /// Owned here, together with the sinks.
    private let server: OpaquePointer
    private var watch: IOWatch?

    /// Connects to the compositor of that name, or to the one that the environment names; nil if it does not answer, or has
    /// no windows of the usual kind (xdg-shell, with viewporter).
    init?(_ name: String?, on loop: EventLoop) {
        guard let made = wayland_connect(name, "sessiond-movie") else { return nil }
        server = made
        watch = IOWatch(on: loop, descriptor: wayland_descriptor(made), events: .readable) { [unowned self] _ in read()
        }
    }

    deinit {
        watch = nil
        wayland_free(UnsafeMutableRawPointer(server))
    }

    var title = "" {
        didSet { if title != oldValue { wayland_set_title(server, title) } }
    }

    /// Whether it has a size.
    var isShown: Bool { isRequested && size != .unknown }

    /// What the sink gets is drawn in it, as the pictures of a new film.
    func draw(from sink: Elements.Element) { wayland_draw_from(server, wayland_begin_film(server), sink) }

    /// The pictures of the film are there.
    func put(_ placement: Placement) {
        wayland_place(
            server, Int32(clamping: placement.x), Int32(clamping: placement.y), Int32(clamping: placement.width),
            Int32(clamping: placement.height))
    }

    /// Shows it, for a picture of that size if it is new.
    func show(for picture: PictureSize) {
        guard !isRequested else { return }
        isRequested = true
        var (width, height): (Int32, Int32) = (0, 0)
        wayland_screen(server, &width, &height)
        let screen = PictureSize(width: Int(width), height: Int(height))
        let wish = width > 0 && height > 0 ? Placement.window(for: picture, on: screen) : picture
        wayland_show(server, Int32(clamping: wish.width), Int32(clamping: wish.height))
    }

    func hide() {
        guard isRequested else { return }
        if isFullscreen {
            onFullscreen?(.willExit)
            noteFullscreen(false)
        }
        wayland_hide(server)
        (isRequested, size) = (false, .unknown)
    }

    func setFullscreen(_ isFull: Bool) {
        guard isShown, isFull != isFullscreen else { return }
        onFullscreen?(isFull ? .willEnter : .willExit)
        wayland_set_fullscreen(server, isFull)
    }

    private func noteFullscreen(_ isFull: Bool) {
        guard isFull != isFullscreen else { return }
        isFullscreen = isFull
        onFullscreen?(isFull ? .didEnter : .didExit)
    }

    // MARK: Events

    private func read() {
        withExtendedLifetime(self) {
            guard watch != nil else { return }
            guard wayland_read(server) else {
                watch = nil
                onLost?()
                return
            }
            var event = wayland_event()
            while watch != nil, wayland_next(server, &event) { handle(event) }
        }
    }

    private func handle(_ event: wayland_event) {
        switch event.kind {
        case WAYLAND_SIZE:
            let now = PictureSize(width: Int(event.width), height: Int(event.height))
            guard isRequested, now != size else { return }
            size = now
            onResized?()
        case WAYLAND_FULLSCREEN: if isRequested { noteFullscreen(event.is_on) }
        case WAYLAND_CLOSED: if isRequested { onCommand?(.exit) }
        case WAYLAND_KEY:
            // Control, Alt and Super belong to the desktop.
            guard !event.is_on, let command = WindowKeys.command(for: event.value) else { return }
            onCommand?(command)
        case WAYLAND_DOUBLE_CLICK: onCommand?(.toggleFullscreen)
        default: break
        }
    }
}
