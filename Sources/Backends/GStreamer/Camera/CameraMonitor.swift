import CGStreamer
import CStreaming
package import Capturing
package import EventLoop
import GStreamerBackend
package import GStreamerBase
package import PluginAPI

/// The cameras of this machine, as GStreamer finds them: through PipeWire, where several programs can use one, and through V4L2
/// where there is no PipeWire (GstDeviceMonitor). Or those of one connection to PipeWire that the portal of the desktop has given.
package final class CameraMonitor {
    /// A camera, and how to open it.
    package final class Camera {
        package let device: CaptureSource
        /// Owned.
        private let handle: UnsafeMutablePointer<GstDevice>
        /// Its sources use the connection by its number.
        private let link: CameraLink?

        fileprivate init(_ device: CaptureSource, _ handle: UnsafeMutablePointer<GstDevice>, _ link: CameraLink?) {
            (self.device, self.handle, self.link) = (device, handle, link)
            gst_object_ref(handle)
        }

        deinit { gst_object_unref(handle) }

        fileprivate func isSame(as other: UnsafeMutablePointer<GstDevice>) -> Bool { handle == other }

        /// A new source element of the camera, with a floating reference; nil if it is gone.
        package func makeSource() -> Elements.Element? {
            guard let source = gst_device_create_element(handle, "camera") else { return nil }
            // The provider of PipeWire 0.3 gives only the first time stamp, and its pictures belong to the camera.
            for property in ["do-timestamp", "always-copy"] where shim_has_property(source, property) != 0 {
                shim_set_bool(source, property, 1)
            }
            return source
        }
    }

    /// A camera came, or is gone: its id.
    package var onConnected: ((String) -> Void)?
    package var onDisconnected: ((String) -> Void)?

    /// Those that can be opened.
    private var present: [Camera] = []
    /// All of them, also those that may be there again at once (``isChanging(_:)``).
    package var cameras: [Camera] { present + leaving.values.map(\.camera) }
    /// The connection of the portal is dead, or the server has closed it.
    package var onLinkLost: (() -> Void)?
    private let loop: EventLoop
    /// Whether only the cameras of the connections that ``connect(through:_:)`` gets are found.
    package let isOfPortal: Bool
    private var finder: CameraFinder?
    private var watch: IOWatch?
    private var linkWatch: IOWatch?
    /// Cameras that are gone, unless they are there again at once: PipeWire 1.4 removes and adds a camera whose formats change,
    /// as they do when somebody begins to read it.
    private var leaving: [String: (camera: Camera, isTold: Bool)] = [:]
    /// Cameras that PipeWire has reported as gone since the monitor began, so its server answered then.
    private var reported: Set<String> = []
    private lazy var absence = Timer(on: loop) { [unowned self] in tellLeft() }
    private lazy var end = Timer(on: loop) { [unowned self] in leaving = leaving.filter { !$0.value.isTold } }
    /// Seconds for which a camera that is gone is still listed: without hardware, it may be there again when its last reader has left.
    private static let listedTime = 1.5
    /// Seconds in which a camera is there again if only its formats have changed.
    package static let changeTime = 0.3

    package init(on loop: EventLoop, isOfPortal: Bool = false) { (self.loop, self.isOfPortal) = (loop, isOfPortal) }

    deinit { stop() }

    /// One that can be opened.
    package func camera(_ id: String) -> Camera? { present.first { $0.device.id == id } }

    /// Whether a camera may be there again in a moment.
    package func isChanging(_ id: String) -> Bool { leaving[id] != nil }

    /// A camera by its id, its position or its name; nil: the first one.
    package func camera(called text: String?) -> Camera? {
        guard let text else { return present.first }
        return camera(text) ?? present.first { $0.device.position.rawValue == text }
            ?? present.first { $0.device.name == text }
    }

    /// Begins to look for cameras, if it has not begun; those that are there are known when it returns. Looks again if the server of
    /// PipeWire was restarted, which is found only by another connection.
    package func refresh() {
        if isOfPortal || isLooking { return }
        if let finder, !cameras.isEmpty || !finder.isOutdated { return }
        stop()
        guard let finder = CameraFinder.ofMachine(), finder.start() else { return }
        adopt(finder, isTold: false)
    }

    /// Looks for cameras through a connection to PipeWire, in place of the one before; ``onConnected`` tells what it finds.
    /// - Parameters:
    ///   - descriptor: duplicated here.
    ///   - done: called later, with the reason if it fails; not called if it was replaced or given up meanwhile.
    package func connect(through descriptor: Int32, _ done: @escaping (SessionError?) -> Void) {
        disconnect()
        guard let link = CameraLink(descriptor), let finder = CameraFinder.through(link) else {
            return loop.later {
                done(
                    SessionError(
                        .notSupported, "GStreamer cannot use the cameras of a portal: install gstreamer1.0-pipewire"))
            }
        }
        awaited = link
        let isStarted = Errand.run(
            on: loop, { finder.start() },
            done: { [weak self] isStarted in
                guard let self, awaited === link else { return finder.leave() }
                awaited = nil
                guard isStarted else {
                    return done(SessionError(.resourceNotAvailable, "PipeWire does not answer the portal's connection"))
                }
                adopt(finder, isTold: true)
                // Its server has ended, or closes it. GStreamer would not tell.
                linkWatch = IOWatch(on: loop, descriptor: link.number, events: .error) { [unowned self] _ in
                    linkWatch = nil
                    onLinkLost?()
                }
                done(nil)
            })
        if !isStarted {
            awaited = nil
            loop.later { done(SessionError(.resourceNotAvailable, "no thread can be started")) }
        }
    }

    /// The connection whose cameras are being looked for.
    private var awaited: CameraLink?

    /// Forgets the cameras of the connection.
    package func disconnect() {
        (awaited, watch, linkWatch) = (nil, nil, nil)
        let old = finder
        finder = nil
        old?.leave()
        forget()
    }

    /// Forgets the cameras, and looks for them on a thread of its own; ``onConnected`` tells what it finds.
    ///
    /// PipeWire's library waits for ever for the answer of a server that has ended, if the process still has its connection.
    /// Then nothing is found, until another process looks.
    /// - Parameter id: the camera that is missed. One that was reported as gone is reported as connected, too, so PipeWire 0.3 is
    ///   not asked again: the end of its monitor may destroy what another thread uses. When its server ends, it reports nothing.
    /// - Returns: false if it still waits for an answer, or if that is not needed.
    package func lookAgain(for id: String) -> Bool {
        if isOfPortal || (CameraFinder.endsUnsafely && reported.contains(id)) { return false }
        guard !isLooking, let made = CameraFinder.ofMachine() else { return false }
        let old = finder
        watch = nil
        finder = nil
        forget()
        isLooking = Errand.run(
            on: loop,
            {
                old?.stop()
                return made.start()
            },
            done: { [weak self] isStarted in
                guard let self else { return }
                isLooking = false
                if isStarted, finder == nil { adopt(made, isTold: true) }
            })
        return isLooking
    }

    private var isLooking = false

    /// Takes over what has begun to find cameras, with those that it knows.
    private func adopt(_ finder: CameraFinder, isTold: Bool) {
        self.finder = finder
        guard let bus = finder.bus else { return }
        var poll = GPollFD()
        gst_bus_get_pollfd(bus, &poll)
        gst_object_unref(bus)
        watch = IOWatch(on: loop, descriptor: poll.fd, events: .readable) { [unowned self] _ in readBus() }
        for device in finder.devices {
            add(device, isTold: isTold)
            gst_object_unref(device)
        }
        readBus()
    }

    /// The cameras of a server that has ended are forgotten; ``refresh()`` looks again.
    package func stop() {
        (watch, linkWatch) = (nil, nil)
        guard let finder else { return }
        self.finder = nil
        finder.stop()
        forget()
    }

    private func forget() {
        let gone = present.map(\.device.id) + leaving.filter { !$0.value.isTold }.keys
        present = []
        // They must not be made while this object goes.
        if !leaving.isEmpty { absence.disarm() }
        if leaving.values.contains(where: \.isTold) { end.disarm() }
        leaving = [:]
        reported = []
        for id in gone { onDisconnected?(id) }
    }

    private func readBus() {
        guard let bus = finder?.bus else { return }
        defer { gst_object_unref(bus) }
        while let message = gst_bus_pop(bus) {
            defer { gst_message_unref(message) }
            var device: UnsafeMutablePointer<GstDevice>?
            switch message.pointee.type {
            case GST_MESSAGE_DEVICE_ADDED:
                gst_message_parse_device_added(message, &device)
                if let device { add(device, isTold: true) }
            case GST_MESSAGE_DEVICE_REMOVED:
                gst_message_parse_device_removed(message, &device)
                if let device { remove(device) }
            default: break
            }
            if let device { gst_object_unref(device) }
        }
    }

    private func add(_ handle: UnsafeMutablePointer<GstDevice>, isTold: Bool) {
        guard gst_device_has_classes(handle, CameraFinder.kind) != 0,
            !present.contains(where: { $0.isSame(as: handle) }), let device = CameraFacts.device(handle)
        else { return }
        // The same camera is shown by PipeWire and by V4L2.
        guard camera(device.id) == nil else { return }
        present.append(Camera(device, handle, finder?.link))
        reported.remove(device.id)
        if leaving.removeValue(forKey: device.id)?.isTold ?? true, isTold { onConnected?(device.id) }
    }

    private func remove(_ handle: UnsafeMutablePointer<GstDevice>) {
        guard let place = present.firstIndex(where: { $0.isSame(as: handle) }) else { return }
        let camera = present.remove(at: place)
        leaving[camera.device.id] = (camera, false)
        reported.insert(camera.device.id)
        absence.arm(after: Self.changeTime)
    }

    private func tellLeft() {
        let gone = leaving.filter { !$0.value.isTold }.keys
        for id in gone { leaving[id]?.isTold = true }
        end.arm(after: Self.listedTime)
        for id in gone { onDisconnected?(id) }
    }
}

/// What GStreamer tells about a camera.
private enum CameraFacts {
    static func device(_ handle: UnsafeMutablePointer<GstDevice>) -> CaptureSource? {
        let properties = gst_device_get_properties(handle)
        defer { if let properties { gst_structure_free(properties) } }
        func text(_ key: String) -> String? {
            properties.flatMap { gst_structure_get_string($0, key) }.map { String(cString: $0) }
        }
        guard let name = gst_device_get_display_name(handle) else { return nil }
        defer { g_free(name) }
        // What stays after a restart: the node's name has the place of the device on its bus.
        guard let id = text("node.name") ?? text("device.bus_path") ?? text("device.path") else { return nil }
        let place = text("sessiond.camera.position") ?? text("api.libcamera.location")
        return CaptureSource(
            id: id, name: text("node.description") ?? String(cString: name), media: .video,
            position: place.flatMap(CapturePosition.init) ?? .unspecified, formats: formats(of: handle),
            videoDevice: text("api.v4l2.path") ?? text("device.path"))
    }

    /// The sizes of a camera that can have any size within limits.
    private static let usualSizes = [(320, 240), (640, 480), (960, 540), (1280, 720), (1920, 1080), (3840, 2160)]
    private static let usualRates = [30, 25, 15]
    private static let most = 512

    private static func formats(of handle: UnsafeMutablePointer<GstDevice>) -> [CaptureFormat] {
        guard let caps = gst_device_get_caps(handle) else { return [] }
        defer { gst_caps_unref(caps) }
        var formats: [CaptureFormat] = []
        for place in 0..<gst_caps_get_size(caps) {
            guard let structure = gst_caps_get_structure(caps, place) else { continue }
            let kind = String(cString: gst_structure_get_name(structure))
            guard kind == "video/x-raw" || kind == "image/jpeg" else { continue }
            let pixels = kind == "image/jpeg" ? [CaptureFormat.jpeg] : words(structure, "format")
            let rates = rates(structure)
            for pixels in pixels {
                for (width, height) in sizes(structure) {
                    for rate in rates where formats.count < most {
                        let format = CaptureFormat(width: width, height: height, rate: rate, pixels: pixels)
                        if !formats.contains(format) { formats.append(format) }
                    }
                }
            }
        }
        return formats
    }

    private static func values(_ structure: UnsafePointer<GstStructure>, _ key: String) -> [UnsafePointer<GValue>] {
        guard let value = gst_structure_get_value(structure, key) else { return [] }
        guard value.pointee.g_type == gst_value_list_get_type() else { return [value] }
        return (0..<gst_value_list_get_size(value)).compactMap { gst_value_list_get_value(value, $0) }
    }

    private static func words(_ structure: UnsafePointer<GstStructure>, _ key: String) -> [String] {
        values(structure, key).compactMap { value in
            shim_value_string(value).map { String(cString: $0) }
        }
    }

    private static func sizes(_ structure: UnsafePointer<GstStructure>) -> [(Int, Int)] {
        var (width, height): (gint, gint) = (0, 0)
        if gst_structure_get_int(structure, "width", &width) != 0,
            gst_structure_get_int(structure, "height", &height) != 0
        {
            return [(Int(width), Int(height))]
        }
        func range(_ key: String) -> ClosedRange<Int>? {
            guard let value = gst_structure_get_value(structure, key) else { return nil }
            var number: gint = 0
            if gst_structure_get_int(structure, key, &number) != 0 { return Int(number)...Int(number) }
            guard value.pointee.g_type == gst_int_range_get_type() else { return nil }
            let (least, most) = (Int(gst_value_get_int_range_min(value)), Int(gst_value_get_int_range_max(value)))
            return least <= most ? least...most : nil
        }
        guard let widths = range("width"), let heights = range("height") else { return [] }
        return usualSizes.filter { widths.contains($0.0) && heights.contains($0.1) }
    }

    private static func rates(_ structure: UnsafePointer<GstStructure>) -> [CaptureRate] {
        let rates = values(structure, "framerate").flatMap { value -> [CaptureRate] in
            if value.pointee.g_type == gst_fraction_get_type() {
                let (numerator, denominator) = (
                    gst_value_get_fraction_numerator(value), gst_value_get_fraction_denominator(value)
                )
                return numerator > 0 && denominator > 0 ? [CaptureRate(Int(numerator), Int(denominator))] : []
            }
            guard value.pointee.g_type == gst_fraction_range_get_type(),
                let least = gst_value_get_fraction_range_min(value),
                let most = gst_value_get_fraction_range_max(value)
            else { return [] }
            func number(_ value: UnsafePointer<GValue>) -> Double {
                Double(gst_value_get_fraction_numerator(value))
                    / Double(max(1, gst_value_get_fraction_denominator(value)))
            }
            return usualRates.filter { (number(least)...max(number(least), number(most))).contains(Double($0)) }
                .map { CaptureRate($0) }
        }
        return rates
    }
}
