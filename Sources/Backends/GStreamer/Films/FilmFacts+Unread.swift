import CFilms
import FileFormats
import PluginAPI

/// The tracks that a file names and GStreamer does not read. It does not say that it skips them.
extension FilmFacts {
    /// The tracks of which GStreamer reads none, although the file names at least one: for example, FFmpeg names AAC sound in
    /// an M2TS file in a way that GStreamer does not know. Nil: at least one is read, or the file has none.
    func lost(_ kind: Track.Kind) -> Track? {
        let all = tracks.filter { $0.kind == kind && !$0.isStill }
        return all.contains { !$0.isUnread } ? nil : all.first
    }

    /// Why nothing of the file can be read, if it is a part of a film, or if it names tracks that GStreamer does not know;
    /// nil: there is another reason.
    static func unreadable(_ file: FilmFile) -> FilmError? {
        switch MoviePart(file.path) {
        case .description:
            return FilmError(
                .notSupported, "it only describes the tracks of a film, whose sound and pictures are in other files")
        case .segment:
            return FilmError(
                .notSupported, "it is a part of a film, and cannot be read without the file that describes its tracks")
        case nil: break
        }
        let tracks = TransportStream(file.path)?.tracks.compactMap(Track.init(unread:)) ?? []
        guard let first = tracks.first(where: { $0.kind == .video }) ?? tracks.first else { return nil }
        return ExportPlan.unreadable(first)
    }

    /// Adds the tracks that are not read.
    /// - Parameter read: the ids of the streams that GStreamer has found.
    /// - Returns: also the number of programs of which it reads nothing.
    static func withUnread(
        _ tracks: [Track], read: [String], _ file: FilmFile
    ) -> (tracks: [Track], furtherPrograms: Int) {
        guard let stream = TransportStream(file.path) else { return (tracks, 0) }
        // The id of a stream ends with the number of its packets.
        let found = Set(read.compactMap { $0.split(separator: "/").last.flatMap { Int($0, radix: 16) } })
        let programs = Set(stream.tracks.filter { found.contains($0.id) }.map(\.program))
        // Then the ids are not those of this stream.
        guard !programs.isEmpty else { return (tracks, 0) }
        let others = Set(stream.tracks.filter { $0.kind != .data }.map(\.program)).subtracting(programs)
        let unread = stream.tracks.filter { programs.contains($0.program) && !found.contains($0.id) }
        return (tracks + unread.compactMap(Track.init(unread:)), others.count)
    }

    /// The ids of all streams.
    static func streamIDs(_ info: OpaquePointer) -> [String] {
        var names: [String] = []
        each(gst_discoverer_info_get_stream_list(info)) { stream in
            if let name = gst_discoverer_stream_info_get_stream_id(stream) { names.append(String(cString: name)) }
        }
        return names
    }
}

extension FilmFacts.Track {
    /// Nil for data, which are no track of a film.
    fileprivate init?(unread track: TransportStream.Track) {
        let kind: Kind
        switch track.kind {
        case .video: kind = .video
        case .audio: kind = .audio
        case .subtitle: kind = .subtitle
        case .data: return nil
        }
        self.init(kind: kind, format: "", codec: track.codec, description: "not readable by GStreamer")
        isUnread = true
    }
}

extension ExportPlan {
    static func unreadable(_ track: FilmFacts.Track) -> FilmError {
        let what = track.kind == .audio ? "sound" : track.kind == .video ? "pictures" : "subtitles"
        let codec = track.codec == "unknown" ? "" : " (\(track.codec))"
        return FilmError(
            .notSupported,
            "GStreamer cannot read its \(what)\(codec); convert it first, for example with ffmpeg -i FILE -c copy FILE.mkv"
        )
    }
}
