import CGStreamer
import Glibc

/// GStreamer in this process: initialised once, at the first use.
enum Runtime {
    /// Touch before any other call into GStreamer.
    static let ready: Void = {
        // Looking at every plugin's file at each start costs more than all the rest; ``rescan()`` does it when
        // something is missing, and a first start without a cache scans anyway, here rather than in a forked child.
        setenv("GST_REGISTRY_UPDATE", "no", 0)
        gst_registry_fork_set_enabled(0)
        gst_init(nil, nil)
        // libav's MP3 decoder needs four times the memory of mpg123.
        rank("mpg123audiodec", UInt32(GST_RANK_PRIMARY.rawValue) + 64)
    }()

    /// Looks for plugins that came or went since the cache was written (`gst_update_registry`).
    static func rescan() {
        _ = ready
        guard !PluginFiles.areLoadedByName else { return }
        gst_update_registry()
    }

    /// Whether an element of that name can be made.
    static func has(_ element: String) -> Bool {
        _ = ready
        if let factory = gst_element_factory_find(element) {
            gst_object_unref(UnsafeMutableRawPointer(factory))
            return true
        }
        // Loaded, it is found from then on.
        return PluginFiles.areLoadedByName && PluginFiles.load(for: element)
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
