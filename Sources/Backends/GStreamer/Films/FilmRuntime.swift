import CFilms
import GStreamerBase
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

    /// Chooses the decoders of H.264 and HEVC for the next pipelines: OpenH264 and libde265, which are loaded in 3 ms, or
    /// libav, which is loaded in 60 ms with its two hundred libraries, and decodes everything.
    static func decode(quickly isQuick: Bool) {
        for name in ["openh264dec", "libde265dec"] {
            films_rank(name, isQuick ? guint(GST_RANK_PRIMARY.rawValue) + 1 : guint(GST_RANK_MARGINAL.rawValue))
        }
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

    /// A missing plugin, as GStreamer describes it, and the package that most likely has it, unless that package is installed.
    static func advice(_ plugin: String) -> String {
        let package = Packages.package(for: plugin)
        let sample = package == Packages.decoders ? "avdec_h264" : "h264parse"
        return find([sample]) == nil ? "\(plugin) (\(package))" : "\(plugin) (no package of GStreamer has it)"
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
