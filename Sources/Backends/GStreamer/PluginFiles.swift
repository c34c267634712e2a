import CGStreamer
import Glibc

/// GStreamer's plugins by their files, for a program that knows beforehand which few of them it needs.
///
/// To read the list of all plugins takes longer than anything else at a start; who needs no more than these does not
/// read it.
enum PluginFiles {
    /// Whether there is no list, and what is needed is loaded from here.
    static var areLoadedByName: Bool { getenv(variable) != nil }

    /// GStreamer's own, which it reads when it is initialised.
    private static let variable = "GST_REGISTRY_DISABLE"

    /// Takes the list away for the rest of the process, where the files lie where they are expected. To be called
    /// before GStreamer is initialised.
    static func replaceList() {
        guard ["pulsesrc", "audioconvert", "filesink"].allSatisfy({ file(of: $0) != nil }) else { return }
        setenv(variable, "yes", 0)
    }

    /// Loads the plugin that has the element; false where it is not installed, or not one of ours.
    static func load(for element: String) -> Bool {
        guard let file = file(of: element), let plugin = gst_plugin_load_file(file, nil) else { return false }
        gst_object_unref(UnsafeMutableRawPointer(plugin))
        return true
    }

    /// What a recorder makes its pipelines of.
    private static let plugins = [
        "pulsesrc": "pulseaudio", "audioconvert": "audioconvert", "capsfilter": "coreelements",
        "filesink": "coreelements", "level": "level", "flacenc": "flac", "vorbisenc": "vorbis", "oggmux": "ogg",
        "opusenc": "opus", "lamemp3enc": "lame", "fdkaacenc": "fdkaac", "voaacenc": "voaacenc", "avenc_aac": "libav",
        "avenc_alac": "libav", "aacparse": "audioparsers", "mp4mux": "isomp4",
    ]

    private static func file(of element: String) -> String? {
        guard let plugin = plugins[element] else { return nil }
        return folders.lazy.map { "\($0)/libgst\(plugin).so" }.first { access($0, R_OK) == 0 }
    }

    /// Those that GStreamer is told, in its order, and the one beside its library.
    private static let folders: [String] = {
        func list(_ name: String) -> [String]? {
            (getenv(name + "_1_0") ?? getenv(name)).map { String(cString: $0).split(separator: ":").map(String.init) }
        }
        return (list("GST_PLUGIN_PATH") ?? []) + (list("GST_PLUGIN_SYSTEM_PATH") ?? own)
    }()

    private static var own: [String] {
        guard let file = shim_library_file().map({ String(cString: $0) }), let end = file.lastIndex(of: "/") else {
            return []
        }
        return [file[..<end] + "/gstreamer-1.0"]
    }
}
