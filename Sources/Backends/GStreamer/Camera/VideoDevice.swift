import CV4L2
import Capturing
import Glibc

/// The controls of a device of Video4Linux. A camera that hangs keeps the caller waiting.
enum VideoDevice {
    /// Why it cannot be done, as the kernel says.
    struct Refusal: Error {
        let code: Int32
        init() { code = errno }
        var text: String { String(cString: strerror(code)) }
    }

    private static func open<Answer>(
        _ path: String, _ body: (Int32) throws(Refusal) -> Answer
    ) throws(Refusal) -> Answer {
        let device = Glibc.open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard device >= 0 else { throw Refusal() }
        defer { close(device) }
        return try body(device)
    }

    /// Those controls that it has, as they are now.
    static func read(_ path: String) throws(Refusal) -> VideoControls {
        try open(path) { device in VideoControls(VideoControls.ID.all.compactMap { control($0, of: device) }) }
    }

    /// Writes them in their order; those before one that is refused stay.
    static func write(_ writes: [VideoWrite], to path: String) throws(Refusal) {
        try open(path) { (device) throws(Refusal) in
            for write in writes where shim_video_set(device, write.id, Int32(clamping: write.value)) != 0 {
                throw Refusal()
            }
        }
    }

    /// The most places of a menu.
    private static let most: Int64 = 64

    private static func control(_ id: UInt32, of device: Int32) -> VideoControl? {
        var query = v4l2_query_ext_ctrl()
        query.id = id
        guard shim_video_query(device, &query) == 0,
            query.flags & UInt32(V4L2_CTRL_FLAG_DISABLED | V4L2_CTRL_FLAG_READ_ONLY) == 0,
            query.minimum <= query.maximum
        else { return nil }
        var items: [Int64: Int64] = [:]
        if query.type == V4L2_CTRL_TYPE_MENU.rawValue || query.type == V4L2_CTRL_TYPE_INTEGER_MENU.rawValue {
            for place in query.minimum...min(query.maximum, query.minimum + most - 1) {
                var value: Int64 = 0
                if shim_video_item(device, id, UInt32(clamping: place), &value) == 0 { items[place] = value }
            }
        }
        let kind: VideoControl.Kind? =
            switch query.type {
            case V4L2_CTRL_TYPE_INTEGER.rawValue: .integer
            case V4L2_CTRL_TYPE_BOOLEAN.rawValue: .boolean
            case V4L2_CTRL_TYPE_BUTTON.rawValue: .button
            case V4L2_CTRL_TYPE_MENU.rawValue: .menu(Set(items.keys))
            case V4L2_CTRL_TYPE_INTEGER_MENU.rawValue: .integerMenu(items)
            case _: nil
            }
        guard let kind else { return nil }
        var value: Int32 = 0
        if kind != .button, shim_video_get(device, id, &value) != 0 { return nil }
        return VideoControl(
            id: id, kind: kind, range: query.minimum...query.maximum, step: Int64(clamping: query.step),
            value: Int64(value))
    }
}
