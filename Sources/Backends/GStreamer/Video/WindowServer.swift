import CXCB
import Glibc
import PluginAPI

/// A connection to an X11 server, and the requests that windows need.
final class WindowServer {
    let connection: OpaquePointer
    let root: UInt32
    let visual: UInt32
    let black: UInt32
    let size: PictureSize
    private var atoms: [String: UInt32] = [:]
    private var keysyms: [UInt32] = []
    private var keysymsPerKey = 0
    private var firstKey = 0

    /// Connects to that server, or to the one that the environment names; nil if it does not answer.
    init?(_ display: String?) {
        var number: Int32 = 0
        guard display != nil || getenv("DISPLAY").map({ $0.pointee != 0 }) == true,
            let made = xcb_connect(display, &number)
        else {
            return nil
        }
        guard xcb_connection_has_error(made) == 0, let setup = xcb_get_setup(made) else {
            xcb_disconnect(made)
            return nil
        }
        var screens = xcb_setup_roots_iterator(setup)
        for _ in 0..<number where screens.rem > 1 { xcb_screen_next(&screens) }
        let screen = screens.data.pointee
        connection = made
        (root, visual, black) = (screen.root, screen.root_visual, screen.black_pixel)
        size = PictureSize(width: Int(screen.width_in_pixels), height: Int(screen.height_in_pixels))
        readAtoms()
        readKeyboard()
    }

    deinit { xcb_disconnect(connection) }

    var descriptor: Int32 { xcb_get_file_descriptor(connection) }
    var isLost: Bool { xcb_connection_has_error(connection) != 0 }

    func flush() { xcb_flush(connection) }

    func newID() -> UInt32 { xcb_generate_id(connection) }

    // MARK: Atoms and properties

    private static let names = [
        "WM_PROTOCOLS", "WM_DELETE_WINDOW", "_NET_WM_PING", "_NET_WM_NAME", "_NET_WM_ICON", "_NET_WM_PID",
        "_NET_WM_STATE", "_NET_WM_STATE_FULLSCREEN", "_NET_SUPPORTED", "UTF8_STRING",
    ]

    private func readAtoms() {
        let requests = WindowServer.names.map { name in
            (name, xcb_intern_atom(connection, 0, UInt16(name.utf8.count), name))
        }
        for (name, request) in requests {
            guard let reply = xcb_intern_atom_reply(connection, request, nil) else { continue }
            atoms[name] = reply.pointee.atom
            free(reply)
        }
    }

    func atom(_ name: String) -> UInt32 { atoms[name] ?? 0 }

    func set(_ property: UInt32, of window: UInt32, type: UInt32, _ values: [UInt32]) {
        xcb_change_property(
            connection, UInt8(XCB_PROP_MODE_REPLACE.rawValue), window, property, type, 32, UInt32(values.count), values)
    }

    func set(_ property: UInt32, of window: UInt32, type: UInt32, text: String) {
        let bytes = Array(text.utf8)
        xcb_change_property(
            connection, UInt8(XCB_PROP_MODE_REPLACE.rawValue), window, property, type, 8, UInt32(bytes.count), bytes)
    }

    /// The atoms in a property; events that arrive meanwhile are queued.
    func atoms(in property: String, of window: UInt32) -> [UInt32] {
        let request = xcb_get_property(connection, 0, window, atom(property), XCB_ATOM_ATOM.rawValue, 0, 1_024)
        guard let reply = xcb_get_property_reply(connection, request, nil) else { return [] }
        defer { free(reply) }
        guard let values = xcb_get_property_value(reply), reply.pointee.format == 32 else { return [] }
        let count = Int(xcb_get_property_value_length(reply)) / 4
        return Array(UnsafeBufferPointer(start: values.assumingMemoryBound(to: UInt32.self), count: count))
    }

    /// The size of a window; nil if there is none with that id. Waits until the server has handled what was sent before.
    func size(of window: UInt32) -> PictureSize? {
        let request = xcb_get_geometry(connection, window)
        guard let reply = xcb_get_geometry_reply(connection, request, nil) else { return nil }
        defer { free(reply) }
        return PictureSize(width: Int(reply.pointee.width), height: Int(reply.pointee.height))
    }

    /// Asks the window manager, or a window, as `_NET_WM_STATE` and others want it.
    func send(_ type: String, about window: UInt32, _ values: [UInt32]) {
        var event = xcb_client_message_event_t()
        event.response_type = UInt8(XCB_CLIENT_MESSAGE)
        event.format = 32
        event.window = window
        event.type = atom(type)
        let five = values + Array(repeating: 0, count: max(0, 5 - values.count))
        event.data.data32 = (five[0], five[1], five[2], five[3], five[4])
        let mask = XCB_EVENT_MASK_SUBSTRUCTURE_NOTIFY.rawValue | XCB_EVENT_MASK_SUBSTRUCTURE_REDIRECT.rawValue
        _ = withUnsafeBytes(of: &event) {
            xcb_send_event(connection, 0, root, mask, $0.baseAddress?.assumingMemoryBound(to: CChar.self))
        }
    }

    // MARK: Keys

    /// The user has another keyboard, or another layout.
    func readKeyboard() {
        guard let setup = xcb_get_setup(connection) else { return }
        firstKey = Int(setup.pointee.min_keycode)
        let count = UInt8(clamping: Int(setup.pointee.max_keycode) - firstKey + 1)
        let request = xcb_get_keyboard_mapping(connection, setup.pointee.min_keycode, count)
        guard let reply = xcb_get_keyboard_mapping_reply(connection, request, nil) else { return }
        defer { free(reply) }
        keysymsPerKey = Int(reply.pointee.keysyms_per_keycode)
        let length = Int(xcb_get_keyboard_mapping_keysyms_length(reply))
        keysyms = Array(UnsafeBufferPointer(start: xcb_get_keyboard_mapping_keysyms(reply), count: length))
    }

    /// The meaning of a key in the first layout, with or without Shift.
    func keysym(_ key: UInt8, isShifted: Bool) -> UInt32 {
        let place = (Int(key) - firstKey) * keysymsPerKey
        guard keysyms.indices.contains(place) else { return 0 }
        let shifted = isShifted && keysymsPerKey > 1 ? keysyms[place + 1] : 0
        return shifted != 0 ? shifted : keysyms[place]
    }
}
