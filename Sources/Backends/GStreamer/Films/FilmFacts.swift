import CFilms
import FileFormats
import GStreamerBase
import Glibc
import PluginAPI
import Workers

/// The properties of a file, as the file states them.
struct FilmFacts {
    struct Track {
        enum Kind: String {
            case video, audio, subtitle
        }

        let kind: Kind
        /// GStreamer's name of the format, such as `video/x-h264`.
        let format: String
        /// A short name, such as `h264`, and a name for people.
        let codec: String
        let description: String
        var language = ""
        var bitrate = 0
        var width = 0
        var height = 0
        var pixelShape = (1, 1)
        /// Pictures per second, as a fraction; 0/1: variable or unknown.
        var rate = (0, 1)
        var isInterlaced = false
        /// The value of the orientation tag, such as `rotate-90`; empty: none.
        var orientation = ""
        var channels = 0
        var sampleRate = 0
        var hasTransparency = false
        /// The bits of each colour; 0: unknown.
        var bits = 0
        /// A still picture, such as a cover.
        var isStill = false
        /// Players show another track with pictures.
        var isHidden = false
        /// The file names this track, but GStreamer does not read it.
        var isUnread = false

        /// Rotation in degrees clockwise.
        var rotation: Int {
            switch orientation {
            case "rotate-90", "flip-rotate-90": 90
            case "rotate-180", "flip-rotate-180": 180
            case "rotate-270", "flip-rotate-270": 270
            default: 0
            }
        }
        /// videoflip's `video-direction`.
        var direction: Int {
            switch orientation {
            case "rotate-90": 1
            case "rotate-180": 2
            case "rotate-270": 3
            case "flip-rotate-0": 4
            case "flip-rotate-180": 5
            case "flip-rotate-270": 6
            case "flip-rotate-90": 7
            default: 0
            }
        }
    }

    let file: FilmFile
    /// Seconds; 0 if unknown.
    var duration: Double
    let isSeekable: Bool
    let isLive: Bool
    let container: String
    let mimeType: String
    let tracks: [Track]
    /// In the order of their times.
    let chapters: [MediaChapter]
    /// The number of programs of a transport stream of which GStreamer reads nothing.
    let furtherPrograms: Int
    /// The missing plugins, as GStreamer describes them.
    let missing: [String]
    /// Owned by ``Tags``.
    let tags: Tags

    final class Tags {
        let list: UnsafeMutablePointer<GstTagList>
        init(owning list: UnsafeMutablePointer<GstTagList>) { self.list = list }
        deinit { gst_tag_list_unref(list) }
    }

    var video: Track? {
        tracks.first { $0.kind == .video && !$0.isStill && !$0.isUnread && !$0.isHidden }
    }
    var audio: Track? { sounds.first }
    var sounds: [Track] { tracks.filter { $0.kind == .audio && !$0.isUnread } }
    /// Whether it is a Matroska or WebM file.
    var isMatroska: Bool { mimeType.hasSuffix("/x-matroska") || mimeType.hasSuffix("/webm") }
    /// Whether the length is known only after reading the whole file: the file states none, as a recording of a browser, or
    /// a fragmented film is damaged.
    var isLengthUnknown: Bool { duration == 0 && !isLive && (video != nil || audio != nil) }
    var isPlayable: Bool {
        missing.isEmpty && (video != nil || audio != nil) && lost(.video) == nil && lost(.audio) == nil
    }

    /// Reads the start of the file, and decodes a little (`GstDiscoverer`).
    init(_ file: FilmFile) throws(FilmError) {
        _ = FilmRuntime.ready
        var error: UnsafeMutablePointer<GError>?
        guard let discoverer = gst_discoverer_new(8_000_000_000, &error) else {
            throw FilmError(.decodeFailed, error.map { String(cString: $0.pointee.message) } ?? "no discoverer")
        }
        defer { g_object_unref(discoverer) }
        let index = MovieIndex(file.path)
        let length = index.flatMap { $0.hasShortTrack ? $0.length : nil }
        // With this length, the demuxer would skip the short track.
        films_prepare_discoverer(discoverer, guint64(length?.place ?? 0), guint(length?.size ?? 0))
        let found = gst_discoverer_discover_uri(discoverer, file.uri, &error)
        defer { if let error { g_error_free(error) } }
        guard let info = found else {
            throw FilmError(
                .formatNotSupported, error.map { String(cString: $0.pointee.message) } ?? "it cannot be read")
        }
        defer { g_object_unref(UnsafeMutableRawPointer(info)) }
        var missing: [String] = []
        switch gst_discoverer_info_get_result(info) {
        case GST_DISCOVERER_OK: break
        case GST_DISCOVERER_MISSING_PLUGINS: missing = Self.missing(info)
        case GST_DISCOVERER_TIMEOUT: throw FilmError(.decodeFailed, "it took longer than 8 s to read")
        default:
            throw Self.unreadable(file) ?? FilmError(Fault(error), missing: nil)
        }
        // No plugin decrypts films.
        if missing.contains(where: { $0.includes("x-cenc") }) { throw FilmError.lacking(missing) }
        let measured = gst_discoverer_info_get_duration(info)
        if index?.isFragmented == true {
            // GStreamer 1.22 finds the length of the last fragment only, or none.
            duration = FragmentTimes(file.path)?.length ?? 0
        } else if let header = MatroskaHeader(file.path), !header.statesLength {
            // GStreamer would estimate it from the bitrate of the first bytes.
            duration = 0
        } else if length != nil, let stated = index?.seconds {
            duration = stated
        } else {
            duration = measured == .max ? 0 : Double(measured) / 1e9
        }
        isSeekable = gst_discoverer_info_get_seekable(info) != 0
        isLive = gst_discoverer_info_get_live(info) != 0
        self.file = file
        self.missing = missing
        (tracks, furtherPrograms) = Self.withUnread(Self.tracks(info, index), read: Self.streamIDs(info), file)
        // GStreamer reads no chapters of MP4 files.
        let listed = gst_discoverer_info_get_toc(info).map { Chapters.read($0) } ?? []
        chapters = listed.isEmpty && index != nil ? MovieIndex.chapters(file.path) : listed
        guard let list = gst_tag_list_new_empty() else { throw FilmError(.decodeFailed, "no memory") }
        tags = Tags(owning: list)
        var format = ""
        var name = ""
        // The first list that has a tag decides: the title of the film comes before the title of one of its tracks.
        if let top = gst_discoverer_info_get_stream_info(info) {
            if let own = films_container_tags(top) { gst_tag_list_insert(list, own, GST_TAG_MERGE_KEEP) }
            if let own = gst_discoverer_stream_info_get_tags(top) { gst_tag_list_insert(list, own, GST_TAG_MERGE_KEEP) }
            (format, name) = Self.format(top)
            g_object_unref(UnsafeMutableRawPointer(top))
        }
        Self.each(gst_discoverer_info_get_stream_list(info)) { stream in
            if let more = films_container_tags(stream) { gst_tag_list_insert(list, more, GST_TAG_MERGE_KEEP) }
            if let more = gst_discoverer_stream_info_get_tags(stream) {
                gst_tag_list_insert(list, more, GST_TAG_MERGE_KEEP)
            }
        }
        container = name
        mimeType = Self.mimeType(format, hasVideo: tracks.contains { $0.kind == .video && !$0.isStill })
        correctLength()
        addSoundTags()
    }

    private static func missing(_ info: OpaquePointer) -> [String] {
        guard var detail = gst_discoverer_info_get_missing_elements_installer_details(info) else { return ["a plugin"] }
        var names: [String] = []
        while let text = detail.pointee {
            // The format: gstreamer|1.0|program|description|required plugin
            let parts = String(cString: text).split(separator: "|", omittingEmptySubsequences: false)
            if parts.count > 3 { names.append(String(parts[3])) }
            detail += 1
        }
        return names
    }

    static func each(_ list: UnsafeMutablePointer<GList>?, _ body: (OpaquePointer) -> Void) {
        var link = list
        while let item = link {
            if let data = item.pointee.data { body(OpaquePointer(data)) }
            link = item.pointee.next
        }
        if let list { gst_discoverer_stream_info_list_free(list) }
    }

    /// GStreamer's name of the format of a stream, and a name for people.
    private static func format(_ stream: OpaquePointer) -> (String, String) {
        guard let caps = gst_discoverer_stream_info_get_caps(stream) else { return ("", "") }
        defer { gst_caps_unref(caps) }
        guard gst_caps_get_size(caps) > 0, let name = gst_structure_get_name(gst_caps_get_structure(caps, 0)) else {
            return ("", "")
        }
        var text = ""
        if gst_caps_is_fixed(caps) != 0, let description = gst_pb_utils_get_codec_description(caps) {
            text = String(cString: description)
            g_free(description)
        }
        var format = String(cString: name)
        // GStreamer has no words for some formats of libav, such as `image/gst-libav-gif`.
        if text == format, format.includes("gst-") {
            text = format.split(separator: "-").last?.uppercased() ?? text
        }
        if format == "video/quicktime",
            let variant = gst_structure_get_string(gst_caps_get_structure(caps, 0), "variant")
        {
            format += "," + String(cString: variant)
        }
        var version: Int32 = 0
        if gst_structure_get_int(gst_caps_get_structure(caps, 0), "mpegversion", &version) != 0 {
            var layer: Int32 = 0
            gst_structure_get_int(gst_caps_get_structure(caps, 0), "layer", &layer)
            format += ",\(version)" + (layer > 0 ? ",\(layer)" : "")
        }
        return (format, text)
    }

    private static func tracks(_ info: OpaquePointer, _ index: MovieIndex?) -> [Track] {
        var tracks: [Track] = []
        each(gst_discoverer_info_get_stream_list(info)) { stream in
            guard let nick = gst_discoverer_stream_info_get_stream_type_nick(stream).map({ String(cString: $0) }),
                let kind = nick == "subtitles" ? .subtitle : Track.Kind(rawValue: nick)
            else { return }
            // The file of a single track, such as a WAV file, is listed beside its track.
            if let inner = gst_discoverer_stream_info_get_next(stream) {
                g_object_unref(UnsafeMutableRawPointer(inner))
                return
            }
            let (format, description) = format(stream)
            var track = Track(kind: kind, format: format, codec: codec(format), description: description)
            func text(_ pointer: UnsafePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }
            switch kind {
            case .video:
                track.width = Int(gst_discoverer_video_info_get_width(stream))
                track.height = Int(gst_discoverer_video_info_get_height(stream))
                track.bitrate = Int(gst_discoverer_video_info_get_bitrate(stream))
                track.isInterlaced = gst_discoverer_video_info_is_interlaced(stream) != 0
                // The id of a stream ends with the number of its track.
                let end = text(gst_discoverer_stream_info_get_stream_id(stream)).split(separator: "/").last
                let id = end.flatMap { Int($0) }
                track.isHidden = index?.hidden.contains { $0.id == id } ?? false
                track.isStill = gst_discoverer_video_info_is_image(stream) != 0
                track.pixelShape = (
                    max(1, Int(gst_discoverer_video_info_get_par_num(stream))),
                    max(1, Int(gst_discoverer_video_info_get_par_denom(stream)))
                )
                let rate = (
                    Int(gst_discoverer_video_info_get_framerate_num(stream)),
                    Int(gst_discoverer_video_info_get_framerate_denom(stream))
                )
                if rate.0 > 0, rate.1 > 0 { track.rate = rate }
                if let caps = gst_discoverer_stream_info_get_caps(stream) {
                    track.hasTransparency = films_has_transparency(caps) != 0
                    track.bits = Int(films_bits(caps))
                    gst_caps_unref(caps)
                }
                if let tags = gst_discoverer_stream_info_get_tags(stream) {
                    var found: UnsafeMutablePointer<CChar>?
                    if gst_tag_list_get_string(tags, "image-orientation", &found) != 0, let found {
                        let orientation = String(cString: found)
                        track.orientation = orientation == "rotate-0" ? "" : orientation
                        g_free(found)
                    }
                }
            case .audio:
                track.channels = Int(gst_discoverer_audio_info_get_channels(stream))
                track.sampleRate = Int(gst_discoverer_audio_info_get_sample_rate(stream))
                track.bitrate = Int(gst_discoverer_audio_info_get_bitrate(stream))
                track.language = text(gst_discoverer_audio_info_get_language(stream))
            case .subtitle: track.language = text(gst_discoverer_subtitle_info_get_language(stream))
            }
            tracks.append(track)
        }
        return tracks
    }

    private static let codecs = [
        "video/mpeg,1": "mpeg1", "video/mpeg,2": "mpeg2", "video/mpeg,4": "mpeg4", "audio/mpeg,1,3": "mp3",
        "audio/mpeg,1,2": "mp2", "audio/mpeg,1": "mp3", "audio/mpeg,2": "aac", "audio/mpeg,4": "aac",
        "audio/x-ac3": "ac3", "audio/x-eac3": "eac3", "image/jpeg": "jpeg", "image/png": "png",
        "image/gst-libav-gif": "gif",
    ]

    private static func codec(_ format: String) -> String {
        if let known = codecs[format] { return known }
        let name = format.split(separator: "/").last.map(String.init) ?? format
        return String((name.hasPrefix("x-") ? name.dropFirst(2) : name[...]).prefix { $0 != "," })
    }

    private static func mimeType(_ format: String, hasVideo: Bool) -> String {
        switch format {
        case "video/quicktime,apple", "video/quicktime": "video/quicktime"
        case _ where format.hasPrefix("video/quicktime"): hasVideo ? "video/mp4" : "audio/mp4"
        case "audio/x-m4a": "audio/mp4"
        case _ where format.hasPrefix("video/mpegts"): "video/mp2t"
        case "audio/webm", "video/webm": hasVideo ? "video/webm" : "audio/webm"
        case "audio/x-matroska", "video/x-matroska": hasVideo ? "video/x-matroska" : "audio/x-matroska"
        case "application/ogg", "video/ogg", "audio/ogg": hasVideo ? "video/ogg" : "audio/ogg"
        case _ where format.hasPrefix("audio/mpeg,1"): "audio/mpeg"
        case _ where format.hasPrefix("audio/mpeg"): "audio/aac"
        case "audio/x-flac": "audio/flac"
        case "application/x-gst-av-nut": "video/x-nut"
        default: String(format.prefix { $0 != "," })
        }
    }

    /// Computes the duration from the times of all packets, because some files state none, or a wrong one. Reads the
    /// whole file.
    /// - Parameter onProgress: called from time to time while later packets are found. A sparse file may have a hole of
    ///   terabytes.
    mutating func measure(_ onProgress: () -> Void) throws(FilmError) {
        guard let tally = films_tally_new() else { return }
        defer { films_tally_free(tally) }
        let pipeline = try FilmPipeline("filesrc name=source ! parsebin name=parser")
        shim_set_string(try pipeline.child("source"), "location", file.path.map { CChar(bitPattern: $0) } + [0])
        films_tally_all(tally, try pipeline.child("parser"))
        pipeline.set(GST_STATE_PLAYING)
        var last = films_tally_end(tally)
        while true {
            if case .ended = try pipeline.next(within: 0.5) { break }
            let end = films_tally_end(tally)
            if end != last { onProgress() }
            last = end
        }
        // The times of some formats do not start at 0.
        let begin = mimeType == "video/mp2t" || mimeType == "video/mpeg" ? films_tally_begin(tally) : 0
        duration = Double(max(films_tally_end(tally), begin == .max ? 0 : begin) - (begin == .max ? 0 : begin)) / 1e9
    }

    /// The number of tracks, and of missing elements, that are listed. A damaged file may state thousands.
    private static let mostListed = 256
    private static let mostChapters = 1_000
    private static let longestTitle = 500

    /// The message for the plugin; the names are those on D-Bus.
    var message: WorkerMessage {
        var fields: [String: WorkerMessage.Field] = [
            "duration": .number(duration), "seekable": .flag(isSeekable), "live": .flag(isLive),
            "container": .text(container), "mime-type": .text(mimeType), "size": .whole(Int64(file.size)),
            "modified": .whole(Int64(file.modified)), "playable": .flag(isPlayable),
            "complete": .flag(!CutFile.isCut(file.path)),
            "bitrate": .whole(duration > 0 ? Int64(Double(file.size) * 8 / duration) : 0),
            "missing": .list(
                missing.prefix(Self.mostListed).map { WorkerMessage(FilmRuntime.advice($0)) }),
        ]
        fields["tags"] = .list([WorkerMessage("tags", tags.fields)])
        fields["tracks"] = .list(tracks.prefix(Self.mostListed).map(\.message))
        fields["chapters"] = .list(
            chapters.prefix(Self.mostChapters).map {
                WorkerMessage(String($0.title.prefix(Self.longestTitle)), ["start": .number($0.start)])
            })
        return WorkerMessage("done", fields)
    }
}

extension FilmFacts.Track {
    fileprivate var message: WorkerMessage {
        var fields: [String: WorkerMessage.Field] = [
            "type": .text(kind.rawValue), "codec": .text(codec), "description": .text(description),
            "bitrate": .whole(Int64(bitrate)),
        ]
        if !language.isEmpty { fields["language"] = .text(language) }
        switch kind {
        case .video:
            fields["width"] = .whole(Int64(width))
            fields["height"] = .whole(Int64(height))
            fields["rate-number"] = .whole(Int64(rate.0))
            fields["rate-divisor"] = .whole(Int64(rate.1))
            fields["rotation"] = .whole(Int64(rotation))
            fields["still"] = .flag(isStill)
        case .audio:
            fields["channels"] = .whole(Int64(channels))
            fields["sample-rate"] = .whole(Int64(sampleRate))
        case .subtitle: break
        }
        return WorkerMessage("track", fields)
    }
}
