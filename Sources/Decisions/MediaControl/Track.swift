import PluginAPI

/// The track of a player, as far as its metadata identify it; empty fields are unknown.
public struct Track: Sendable, Hashable, Codable {
    /// `mpris:trackid`.
    public var id: String
    /// `xesam:url`.
    public var url: String
    /// `xesam:title`.
    public var title: String

    /// The bytes of each text that are stored: any program on the bus may pretend to be a player and send any text.
    public static let longestText = 512

    public init(id: String = "", url: String = "", title: String = "") {
        self.id = id.kept(bytes: Track.longestText)
        self.url = url.kept(bytes: Track.longestText)
        self.title = title.kept(bytes: Track.longestText)
    }

    /// Whether the two can be the same track: players add metadata while a track is loaded.
    ///
    /// The title is compared only without a URL: a radio's title changes with every song, and a browser's track always
    /// has the same id.
    public func mayBe(_ other: Track) -> Bool {
        func agree(_ one: String, _ two: String) -> Bool { one.isEmpty || two.isEmpty || one == two }
        guard agree(id, other.id), agree(url, other.url) else { return false }
        return !url.isEmpty && !other.url.isEmpty || agree(title, other.title)
    }
}
