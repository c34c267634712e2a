import CGStreamer
import CStreaming
import FileFormats
import Glibc
import PluginAPI

/// The source of an item, and the elements that decode it.
struct MediaSource {
    /// gst-launch text from the source to raw audio; the source is named "source".
    let description: String
    /// The file's path for the source element; nil if it reads the URI.
    let path: [CChar]?
    /// The address of the item.
    let uri: String
    /// Where it is read: that address, or another place for the same bytes.
    let place: String
    /// The name of the item in messages.
    let name: String
    /// The elements were chosen from the first bytes; if they fail, GStreamer's own choice is tried.
    let isGuess: Bool
    /// The entries, if a local file is a playlist.
    let list: [PlaylistEntry]?
    /// How many bytes at the file's beginning are skipped: a tag that is too large to be read, or the part that
    /// `header` replaces.
    let skip: Int
    let header: [UInt8]
    /// The length in seconds of an MP3 without an index, from its size and first frames: GStreamer knows it only after
    /// a while.
    let estimatedDuration: Double?
    /// Which part of the file is sound; the padding of the encoder is skipped.
    let sound: MP3Frames.Sound?
    /// Whether its pictures are shown, too.
    let isFilm: Bool
    /// A live stream that is received first; nil: it is opened where it is.
    let live: LiveSource?
    /// What has arrived of it.
    var store: LiveStore?

    var traits: SourceTraits {
        guard live == nil else { return .live }
        guard path == nil else { return isFilm ? .film : .file }
        let traits: SourceTraits = isFilm ? .webFilm : .web
        return CacheAddress.isOne(place) ? traits.throughCache : traits
    }
    /// The name of the stream: the file name without the folders.
    var title: String { name.split(separator: "/").last.map(String.init) ?? name }

    /// The same item, of which nothing has arrived.
    var notReceived: MediaSource {
        var source = self
        source.store = nil
        return source
    }

    /// The reason why the item cannot be played, as far as it is known without a pipeline.
    struct Refusal: Error {
        let message: String
    }

    /// - Parameter place: where it is read; nil: at its address.
    init(uri: String, readAt place: String? = nil) throws(Refusal) {
        self.uri = uri
        let place = place ?? uri
        self.place = place
        isFilm = false
        live = nil
        guard let scheme = place.split(separator: ":", maxSplits: 1).first?.lowercased(), place.contains(":") else {
            throw Refusal(message: "'\(uri)' is not a URI: give file:///… or http://…")
        }
        switch scheme {
        case "file":
            guard let raw = g_filename_from_uri(place, nil, nil) else {
                throw Refusal(message: "'\(uri)' is not a file on this machine")
            }
            let bytes = Array(UnsafeBufferPointer(start: raw, count: strlen(raw) + 1))
            g_free(raw)
            path = bytes
            name = String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let content = try MediaSource.content(of: bytes, name: name)
            // The entries of a list are relative to its address.
            list = try MediaSource.list(in: content, uri: uri, name: name)
            let decoder = content.decoder
            (skip, header) = (content.skip, content.plain?.header ?? [])
            isGuess = decoder != nil
            estimatedDuration = content.frames.map { $0.secondsPerByte * Double(content.rest) }
            sound = content.frames?.sound
            description = "filesrc name=source ! " + (decoder ?? MediaSource.anyDecoder)
        case "http", "https":
            path = nil
            name = uri
            list = nil
            (skip, header) = (0, [])
            isGuess = false
            (estimatedDuration, sound) = (nil, nil)
            description =
                MediaSource.webSource(place) + " ! " + MediaSource.anyDecoder
                // It plays as soon as two of the five seconds in its buffer have arrived, and waits again below half a
                // second.
                + " use-buffering=true low-percent=8 high-percent=40"
        default: throw Refusal(message: "'\(uri)': only file, http and https can be played")
        }
    }

    /// Sets what the element "source" of ``description`` reads, and how.
    func apply(to origin: UnsafeMutablePointer<GstElement>) {
        guard live == nil else { return }
        guard !isFilm else { return shim_set_string(origin, "uri", place) }
        shim_set_string(origin, "location", path ?? Array(place.utf8CString))
        guard traits.isFile, let way = gst_element_get_static_pad(origin, "src") else { return }
        shim_limit_view(way, UInt(skip), header, UInt(header.count), MediaSource.pieceLimit)
        gst_object_unref(way)
    }

    /// Covers have a few megabytes, and sound is read in kilobytes; the header of a file may claim any size.
    private static let pieceLimit: UInt32 = 16 << 20

    /// The same item, with the elements that GStreamer finds.
    init(anyDecoderFor source: MediaSource) {
        (path, uri, place, name, isGuess) = (source.path, source.uri, source.place, source.name, false)
        (list, skip, header, estimatedDuration, sound, isFilm) = (nil, 0, [], nil, nil, false)
        live = nil
        description = "filesrc name=source ! \(MediaSource.anyDecoder)"
    }

    /// One attempt: a server that does not answer must be reported as an error.
    static func webSource(_ uri: String) -> String {
        let seconds = CacheAddress.isOne(uri) ? SourceTraits.cacheLimit : SourceTraits.webLimit
        return "souphttpsrc name=source timeout=\(seconds) retries=0 iradio-mode=true"
    }
    private static let anyDecoder = "decodebin name=decoder caps=audio/x-raw expose-all-streams=false"

    private static func content(of path: [CChar], name: String) throws(Refusal) -> FileContent {
        var status = stat()
        guard stat(path, &status) == 0 else {
            throw Refusal(message: "'\(name)' cannot be opened: \(String(cString: strerror(errno)))")
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw Refusal(message: "'\(name)' is a folder, not a sound file")
        default: throw Refusal(message: "'\(name)' is a device or a pipe, not a sound file")
        }
        guard status.st_size > 0 else { throw Refusal(message: "'\(name)' is empty") }
        // Another file may have that name by now; opening a pipe would wait for its writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw Refusal(message: "'\(name)' cannot be opened: \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Refusal(message: "'\(name)' is not a sound file any more")
        }
        let content: FileContent
        do throws(AppleFile.Refusal) {
            content = try FileContent(descriptor, path: path, size: Int(status.st_size))
        } catch {
            throw Refusal(message: "'\(name)' cannot be played: \(error.reason)")
        }
        guard !content.isAllTags else {
            throw Refusal(
                message: "'\(name)' cannot be played: its tags alone are more than \(Preamble.limit >> 20) MB")
        }
        return content
    }

    private static func list(
        in content: FileContent, uri: String, name: String
    ) throws(Refusal) -> [PlaylistEntry]? {
        guard Playlist.isNamedAsList(uri) || Playlist.looksLikeList(content.head) else { return nil }
        guard let entries = Playlist.entries(content.whole(Playlist.sizeLimit), base: uri) else { return nil }
        guard !entries.isEmpty else { throw Refusal(message: "'\(name)' is a playlist without any item to play") }
        return entries
    }
}
