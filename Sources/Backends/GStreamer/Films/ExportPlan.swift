import FileFormats
import GStreamerBase
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

    /// gst-launch text that reads. Its application sinks are `video` and ``sounds``, for the tracks that exist.
    let reading: String
    /// gst-launch text that writes: the first elements of the tracks have the names of the sinks, the muxer is `mux`.
    let writing: String
    let hasVideo: Bool
    /// The names of the elements of the tracks with sound, `audio` and, in a copy, `audio1`, `audio2` …
    let sounds: [String]
    /// What the new file will not have, one phrase each for people, such as `the subtitles (German)`.
    let leftOut: [String]
    /// Seconds by which the encoder of the sound delays it. A file must state them, otherwise each export would move the
    /// sound against the pictures.
    let soundDelay: Double
    /// The streams are copied without decoding.
    let isCopy: Bool
    /// The last element before the muxer in the branch of the pictures.
    var lastOfPictures: String { isCopy ? "video" : "pictures" }
    /// The size at which the new pictures are shown; nil: unchanged, or there are no pictures.
    let size: (width: Int, height: Int)?

    private let wish: Wish

    /// The chapters of the new file.
    /// - Parameter from: where it begins in the film, in seconds.
    func chapters(_ facts: FilmFacts, from: Double) -> [MediaChapter] {
        let all = facts.chapters.within(from, wish.to ?? .infinity)
        return wish.type == .webm ? all : Array(all.prefix(MovieIndex.mostChapters))
    }

    /// Returns the first element of a list that is installed; nil: none.
    typealias Find = ([String]) -> String?

    /// - Throws: `NotSupported` if the film lacks a track that the preset needs, `EncoderNotFound`.
    init(_ wish: Wish, _ facts: FilmFacts, find: Find) throws(FilmError) {
        guard facts.missing.isEmpty else { throw FilmError.lacking(facts.missing) }
        let isSoundOnly = wish.preset == .audio || wish.type == .m4a
        // Without all of its sound or all of its pictures, the export would be another film.
        if let lost = facts.lost(.audio) ?? (isSoundOnly ? nil : facts.lost(.video)) { throw Self.unreadable(lost) }
        let video = isSoundOnly ? nil : facts.video
        let audio = facts.audio
        if isSoundOnly, audio == nil { throw FilmError(.notSupported, "it has no sound") }
        guard video != nil || audio != nil else { throw FilmError(.notSupported, "it has neither pictures nor sound") }
        if wish.preset != .passthrough, !isSoundOnly, video == nil {
            throw FilmError(.notSupported, "it has no pictures; use the preset audio")
        }
        (hasVideo, isCopy) = (video != nil, wish.preset == .passthrough)
        let muxer = try Self.muxer(wish, find)
        var read: [String] = []
        var write: [String] = []
        var left = Self.unused(facts, isSoundOnly: isSoundOnly)
        if isCopy {
            func copy(_ track: FilmFacts.Track, as name: String) throws(FilmError) {
                let (filter, chain) = try Self.copying(track, wish.type, facts, find)
                read.append("parser. ! \(filter) ! queue \(Self.deep) ! appsink name=\(name) \(Self.sink)")
                write.append("\(Self.named(name, chain)) ! mux.")
            }
            if let video { try copy(video, as: "video") }
            var names: [String] = []
            for track in facts.sounds {
                let name = names.isEmpty ? "audio" : "audio\(names.count)"
                do throws(FilmError) {
                    try copy(track, as: name)
                    names.append(name)
                } catch {
                    // Without its first sound, the copy would be another film.
                    if names.isEmpty { throw error }
                    left.append(Self.phrase(track, "a further sound"))
                }
            }
            sounds = names
            soundDelay = 0
            size = nil
            // Parsers also give times to formats without any, such as MP3.
            reading = "filesrc name=source ! parsebin name=parser  " + read.joined(separator: "  ")
        } else {
            var formats: [String] = []
            var shown: (width: Int, height: Int)?
            if let video {
                // The encoders here write 8 bits. The new file states the same colours, so players still show HDR.
                if video.bits > 8 { left.append("the fine colours of \(video.bits) bits (it has 8 bits)") }
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
            sounds = audio == nil ? [] : ["audio"]
            soundDelay = audio.map { Self.delay($0, wish, find) } ?? 0
            for track in facts.sounds.dropFirst() { left.append(Self.phrase(track, "a further sound")) }
            size = shown
            reading = Self.source(formats.joined(separator: ";")) + read.joined(separator: "  ")
        }
        let chapters = facts.chapters.within(wish.from ?? 0, wish.to ?? .infinity).count
        if wish.type != .webm, chapters > MovieIndex.mostChapters {
            left.append("the last \(chapters - MovieIndex.mostChapters) of \(chapters) chapters")
        }
        leftOut = left
        self.wish = wish
        writing = write.joined(separator: "  ") + "  \(muxer) name=mux ! fdsink name=file sync=false async=false"
    }

    private static let deep = "max-size-buffers=200 max-size-bytes=4194304 max-size-time=0"
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

    /// How a track of a codec is copied.
    private struct Copying {
        /// Its form between the reader and the writer.
        let filter: String
        /// The element that converts it to the form that a muxer needs.
        let parser: String
        /// The file types that may contain it.
        let types: [ExportFileType]
    }

    /// By codec.
    private static let copyings: [String: Copying] = [
        "h264": Copying(filter: "video/x-h264", parser: "h264parse", types: [.mp4, .mov]),
        "h265": Copying(filter: "video/x-h265", parser: "h265parse", types: [.mp4, .mov]),
        "mpeg4": Copying(filter: "video/mpeg,mpegversion=4", parser: "mpeg4videoparse", types: [.mp4, .mov]),
        "aac": Copying(filter: "audio/mpeg,mpegversion=4", parser: "aacparse", types: [.mp4, .mov, .m4a]),
        "mp3": Copying(
            filter: "audio/mpeg,mpegversion=1,layer=3", parser: "mpegaudioparse",
            types: [.mp4, .mov, .m4a]),
        "ac3": Copying(filter: "audio/x-ac3", parser: "ac3parse", types: [.mp4, .mov]),
        "alac": Copying(filter: "audio/x-alac", parser: "identity ! audio/x-alac", types: [.mp4, .mov, .m4a]),
        "opus": Copying(filter: "audio/x-opus", parser: "opusparse", types: [.mp4, .webm]),
        // The parser would wait for positions of an Ogg file, which the reader has turned into times.
        "vorbis": Copying(filter: "audio/x-vorbis", parser: "identity ! audio/x-vorbis", types: [.webm]),
        "vp8": Copying(filter: "video/x-vp8", parser: "identity ! video/x-vp8", types: [.webm]),
        // GStreamer 1.22 to 1.26 crash when they write VP9 into an MP4 file.
        "vp9": Copying(filter: "video/x-vp9", parser: "vp9parse", types: [.webm]),
        "av1": Copying(filter: "video/x-av1", parser: "av1parse", types: [.mp4, .webm]),
    ]

    /// The form in which the reader delivers a track that is copied, and the elements before the muxer.
    private static func copying(
        _ track: FilmFacts.Track, _ type: ExportFileType, _ facts: FilmFacts, _ find: Find
    ) throws(FilmError) -> (filter: String, chain: String) {
        guard let known = copyings[track.codec], known.types.contains(type) else {
            throw FilmError(
                .notSupported, "a file of type \(type.rawValue) cannot have \(track.codec); use another preset")
        }
        // These files do not state both times of a picture: that of decoding and that of showing. They differ if coded
        // pictures are not in the order in which they are shown.
        let kinds = ["video/x-msvideo": "an AVI", "video/x-nut": "a NUT"]
        if track.kind == .video, let kind = kinds[facts.mimeType] {
            throw FilmError(.notSupported, "the pictures of \(kind) file have no times to copy; use another preset")
        }
        var chain = known.parser
        switch track.codec {
        // In Matroska files, pictures have only the times at which they are shown. MP4 needs also those of decoding.
        case "h264" where facts.isMatroska: chain += " ! " + (try timestamper("h264timestamper", find))
        case "h265" where facts.isMatroska: chain += " ! " + (try timestamper("h265timestamper", find))
        default: break
        }
        return (known.filter, chain)
    }

    private static func timestamper(_ name: String, _ find: Find) throws(FilmError) -> String {
        guard let found = find([name]) else {
            throw FilmError(.encoderNotFound, "\(name) (gstreamer1.0-plugins-bad) is not installed")
        }
        return found
    }

    // MARK: What is left out

    /// The tracks that no preset can put into the new file.
    private static func unused(_ facts: FilmFacts, isSoundOnly: Bool) -> [String] {
        var left: [String] = []
        var isFirst = true
        for track in facts.tracks where track.isUnread {
            switch track.kind {
            case .audio: left.append(phrase(track, "a further sound"))
            case .video: if !isSoundOnly { left.append(phrase(track, "further pictures")) }
            case .subtitle: break
            }
        }
        if facts.furtherPrograms > 0 {
            left.append(facts.furtherPrograms == 1 ? "a further program" : "\(facts.furtherPrograms) further programs")
        }
        let pictures = facts.tracks.filter { $0.kind == .video && !$0.isStill && !$0.isUnread }
        // Nobody misses them if the user asked for the sound alone.
        for track in isSoundOnly ? [] : pictures {
            // The new file has the first pictures that players show.
            guard isFirst, !track.isHidden else {
                left.append(phrase(track, "further pictures"))
                continue
            }
            if track.hasTransparency { left.append("the transparency of the pictures") }
            isFirst = false
        }
        for track in facts.tracks where track.kind == .subtitle { left.append(phrase(track, "subtitles")) }
        return left
    }

    private static func phrase(_ track: FilmFacts.Track, _ what: String) -> String {
        let details = [track.language, track.kind == .subtitle ? "" : track.codec].filter { !$0.isEmpty && $0 != "und" }
        return details.isEmpty ? what : "\(what) (\(details.joined(separator: ", ")))"
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
        // Encoders need sides of at least 16 pixels. The scaler adds borders and does not distort the picture.
        let fitting = stored.fitting(box, even: true)
        let size = (width: max(16, fitting.width), height: max(16, fitting.height))
        var elements: [String] = []
        elements.append(track.isInterlaced ? "deinterlace" : "identity")
        elements += [
            // The default method makes edges rough. This takes a third more bytes and looks worse.
            "videoconvertscale name=scaler method=catrom",
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
            try require(.vp8, find)
            let bitrate = preset.largestBitrate ?? bits(size, preset) / 1000
            return "vp8enc deadline=1 cpu-used=4 end-usage=cq cq-level=\(preset.quality - 8)"
                + " target-bitrate=\(bitrate * 1000) keyframe-max-dist=250 threads=4"
        }
        switch find(Encoders.h264.elements) {
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
            try require(.opus, find)
            return
                "audioconvert ! audioresample ! audio/x-raw,rate=48000,channels=\(channels) ! opusenc bitrate=\(bitrate)"
        }
        guard let encoder = find(Encoders.aac.elements) else {
            throw FilmError(
                .encoderNotFound,
                "avenc_aac (gstreamer1.0-libav) or voaacenc (gstreamer1.0-plugins-bad) is not installed")
        }
        let rate = aacRate(track)
        return "audioconvert ! audioresample ! audio/x-raw,rate=\(rate),channels=\(channels)"
            + " ! \(encoder) bitrate=\(bitrate) ! aacparse"
    }

    /// - Throws: `EncoderNotFound` with the package to install.
    private static func require(_ encoders: Encoders, _ find: Find) throws(FilmError) {
        guard find(encoders.elements) == nil else { return }
        throw FilmError(.encoderNotFound, "\(encoders.names) (\(encoders.package)) is not installed")
    }

    private static func aacRate(_ track: FilmFacts.Track) -> Int {
        [32_000, 44_100, 48_000].contains(track.sampleRate) ? track.sampleRate : 48_000
    }

    private static func delay(_ track: FilmFacts.Track, _ wish: Wish, _ find: Find) -> Double {
        guard wish.type != .webm, let name = find(Encoders.aac.elements), let delay = Encoders.delay(ofAAC: name)
        else { return 0 }
        return Double(delay) / Double(aacRate(track))
    }

    /// The presets that are possible for this film with the installed elements.
    static func presets(for facts: FilmFacts, find: Find) -> [ExportPreset] {
        ExportPreset.allCases.filter { preset in
            (try? ExportPlan(Wish(preset: preset, type: preset == .audio ? .m4a : .mp4), facts, find: find)) != nil
        }
    }
}
