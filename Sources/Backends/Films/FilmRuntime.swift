import CFilms
import Glibc

/// GStreamer in a worker: initialised once, before the worker isolates itself.
enum FilmRuntime {
    /// Must be used before any other call of GStreamer.
    static let ready: Void = {
        // Looking at the file of every plugin at each start takes longer than all else; ``lookAgain()`` does it where
        // something is missing. Without a list all plugins are read here, because no other program may be started later.
        setenv("GST_REGISTRY_UPDATE", "no", 0)
        gst_registry_fork_set_enabled(0)
        gst_init(nil, nil)
        films_leave_hardware()
        films_leave_playlists()
    }()

    /// Plugins that were installed after the list was written; once.
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

    /// Seconds as GStreamer's nanoseconds: never negative, a century at the most, 0 for NaN.
    static func nanoseconds(_ seconds: Double) -> GstClockTime {
        seconds > 0 ? GstClockTime(min(seconds, 3.15e9) * 1e9) : 0
    }
}
