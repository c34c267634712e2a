import CFilms
import GStreamerBase

/// GStreamer in a worker: initialised once, before the worker isolates itself.
enum FilmRuntime {
    /// Must be used before any other call to GStreamer.
    static let ready: Void = {
        MachineCode.leaveIfForbidden()
        PluginRegistry.prepare()
        gst_init(nil, nil)
        films_leave_hardware()
        films_leave_playlists()
    }()

    /// Chooses the decoders of H.264 and HEVC for the next pipelines: OpenH264 and libde265, which are loaded in 3 ms, or
    /// libav, which is loaded in 60 ms with its two hundred libraries, and decodes everything.
    static func decode(quickly isQuick: Bool) {
        let rank = UInt32(isQuick ? GST_RANK_PRIMARY.rawValue + 1 : GST_RANK_MARGINAL.rawValue)
        for name in ["openh264dec", "libde265dec"] { PluginRegistry.rank(name, rank) }
    }

    /// Reads plugins that were installed after the registry was written; runs once.
    static let lookAgain: Void = {
        PluginRegistry.scanFolders()
        films_leave_hardware()
        films_leave_playlists()
    }()

    /// A missing plugin, as GStreamer describes it, and the package that most likely has it, unless that package is installed.
    static func advice(_ plugin: String) -> String {
        let package = Packages.package(for: plugin)
        let sample = package == Packages.decoders ? "avdec_h264" : "h264parse"
        return find([sample]) == nil ? "\(plugin) (\(package))" : "\(plugin) (no package of GStreamer has it)"
    }

    /// The first of these elements that is installed.
    static func find(_ elements: [String]) -> String? { elements.first(where: PluginRegistry.has) }
}
