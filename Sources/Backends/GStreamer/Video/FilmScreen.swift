package import CGStreamer
import CStreaming
import CVideo
public import EventLoop
package import GStreamerBackend
package import GStreamerBase
public import PluginAPI

/// Shows the pictures of films in a window of X11 or Wayland, as a node of PipeWire, or nowhere: the ``PictureTail`` of a player of films.
///
/// The pictures of a new film are held before the sink until their size is known and its place in the window is there. So
/// the sink never makes a window of its own.
public final class FilmScreen: MovieScreen {
    /// A film in its pipeline.
    private struct Film {
        let pipeline: Elements.Element
        /// Owned by the pipeline; nil: it has no pictures, and the elements are removed.
        var bin: Elements.Element?
        var sink: Elements.Element?
        /// Its window below the window of the player; 0: none.
        var place: UInt32 = 0
        /// The pad at which the first picture waits, which is owned here, and the number of the probe.
        var gate: UnsafeMutablePointer<GstPad>?
        var hold: gulong = 0
        let tracks: FilmTracks
        /// Owned here.
        let last: OpaquePointer
    }

    private let loop: EventLoop
    private let display: String?
    private let socket: String?
    /// Whether the environment says which servers there are.
    private let asksEnvironment: Bool
    private var chosen = MovieOutput.automatic
    /// Never ``MovieOutput/automatic``.
    private var used = MovieOutput.none
    private var isUsed = false
    private var window: MovieWindow?
    private var wayland: WaylandWindow?
    private var node: PictureNode?
    private var film: Film?
    /// The films before it whose pipelines are still there, and the place whose last picture stays until there is another.
    private var former: [Film] = []
    private var lastPlace: UInt32 = 0
    private lazy var settling = Timer(on: loop) { [unowned self] in onStale?() }
    private lazy var noting = Timer(on: loop) { [unowned self] in show(note: "") }

    package var onStale: (() -> Void)?
    package var onFailed: ((String) -> Void)?
    public var onChanged: (() -> Void)?
    public var onFullscreen: ((FullscreenChange) -> Void)?
    public var onCommand: ((MovieCommand) -> Void)?
    public var onLost: ((String) -> Void)?

    public private(set) var naturalSize = PictureSize.unknown
    public private(set) var mediaTypes: [String] = []
    public private(set) var isReady = false

    /// - Parameters:
    ///   - display: the X11 server.
    ///   - wayland: the socket of the Wayland compositor. If neither is given, the environment says both (DISPLAY,
    ///     WAYLAND_DISPLAY).
    public init(on loop: EventLoop, display: String? = nil, wayland: String? = nil) {
        (self.loop, self.display, socket) = (loop, display, wayland)
        asksEnvironment = display == nil && wayland == nil
    }

    public var scaling = MovieScaling.aspectFit {
        didSet {
            guard scaling != oldValue else { return }
            layOut()
            onChanged?()
        }
    }

    public var title = "" {
        didSet {
            window?.title = title
            wayland?.title = title
        }
    }

    public var isFullscreen: Bool { window?.isFullscreen == true || wayland?.isFullscreen == true }

    // MARK: The output

    public var output: String { (isUsed ? used : chosen).word }

    public func choose(output: String) throws(SessionError) {
        let wanted = try MovieOutput(output)
        if wanted != .automatic { try open(wanted) }
        (chosen, isUsed) = (wanted, wanted != .automatic)
    }

    private var hasPlace: Bool { window != nil || wayland != nil || node != nil }

    private func open(_ output: MovieOutput) throws(SessionError) {
        if isUsed, output == used, output == .none || hasPlace { return }
        close()
        switch output {
        case .none, .automatic: break
        case .x11: window = try makeWindow(in: nil)
        case .window(let parent): window = try makeWindow(in: parent)
        case .wayland: wayland = try connect()
        case .pipewire(let name): node = try PictureNode(named: name, on: loop)
        }
        used = output
    }

    /// The first output with a window that can be used; none of them: without pictures.
    private func openAny() {
        for output in [MovieOutput.x11, .wayland] {
            if (try? open(output)) != nil { return }
        }
        used = .none
    }

    private func makeWindow(in parent: UInt32?) throws(SessionError) -> MovieWindow {
        guard display != nil || asksEnvironment, let server = WindowServer(display) else {
            throw SessionError(
                .notSupported,
                "no X11 server can be reached: set DISPLAY, or choose the output none for the sound alone")
        }
        guard let window = MovieWindow(on: server, in: parent, of: "sessiond-movie", loop) else {
            throw SessionError(.badParameter, "there is no window 0x" + String(parent ?? 0, radix: 16))
        }
        window.title = title
        window.onKey = { [unowned self] key in
            if let command = WindowKeys.command(for: key) { onCommand?(command) }
        }
        window.onDoubleClick = { [unowned self] in onCommand?(.toggleFullscreen) }
        window.onClosed = { [unowned self] in onCommand?(.exit) }
        window.onResized = { [unowned self] in layOut() }
        window.onExposed = { [unowned self] place in
            if let film, film.place == place, let sink = film.sink { video_draw_again(sink) }
        }
        window.onFullscreen = { [unowned self] change in
            onFullscreen?(change)
            onChanged?()
        }
        window.onLost = { [unowned self] in lose("the X11 server closed the connection") }
        return window
    }

    private func connect() throws(SessionError) -> WaylandWindow {
        guard socket != nil || asksEnvironment, let made = WaylandWindow(socket, on: loop) else {
            throw SessionError(
                .notSupported,
                "no Wayland compositor can be reached: set WAYLAND_DISPLAY, or choose the output none for the sound alone"
            )
        }
        made.title = title
        made.onCommand = { [unowned self] in onCommand?($0) }
        made.onResized = { [unowned self] in layOut() }
        made.onFullscreen = { [unowned self] change in
            onFullscreen?(change)
            onChanged?()
        }
        made.onLost = { [unowned self] in lose("the Wayland compositor closed the connection") }
        return made
    }

    private func lose(_ reason: String) {
        close()
        isUsed = false
        onFailed?(reason)
        onLost?(reason)
    }

    private func close() {
        settling.disarm()
        (window, wayland, node) = (nil, nil, nil)
        lastPlace = 0
        film?.place = 0
        for place in former.indices { former[place].place = 0 }
    }

    public func setFullscreen(_ isFull: Bool) throws(SessionError) {
        guard used != .none || !isUsed else {
            throw SessionError(.notSupported, "the output none has no window")
        }
        if node != nil {
            throw SessionError(.notSupported, "the output pipewire has no window; the program that reads it has")
        }
        if let wayland, wayland.isShown { return wayland.setFullscreen(isFull) }
        guard let window, window.isShown else {
            throw SessionError(.notReady, "no window is shown: load a film first")
        }
        guard window.isOwn else {
            throw SessionError(.notSupported, "the window belongs to another program, which decides its size")
        }
        window.setFullscreen(isFull)
    }

    public func begin() {
        (naturalSize, mediaTypes, isReady) = (.unknown, [], false)
        onChanged?()
    }

    public func hide() {
        settling.disarm()
        noting.disarm()
        window?.hide()
        wayland?.hide()
        node?.hide()
        forgetLast()
    }

    public func note(_ text: String) {
        // Pango reads markup.
        let escaped = text.map { $0 == "&" ? "&amp;" : $0 == "<" ? "&lt;" : String($0) }.joined()
        show(note: escaped)
        noting.arm(after: 2)
    }

    private func show(note: String) {
        guard let sink = film?.bin, let element = Elements.child("note", of: sink) else { return }
        shim_set_string(element, "text", note)
        // While it plays, the next picture has it.
        settling.arm(after: 0)
    }

    private func forgetLast() {
        if lastPlace != 0 { window?.remove(lastPlace) }
        lastPlace = 0
    }

    private func layOut() {
        if wayland != nil { return putInWayland() }
        if node != nil {
            putInNode()
            return settling.arm(after: 0)
        }
        guard let window, let film, film.place != 0, isReady || film.hold == 0, naturalSize != .unknown else { return }
        window.put(film.place, Placement(of: naturalSize, in: window.size, scaling))
        if let sink = film.sink { video_draw_again(sink) }
        // While it plays, the next picture has the new size. A window that is being resized changes many times.
        settling.arm(after: 0.05)
    }
}

// MARK: The pipelines

extension FilmScreen: PictureTail {
    private static let elements =
        "videoconvert name=entry ! deinterlace mode=auto ! videoflip name=turn video-direction=auto ! \(words) ! "
    /// The height of a letter is a part of that of the picture.
    private static let words =
        "textoverlay name=words wait-text=false scale-mode=par font-desc=\"Sans Semi-Bold 20\" valignment=bottom "
        + "line-alignment=center ypad=16 ! textoverlay name=note wait-text=false scale-mode=par "
        + "font-desc=\"Sans 16\" valignment=top halignment=left line-alignment=left"
    /// The place has the right shape, so the picture fills it.
    private static let x11 =
        "videoconvertscale add-borders=false ! ximagesink name=screen force-aspect-ratio=false handle-events=false "
        // Otherwise it looks for events twenty times per second.
        + "handle-expose=false"
    private static let wayland =
        "videoconvert ! video/x-raw,format=BGRx ! fakesink name=screen sync=true qos=true signal-handoffs=true "
        // As sinks that GStreamer has for pictures.
        + "max-lateness=5000000 processing-deadline=15000000"
    private static let node =
        "videoconvertscale add-borders=false ! capsfilter name=shape caps=\(PictureNode.pixels) ! fakesink name=screen "
        + "sync=true qos=true signal-handoffs=true max-lateness=5000000 processing-deadline=15000000"
    private static let nowhere = "fakesink name=screen sync=true qos=true"

    package func enter(
        _ pipeline: Elements.Element, from source: UnsafeMutablePointer<GstPad>, with tracks: FilmTracks, title: String
    ) throws(Elements.Missing) {
        if let film { former.append(film) }
        film = nil
        if !isUsed || !hasPlace {
            if chosen == .automatic {
                openAny()
            } else {
                do throws(SessionError) { try open(chosen) } catch { throw Elements.Missing(message: error.message) }
            }
            isUsed = true
        }
        let end: String
        switch used {
        case .none, .automatic: end = FilmScreen.nowhere
        case .x11, .window: end = FilmScreen.x11
        case .wayland: end = FilmScreen.wayland
        case .pipewire: end = FilmScreen.node
        }
        let bin: Elements.Element
        switch Elements.bin(FilmScreen.elements + end) {
        case .success(let made): bin = made
        case .failure(let missing): throw missing
        }
        Elements.add(bin, to: pipeline)
        guard let sink = Elements.child("screen", of: bin), let turn = Elements.child("turn", of: bin),
            let words = Elements.child("words", of: bin), let entry = Elements.entry(to: "entry", of: bin),
            let turned = gst_element_get_static_pad(turn, "src"),
            // After it: a pad that blocks tells nobody what waits there.
            let gate = gst_element_get_static_pad(words, "video_sink"),
            let exit = gst_element_get_static_pad(sink, "sink"), let last = shim_watch_last_picture(exit)
        else { throw Elements.Missing(message: "the pipeline has no end for pictures") }
        tracks.draw(at: gate)
        gst_object_unref(exit)
        gst_pad_link(source, entry)
        gst_object_unref(entry)
        shim_watch_size(turned, pipeline)
        gst_object_unref(turned)
        var film = Film(pipeline: pipeline, bin: bin, sink: sink, gate: gate, tracks: tracks, last: last)
        if let window {
            shim_set_string(sink, "display", display)
            // The error of a window that does not exist prepares its connection for the end of the server.
            shim_outlive_screen()
            video_set_window(sink, UInt(window.unusedID()))
            film.place = window.makePlace()
            film.hold = shim_hold_pad(gate, pipeline)
            video_set_window(sink, UInt(film.place))
        }
        if let wayland {
            wayland.draw(from: sink)
            film.hold = shim_hold_pad(gate, pipeline)
        }
        if let node {
            node.draw(from: sink)
            film.hold = shim_hold_pad(gate, pipeline)
        }
        self.film = film
        self.title = title
        (naturalSize, mediaTypes, isReady) = (.unknown, [], false)
        onChanged?()
    }

    package func leave(_ pipeline: Elements.Element) {
        if let gone = film, gone.pipeline == pipeline {
            film = nil
            release(gone, keepingPicture: true)
        } else if let place = former.firstIndex(where: { $0.pipeline == pipeline }) {
            release(former.remove(at: place), keepingPicture: film?.hold != 0)
        }
    }

    private func release(_ gone: Film, keepingPicture: Bool) {
        if let gate = gone.gate { gst_object_unref(gate) }
        shim_last_picture_free(UnsafeMutableRawPointer(gone.last))
        guard gone.place != 0 else { return }
        if keepingPicture {
            forgetLast()
            lastPlace = gone.place
        } else {
            window?.remove(gone.place)
        }
    }

    package func take(_ message: UnsafeMutablePointer<GstMessage>, of pipeline: Elements.Element) -> PictureNews {
        guard film?.pipeline == pipeline else { return .nothing }
        var size = shim_size()
        if shim_tracks_known(message) != 0, let film { return found(film.tracks.kinds) }
        if message.pointee.type == GST_MESSAGE_APPLICATION, shim_picture_size(message, &size) != 0 {
            found(size)
        } else if message.pointee.type == GST_MESSAGE_ASYNC_DONE, naturalSize != .unknown, !isReady {
            isReady = true
            forgetLast()
            onChanged?()
        }
        return .nothing
    }

    package var dropped: UInt64 {
        guard let sink = film?.sink else { return 0 }
        return UInt64(shim_sink_dropped(sink))
    }

    package var lastPicture: PictureTimes? {
        guard let film, isReady, film.sink != nil else { return nil }
        let times = shim_last_picture_times(film.last)
        guard times.end > 0 else { return nil }
        return PictureTimes(start: UInt(times.start), end: UInt(times.end), usual: UInt(times.usual))
    }

    /// What streams the film has is known.
    private func found(_ kinds: Set<TrackKind>) -> PictureNews {
        let (hasSound, hasPictures) = (kinds.contains(.audio), kinds.contains(.video))
        guard hasSound || hasPictures else { return .nothing }
        mediaTypes = (hasSound ? ["audio"] : []) + (hasPictures ? ["video"] : [])
        if !hasPictures, let film, let bin = film.bin {
            gst_object_ref(bin)
            Elements.remove(bin, from: film.pipeline)
            gst_element_set_state(bin, GST_STATE_NULL)
            gst_object_unref(bin)
            self.film?.bin = nil
            self.film?.sink = nil
        }
        onChanged?()
        return hasSound ? .nothing : .hasNoSound
    }

    private func found(_ size: shim_size) {
        guard size.width > 0, size.height > 0, size.numerator > 0, size.denominator > 0, let film else { return }
        let width = (Int(size.width) * Int(size.numerator) + Int(size.denominator) / 2) / Int(size.denominator)
        naturalSize = PictureSize(width: width, height: Int(size.height))
        if let window, film.place != 0 {
            window.show(for: naturalSize)
            window.put(film.place, Placement(of: naturalSize, in: window.size, scaling))
            // The sink learns the new size of its window.
            if let sink = film.sink { video_set_window(sink, UInt(film.place)) }
        }
        if let wayland {
            wayland.show(for: naturalSize)
            if wayland.isShown { putInWayland() }
        } else if let node {
            node.show(for: naturalSize, rate: size.rate > 0 ? (size.rate, size.rate_divisor) : nil)
            putInNode()
        } else {
            letThrough()
        }
        onChanged?()
    }

    /// The window has a size: the pictures may be shown in it.
    private func putInWayland() {
        guard let wayland, film?.sink != nil, naturalSize != .unknown else { return }
        wayland.put(Placement(of: naturalSize, in: wayland.size, scaling))
        letThrough()
    }

    private func putInNode() {
        guard let node, let bin = film?.bin, naturalSize != .unknown, let shape = Elements.child("shape", of: bin),
            let caps = gst_caps_from_string(node.format(of: naturalSize, scaling))
        else { return }
        shim_set_caps(shape, caps)
        gst_caps_unref(caps)
        letThrough()
    }

    private func letThrough() {
        guard let film, film.hold != 0, let gate = film.gate else { return }
        self.film?.hold = 0
        gst_pad_remove_probe(gate, film.hold)
    }
}
