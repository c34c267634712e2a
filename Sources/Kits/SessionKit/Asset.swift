public import DBus
@_exported public import PluginAPI
import SessionBus

/// A film or a sound as a file (AVURLAsset).
///
///     let asset = Asset("/home/kim/clip.mov")
///     let info = try await asset.info
///     print(info.duration.seconds, info.tracks.count)
///
/// The service reads the file in a separate process. If the file is damaged, only the request fails.
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

    /// The properties of the file.
    /// - Throws: `NotFound`, `FormatNotSupported`, `DecodeFailed`.
    public var info: AssetInfo { get async throws(SessionError) { try await read([]) } }

    /// The properties, with the duration computed from the times of all packets, because some files state a wrong one
    /// (AVURLAssetPreferPreciseDurationAndTimingKey). Reads the whole file.
    public var preciseInfo: AssetInfo {
        get async throws(SessionError) { try await read([("precise", .bool(true))]) }
    }

    /// The path of the thumbnail in the shared cache; it is made if it is missing or out of date.
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

/// The properties of a file.
public struct AssetInfo: Sendable, Hashable {
    /// Zero if unknown.
    public let duration: MediaTime
    /// The name of the container format, for people.
    public let container: String
    public let mimeType: String
    /// The size of the file in bytes.
    public let size: UInt64
    public let isSeekable: Bool
    /// Whether all required plugins are installed.
    public let isPlayable: Bool
    /// The plugins and packages to install.
    public let missing: [String]
    public let tracks: [AssetTrack]
    /// The text tags, by GStreamer's names: `title`, `artist`, `datetime` …
    public let metadata: [String: String]
    /// In the order of their starts; empty: the file has none.
    public let chapters: [MediaChapter]

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
        chapters = [MediaChapter](fields["chapters"])
    }
}

extension [MediaChapter] {
    /// - Parameter value: `a(ds)`; nil: none.
    init(_ value: Value?) {
        self = (value?.arrayValue ?? []).compactMap { value in
            guard let fields = value.structureValue, fields.count == 2, let start = fields[0].doubleValue else {
                return nil
            }
            return MediaChapter(start: start, title: fields[1].stringValue ?? "")
        }
    }
}

/// One track of a file.
public struct AssetTrack: Sendable, Hashable {
    public enum MediaType: String, Sendable, Hashable {
        case video, audio, subtitle
    }

    /// Nil for a type that this version does not know.
    public let mediaType: MediaType?
    /// A short name, such as `h264`.
    public let codec: String
    public let language: String
    /// Pixels as stored; 0 for sound.
    public let width: Int
    public let height: Int
    /// Rotation of the pictures in degrees clockwise.
    public let rotation: Int
    /// Pictures per second; 0: variable.
    public let nominalFrameRate: Double
    public let channels: Int
    /// Hertz.
    public let sampleRate: Int
    /// Bits per second.
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
