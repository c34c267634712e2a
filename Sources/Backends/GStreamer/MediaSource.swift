import CGStreamer
import FileFormats
import Glibc
import PluginAPI

/// Where an item comes from, and which elements make sound of it.
struct MediaSource {
    /// gst-launch text from the source to raw audio; the source is named "source".
    let description: String
    /// The file's path as the source wants it; nil for what is read by its URI.
    let path: [CChar]?
    let uri: String
    /// What a message calls it.
    let name: String
    /// The elements were chosen by us from the first bytes; GStreamer's own choice is worth a second try.
    let isGuess: Bool
    /// What a local file holds is a list of others.
    let list: [PlaylistEntry]?
    /// How many bytes at a file's beginning are left out: a tag that is too large to be looked at, or what `header` is
    /// read in the place of.
    let skip: Int
    let header: [UInt8]
    /// Seconds by an MP3's size and first frames, for files without an index: GStreamer knows only after a while.
    let estimatedDuration: Double?
    /// What of a file is sound and what its encoder's filling, which is left out.
    let sound: MP3Frames.Sound?

    var isLocal: Bool { path != nil }
    /// What the stream is called: the name without the folders.
    var title: String { name.split(separator: "/").last.map(String.init) ?? name }

    /// What can be said without opening a pipeline.
    struct Refusal: Error {
        let message: String
    }

    init(uri: String) throws(Refusal) {
        self.uri = uri
        guard let scheme = uri.split(separator: ":", maxSplits: 1).first?.lowercased(), uri.contains(":") else {
            throw Refusal(message: "'\(uri)' is not a URI: give file:///… or http://…")
        }
        switch scheme {
        case "file":
            guard let raw = g_filename_from_uri(uri, nil, nil) else {
                throw Refusal(message: "'\(uri)' is not a file on this machine")
            }
            let bytes = Array(UnsafeBufferPointer(start: raw, count: strlen(raw) + 1))
            g_free(raw)
            path = bytes
            name = String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let content = try MediaSource.content(of: bytes, name: name)
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
                MediaSource.webSource + " ! " + MediaSource.anyDecoder
                // Sounds once two of the five seconds are there that it holds, and waits again for less than half of one.
                + " use-buffering=true low-percent=8 high-percent=40"
        default: throw Refusal(message: "'\(uri)': only file, http and https can be played")
        }
    }

    /// Tells the element "source" of a pipeline made by ``description`` what to read, and how.
    func apply(to origin: UnsafeMutablePointer<GstElement>) {
        shim_set_string(origin, "location", path ?? Array(uri.utf8CString))
        guard isLocal, let way = gst_element_get_static_pad(origin, "src") else { return }
        shim_limit_view(way, UInt(skip), header, UInt(header.count), MediaSource.pieceLimit)
        gst_object_unref(way)
    }

    /// Covers are a few megabytes, sound is read by the kilobyte; a header may claim anything.
    private static let pieceLimit: UInt32 = 16 << 20

    /// The same item, decoded by what GStreamer finds for it.
    init(anyDecoderFor source: MediaSource) {
        (path, uri, name, isGuess) = (source.path, source.uri, source.name, false)
        (list, skip, header, estimatedDuration, sound) = (nil, 0, [], nil, nil)
        description = "filesrc name=source ! \(MediaSource.anyDecoder)"
    }

    /// One try of 15 s: a stalled server is an error a person hears of, not a silence.
    static let webSource = "souphttpsrc name=source timeout=15 retries=0 iradio-mode=true"
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
        // Another one may have the name by now, and a pipe would keep us waiting for who writes to it.
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
