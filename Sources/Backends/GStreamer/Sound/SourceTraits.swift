/// What the source of an item is and can do. Each rule of a player asks for the one of these that it is about.
struct SourceTraits: Sendable, Hashable {
    /// Its bytes are those of a file on this machine: they can be looked at before it is opened.
    var isFile: Bool
    /// Whether a seek succeeds. Where it does not, the item is opened again instead: many web servers cannot seek, and a
    /// seek would end their stream.
    var canSeek: Bool
    /// Whether its data may arrive more slowly than it is heard: it begins to play only when enough has arrived, may
    /// stall, and cannot be relied on to follow another item without a gap.
    var needsBuffering: Bool
    /// Seconds that may pass from opening it until something can be heard.
    var openingTime: Double
    /// Seconds for which it may be interrupted, without any data, until it counts as failed. For sources that need no
    /// buffering it does not matter.
    var patience: Double

    static let file = SourceTraits(
        isFile: true, canSeek: true, needsBuffering: false, openingTime: 10, patience: .infinity)

    /// A film from a file. On a busy machine with two processors, one started after 9 s.
    static let film = SourceTraits(
        isFile: true, canSeek: true, needsBuffering: false, openingTime: 30, patience: .infinity)

    /// Seconds without any data after which a web server has failed.
    static let webLimit = 15
    /// The same for the cache, which waits 20 s for the server and asks it once more before it reports an error.
    static let cacheLimit = 45

    /// A film: nearly all servers that have them can seek, and a refused seek leaves it where it is.
    static let webFilm = SourceTraits(
        isFile: false, canSeek: true, needsBuffering: true, openingTime: 30, patience: Double(webLimit))

    /// One attempt, then an error is reported: so the limit comes a little later.
    static let web = SourceTraits(
        isFile: false, canSeek: false, needsBuffering: true, openingTime: Double(webLimit) + 0.5,
        patience: Double(webLimit))

    /// A live stream, which has arrived already. It is kept near its newest part, and cannot go back.
    static let live = SourceTraits(
        isFile: false, canSeek: false, needsBuffering: false, openingTime: 30, patience: .infinity)

    /// The same read through the cache.
    var throughCache: SourceTraits {
        var traits = self
        (traits.openingTime, traits.patience) = (Double(Self.cacheLimit) + 0.5, Double(Self.cacheLimit))
        return traits
    }
}
