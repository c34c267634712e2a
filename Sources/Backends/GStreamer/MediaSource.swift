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
            let decoder = try MediaSource.decoder(for: bytes, name: name)
            isGuess = decoder != nil
            description = "filesrc name=source ! " + (decoder ?? MediaSource.anyDecoder)
        case "http", "https":
            path = nil
            name = uri
            isGuess = false
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
        description = "filesrc name=source ! \(MediaSource.anyDecoder)"
    }

    private static let anyDecoder = "decodebin name=decoder caps=audio/x-raw expose-all-streams=false"

    /// The decoder the first bytes ask for; nil where GStreamer shall look itself.
    ///
    /// A chain fixed beforehand starts sooner than one found by decodebin, above all for MP3 (docs: performance).
    private static func decoder(for path: [CChar], name: String) throws(Refusal) -> String? {
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
        return decoder(for: bytes(of: descriptor, at: 0)) { bytes(of: descriptor, at: $0) }
    }

    private static func decoder(for head: [UInt8], reading: (Int) -> [UInt8]) -> String? {
        func has(_ text: String, at place: Int) -> Bool { head.dropFirst(place).starts(with: text.utf8) }
        let mp3 = "id3demux ! mpegaudioparse ! mpg123audiodec"
        if has("RIFF", at: 0), has("WAVEfmt ", at: 8), head.count > 21 {
            // PCM, floating point, extensible; other codecs in a WAV need a decoder of their own.
            return [[1, 0], [3, 0], [0xfe, 0xff]].contains(Array(head[20...21])) ? "wavparse" : nil
        }
        if has("fLaC", at: 0) { return "flacparse ! flacdec" }
        if has("OggS", at: 0) {
            if has("\u{1}vorbis", at: 28) { return "oggdemux ! vorbisdec" }
            if has("OpusHead", at: 28) { return "oggdemux ! opusdec" }
        }
        if isMP3Frame(head) { return mp3 }
        if has("ID3", at: 0), head.count > 9 {
            // The tag's size is written in four times seven bits; FLAC and AAC may hide behind it too.
            let size = head[6...9].reduce(0) { $0 << 7 | Int($1 & 0x7f) }
            return isMP3Frame(reading(10 + size)) ? mp3 : nil
        }
        return nil
    }

    /// Sync, MPEG 1, 2 or 2.5, layer 3, a bit rate and a sample rate that exist.
    private static func isMP3Frame(_ bytes: [UInt8]) -> Bool {
        bytes.count > 3 && bytes[0] == 0xff && bytes[1] & 0xe6 == 0xe2 && bytes[1] & 0x18 != 0x08
            && bytes[2] & 0xf0 != 0xf0 && bytes[2] & 0xf0 != 0 && bytes[2] & 0x0c != 0x0c
    }

    private static func bytes(of descriptor: Int32, at offset: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 64) { $1 = max(0, pread(descriptor, $0.baseAddress, 64, off_t(offset))) }
    }
}
