import CGStreamer
import GStreamerBase
import Glibc

/// The files of GStreamer's plugins for the elements that are named in this module.
///
/// Reading the list of all plugins is the longest part of the start, and needs 3 MB permanently. Elements in this table
/// do not need it.
enum PluginFiles {
    /// The elements of players, recorders and effects, by the file that has them. Not libav: it has 651 elements, and
    /// without the list all their classes are created, which takes ten times as long as reading the list.
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
    /// Elements that detect the format of a picture and of the data after a tag; needed by all that read tags.
    private static let types = "typefindfunctions"
    private static let tagReaders = [
        "wavparse", "aiffparse", "flacparse", "oggdemux", "qtdemux", "id3demux",
    ]

    /// Loads the plugin that has the element; false if it is not installed, or not in this table.
    static func load(for element: String) -> Bool {
        guard let (plugin, _) = elements.first(where: { $1.contains(element) }), load(plugin) else { return false }
        return !tagReaders.contains(element) || load(types)
    }

    private static func load(_ plugin: String) -> Bool {
        let files = PluginRegistry.folders.lazy.map { folder -> String in "\(folder)/libgst\(plugin).so" }
        guard let file = files.first(where: { access($0, R_OK) == 0 }), let loaded = gst_plugin_load_file(file, nil)
        else { return false }
        gst_object_unref(UnsafeMutableRawPointer(loaded))
        return true
    }
}
