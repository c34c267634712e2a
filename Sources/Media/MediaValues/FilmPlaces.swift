/// Where the user left long films, so that they go on there the next time. A value; ``bytes`` are its form on the disk.
public struct FilmPlaces: Sendable, Hashable {
    /// One film, by its URI.
    private struct Place: Sendable, Hashable {
        let uri: String
        let seconds: Double
    }

    /// Shorter films begin at their beginning, in seconds.
    public static let leastLength = 600.0
    /// Of the first seconds and the last ones, there is no place to keep.
    static let (beginning, ending) = (30.0, 60.0)
    /// Beyond that, the film that was left first is forgotten.
    static let limit = 500
    /// The largest file in bytes.
    public static let largestFile = 4_000_000

    /// The one that was left last is the last.
    private var places: [Place] = []

    public init() {}

    /// Seconds; nil: it begins at its beginning.
    public func place(of uri: String) -> Double? { places.last { $0.uri == uri }?.seconds }

    /// The film was left at that time, or forgets its place if that is near its beginning or its end.
    /// - Parameter length: seconds; nil: unknown, as that of a live stream.
    public mutating func leave(_ uri: String, at seconds: Double, of length: Double?) {
        places.removeAll { $0.uri == uri }
        guard let length, length >= Self.leastLength, seconds.isFinite, seconds >= Self.beginning,
            seconds <= length - Self.ending, uri.utf8.count <= 8_192,
            !uri.utf8.contains(where: { $0 == UInt8(ascii: "\n") })
        else { return }
        places.append(Place(uri: uri, seconds: seconds))
        if places.count > Self.limit { places.removeFirst(places.count - Self.limit) }
    }

    /// It was seen to its end.
    public mutating func finish(_ uri: String) { places.removeAll { $0.uri == uri } }

    // MARK: On the disk

    /// A line for each film: the seconds, a space and the URI.
    public var bytes: [UInt8] { Array(places.map { "\($0.seconds) \($0.uri)\n" }.joined().utf8) }

    /// Lines that are none are left out.
    public init(bytes: [UInt8]) {
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let parts = String(decoding: line, as: UTF8.self).split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let seconds = Double(parts[0]), seconds >= Self.beginning, seconds < 1e7 else {
                continue
            }
            places.append(Place(uri: String(parts[1]), seconds: seconds))
        }
        if places.count > Self.limit { places.removeFirst(places.count - Self.limit) }
    }
}
