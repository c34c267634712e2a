import CGStreamer
import FileFormats
import GStreamerBase
import Glibc
import PluginAPI
import Processes

/// What was chosen of the loaded film. It outlives a pipeline: without a sound server, a film is opened again.
struct FilmChoice {
    /// The number of the sound.
    var sound = 0
    /// The number of the subtitles; nil: none.
    var subtitles: Int?
    /// The added files of subtitles.
    private(set) var files: [(title: String, file: SubtitleFile)] = []
    /// A file with the same name as the film: it is shown, unless something else was chosen.
    private var isFirstFileShown = false
    /// A file was added before the streams of the film were known.
    private var isLastShown = false

    init() {}

    /// Finds the subtitles beside a film: `film.srt`, and `film.en.srt` with any word in between. The first kind is shown.
    init(besideFilmAt uri: String) {
        guard uri.lowercased().hasPrefix("file:"), let path = FilmChoice.path(of: uri),
            let slash = path.lastIndex(of: "/")
        else { return }
        let (folder, name) = (String(path[...slash]), path[path.index(after: slash)...])
        let stem = name.lastIndex(of: ".").map { name[..<$0] } ?? name
        let found = namesIn(folder).filter { other in
            guard other != name, other.hasPrefix(stem + "."), let dot = other.lastIndex(of: ".") else { return false }
            return SubtitleFile.endings.contains(other[other.index(after: dot)...].lowercased())
        }
        // The shortest name is the one without a word.
        for other in found.sorted(by: { ($0.utf8.count, $0) < ($1.utf8.count, $1) }).prefix(FilmChoice.fileLimit) {
            guard let file = try? FilmChoice.read(folder + other, other) else { continue }
            if files.isEmpty { isFirstFileShown = other.utf8.count <= stem.utf8.count + 4 }
            files.append((other, file))
        }
    }

    /// More are languages that nobody can choose among.
    private static let fileLimit = 40

    private static func path(of uri: String) -> String? {
        guard let raw = g_filename_from_uri(uri, nil, nil) else { return nil }
        defer { g_free(raw) }
        return String(cString: raw)
    }

    private static func read(_ path: String, _ name: String) throws(SessionError) -> SubtitleFile {
        // A pipe would wait for its writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw SessionError(.notFound, "'\(name)' cannot be opened: \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size <= SubtitleFile.sizeLimit
        else { throw SessionError(.formatNotSupported, "'\(name)' is not a file of subtitles") }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress! + done, $0.count - done) }
            guard count > 0 else { break }
            done += count
        }
        guard let file = SubtitleFile(Array(bytes.prefix(done))) else {
            throw SessionError(
                .formatNotSupported,
                "'\(name)' has no subtitles that can be read: SubRip (.srt), WebVTT (.vtt), or SubStation Alpha (.ass)")
        }
        return file
    }

    /// Adds a file.
    mutating func add(uri: String) throws(SessionError) -> (title: String, file: SubtitleFile) {
        guard uri.lowercased().hasPrefix("file:"), let path = FilmChoice.path(of: uri) else {
            throw SessionError(.badParameter, "subtitles are files on this machine: give file:///…")
        }
        guard files.count < FilmChoice.fileLimit else {
            throw SessionError(
                .resourceNotAvailable, "the film has \(files.count) files of subtitles; no more are read")
        }
        let name = path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
        let added = (name, try FilmChoice.read(path, name))
        files.append(added)
        return added
    }

    /// What was added last is shown when the streams of the film are known.
    mutating func showLast() { isLastShown = true }

    /// The pipeline of the film knows its streams: what was chosen is heard and shown.
    mutating func apply(to tracks: FilmTracks) {
        for (title, file) in files { tracks.add(file, title: title) }
        if isLastShown {
            subtitles = tracks.count(.subtitle) - 1
        } else if isFirstFileShown {
            subtitles = subtitles ?? tracks.ownSubtitles
        }
        (isFirstFileShown, isLastShown) = (false, false)
        // The film may have fewer than those before it.
        sound = min(sound, max(0, tracks.count(.audio) - 1))
        tracks.show(subtitles)
    }
}
