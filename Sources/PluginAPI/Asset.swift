/// A preset of an export. The raw value is the name on the wire.
public enum ExportPreset: String, CaseIterable, Sendable, Hashable {
    /// For mobile networks.
    case low
    /// For Wi-Fi.
    case medium
    case high
    case size640x480 = "640x480"
    case size960x540 = "960x540"
    case size1280x720 = "1280x720"
    case size1920x1080 = "1920x1080"
    /// Copies pictures and sound without decoding, into another container or as a part of the film.
    case passthrough
    /// Only the sound.
    case audio

    /// The box that the picture must fit into, for a film in landscape; nil: there is no picture, or its size stays.
    public var box: (width: Int, height: Int)? {
        switch self {
        case .low: (426, 240)
        case .medium: (854, 480)
        case .high, .size1920x1080: (1920, 1080)
        case .size640x480: (640, 480)
        case .size960x540: (960, 540)
        case .size1280x720: (1280, 720)
        case .passthrough, .audio: nil
        }
    }

    /// The largest picture rate, in pictures per second.
    public var largestRate: Int { self == .low ? 30 : 60 }

    /// The quality of the encoder (x264's CRF): lower is better.
    public var quality: Int {
        switch self {
        case .low: 28
        case .medium: 25
        case .high: 21
        case .size640x480, .size960x540, .size1280x720, .size1920x1080, .passthrough, .audio: 23
        }
    }

    /// The largest bitrate of the pictures, in kbit/s; nil: no limit.
    public var largestBitrate: Int? {
        switch self {
        case .low: 400
        case .medium: 1_500
        case .high, .size640x480, .size960x540, .size1280x720, .size1920x1080, .passthrough, .audio: nil
        }
    }

    /// The bitrate of the sound, in bit/s.
    public var audioBitrate: Int {
        switch self {
        case .low: 48_000
        case .medium: 96_000
        case .high, .audio: 160_000
        case .size640x480, .size960x540, .size1280x720, .size1920x1080, .passthrough: 128_000
        }
    }
}

/// The file format of an export. The raw value is the name on the wire.
public enum ExportFileType: String, CaseIterable, Sendable, Hashable {
    case mp4, mov, m4a, webm

    /// The type that the extension of a file means; nil: none of these.
    public init?(path: String) {
        self.init(rawValue: path.split(separator: ".").last.map { $0.lowercased() } ?? "")
    }
}

/// The sizes of thumbnails that programs share. The raw value is the name on the wire, and of the folder.
public enum ThumbnailFlavor: String, CaseIterable, Sendable, Hashable {
    case normal
    case large
    case xLarge = "x-large"
    case xxLarge = "xx-large"

    /// The longer side, in pixels.
    public var size: Int {
        switch self {
        case .normal: 128
        case .large: 256
        case .xLarge: 512
        case .xxLarge: 1024
        }
    }
}

/// The file format of a picture. The raw value is the name on the wire.
public enum ImageFormat: String, CaseIterable, Sendable, Hashable {
    case jpeg, png, webp

    /// The usual extension of such a file.
    public var ending: String { self == .jpeg ? "jpg" : rawValue }
}
