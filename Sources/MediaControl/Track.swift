import PluginAPI

/// What a player has loaded, as far as its metadata identify it; empty fields are unknown.
public struct Track: Sendable, Hashable {
    /// `mpris:trackid`.
    public var id: String
    /// `xesam:url`.
    public var url: String
    /// `xesam:title`.
    public var title: String

    /// Bytes of each text that are kept: anybody on the bus may call himself a player, and say anything.
    public static let longestText = 512

    public init(id: String = "", url: String = "", title: String = "") {
        self.id = id.kept(bytes: Track.longestText)
        self.url = url.kept(bytes: Track.longestText)
        self.title = title.kept(bytes: Track.longestText)
    }

    /// Whether nothing says that the two differ: players fill in what they learn of a track while it is loaded.
    ///
    /// A title is asked only where no URL tells: that of a radio changes with every song, and a browser's track has
    /// one id for ever.
    public func mayBe(_ other: Track) -> Bool {
        func agree(_ one: String, _ two: String) -> Bool { one.isEmpty || two.isEmpty || one == two }
        guard agree(id, other.id), agree(url, other.url) else { return false }
        return !url.isEmpty && !other.url.isEmpty || agree(title, other.title)
    }
}
