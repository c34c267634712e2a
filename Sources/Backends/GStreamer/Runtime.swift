import CGStreamer
import Glibc

/// GStreamer in this process: initialised once, at the first use.
enum Runtime {
    /// Touch before any other call into GStreamer.
    static let ready: Void = {
        // Looking at every plugin's file at each start costs more than all the rest; ``find(_:)`` does it when
        // something is missing, and a first start without a cache scans anyway, here rather than in a forked child.
        setenv("GST_REGISTRY_UPDATE", "no", 0)
        gst_registry_fork_set_enabled(0)
        if leavesList { listSwitch?.pointee = 1 }
        gst_init(nil, nil)
        if !leavesList { _ = list }
    }()

    /// Not where somebody wants every file looked at, each time.
    private static let leavesList =
        listSwitch != nil && getenv("GST_REGISTRY_UPDATE").map { String(cString: $0) } == "no"

    /// The list of all plugins, read at the first need.
    private static let list: Void = {
        if leavesList { readList() }
        // libav's MP3 decoder needs four times the memory of mpg123.
        rank("mpg123audiodec", UInt32(GST_RANK_PRIMARY.rawValue) + 64)
    }()

    /// What was loaded by its file stays as it is: the elements' classes know that factory, and decodebin, shown another of
    /// the same name, would put parser behind parser without end.
    private static func readList() {
        let registry = gst_registry_get()
        let plugins = gst_registry_get_plugin_list(registry)
        var features: [UnsafeMutablePointer<GList>?] = []
        each(plugins) {
            features.append(gst_registry_get_feature_list_by_plugin(registry, gst_plugin_get_name($0)))
        }
        listSwitch?.pointee = 0
        gst_update_registry()
        each(plugins) { gst_registry_add_plugin(registry, $0) }
        for list in features {
            each(list) { gst_registry_add_feature(registry, $0) }
            gst_plugin_feature_list_free(list)
        }
        gst_plugin_list_free(plugins)
    }

    private static func each(_ list: UnsafeMutablePointer<GList>?, _ body: (OpaquePointer) -> Void) {
        var link = list
        while let item = link {
            if let data = item.pointee.data { body(OpaquePointer(data)) }
            link = item.pointee.next
        }
    }

    /// What lets GStreamer leave the list unread, and read it later; nil where its library has no such thing.
    private static var listSwitch: UnsafeMutablePointer<gboolean>? { shim_registry_switch() }

    /// Whether an element of that name can be made, as far as that is known without the list.
    private static func has(_ element: String) -> Bool {
        if let factory = gst_element_factory_find(element) {
            gst_object_unref(UnsafeMutableRawPointer(factory))
            return true
        }
        // Loaded, it is found from then on.
        return PluginFiles.load(for: element)
    }

    /// The first of these elements that can be made: found by its file, else in the list, else among what was installed
    /// since the list was written.
    static func find(_ elements: [String]) -> String? {
        _ = ready
        for look in [{}, { _ = list }, lookAtFolders] {
            look()
            if let found = elements.first(where: has) { return found }
        }
        return nil
    }

    /// Sees that the elements of a description in the words of gst-launch can be made, as far as they are installed.
    static func provide(_ description: String) {
        for word in description.split(separator: "!").compactMap({ $0.split(separator: " ").first }) {
            // Others are formats.
            if !word.contains("/") { _ = find([String(word)]) }
        }
    }

    private static func lookAtFolders() {
        for folder in PluginFiles.folders { gst_registry_scan_path(gst_registry_get(), folder) }
    }

    private static func rank(_ name: String, _ rank: UInt32) {
        guard let feature = gst_registry_lookup_feature(gst_registry_get(), name) else { return }
        gst_plugin_feature_set_rank(feature, rank)
        gst_object_unref(UnsafeMutableRawPointer(feature))
    }

    /// Seconds as GStreamer's nanoseconds: never negative, a century at the most, 0 for NaN.
    static func nanoseconds(_ seconds: Double) -> GstClockTime {
        seconds > 0 ? GstClockTime(min(seconds, 3.15e9) * 1e9) : 0
    }

    static func seconds(_ nanoseconds: Int) -> Double { Double(nanoseconds) / 1e9 }
}
