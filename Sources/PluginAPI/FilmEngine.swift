/// What a stream of a film is. The raw value is the word on the wire.
public enum TrackKind: String, CaseIterable, Sendable, Hashable {
    case audio, video, subtitle
}

/// A stream of the loaded film, or a file of subtitles that belongs to it.
public struct MediaTrack: Sendable, Hashable {
    public var kind: TrackKind
    /// Whether it is heard or seen now.
    public var isSelected: Bool
    /// As the film states it, mostly by ISO 639; empty if unknown.
    public var language: String
    /// For display; empty if unknown. Of a file of subtitles, its name.
    public var title: String
    /// In words, such as `MPEG-4 AAC`; empty if unknown.
    public var codec: String
    /// It is a file beside the film.
    public var isFile: Bool

    public init(
        _ kind: TrackKind, isSelected: Bool, language: String = "", title: String = "", codec: String = "",
        isFile: Bool = false
    ) {
        (self.kind, self.isSelected) = (kind, isSelected)
        (self.language, self.title, self.codec, self.isFile) = (language, title, codec, isFile)
    }
}

/// An engine that plays films: what a film has beside the sound of a player (the port behind `org.sessiond1.MoviePlayer`).
///
/// The rules of ``PlayerEngine`` about threads and calls apply.
public protocol FilmEngine: PlayerEngine {
    /// Those of the loaded film, in its order, then the files of subtitles; empty while unknown.
    var tracks: [MediaTrack] { get }
    /// Those of the loaded film, in the order of their times; empty if it has none, or while that is unknown.
    var chapters: [MediaChapter] { get }
    /// After a change of ``tracks`` or ``chapters``.
    var onTracks: (() -> Void)? { get set }

    /// Where a film ends, if that is before its own end, in seconds; nil: at its own end. Kept for all films.
    var endTime: Double? { get set }

    /// How far what is shown of a live stream is behind what is sent, in seconds: measured here, without what happened before
    /// its server sent it. Nil while unknown, and for other films.
    var latency: Double? { get }
    /// The wanted one, kept for all live streams; nil: the usual one of each kind.
    var targetLatency: Double? { get set }
    /// The pictures of the loaded film that were not shown: they came too late, or were left out to come nearer to what is sent.
    var droppedPictures: UInt64 { get }

    /// Chooses a track by its number, from 0, among those of its kind; nil: none. The choice ends with the film.
    /// - Throws: `BadParameter` if there is no such track; `NotSupported` for pictures, and for a film without sound;
    ///   `NotReady` while the tracks are unknown.
    func select(_ kind: TrackKind, _ number: Int?) throws(SessionError)
    /// Adds a file of subtitles to the loaded film, and shows them.
    /// - Parameter uri: of a file on this machine.
    /// - Throws: `NotReady` if nothing is loaded; `NotFound`; `FormatNotSupported` if it has no subtitles.
    func addSubtitles(uri: String) throws(SessionError)
    /// Shows a picture after, or before, the one that is shown: by that many, each as long as this one. Pauses.
    /// - Throws: `NotReady` before a picture is shown.
    func step(_ pictures: Int) throws(SessionError)
}
