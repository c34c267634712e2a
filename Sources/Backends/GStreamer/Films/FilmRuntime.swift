import CFilms
import Glibc

/// GStreamer in a worker: initialised once, before the worker isolates itself.
enum FilmRuntime {
    /// Must be used before any other call to GStreamer.
    static let ready: Void = {
        // By default GStreamer checks the file of every plugin at each start, which takes longer than all other work.
        // ``lookAgain()`` does this only if a plugin is missing. Without a registry, all plugins are read in this
        // process, because no other program may be started later.
        setenv("GST_REGISTRY_UPDATE", "no", 0)
        gst_registry_fork_set_enabled(0)
        gst_init(nil, nil)
        films_leave_hardware()
        films_leave_playlists()
    }()

    /// Chooses the decoder of H.264 for the next pipelines: OpenH264, which is loaded in 2 ms, or libav, which is loaded in
    /// 60 ms with its two hundred libraries, and decodes everything.
    static func decode(quickly isQuick: Bool) {
        films_rank("openh264dec", isQuick ? guint(GST_RANK_PRIMARY.rawValue) + 1 : guint(GST_RANK_MARGINAL.rawValue))
    }

    /// Reads plugins that were installed after the registry was written; runs once.
    static let lookAgain: Void = {
        for folder in folders { gst_registry_scan_path(gst_registry_get(), folder) }
        films_leave_hardware()
        films_leave_playlists()
    }()

    private static var folders: [String] {
        let own = String(cString: g_get_user_data_dir()) + "/gstreamer-1.0/plugins"
        let named = (getenv("GST_PLUGIN_SYSTEM_PATH_1_0") ?? getenv("GST_PLUGIN_SYSTEM_PATH")).map {
            String(cString: $0)
        }
        return [own]
            + (named.map { $0.split(separator: ":").map(String.init) } ?? [
                films_plugin_folder().map { String(cString: $0) } ?? ""
            ])
    }

    /// The first of these elements that is installed.
    static func find(_ elements: [String]) -> String? {
        elements.first { name in
            guard let factory = gst_element_factory_find(name) else { return false }
            gst_object_unref(UnsafeMutableRawPointer(factory))
            return true
        }
    }
}
