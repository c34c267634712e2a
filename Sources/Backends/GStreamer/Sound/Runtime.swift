import CGStreamer
import GStreamerBase
import Glibc

/// GStreamer in this process: initialised once, at the first use.
package enum Runtime {
    /// Must be used before any other call of GStreamer.
    static let ready: Void = {
        PluginRegistry.prepare()
        if leavesList { listSwitch?.pointee = 1 }
        gst_init(nil, nil)
        if !leavesList { _ = list }
    }()

    /// For those that use elements that no table here names: reads the list of all plugins.
    package static func prepare() {
        _ = ready
        _ = list
    }

    /// Whether the list is not read at the start. False if the environment requests a check of every file.
    private static let leavesList =
        listSwitch != nil && getenv("GST_REGISTRY_UPDATE").map { String(cString: $0) } == "no"

    /// Reads the list of all plugins when it is first needed.
    private static let list: Void = {
        if leavesList { readList() }
        // libav's MP3 decoder needs four times as much memory as mpg123.
        PluginRegistry.rank("mpg123audiodec", UInt32(GST_RANK_PRIMARY.rawValue) + 64)
    }()

    /// Plugins that were loaded by their file keep their factories: the classes of their elements refer to them. With
    /// another factory of the same name, decodebin would add parsers without end.
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

    /// The function that makes GStreamer skip the list at the start and read it later; nil if the library does not have
    /// it.
    private static var listSwitch: UnsafeMutablePointer<gboolean>? { shim_registry_switch() }

    /// Whether an element of that name can be created, as far as known without the list.
    private static func has(_ element: String) -> Bool {
        // Once loaded, it is found by its name.
        PluginRegistry.has(element) || PluginFiles.load(for: element)
    }

    /// The first of these elements that can be created: found by its file, else in the list, else among plugins
    /// installed after the list was written.
    package static func find(_ elements: [String]) -> String? {
        _ = ready
        for look in [{}, { _ = list }, PluginRegistry.scanFolders] {
            look()
            if let found = elements.first(where: has) { return found }
        }
        return nil
    }

    /// Loads the plugins for the elements of a gst-launch description, if they are installed.
    package static func provide(_ description: String) {
        for word in description.split(separator: "!").compactMap({ $0.split(separator: " ").first }) {
            // The other words are formats, and elements that were named before.
            if !word.contains("/"), !word.contains(".") { _ = find([String(word)]) }
        }
    }
}
