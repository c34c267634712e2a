public import DBus
@_exported public import PluginAPI
import SessionBus

/// A film or a sound as a file (AVURLAsset).
///
///     let asset = Asset("/home/kim/clip.mov")
///     let info = try await asset.info
///     print(info.duration.seconds, info.tracks.count)
///
/// The file is read by the service, in a process of its own: a damaged one costs an error and nothing else.
public struct Asset: Sendable {
    /// A `file:` URI.
    public let uri: String
    let client: AssetClient

    /// - Parameters:
    ///   - path: an absolute path, or a `file:` URI.
    ///   - bus: the bus of the daemon.
    public init(_ path: String, bus: BusAddress = .session) {
        uri = Asset.uri(path)
        client = AssetClient(bus)
    }

    /// What the file says of itself.
    /// - Throws: `NotFound`, `FormatNotSupported`, `DecodeFailed`.
    public var info: AssetInfo { get async throws(SessionError) { try await read([]) } }

    /// The same with the duration by the times of all packets, which some files state wrongly
    /// (AVURLAssetPreferPreciseDurationAndTimingKey). Reads the whole file.
    public var preciseInfo: AssetInfo {
        get async throws(SessionError) { try await read([("precise", .bool(true))]) }
    }

    /// The path of the thumbnail that all programs share; it is made if it is missing or old.
    public func thumbnail(_ flavor: ThumbnailFlavor = .large) async throws(SessionError) -> String {
        try await client.ask(uri, "Thumbnail", [.string(uri), .string(flavor.rawValue)]).first?.stringValue ?? ""
    }

    private func read(_ options: [(String, Value)]) async throws(SessionError) -> AssetInfo {
        let answer = try await client.ask(uri, "Inspect", [.string(uri), .properties(options)])
        return AssetInfo(answer.first?.asProperties ?? [:])
    }

    private static func uri(_ path: String) -> String {
        guard path.hasPrefix("/") else { return path }
        var uri = "file://"
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                uri.unicodeScalars.append(UnicodeScalar(byte))
            case _ where "/-._~".utf8.contains(byte): uri.unicodeScalars.append(UnicodeScalar(byte))
            default: uri += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return uri
    }
}

/// What a file says of itself.
public struct AssetInfo: Sendable, Hashable {
    /// Zero if it is not known.
    public let duration: MediaTime
    /// The name of its format, for people.
    public let container: String
    public let mimeType: String
    /// Bytes.
    public let size: UInt64
    public let isSeekable: Bool
    /// Whether everything that is needed to play it is installed.
    public let isPlayable: Bool
    /// What has to be installed to play it.
    public let missing: [String]
    public let tracks: [AssetTrack]
    /// Texts, by GStreamer's names: `title`, `artist`, `datetime` …
    public let metadata: [String: String]

    init(_ fields: [String: Value]) {
        duration = MediaTime(nanoseconds: Int64(((fields["duration"]?.doubleValue ?? 0) * 1e9).rounded()))
        container = fields["container"]?.stringValue ?? ""
        mimeType = fields["mime-type"]?.stringValue ?? ""
        size = fields["size"]?.uint64Value ?? 0
        isSeekable = fields["seekable"]?.boolValue ?? false
        isPlayable = fields["playable"]?.boolValue ?? false
        missing = fields["missing"]?.stringsValue ?? []
        tracks = (fields["tracks"]?.arrayValue ?? []).compactMap(\.asProperties).map(AssetTrack.init)
        metadata = (fields["tags"]?.asProperties ?? [:]).compactMapValues(\.stringValue)
    }
}

/// One track of a file.
public struct AssetTrack: Sendable, Hashable {
    public enum MediaType: String, Sendable, Hashable {
        case video, audio, subtitle
    }

    /// Nil for a type of a later version.
    public let mediaType: MediaType?
    /// A short name, such as `h264`.
    public let codec: String
    public let language: String
    /// Pixels as stored; 0 for sound.
    public let width: Int
    public let height: Int
    /// Degrees clockwise by which the pictures are to be turned.
    public let rotation: Int
    /// Pictures in a second; 0 if it varies.
    public let nominalFrameRate: Double
    public let channels: Int
    /// Hertz.
    public let sampleRate: Int
    /// Bits in a second.
    public let estimatedDataRate: Int

    init(_ fields: [String: Value]) {
        func count(_ key: String) -> Int { Int(fields[key]?.uint32Value ?? 0) }
        mediaType = fields["type"]?.stringValue.flatMap(MediaType.init(rawValue:))
        codec = fields["codec"]?.stringValue ?? ""
        language = fields["language"]?.stringValue ?? ""
        (width, height, rotation) = (count("width"), count("height"), count("rotation"))
        let rate = fields["frame-rate"]?.structureValue?.compactMap(\.uint32Value) ?? []
        nominalFrameRate = rate.count == 2 && rate[1] > 0 ? Double(rate[0]) / Double(rate[1]) : 0
        (channels, sampleRate, estimatedDataRate) = (count("channels"), count("sample-rate"), count("bitrate"))
    }
}
