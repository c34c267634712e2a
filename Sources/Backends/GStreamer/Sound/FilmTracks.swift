package import CGStreamer
import CStreaming
import FileFormats
import GStreamerBase
package import PluginAPI

/// The streams of a film in its pipeline, and the files of subtitles that belong to it.
package final class FilmTracks {
    private let film: OpaquePointer
    /// The files of subtitles, and the lists with their texts.
    private var files: [(title: String, list: gint)] = []
    /// The list that is shown; −1: none.
    private var shown: gint = -1
    /// What GStreamer has no plugin for, in its words.
    private var lacking: [shim_track_kind.RawValue: String] = [:]
    package private(set) var isKnown = false

    /// - Parameters:
    ///   - source: its outputs are linked to the two queues.
    ///   - heard: the number of the sound.
    package init(
        of source: UnsafeMutablePointer<GstElement>, sound: UnsafeMutablePointer<GstElement>,
        pictures: UnsafeMutablePointer<GstElement>, heard: Int
    ) {
        film = shim_film_new(source, sound, pictures, gint(clamping: heard))
    }

    deinit { shim_film_free(film) }

    /// Draws subtitles with the textoverlay whose entry this is.
    package func draw(at entry: UnsafeMutablePointer<GstPad>) { shim_words_draw(shim_film_words(film), entry) }

    /// Looks at a message of the pipeline's bus.
    /// - Returns: whether the streams are known now.
    package func take(_ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        if case .lacksPlugin(let plugin) = Notice(message) { lacking[shim_lacking_kind(message).rawValue] = plugin }
        guard shim_tracks_known(message) != 0 else { return false }
        isKnown = true
        return true
    }

    /// What the film has and nobody can decode: its pictures, or all of its sound.
    package var missing: String? {
        let kinds = Set(all.map(\.kind))
        if !kinds.contains(.video), let plugin = lacking[SHIM_TRACK_VIDEO.rawValue] { return plugin }
        if !kinds.contains(.audio), let plugin = lacking[SHIM_TRACK_AUDIO.rawValue] { return plugin }
        return nil
    }

    /// Whether it is no film, but a picture, or pictures without the times at which they are shown.
    package var isPicture: Bool { shim_film_has_type(film, "image/") != 0 }
    /// GStreamer's decoder gives all pictures of a GIF file the same time.
    package var isAnimation: Bool { shim_film_has_type(film, "image/gif") != 0 }

    /// The demuxer of Matroska gives no subtitles that begin before the key frame from which it reads after a seek: if some of
    /// the film are shown, they are read from its file. ``haveCome(in:)`` tells that some were found.
    func readEarlier(than time: GstClockTime, in path: [CChar]) {
        if needsEarlier(than: time) { shim_film_read_earlier(film, path, time, FilmTracks.reach) }
    }

    /// The same of a film of the web, in a connection of its own.
    func fetchEarlier(than time: GstClockTime, from uri: String) {
        guard needsEarlier(than: time) else { return }
        shim_film_fetch_earlier(film, uri, time, FilmTracks.webReach, FilmTracks.webLimit)
    }

    private func needsEarlier(than time: GstClockTime) -> Bool {
        shown >= 0 && time > 0 && !files.contains { $0.list == shown }
    }

    static func haveCome(in message: UnsafeMutablePointer<GstMessage>) -> Bool { shim_words_came(message) != 0 }

    /// Longer than a text is shown, in nanoseconds.
    private static let reach: GstClockTime = 15_000_000_000
    /// As long as most texts are shown: what is read of the web once more delays the film. The same in bytes.
    private static let webReach: GstClockTime = 8_000_000_000
    private static let webLimit: gint64 = 8 << 20

    package var kinds: Set<TrackKind> { Set(all.map(\.kind)) }

    var all: [MediaTrack] { streams.map(\.track) + files.map { track(of: $0) } }

    private func track(of file: (title: String, list: gint)) -> MediaTrack {
        MediaTrack(.subtitle, isSelected: file.list == shown, title: file.title, isFile: true)
    }

    private var streams: [(track: MediaTrack, list: gint)] {
        var hasPictures = false
        return (0..<(isKnown ? shim_film_count(film) : 0)).compactMap { place in
            var found = shim_film_track(film, place)
            defer { shim_track_clear(&found) }
            let kind: TrackKind
            var isSelected = found.is_heard != 0
            switch found.kind {
            case SHIM_TRACK_AUDIO: kind = .audio
            case SHIM_TRACK_VIDEO:
                kind = .video
                (isSelected, hasPictures) = (!hasPictures, true)
            case SHIM_TRACK_SUBTITLE:
                kind = .subtitle
                isSelected = found.list == shown
            default: return nil
            }
            let words = [found.language, found.title, found.codec].map { $0.map { String(cString: $0) } ?? "" }
            let track = MediaTrack(
                kind, isSelected: isSelected, language: words[0], title: words[1], codec: words[2])
            return (track, found.list)
        }
    }

    /// The lists of the subtitles, in the order of ``all``.
    private var lists: [gint] {
        streams.filter { $0.track.kind == .subtitle }.map(\.list) + files.map(\.list)
    }

    /// How many of the subtitles are in the film itself.
    var ownSubtitles: Int { streams.count { $0.track.kind == .subtitle } }

    func count(_ kind: TrackKind) -> Int { all.count { $0.kind == kind } }

    /// Shows these subtitles from the next picture on; nil: none.
    func show(_ number: Int?) {
        let lists = lists
        shown = number.flatMap { lists.indices.contains($0) ? lists[$0] : nil } ?? -1
        shim_words_show(shim_film_words(film), shown)
    }

    func add(_ file: SubtitleFile, title: String) {
        let words = shim_film_words(film)
        let list = shim_words_add_list(words)
        for cue in file.cues {
            _ = shim_words_add(words, list, Times.nanoseconds(cue.start), Times.nanoseconds(cue.end), cue.markup)
        }
        files.append((title, list))
    }
}
