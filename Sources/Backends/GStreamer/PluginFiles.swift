import CGStreamer
import Glibc

/// GStreamer's plugins by their files, for the elements that we name ourselves.
///
/// To read the list of all plugins takes longer than anything else at a start, and 3 MB for as long as the process is
/// there; what is found here does not need it.
enum PluginFiles {
    /// The elements of players, recorders and effects, by the file that has them. Not libav: it has 651, whose classes
    /// are all made where the list does not know them, which takes ten times as long as to read the list.
    private static let elements = [
        "coreelements": ["filesrc", "filesink", "fdsink", "fakesink", "identity", "capsfilter"],
        "pulseaudio": ["pulsesink", "pulsesrc"],
        "audioconvert": ["audioconvert"], "audioresample": ["audioresample"], "volume": ["volume"],
        "audiofx": ["scaletempo", "audiopanorama"], "level": ["level"],
        "wavparse": ["wavparse"], "aiff": ["aiffparse"], "alaw": ["alawdec"], "mulaw": ["mulawdec"],
        "audioparsers": ["flacparse", "aacparse", "mpegaudioparse"],
        "flac": ["flacdec", "flacenc"],
        "ogg": ["oggdemux", "oggmux"], "vorbis": ["vorbisdec", "vorbisenc"], "opus": ["opusdec", "opusenc"],
        "id3demux": ["id3demux"], "mpg123": ["mpg123audiodec"], "lame": ["lamemp3enc"],
        "isomp4": ["qtdemux", "mp4mux"], "faad": ["faad"], "fdkaac": ["fdkaacenc"], "voaacenc": ["voaacenc"],
    ]
    /// What tells a picture's kind, and what follows a tag; for all that reads tags.
    private static let types = "typefindfunctions"
    private static let tagReaders = [
        "wavparse", "aiffparse", "flacparse", "oggdemux", "qtdemux", "id3demux",
    ]

    /// Loads the plugin that has the element; false where it is not installed, or not one of ours.
    static func load(for element: String) -> Bool {
        guard let (plugin, _) = elements.first(where: { $1.contains(element) }), load(plugin) else { return false }
        return !tagReaders.contains(element) || load(types)
    }

    private static func load(_ plugin: String) -> Bool {
        let files = folders.lazy.map { folder -> String in "\(folder)/libgst\(plugin).so" }
        guard let file = files.first(where: { access($0, R_OK) == 0 }), let loaded = gst_plugin_load_file(file, nil)
        else { return false }
        gst_object_unref(UnsafeMutableRawPointer(loaded))
        return true
    }

    /// Those that GStreamer is told, or the person's own and the one beside its library; the first one wins.
    static let folders: [String] = {
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
