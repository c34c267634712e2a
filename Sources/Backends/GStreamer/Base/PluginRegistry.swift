import CGStreamer
import Glibc

/// GStreamer's list of plugins and elements, as all that use GStreamer here treat it.
package enum PluginRegistry {
    /// Must be called before `gst_init`.
    ///
    /// By default GStreamer checks the file of every plugin at each start, which takes longer than all other work;
    /// ``scanFolders()`` does it when an element is missing. If there is no list yet, all plugins are read in this process,
    /// not by another program, which an isolated process could not start.
    package static func prepare() {
        setenv("GST_REGISTRY_UPDATE", "no", 0)
        gst_registry_fork_set_enabled(0)
        // Set before other threads read the environment.
        if !DesktopProxy.isKnown { setenv("GIO_USE_PROXY_RESOLVER", "dummy", 1) }
    }

    /// Whether an element of that name is in the list.
    package static func has(_ element: String) -> Bool {
        guard let factory = gst_element_factory_find(element) else { return false }
        gst_object_unref(UnsafeMutableRawPointer(factory))
        return true
    }

    /// Finds plugins that were installed after the list was written.
    package static func scanFolders() { for folder in folders { gst_registry_scan_path(gst_registry_get(), folder) } }

    /// The rank by which decodebin chooses among elements. Does nothing if the element is not in the list.
    package static func rank(_ element: String, _ rank: UInt32) {
        guard let feature = gst_registry_lookup_feature(gst_registry_get(), element) else { return }
        gst_plugin_feature_set_rank(feature, rank)
        gst_object_unref(UnsafeMutableRawPointer(feature))
    }

    /// The folders of plugins: those of GStreamer's environment variables, or the user's folder and the one next to
    /// GStreamer's library. The first match is used.
    package static let folders: [String] = {
        func list(_ name: String) -> [String]? {
            (getenv(name + "_1_0") ?? getenv(name)).map { String(cString: $0).split(separator: ":").map(String.init) }
        }
        return (list("GST_PLUGIN_PATH") ?? []) + (list("GST_PLUGIN_SYSTEM_PATH") ?? usual)
    }()

    private static var usual: [String] {
        let own = String(cString: g_get_user_data_dir()) + "/gstreamer-1.0/plugins"
        guard let file = shim_library_file().map({ String(cString: $0) }), let end = file.lastIndex(of: "/") else {
            return [own]
        }
        return [own, file[..<end] + "/gstreamer-1.0"]
    }
}
