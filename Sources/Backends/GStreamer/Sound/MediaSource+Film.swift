import CGStreamer
import FileFormats
import Glibc
import PluginAPI

extension MediaSource {
    /// A film, or a sound, whose pictures are shown if it has any.
    /// - Parameter place: where it is read; nil: at its address.
    init(filmAt uri: String, readAt place: String? = nil) throws(Refusal) {
        self.uri = uri
        let place = place ?? uri
        self.place = place
        live = LiveSource(place)
        (isGuess, skip, header, estimatedDuration, sound, isFilm) = (false, 0, [], nil, nil, true)
        switch place.contains(":") ? place.split(separator: ":", maxSplits: 1).first?.lowercased() : nil {
        case "file":
            guard let raw = g_filename_from_uri(place, nil, nil) else {
                throw Refusal(message: "'\(uri)' is not a file on this machine")
            }
            let bytes = Array(UnsafeBufferPointer(start: raw, count: strlen(raw) + 1))
            g_free(raw)
            path = bytes
            name = String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            try MediaSource.checkFilm(bytes, name)
            list = try MediaSource.list(at: bytes, place, name)
            description = MediaSource.film()
        case "http", "https":
            (path, name, list) = (nil, uri, nil)
            // The same amounts as for sound: it plays when two of five seconds have arrived (film.c).
            description = MediaSource.film(with: " use-buffering=true buffer-duration=5000000000")
        case _? where live != nil:
            (path, name, list) = (nil, uri, nil)
            description = MediaSource.liveFilm
        case nil: throw Refusal(message: "'\(uri)' is not a URI: give file:///… or http://…")
        default:
            throw Refusal(message: "'\(uri)': only file, http, https, rtmp, rtmps, srt, rtsp and rtsps can be watched")
        }
    }

    /// The live stream of a list of segments.
    init(liveFilmAt uri: String, segment: Double) {
        (self.uri, place, name, path) = (uri, uri, uri, nil)
        (isGuess, list, skip, header, estimatedDuration, sound, isFilm) = (false, nil, 0, [], nil, nil, true)
        live = LiveSource(uri, .hls(segment: segment))
        description = MediaSource.liveFilm
    }

    /// What has arrived waits before the decoders, where it can be left out.
    private static let liveFilm =
        "queue name=pictures max-size-buffers=3 max-size-bytes=0 max-size-time=0  bin name=source  "
        + "queue name=sound max-size-buffers=0 max-size-bytes=0 max-size-time=200000000"

    /// The queues let sound and pictures wait for each other. Their sizes: pictures may have many megabytes each.
    private static func film(with properties: String = "") -> String {
        "queue name=pictures max-size-buffers=3 max-size-bytes=0 max-size-time=0  "
            + "uridecodebin name=source\(properties)  "
            + "queue name=sound max-size-buffers=0 max-size-bytes=0 max-size-time=1000000000"
    }

    /// The films of a playlist; nil: it is none, such as a list of HLS.
    private static func list(at path: [CChar], _ uri: String, _ name: String) throws(Refusal) -> [PlaylistEntry]? {
        guard Playlist.isNamedAsList(uri) else { return nil }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        let bytes = FileContent.bytes(of: descriptor, at: 0, count: Playlist.sizeLimit)
        guard let entries = Playlist.entries(bytes, base: uri) else { return nil }
        guard !entries.isEmpty else { throw Refusal(message: "'\(name)' is a playlist without any item to play") }
        return entries
    }

    private static func checkFilm(_ path: [CChar], _ name: String) throws(Refusal) {
        var status = stat()
        guard stat(path, &status) == 0, access(path, R_OK) == 0 else {
            throw Refusal(message: "'\(name)' cannot be opened: \(String(cString: strerror(errno)))")
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw Refusal(message: "'\(name)' is a folder, not a film")
        default: throw Refusal(message: "'\(name)' is a device or a pipe, not a film")
        }
        guard status.st_size > 0 else { throw Refusal(message: "'\(name)' is empty") }
    }
}
