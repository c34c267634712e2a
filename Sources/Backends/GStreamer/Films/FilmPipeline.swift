import CFilms
import FileFormats
import GStreamerBase
import Glibc
import PluginAPI

/// Owns a GStreamer pipeline. Its bus is read by the code that waits for the pipeline, because a worker has nothing
/// else to do.
final class FilmPipeline {
    /// Owned by this object.
    let element: UnsafeMutablePointer<GstElement>
    private let bus: UnsafeMutablePointer<GstBus>
    /// The plugin that GStreamer reported as missing.
    private var missing: String?
    /// All tags from the bus; owned by this object.
    private(set) var tags: UnsafeMutablePointer<GstTagList>?
    /// The time that was added to the length that the file states.
    private var added: GstClockTime = 0
    /// The length that the file states, if the demuxer does not get it.
    private var stated: GstClockTime?

    /// A pipeline that reads a file by its element `source`.
    ///
    /// The demuxer gets corrected numbers instead of those in the file. qtdemux before 1.24 compares positions in a
    /// track with the length of the film, so it ends too early if an edit list cuts off the start. In a fragmented
    /// film, after a seek, it uses the presentation time of the first fragment as its decoding time. It skips a track that is
    /// shorter than a fifth of the film, unless the length of the film is unknown. It takes the first track with pictures,
    /// even if players do not show it.
    convenience init(
        reading file: FilmFile, _ index: MovieIndex?, _ description: String,
        configure: (UnsafeMutablePointer<GstElement>) -> Void = { _ in }
    ) throws(FilmError) {
        let units = index.map { ($0.cut * Double($0.timescale)).rounded(.up) } ?? 0
        var isLonger = false
        try self.init(description) { pipeline in
            if let index, let length = index.length, index.hasShortTrack {
                films_patch_number(pipeline, guint64(length.place), guint(length.size), 0)
            } else if let index, let length = index.length, units > 0, Double(length.value) + units < 4e9 {
                films_patch_number(
                    pipeline, guint64(length.place), guint(length.size), guint64(length.value) + guint64(units))
                isLonger = true
            }
            for piece in index?.firstPieces ?? [] {
                films_patch_number(pipeline, guint64(piece.place), guint(piece.size), 0)
            }
            for track in index?.hidden ?? [] {
                films_patch_number(pipeline, guint64(track.kind.place), guint(track.kind.size), 0)
            }
            let tracks = index?.lowByteFirst.map { guint(clamping: $0) } ?? []
            if !tracks.isEmpty { films_correct_byte_order(pipeline, tracks, guint(tracks.count)) }
            films_leave_transparency(pipeline)
            films_correct_avi(pipeline)
            configure(pipeline)
        }
        if isLonger, let index { added = Times.nanoseconds(units / Double(index.timescale)) }
        if let index, index.hasShortTrack { stated = index.seconds.map(Times.nanoseconds) }
        films_read(try child("source"), file.uri)
    }

    /// From a gst-launch description.
    /// - Parameter configure: gets the pipeline while it is still empty.
    init(
        _ description: String, configure: (UnsafeMutablePointer<GstElement>) -> Void = { _ in }
    ) throws(FilmError) {
        _ = FilmRuntime.ready
        guard let pipeline = gst_pipeline_new(nil), let bus = gst_element_get_bus(pipeline) else {
            throw FilmError(.decodeFailed, "GStreamer has no pipelines")
        }
        gst_object_ref_sink(pipeline)
        element = pipeline
        self.bus = bus
        films_hear_errors(pipeline)
        films_mend_libav(pipeline)
        configure(pipeline)
        switch Elements.bin(description) {
        case .success(let bin): Elements.add(bin, to: pipeline)
        case .failure(let missing):
            throw FilmError(.encoderNotFound, missing.message.isEmpty ? "an element is missing" : missing.message)
        }
    }

    deinit {
        gst_element_set_state(element, GST_STATE_NULL)
        if let tags { gst_tag_list_unref(tags) }
        gst_object_unref(bus)
        gst_object_unref(element)
    }

    /// The element with that name, valid while the pipeline exists.
    func child(_ name: String) throws(FilmError) -> UnsafeMutablePointer<GstElement> {
        guard let found = Elements.child(name, of: element) else {
            throw FilmError(.decodeFailed, "there is no element \(name)")
        }
        return found
    }

    func set(_ state: GstState) { gst_element_set_state(element, state) }

    /// Waits until all sinks have data or have reached the end.
    func prepare(within seconds: Double) throws(FilmError) {
        if gst_element_set_state(element, GST_STATE_PAUSED) == GST_STATE_CHANGE_FAILURE {
            throw failure() ?? FilmError(.decodeFailed, "it cannot be opened")
        }
        let end = g_get_monotonic_time() + gint64(seconds * 1e6)
        while true {
            switch try next(within: 0.1) {
            case .prerolled, .ended: return
            case .other, nil: break
            }
            var state = GST_STATE_NULL
            if gst_element_get_state(element, &state, nil, 0) == GST_STATE_CHANGE_SUCCESS, state == GST_STATE_PAUSED {
                return
            }
            guard g_get_monotonic_time() < end else {
                throw FilmError(.decodeFailed, "it took longer than \(Int(seconds)) s to open")
            }
        }
    }

    /// Waits, after a seek in a paused pipeline, until all sinks have data again. If the pipeline were started earlier,
    /// a single sink could start and wait for another sink for ever.
    func settle(within seconds: Double) throws(FilmError) {
        let end = g_get_monotonic_time() + gint64(seconds * 1e6)
        var state = GST_STATE_NULL
        while gst_element_get_state(element, &state, nil, Times.nanoseconds(0.1))
            != GST_STATE_CHANGE_SUCCESS
        {
            while try next(within: 0) != nil {}
            guard g_get_monotonic_time() < end else {
                throw FilmError(.decodeFailed, "it took longer than \(Int(seconds)) s to seek")
            }
        }
    }

    enum News {
        case prerolled
        case ended
        case other
    }

    /// The next message; nil: none came in time. An error message is thrown.
    func next(within seconds: Double) throws(FilmError) -> News? {
        guard let message = gst_bus_timed_pop(bus, Times.nanoseconds(seconds)) else { return nil }
        defer { gst_message_unref(message) }
        switch Notice(message) {
        case .ended: return .ended
        case .prerolled: return .prerolled
        case .failed(let fault): throw FilmError(fault, missing: missing)
        case .lacksPlugin(let plugin):
            missing = plugin
            return .other
        case .tags:
            if let list = Notice.tags(of: message) {
                let merged = gst_tag_list_merge(tags, list, GST_TAG_MERGE_KEEP)
                if let tags { gst_tag_list_unref(tags) }
                tags = merged
                gst_tag_list_unref(list)
            }
            return .other
        case .segmentDone, .durationChanged, .buffered, .application, .element, .other: return .other
        }
    }

    /// An error that is already on the bus.
    func failure() -> FilmError? {
        do throws(FilmError) {
            while try next(within: 0) != nil {}
            return nil
        } catch {
            return error
        }
    }

    /// In nanoseconds; nil if unknown.
    var duration: GstClockTime? {
        if let stated { return stated }
        guard let length = Elements.duration(of: element), length > Int(added) else { return nil }
        return GstClockTime(length) - added
    }
}

/// A file on this machine, checked before it is opened.
struct FilmFile {
    let path: [UInt8]
    let size: Int
    /// Time of the last change, in seconds since 1970.
    let modified: Int
    /// Whether it is a GIF file. GStreamer cannot seek in it.
    let isGIF: Bool

    /// Accepts only regular files: opening a pipe would block until a writer opens it, and a device has no end.
    init(_ path: [UInt8]) throws(FilmError) {
        self.path = path
        var status = stat()
        let name = path.map { CChar(bitPattern: $0) } + [0]
        guard stat(name, &status) == 0 else {
            throw FilmError(
                errno == ENOENT || errno == ENOTDIR ? .notFound : .decodeFailed, String(cString: strerror(errno)))
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            throw FilmError(.invalidSource, isFolder ? "it is a folder" : "it is a device or a pipe, not a file")
        }
        guard status.st_size > 0 else { throw FilmError(.invalidSource, "it is empty") }
        let file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { throw FilmError(.decodeFailed, String(cString: strerror(errno))) }
        defer { close(file) }
        let mark = Array("#EXTM3U".utf8)
        var begin = [UInt8](repeating: 0, count: mark.count)
        guard read(file, &begin, mark.count) != mark.count || begin != mark else {
            throw FilmError(.notSupported, "it is a playlist; name the films or sounds in it")
        }
        isGIF = begin.starts(with: "GIF8".utf8)
        (size, modified) = (Int(status.st_size), status.st_mtim.tv_sec)
    }

    /// Whether it is the same file: the path, the size and the time are equal.
    func isSame(as other: FilmFile) -> Bool {
        path == other.path && size == other.size && modified == other.modified
    }

    /// The URI of the file. Every byte that a URI may not contain is escaped.
    var uri: String {
        guard let text = g_filename_to_uri(path.map { CChar(bitPattern: $0) } + [0], nil, nil) else { return "" }
        defer { g_free(text) }
        return String(cString: text)
    }
}
