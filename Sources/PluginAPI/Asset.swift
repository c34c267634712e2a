/// What an export makes of a film. The raw value is the name on the wire.
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
    /// Pictures and sound as they are, in another container or cut.
    case passthrough
    /// The sound alone.
    case audio

    /// The box that the picture must fit into, for a film that is wider than high; nil: there is no picture, or it stays.
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

    /// Pictures in a second, at most.
    public var largestRate: Int { self == .low ? 30 : 60 }

    /// The quality that the encoder keeps (x264's CRF): less is better.
    public var quality: Int {
        switch self {
        case .low: 28
        case .medium: 25
        case .high: 21
        case .size640x480, .size960x540, .size1280x720, .size1920x1080, .passthrough, .audio: 23
        }
    }

    /// The most kilobits in a second of pictures; nil: no limit.
    public var largestBitrate: Int? {
        switch self {
        case .low: 400
        case .medium: 1_500
        case .high, .size640x480, .size960x540, .size1280x720, .size1920x1080, .passthrough, .audio: nil
        }
    }

    /// Bits in a second of sound.
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

    /// The usual ending of such a file.
    public var ending: String { self == .jpeg ? "jpg" : rawValue }
}
