import CGStreamer
import CStreaming
import CVideo
package import EventLoop
package import GStreamerBase
package import PluginAPI

/// What a key in the window of a preview means.
package enum PreviewCommand: Sendable, Hashable {
    case pause, switchCamera, takePhoto, toggleFullscreen, leaveFullscreen
    /// Also the button that closes the window.
    case exit
}

/// The pictures of a camera in a window of X11: our own one, or a window of a client.
package final class PreviewScreen {
    package var onCommand: ((PreviewCommand) -> Void)?
    /// The X11 server is gone.
    package var onLost: ((String) -> Void)?

    /// The end of a bin that shows its pictures here.
    package static let elements =
        "videoconvertscale add-borders=false ! ximagesink name=screen force-aspect-ratio=false handle-events=false "
        // Otherwise it looks for events twenty times per second.
        + "handle-expose=false sync=false async=false"

    private let display: String?
    private let window: MovieWindow
    private var place: UInt32 = 0
    private var picture = PictureSize.unknown
    /// Borrowed from the bin.
    private var sink: Elements.Element?

    /// - Parameters:
    ///   - display: the X11 server; nil: that of the environment (DISPLAY).
    ///   - parent: a window of a client; nil: our own one.
    package init(on loop: EventLoop, display: String?, in parent: UInt32?, title: String) throws(SessionError) {
        guard let server = WindowServer(display) else {
            throw SessionError(
                .notSupported,
                "no X11 server can be reached\(display.map { " at '\($0)'" } ?? ""): set DISPLAY, or the option 'display'"
            )
        }
        guard let window = MovieWindow(on: server, in: parent, of: "sessiond-capture", loop) else {
            throw SessionError(.badParameter, "there is no window 0x\(String(parent ?? 0, radix: 16))")
        }
        (self.display, self.window) = (display, window)
        window.title = title
        window.onKey = { [unowned self] key in
            if let command = WindowKeys.preview(key) { obey(command) }
        }
        window.onDoubleClick = { [unowned self] in obey(.toggleFullscreen) }
        window.onClosed = { [unowned self] in obey(.exit) }
        window.onResized = { [unowned self] in layOut() }
        window.onExposed = { [unowned self] _ in if let sink { video_draw_again(sink) } }
        window.onLost = { [unowned self] in onLost?("the X11 server closed the connection") }
    }

    package var title: String {
        get { window.title }
        set { window.title = newValue }
    }

    /// Shows the pictures of a bin in the state NULL, whose description ends with ``elements``.
    package func enter(_ bin: Elements.Element, _ size: PictureSize) {
        guard let sink = Elements.child("screen", of: bin) else { return }
        (self.sink, picture) = (sink, size)
        shim_set_string(sink, "display", display)
        // The error of a window that does not exist prepares its connection for the end of the server.
        shim_outlive_screen()
        video_set_window(sink, UInt(window.unusedID()))
        place = window.makePlace()
        window.show(for: size)
        window.put(place, Placement(of: size, in: window.size, .aspectFit))
        video_set_window(sink, UInt(place))
    }

    /// The bin goes.
    package func leave() {
        sink = nil
        window.hide()
    }

    private func layOut() {
        guard place != 0 else { return }
        window.put(place, Placement(of: picture, in: window.size, .aspectFit))
        // The next picture has the new size.
        if let sink { video_draw_again(sink) }
    }

    private func obey(_ command: PreviewCommand) {
        switch command {
        case .toggleFullscreen: window.setFullscreen(!window.isFullscreen)
        case .leaveFullscreen: window.setFullscreen(false)
        case .pause, .switchCamera, .takePhoto, .exit: onCommand?(command)
        }
    }
}
