import CGStreamer
import GStreamerBackend
import GStreamerBase
import Glibc
import VideoBackend

/// A connection to PipeWire that the portal of the desktop has given: closed when nothing uses it any more.
final class CameraLink: Sendable {
    /// GStreamer finds the connection by this number.
    let number: Int32

    /// Nil: there are no descriptors left.
    init?(_ descriptor: Int32) {
        guard let number = PipeWireSocket.unique(descriptor) else { return nil }
        self.number = number
    }

    deinit { close(number) }
}

/// What finds cameras: all of GStreamer's providers, or that of PipeWire with a connection of its own.
// SAFETY: one thread uses it at a time, and its pointers are GStreamer's, which any thread may use.
final class CameraFinder: @unchecked Sendable {
    /// GStreamer's class of cameras.
    static let kind = "Video/Source"

    private let monitor: UnsafeMutablePointer<GstDeviceMonitor>?
    private let provider: UnsafeMutablePointer<GstDeviceProvider>?
    let link: CameraLink?
    private var isStarted = false
    /// A connection to the server of PipeWire that says nothing: it is dead when that server has ended, which GStreamer does not tell.
    /// Nil: there was none.
    private var server: Int32?

    private init(
        monitor: UnsafeMutablePointer<GstDeviceMonitor>? = nil,
        provider: UnsafeMutablePointer<GstDeviceProvider>? = nil,
        link: CameraLink? = nil
    ) {
        (self.monitor, self.provider, self.link) = (monitor, provider, link)
        if monitor != nil { server = PipeWireSocket.connect() }
    }

    deinit {
        if let server { close(server) }
        if let monitor { gst_object_unref(monitor) }
        if let provider { gst_object_unref(provider) }
    }

    static func ofMachine() -> CameraFinder? {
        Runtime.prepare()
        guard let monitor = gst_device_monitor_new() else { return nil }
        gst_device_monitor_add_filter(monitor, kind, nil)
        return CameraFinder(monitor: monitor)
    }

    /// Nil: GStreamer has no provider for PipeWire.
    static func through(_ link: CameraLink) -> CameraFinder? {
        Runtime.prepare()
        guard let factory = gst_device_provider_factory_find("pipewiredeviceprovider") else { return nil }
        defer { gst_object_unref(UnsafeMutableRawPointer(factory)) }
        guard let provider = shim_new_provider(factory) else { return nil }
        shim_set_int(provider, "fd", link.number)
        return CameraFinder(provider: provider, link: link)
    }

    /// May wait for PipeWire's server.
    func start() -> Bool {
        if let monitor { isStarted = gst_device_monitor_start(monitor) != 0 }
        if let provider { isStarted = gst_device_provider_start(provider) != 0 }
        return isStarted
    }

    /// Whether cameras may be found by another server than the one that was asked.
    var isOutdated: Bool { server.map(PipeWireSocket.hasEnded) ?? PipeWireSocket.answers }

    /// May wait for PipeWire's server.
    func stop() {
        guard isStarted else { return }
        // What a living server says meanwhile is read by another thread.
        if Self.endsUnsafely, let server, !PipeWireSocket.hasEnded(server) { return abandon() }
        isStarted = false
        if let monitor { gst_device_monitor_stop(monitor) }
        if let provider { gst_device_provider_stop(provider) }
    }

    /// Ends the connection, at once and for all that use it, and nobody hears of it any more.
    ///
    /// The provider of PipeWire, up to 1.4, must not be stopped: others may use its connection, whose next error it would still
    /// handle. So it stays, with a thread that does nothing; that happens only if a server was restarted, or a permission was
    /// taken back.
    func leave() {
        guard let link else { return stop() }
        shutdown(link.number, Int32(SHUT_RDWR))
        abandon()
    }

    /// It stays as it is, and nobody hears of it any more. GStreamer has one provider for all of its monitors, which others use.
    private func abandon() {
        isStarted = false
        if let server { close(server) }
        server = nil
        if let bus {
            gst_bus_set_flushing(bus, 1)
            gst_object_unref(bus)
        }
        _ = Unmanaged.passRetained(self)
    }

    /// The caller owns it.
    var bus: UnsafeMutablePointer<GstBus>? {
        monitor.flatMap { gst_device_monitor_get_bus($0) } ?? provider.flatMap { gst_device_provider_get_bus($0) }
    }

    /// Those that are known. The caller owns them.
    var devices: [UnsafeMutablePointer<GstDevice>] {
        let list =
            monitor.map { gst_device_monitor_get_devices($0) } ?? provider.map { gst_device_provider_get_devices($0) }
        guard let list else { return [] }
        var devices: [UnsafeMutablePointer<GstDevice>] = []
        var link = list
        while let item = link {
            if let data = item.pointee.data { devices.append(data.assumingMemoryBound(to: GstDevice.self)) }
            link = item.pointee.next
        }
        g_list_free(list)
        return devices
    }

    /// Whether the search for cameras is ended without the lock of PipeWire's thread, as in 0.3.
    static let endsUnsafely: Bool = {
        // Before that, no plugin is known.
        Runtime.prepare()
        guard let plugin = gst_registry_find_plugin(gst_registry_get(), "pipewire") else { return false }
        defer { gst_object_unref(UnsafeMutableRawPointer(plugin)) }
        return gst_plugin_get_version(plugin).map { String(cString: $0).hasPrefix("0.") } ?? false
    }()
}
