import CGStreamer
import Glibc

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
    /// Seconds by an MP3's size and first frames, for files without an index: GStreamer knows only after a while.
    let estimatedDuration: Double?

    var isLocal: Bool { path != nil }

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
                throw Refusal(message: "'\(uri)' names no file on this machine")
            }
            let bytes = Array(UnsafeBufferPointer(start: raw, count: strlen(raw) + 1))
            g_free(raw)
            path = bytes
            name = String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
            let content = try MediaSource.content(of: bytes, name: name)
            let decoder = MediaSource.decoder(for: content)
            isGuess = decoder != nil
            estimatedDuration = content.frames.map { $0.secondsPerByte * Double(content.rest) }
            description = "filesrc name=source ! " + (decoder ?? MediaSource.anyDecoder)
        case "http", "https":
            path = nil
            name = uri
            isGuess = false
            estimatedDuration = nil
            // One try of 15 s: a stalled server is an error a person hears of, not a silence.
            description =
                "souphttpsrc name=source timeout=15 retries=0 iradio-mode=true ! "
                + "\(MediaSource.anyDecoder) use-buffering=true"
        default: throw Refusal(message: "'\(uri)': only file, http and https can be played")
        }
    }

    /// The same item, decoded by what GStreamer finds for it.
    init(anyDecoderFor source: MediaSource) {
        (path, uri, name, isGuess) = (source.path, source.uri, source.name, false)
        estimatedDuration = nil
        description = "filesrc name=source ! \(MediaSource.anyDecoder)"
    }

    private static let anyDecoder = "decodebin name=decoder caps=audio/x-raw expose-all-streams=false"

    /// The first bytes of a file, and those behind an ID3 tag where there is one.
    private struct Content {
        let head: [UInt8]
        let frames: MP3Frames?
        /// Bytes from there to the end.
        let rest: Int
    }

    private static func content(of path: [CChar], name: String) throws(Refusal) -> Content {
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
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Refusal(message: "'\(name)' cannot be opened: \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        let head = bytes(of: descriptor, at: 0)
        var start = 0
        if head.starts(with: "ID3".utf8), head.count > 9 {
            // The tag's size is written in four times seven bits; FLAC and AAC may hide behind it too.
            start = 10 + head[6...9].reduce(0) { $0 << 7 | Int($1 & 0x7f) }
        }
        let frames = MP3Frames(bytes(of: descriptor, at: start, count: 32_768))
        return Content(head: head, frames: frames, rest: Int(status.st_size) - start)
    }

    /// The decoder the first bytes ask for; nil where GStreamer shall look itself.
    ///
    /// A chain fixed beforehand starts sooner than one found by decodebin, above all for MP3.
    private static func decoder(for content: Content) -> String? {
        let head = content.head
        func has(_ text: String, at place: Int) -> Bool { head.dropFirst(place).starts(with: text.utf8) }
        if has("RIFF", at: 0), has("WAVEfmt ", at: 8), head.count > 21 {
            // PCM, floating point, extensible; other codecs in a WAV need a decoder of their own.
            return [[1, 0], [3, 0], [0xfe, 0xff]].contains(Array(head[20...21])) ? "wavparse" : nil
        }
        if has("fLaC", at: 0) { return "flacparse ! flacdec" }
        if has("OggS", at: 0) {
            if has("\u{1}vorbis", at: 28) { return "oggdemux ! vorbisdec" }
            if has("OpusHead", at: 28) { return "oggdemux ! opusdec" }
        }
        return content.frames == nil ? nil : "id3demux ! mpegaudioparse ! mpg123audiodec"
    }

    private static func bytes(of descriptor: Int32, at offset: Int, count: Int = 64) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) {
            $1 = max(0, pread(descriptor, $0.baseAddress, count, off_t(offset)))
        }
    }
}
