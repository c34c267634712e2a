import CGStreamer
import EventLoop
import GStreamerBackend
import GStreamerBase
import PluginAPI
package import VideoBackend

/// The preview of a camera: its pictures in a window, with a line of text in them.
package final class PreviewBranch {
    let branch: PictureBranch
    private let screen: PreviewScreen

    /// What the user does in the window.
    package var onCommand: ((PreviewCommand) -> Void)? {
        get { screen.onCommand }
        set { screen.onCommand = newValue }
    }

    init(on screen: PreviewScreen, _ size: PictureSize, in pipeline: Pipeline) throws(SessionError) {
        self.screen = screen
        branch = try PictureBranch(
            "queue name=entry leaky=downstream max-size-buffers=2 max-size-bytes=0 max-size-time=0 ! valve name=gate "
                + "! textoverlay name=words wait-text=false scale-mode=par font-desc=\"Sans 14\" valignment=bottom "
                + "halignment=left line-alignment=left ! " + PreviewScreen.elements, in: pipeline)
        screen.enter(branch.bin, size)
        branch.attach()
    }

    deinit { remove() }

    func remove() {
        screen.onCommand = nil
        branch.remove()
        screen.leave()
    }

    /// The picture stands.
    package var isPaused = false {
        didSet {
            if let gate = Elements.child("gate", of: branch.bin) { shim_set_bool(gate, "drop", isPaused ? 1 : 0) }
        }
    }

    /// The line at the bottom of the pictures.
    package var words = "" {
        didSet {
            guard words != oldValue, let element = Elements.child("words", of: branch.bin) else { return }
            shim_set_string(element, "text", words)
        }
    }

    package var title: String {
        get { screen.title }
        set { screen.title = newValue }
    }
}
