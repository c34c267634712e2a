import CXCB
import Foundation
import PluginAPI
import TestSupport

/// An X11 server without a window manager, and what is to be seen on it.
final class PrivateScreen {
    let display: String
    let width = 640
    let height = 480
    private let server: Child
    private let connection: OpaquePointer
    private let root: UInt32

    init() throws {
        // The server chooses a free number, and writes it to its standard output when it can be used.
        server = try Child("Xvfb", ["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset"])
        guard let number = server.line(where: { Int($0) != nil }) else { throw SupportError("Xvfb did not start") }
        display = ":" + number
        guard let made = xcb_connect(display, nil), xcb_connection_has_error(made) == 0,
            let setup = xcb_get_setup(made)
        else { throw SupportError("\(display) does not answer") }
        connection = made
        root = xcb_setup_roots_iterator(setup).data.pointee.root
    }

    deinit { xcb_disconnect(connection) }

    func kill() { server.kill() }

    /// Brightness of each pixel of a part of the screen.
    func pixels(x: Int = 0, y: Int = 0, width: Int, height: Int) -> [UInt8] {
        let request = xcb_get_image(
            connection, UInt8(XCB_IMAGE_FORMAT_Z_PIXMAP.rawValue), root, Int16(x), Int16(y), UInt16(width),
            UInt16(height), .max)
        guard let reply = xcb_get_image_reply(connection, request, nil) else { return [] }
        defer { free(reply) }
        let count = Int(xcb_get_image_data_length(reply))
        let bytes = UnsafeBufferPointer(start: xcb_get_image_data(reply), count: count)
        return stride(from: 1, to: bytes.count, by: 4).map { bytes[$0] }
    }

    /// The number in the picture of a film that has this place on the screen: read from the row in its middle, as tests look
    /// hundreds of times in a second.
    func number(x: Int = 0, y: Int = 0, width: Int = 320, height: Int = 180) -> Int {
        let row = pixels(x: x, y: y + height / 2, width: width, height: 1)
        return row.count == width ? TestMedia.number(row[...], width: width, height: 1) : -1
    }

    /// The windows on the screen, the lowest first.
    var windows: [UInt32] {
        guard let reply = xcb_query_tree_reply(connection, xcb_query_tree(connection, root), nil) else { return [] }
        defer { free(reply) }
        return Array(
            UnsafeBufferPointer(
                start: xcb_query_tree_children(reply), count: Int(xcb_query_tree_children_length(reply))))
    }

    func size(of window: UInt32) -> PictureSize? {
        let request = xcb_get_geometry(connection, window)
        guard let reply = xcb_get_geometry_reply(connection, request, nil) else { return nil }
        defer { free(reply) }
        return PictureSize(width: Int(reply.pointee.width), height: Int(reply.pointee.height))
    }

    func atom(_ name: String) -> UInt32 {
        let request = xcb_intern_atom(connection, 0, UInt16(name.utf8.count), name)
        guard let reply = xcb_intern_atom_reply(connection, request, nil) else { return 0 }
        defer { free(reply) }
        return reply.pointee.atom
    }

    func text(_ property: String, of window: UInt32) -> String {
        let request = xcb_get_property(connection, 0, window, atom(property), 0, 0, 256)
        guard let reply = xcb_get_property_reply(connection, request, nil) else { return "" }
        defer { free(reply) }
        guard let value = xcb_get_property_value(reply) else { return "" }
        return String(
            decoding: UnsafeRawBufferPointer(start: value, count: Int(xcb_get_property_value_length(reply))),
            as: UTF8.self)
    }

    /// Asks the program to close the window, as a window manager does.
    func close(_ window: UInt32) {
        var event = xcb_client_message_event_t()
        event.response_type = UInt8(XCB_CLIENT_MESSAGE)
        event.format = 32
        event.window = window
        event.type = atom("WM_PROTOCOLS")
        event.data.data32 = (atom("WM_DELETE_WINDOW"), 0, 0, 0, 0)
        send(&event, to: window, mask: 0)
    }

    /// Sends a press of the key to the window.
    func press(_ code: UInt8, in window: UInt32) {
        send(key: code, XCB_KEY_PRESS, XCB_EVENT_MASK_KEY_PRESS, to: window)
    }

    /// Sends a press of the key to the window, and its release.
    func type(_ code: UInt8, in window: UInt32) {
        press(code, in: window)
        send(key: code, XCB_KEY_RELEASE, XCB_EVENT_MASK_KEY_RELEASE, to: window)
    }

    /// The events of a press and of a release have the same fields.
    private func send(key code: UInt8, _ kind: Int32, _ mask: xcb_event_mask_t, to window: UInt32) {
        var event = xcb_key_press_event_t()
        event.response_type = UInt8(kind)
        event.detail = code
        event.root = root
        event.event = window
        event.same_screen = 1
        send(&event, to: window, mask: mask.rawValue)
    }

    /// A part of the screen, in the upper left corner: four bytes for each pixel, blue, green, red and nothing.
    func colours(width: Int, height: Int) -> [UInt8] {
        let request = xcb_get_image(
            connection, UInt8(XCB_IMAGE_FORMAT_Z_PIXMAP.rawValue), root, 0, 0, UInt16(width), UInt16(height), .max)
        guard let reply = xcb_get_image_reply(connection, request, nil) else { return [] }
        defer { free(reply) }
        return Array(
            UnsafeBufferPointer(start: xcb_get_image_data(reply), count: Int(xcb_get_image_data_length(reply))))
    }

    private func send<Event>(_ event: inout Event, to window: UInt32, mask: UInt32) {
        _ = withUnsafeBytes(of: &event) {
            xcb_send_event(connection, 0, window, mask, $0.baseAddress?.assumingMemoryBound(to: CChar.self))
        }
        xcb_flush(connection)
    }

    func resize(_ window: UInt32, width: Int, height: Int) {
        let mask = XCB_CONFIG_WINDOW_WIDTH.rawValue | XCB_CONFIG_WINDOW_HEIGHT.rawValue
        xcb_configure_window(connection, window, UInt16(mask), [UInt32(width), UInt32(height)])
        xcb_flush(connection)
    }

    /// A window as another program has it, 320 × 180 in the upper left corner.
    func makeWindow() -> UInt32 {
        let window = xcb_generate_id(connection)
        xcb_create_window(
            connection, 0, window, root, 0, 0, 320, 180, 0, UInt16(XCB_WINDOW_CLASS_INPUT_OUTPUT.rawValue), 0, 0, nil)
        xcb_map_window(connection, window)
        xcb_flush(connection)
        // An answer comes after all that was sent before.
        _ = windows
        return window
    }

    func destroy(_ window: UInt32) {
        xcb_destroy_window(connection, window)
        xcb_flush(connection)
    }

    /// Whether ``point(_:_:key:times:)`` works here.
    static let canPoint =
        (try? Child.run("/usr/bin/python3", ["-c", "import ctypes; ctypes.CDLL('libXtst.so.6')"])) != nil

    /// Moves the pointer, and presses its button there, or a key, by its name of X: as a user does, also for programs that do not
    /// believe events that are sent to them.
    func point(_ x: Int, _ y: Int, key: String? = nil, times: Int = 1) throws {
        let program = """
            import ctypes, sys
            x, t = ctypes.CDLL('libX11.so.6'), ctypes.CDLL('libXtst.so.6')
            x.XOpenDisplay.restype = ctypes.c_void_p
            d = ctypes.c_void_p(x.XOpenDisplay(None))
            x.XStringToKeysym.restype = ctypes.c_ulong
            # A pointer that comes from elsewhere.
            for step in 2, 0:
                t.XTestFakeMotionEvent(d, -1, int(sys.argv[1]) - step, int(sys.argv[2]) - step, 0)
            for _ in range(int(sys.argv[3])):
                for down in 1, 0:
                    if len(sys.argv) == 4:
                        t.XTestFakeButtonEvent(d, 1, down, 20)
                    else:
                        code = x.XKeysymToKeycode(d, ctypes.c_ulong(x.XStringToKeysym(sys.argv[4].encode())))
                        t.XTestFakeKeyEvent(d, code, down, 20)
            x.XSync(d, 0)
            """
        try Child.run(
            "/usr/bin/python3", ["-c", program, "\(x)", "\(y)", "\(times)"] + (key.map { [$0] } ?? []),
            environment: ["DISPLAY": display, "PATH": "/usr/bin:/bin"])
    }
}
