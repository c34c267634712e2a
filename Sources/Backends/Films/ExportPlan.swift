import PluginAPI

/// How a film is exported: which elements read it, and which elements write the new file.
struct ExportPlan {
    /// The options of the client.
    struct Wish {
        var preset = ExportPreset.medium
        var type = ExportFileType.mp4
        var isForNetwork = false
        /// Seconds; nil: from the start, to the end.
        var from: Double?
        var to: Double?
        /// Whether the index must be moved to the front, which needs a second file. WebM files have no such index.
        var movesIndex: Bool { isForNetwork && type != .webm }
    }

    /// gst-launch text that reads. Its application sinks are `video` and `audio`, for the tracks that exist.
    let reading: String
    /// gst-launch text that writes: the first elements of the tracks are `video` and `audio`, the muxer is `mux`.
    let writing: String
    let hasVideo: Bool
    let hasAudio: Bool
    /// The streams are copied without decoding.
    let isCopy: Bool
    /// The last element before the muxer in the branch of the pictures.
    var lastOfPictures: String { isCopy ? "video" : "pictures" }
    /// The size at which the new pictures are shown; nil: unchanged, or there are no pictures.
    let size: (width: Int, height: Int)?

    /// Returns the first element of a list that is installed; nil: none.
    typealias Find = ([String]) -> String?

    /// - Throws: `NotSupported` if the film lacks a track that the preset needs, `EncoderNotFound`.
    init(_ wish: Wish, _ facts: FilmFacts, find: Find) throws(FilmError) {
        guard facts.missing.isEmpty else { throw FilmError(.decoderNotFound, FilmError.isMissing(facts.missing)) }
        let isSoundOnly = wish.preset == .audio || wish.type == .m4a
        let video = isSoundOnly ? nil : facts.video
        let audio = facts.audio
        if isSoundOnly, audio == nil { throw FilmError(.notSupported, "it has no sound") }
        guard video != nil || audio != nil else { throw FilmError(.notSupported, "it has neither pictures nor sound") }
        if wish.preset != .passthrough, !isSoundOnly, video == nil {
            throw FilmError(.notSupported, "it has no pictures; use the preset audio")
        }
        (hasVideo, hasAudio, isCopy) = (video != nil, audio != nil, wish.preset == .passthrough)
        let muxer = try Self.muxer(wish, find)
        var read: [String] = []
        var write: [String] = []
        if isCopy {
            if let video {
                let parser = try Self.parser(video, wish.type)
                read.append("source. ! \(Self.mediaType(video)) ! appsink name=video \(Self.sink)")
                write.append("\(parser) name=video ! mux.")
            }
            if let audio {
                let parser = try Self.parser(audio, wish.type)
                read.append("source. ! \(Self.mediaType(audio)) ! appsink name=audio \(Self.sink)")
                write.append("\(parser) name=audio ! mux.")
            }
            size = nil
            // A copy needs the input of the decoders, so the decoders are left out.
            let formats = [video, audio].compactMap { $0.map(Self.mediaType) }.joined(separator: ";")
            reading = Self.source(formats) + read.joined(separator: "  ")
        } else {
            var formats: [String] = []
            var shown: (width: Int, height: Int)?
            if let video {
                formats.append("video/x-raw(ANY)")
                let (text, size) = try Self.encoding(video, wish, find)
                shown = size
                read.append("source. ! video/x-raw ! appsink name=video \(Self.sink)")
                write.append("\(Self.named("video", text)) ! queue name=pictures ! mux.")
            }
            if let audio {
                formats.append("audio/x-raw(ANY)")
                read.append("source. ! audio/x-raw ! appsink name=audio \(Self.sink)")
                write.append("\(Self.named("audio", try Self.encoding(audio, wish, find))) ! queue ! mux.")
            }
            size = shown
            reading = Self.source(formats.joined(separator: ";")) + read.joined(separator: "  ")
        }
        writing = write.joined(separator: "  ") + "  \(muxer) name=mux ! fdsink name=file sync=false async=false"
    }

    private static let sink = "sync=false max-buffers=16 enable-last-sample=false"

    /// Adds a name to the first element of a gst-launch text.
    private static func named(_ name: String, _ text: String) -> String {
        let element = text.prefix { $0 != " " }
        return "\(element) name=\(name)\(text.dropFirst(element.count))"
    }

    private static func source(_ formats: String) -> String {
        "uridecodebin name=source expose-all-streams=false caps=\"\(formats)\"  "
    }

    private static func muxer(_ wish: Wish, _ find: Find) throws(FilmError) -> String {
        // `latency` is in nanoseconds. Without it, the muxers take one buffer of each track at a time, and two threads
        // wait for each other at each buffer.
        let (name, options) =
            switch wish.type {
            case .mp4, .m4a: ("mp4mux", "latency=1000000000")
            case .mov: ("qtmux", "latency=1000000000")
            case .webm: ("webmmux", "")
            }
        guard find([name]) != nil else {
            throw FilmError(.encoderNotFound, "\(name) (gstreamer1.0-plugins-good) is not installed")
        }
        return "\(name) \(options)"
    }

    // MARK: Copies

    private static func mediaType(_ track: FilmFacts.Track) -> String {
        String(track.format.prefix { $0 != "," })
    }

    /// By codec: the element that converts a stream to the form that a muxer needs, and the file types that may contain
    /// the codec.
    private static let parsers: [String: (parser: String, types: [ExportFileType])] = [
        "h264": ("h264parse", [.mp4, .mov]), "h265": ("h265parse", [.mp4, .mov]),
        "mpeg4": ("mpeg4videoparse", [.mp4, .mov]), "aac": ("aacparse", [.mp4, .mov, .m4a]),
        "mp3": ("mpegaudioparse", [.mp4, .mov, .m4a]), "ac3": ("ac3parse", [.mp4, .mov]),
        "alac": ("identity", [.mp4, .mov, .m4a]), "opus": ("opusparse", [.mp4, .webm]),
        "vorbis": ("vorbisparse", [.webm]), "vp8": ("identity", [.webm]), "vp9": ("vp9parse", [.mp4, .webm]),
        "av1": ("av1parse", [.mp4, .webm]),
    ]

    private static func parser(_ track: FilmFacts.Track, _ type: ExportFileType) throws(FilmError) -> String {
        guard let known = parsers[track.codec], known.types.contains(type) else {
            throw FilmError(
                .notSupported, "a file of type \(type.rawValue) cannot have \(track.codec); use another preset")
        }
        return known.parser
    }

    // MARK: Pictures

    private static func encoding(
        _ track: FilmFacts.Track, _ wish: Wish, _ find: Find
    ) throws(FilmError) -> (String, (width: Int, height: Int)) {
        let stored = PictureSize(width: track.width, height: track.height, shape: track.pixelShape)
        let isTurned = PictureSize.isTurned(Int32(track.direction))
        var box = wish.preset.box ?? (0, 0)
        // For a film in portrait, width and height of the box are exchanged.
        let natural = stored.fitting((0, 0), even: false)
        if natural.height > natural.width { box = (box.height, box.width) }
        let size = stored.fitting(box, even: true)
        let rate = wish.preset.largestRate
        var elements: [String] = []
        if track.isInterlaced { elements.append("deinterlace") }
        elements += [
            "videorate drop-only=true max-rate=\(rate)",
            // The default method makes edges rough. This takes a third more bytes and looks worse.
            "videoconvertscale method=catrom",
            "capsfilter name=shape caps=\"video/x-raw,format=I420,width=\(size.width),height=\(size.height),"
                + "pixel-aspect-ratio=1/1\"",
        ]
        if track.direction != 0 { elements.append("videoflip video-direction=\(track.direction)") }
        elements += ["queue max-size-buffers=8 max-size-bytes=0 max-size-time=0", try encoder(wish, track, size, find)]
        let shown = isTurned ? (width: size.height, height: size.width) : size
        return (elements.joined(separator: " ! "), shown)
    }

    private static func encoder(
        _ wish: Wish, _ track: FilmFacts.Track, _ size: (width: Int, height: Int), _ find: Find
    ) throws(FilmError) -> String {
        let preset = wish.preset
        if wish.type == .webm {
            guard find(["vp8enc"]) != nil else {
                throw FilmError(.encoderNotFound, "vp8enc (gstreamer1.0-plugins-good) is not installed")
            }
            let bitrate = preset.largestBitrate ?? bits(size, preset) / 1000
            return "vp8enc deadline=1 cpu-used=4 end-usage=cq cq-level=\(preset.quality - 8)"
                + " target-bitrate=\(bitrate * 1000) keyframe-max-dist=250 threads=4"
        }
        switch find(["x264enc", "openh264enc"]) {
        case "x264enc":
            let limit = preset.largestBitrate.map { "bitrate=\($0) vbv-buf-capacity=2000" } ?? "vbv-buf-capacity=0"
            return
                "x264enc pass=qual quantizer=\(preset.quality) \(limit) speed-preset=fast ! video/x-h264,profile=high"
                + " ! h264parse"
        case "openh264enc":
            return "openh264enc bitrate=\(min(preset.largestBitrate.map { $0 * 1000 } ?? .max, bits(size, preset)))"
                + " gop-size=250 ! h264parse"
        default:
            throw FilmError(
                .encoderNotFound,
                "x264enc (gstreamer1.0-plugins-ugly) or openh264enc (gstreamer1.0-plugins-bad) is missing")
        }
    }

    /// The usual bitrate of such pictures, in bit/s: for encoders that need a bitrate, and for estimates.
    static func bits(_ size: (width: Int, height: Int), _ preset: ExportPreset) -> Int {
        let pixels = Double(size.width * size.height)
        // A step of 6 halves the bitrate.
        var quality = 1.0
        for _ in 0..<max(0, preset.quality - 21) { quality *= 0.891 }
        return Int(pixels * 30 * 0.09 * quality)
    }

    // MARK: Sound

    private static func encoding(_ track: FilmFacts.Track, _ wish: Wish, _ find: Find) throws(FilmError) -> String {
        let channels = max(1, min(2, track.channels))
        let bitrate = channels == 1 ? wish.preset.audioBitrate / 2 : wish.preset.audioBitrate
        if wish.type == .webm {
            guard find(["opusenc"]) != nil else {
                throw FilmError(.encoderNotFound, "opusenc (gstreamer1.0-plugins-base) is not installed")
            }
            return
                "audioconvert ! audioresample ! audio/x-raw,rate=48000,channels=\(channels) ! opusenc bitrate=\(bitrate)"
        }
        guard let encoder = find(["fdkaacenc", "avenc_aac", "voaacenc"]) else {
            throw FilmError(
                .encoderNotFound,
                "avenc_aac (gstreamer1.0-libav) or voaacenc (gstreamer1.0-plugins-bad) is not installed")
        }
        let rate = [32_000, 44_100, 48_000].contains(track.sampleRate) ? track.sampleRate : 48_000
        return "audioconvert ! audioresample ! audio/x-raw,rate=\(rate),channels=\(channels)"
            + " ! \(encoder) bitrate=\(bitrate) ! aacparse"
    }

    /// The presets that are possible for this film with the installed elements.
    static func presets(for facts: FilmFacts, find: Find) -> [ExportPreset] {
        ExportPreset.allCases.filter { preset in
            (try? ExportPlan(Wish(preset: preset, type: preset == .audio ? .m4a : .mp4), facts, find: find)) != nil
        }
    }
}
