import CXCB
import EventLoop
import Glibc
import PluginAPI

/// The window of a movie player, or of the preview of a camera: our own one with a title, or a window of a client. Each film has
/// a place in it: a window below it, in which GStreamer draws.
final class MovieWindow {
    /// A key without Control, Alt and Super: its keysym.
    var onKey: ((UInt32) -> Void)?
    var onDoubleClick: (() -> Void)?
    var onFullscreen: ((FullscreenChange) -> Void)?
    /// The user, or the client, has closed it.
    var onClosed: (() -> Void)?
    /// Its size has changed.
    var onResized: (() -> Void)?
    /// A part of that place must be drawn again.
    var onExposed: ((UInt32) -> Void)?
    /// The server is gone.
    var onLost: (() -> Void)?

    private(set) var size: PictureSize
    private(set) var isShown = false
    private(set) var isFullscreen = false
    let isOwn: Bool

    private let server: WindowServer
    private let window: UInt32
    private let loop: EventLoop
    private var watch: IOWatch?
    private lazy var pointerRest = Timer(on: loop) { [unowned self] in setPointer(isVisible: false) }
    private var emptyPointer: UInt32 = 0
    private var lastClick: UInt32?
    /// The size before full screen, without a window manager.
    private var sizeBefore: PictureSize?

    /// Milliseconds between the clicks of a double click.
    private static let doubleClick: UInt32 = 400

    /// - Parameters:
    ///   - parent: the window of a client; nil: makes one, which is not shown yet.
    ///   - program: its name for the window manager.
    init?(on server: WindowServer, in parent: UInt32?, of program: String, _ loop: EventLoop) {
        (self.server, self.loop) = (server, loop)
        if let parent {
            guard let found = server.size(of: parent) else { return nil }
            (window, size, isOwn, isShown) = (parent, found, false, true)
            let events = [XCB_EVENT_MASK_STRUCTURE_NOTIFY.rawValue]
            xcb_change_window_attributes(server.connection, parent, XCB_CW_EVENT_MASK.rawValue, events)
        } else {
            (window, size, isOwn) = (server.newID(), PictureSize(width: 1, height: 1), true)
            create(program)
        }
        server.flush()
        watch = IOWatch(on: loop, descriptor: server.descriptor, events: .readable) { [unowned self] _ in readEvents() }
    }

    deinit {
        watch = nil
        guard !server.isLost else { return }
        if isOwn { xcb_destroy_window(server.connection, window) }
        server.flush()
    }

    private func create(_ program: String) {
        let events =
            XCB_EVENT_MASK_STRUCTURE_NOTIFY.rawValue | XCB_EVENT_MASK_PROPERTY_CHANGE.rawValue
            | XCB_EVENT_MASK_KEY_PRESS.rawValue | XCB_EVENT_MASK_BUTTON_PRESS.rawValue
            | XCB_EVENT_MASK_POINTER_MOTION.rawValue
        xcb_create_window(
            server.connection, 0, window, server.root, 0, 0, 1, 1, 0,
            UInt16(XCB_WINDOW_CLASS_INPUT_OUTPUT.rawValue), server.visual,
            XCB_CW_BACK_PIXEL.rawValue | XCB_CW_EVENT_MASK.rawValue, [server.black, events])
        server.set(
            server.atom("WM_PROTOCOLS"), of: window, type: XCB_ATOM_ATOM.rawValue,
            [server.atom("WM_DELETE_WINDOW"), server.atom("_NET_WM_PING")])
        server.set(
            XCB_ATOM_WM_CLASS.rawValue, of: window, type: XCB_ATOM_STRING.rawValue,
            text: "\(program)\0\(program.prefix(1).uppercased())\(program.dropFirst())\0")
        server.set(
            server.atom("_NET_WM_PID"), of: window, type: XCB_ATOM_CARDINAL.rawValue, [UInt32(bitPattern: getpid())])
        server.set(server.atom("_NET_WM_ICON"), of: window, type: XCB_ATOM_CARDINAL.rawValue, MovieWindow.icon)
    }

    /// White triangle on black, 32 × 32 in ARGB, after its width and height.
    private static let icon: [UInt32] = {
        let side = 32
        let pixels = (0..<side * side).map { place -> UInt32 in
            let (x, y) = (place % side, place / side)
            let isInside = x >= 10 && x < 25 && abs(2 * y - side) * 15 <= (25 - x) * 20
            return isInside ? 0xffff_ffff : 0xff20_2020
        }
        return [UInt32(side), UInt32(side)] + pixels
    }()

    var title = "" {
        didSet {
            guard isOwn, title != oldValue else { return }
            server.set(server.atom("_NET_WM_NAME"), of: window, type: server.atom("UTF8_STRING"), text: title)
            server.set(XCB_ATOM_WM_NAME.rawValue, of: window, type: server.atom("UTF8_STRING"), text: title)
            server.flush()
        }
    }

    /// Shows it, for a picture of that size if it is new.
    func show(for picture: PictureSize) {
        guard isOwn, !isShown else { return }
        size = Placement.window(for: picture, on: server.size)
        configure(size)
        xcb_map_window(server.connection, window)
        isShown = true
        pointerRest.arm(after: 1)
    }

    func hide() {
        guard isOwn, isShown else { return }
        if isFullscreen { setFullscreen(false) }
        xcb_unmap_window(server.connection, window)
        server.flush()
        isShown = false
        pointerRest.disarm()
    }

    private func configure(_ size: PictureSize) {
        let mask = XCB_CONFIG_WINDOW_WIDTH.rawValue | XCB_CONFIG_WINDOW_HEIGHT.rawValue
        xcb_configure_window(
            server.connection, window, UInt16(mask), [UInt32(clamping: size.width), UInt32(clamping: size.height)])
    }

    // MARK: Places of films

    /// An id of no window.
    func unusedID() -> UInt32 { server.newID() }

    /// A new place, which is not shown yet. The server has made it: GStreamer uses a connection of its own.
    func makePlace() -> UInt32 {
        let place = server.newID()
        // Without a background, the last picture stays until the next one is drawn.
        let mask = XCB_CW_BACK_PIXMAP.rawValue | XCB_CW_EVENT_MASK.rawValue
        xcb_create_window(
            server.connection, 0, place, window, 0, 0, 1, 1, 0, UInt16(XCB_WINDOW_CLASS_INPUT_OUTPUT.rawValue),
            server.visual, mask, [0, XCB_EVENT_MASK_EXPOSURE.rawValue])
        _ = server.size(of: place)
        lookAgain()
        return place
    }

    /// Moves the place, shows it above the others, and waits until the server has done it.
    func put(_ place: UInt32, _ placement: Placement) {
        let mask =
            XCB_CONFIG_WINDOW_X.rawValue | XCB_CONFIG_WINDOW_Y.rawValue | XCB_CONFIG_WINDOW_WIDTH.rawValue
            | XCB_CONFIG_WINDOW_HEIGHT.rawValue | XCB_CONFIG_WINDOW_STACK_MODE.rawValue
        let values = [
            UInt32(bitPattern: Int32(clamping: placement.x)), UInt32(bitPattern: Int32(clamping: placement.y)),
            UInt32(clamping: placement.width), UInt32(clamping: placement.height), XCB_STACK_MODE_ABOVE.rawValue,
        ]
        xcb_configure_window(server.connection, place, UInt16(mask), values)
        xcb_map_window(server.connection, place)
        _ = server.size(of: place)
        lookAgain()
    }

    func remove(_ place: UInt32) {
        xcb_destroy_window(server.connection, place)
        server.flush()
    }

    // MARK: Full screen

    /// Whether the window manager can do it. Without one, the window covers the screen by itself.
    private var isManaged: Bool {
        defer { lookAgain() }
        return server.atoms(in: "_NET_SUPPORTED", of: server.root).contains(server.atom("_NET_WM_STATE_FULLSCREEN"))
    }

    func setFullscreen(_ isFull: Bool) {
        guard isOwn, isShown, isFull != isFullscreen else { return }
        onFullscreen?(isFull ? .willEnter : .willExit)
        if isManaged {
            server.send(
                "_NET_WM_STATE", about: window, [isFull ? 1 : 0, server.atom("_NET_WM_STATE_FULLSCREEN"), 0, 1])
        } else {
            if isFull { sizeBefore = size }
            configure(isFull ? server.size : sizeBefore ?? size)
            noteFullscreen(isFull)
        }
        server.flush()
    }

    private func noteFullscreen(_ isFull: Bool) {
        guard isFull != isFullscreen else { return }
        isFullscreen = isFull
        onFullscreen?(isFull ? .didEnter : .didExit)
    }

    // MARK: Events

    /// Waiting for an answer may have queued events, for which the descriptor does not become readable.
    private func lookAgain() { loop.later { [weak self] in self?.readEvents() } }

    private func readEvents() {
        withExtendedLifetime(self) {
            while watch != nil, let event = xcb_poll_for_event(server.connection) {
                handle(event)
                free(event)
            }
            guard watch != nil, server.isLost else { return }
            watch = nil
            pointerRest.disarm()
            onLost?()
        }
    }

    private func handle(_ event: UnsafeMutablePointer<xcb_generic_event_t>) {
        let raw = UnsafeMutableRawPointer(event)
        func read<Event>(_: Event.Type) -> Event { raw.assumingMemoryBound(to: Event.self).pointee }
        switch Int32(event.pointee.response_type & 0x7f) {
        case XCB_KEY_PRESS:
            let key = read(xcb_key_press_event_t.self)
            // Control, Alt and Super belong to the window manager.
            let others = XCB_MOD_MASK_CONTROL.rawValue | XCB_MOD_MASK_1.rawValue | XCB_MOD_MASK_4.rawValue
            guard UInt32(key.state) & others == 0 else { return }
            let isShifted = UInt32(key.state) & XCB_MOD_MASK_SHIFT.rawValue != 0
            onKey?(server.keysym(key.detail, isShifted: isShifted))
        case XCB_BUTTON_PRESS: clicked(read(xcb_button_press_event_t.self))
        case XCB_MOTION_NOTIFY:
            setPointer(isVisible: true)
            pointerRest.arm(after: 1)
        case XCB_CONFIGURE_NOTIFY:
            let change = read(xcb_configure_notify_event_t.self)
            let now = PictureSize(width: Int(change.width), height: Int(change.height))
            guard change.window == window, now != size else { return }
            size = now
            onResized?()
        case XCB_EXPOSE:
            let expose = read(xcb_expose_event_t.self)
            if expose.count == 0 { onExposed?(expose.window) }
        case XCB_PROPERTY_NOTIFY:
            guard read(xcb_property_notify_event_t.self).atom == server.atom("_NET_WM_STATE"), isShown else { return }
            let states = server.atoms(in: "_NET_WM_STATE", of: window)
            noteFullscreen(states.contains(server.atom("_NET_WM_STATE_FULLSCREEN")))
        case XCB_CLIENT_MESSAGE: asked(read(xcb_client_message_event_t.self))
        case XCB_DESTROY_NOTIFY:
            if read(xcb_destroy_notify_event_t.self).window == window { onClosed?() }
        case XCB_MAPPING_NOTIFY: server.readKeyboard()
        default: break
        }
    }

    private func clicked(_ click: xcb_button_press_event_t) {
        guard click.detail == 1 else { return }
        if let last = lastClick, click.time &- last < MovieWindow.doubleClick {
            lastClick = nil
            onDoubleClick?()
        } else {
            lastClick = click.time
        }
    }

    private func asked(_ message: xcb_client_message_event_t) {
        guard message.type == server.atom("WM_PROTOCOLS") else { return }
        let data = message.data.data32
        if data.0 == server.atom("WM_DELETE_WINDOW") {
            onClosed?()
        } else if data.0 == server.atom("_NET_WM_PING") {
            server.send("WM_PROTOCOLS", about: server.root, [data.0, data.1, data.2, data.3, data.4])
            server.flush()
        }
    }

    /// The pointer is hidden a second after it was moved.
    private func setPointer(isVisible: Bool) {
        guard isOwn else { return }
        if emptyPointer == 0 {
            emptyPointer = server.newID()
            let pixel = server.newID()
            xcb_create_pixmap(server.connection, 1, pixel, window, 1, 1)
            xcb_create_cursor(server.connection, emptyPointer, pixel, pixel, 0, 0, 0, 0, 0, 0, 0, 0)
            xcb_free_pixmap(server.connection, pixel)
        }
        xcb_change_window_attributes(
            server.connection, window, XCB_CW_CURSOR.rawValue, [isVisible ? 0 : emptyPointer])
        server.flush()
    }
}
