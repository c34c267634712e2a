package import PluginAPI

extension CapturePreset {
    /// What a camera sends, and what becomes of it.
    package struct Choice: Sendable, Hashable {
        package let format: CaptureFormat
        /// Even numbers, because the colours of a film have half of the size.
        package let width: Int
        package let height: Int
        package let rate: CaptureRate
    }

    /// A rate that looks continuous and that every machine can encode.
    private static let usualRate = 30.0
    private static let leastRate = 24.0

    /// The size; nil: that of the camera. `isLeast`: the camera must have it.
    private var size: (width: Int, height: Int, isLeast: Bool)? {
        switch self {
        case .low: (320, 240, false)
        case .medium: (640, 480, false)
        case .vga640x480: (640, 480, true)
        case .qHD960x540: (960, 540, true)
        case .hd1280x720: (1280, 720, true)
        case .hd1920x1080: (1920, 1080, true)
        case .hd4K3840x2160: (3840, 2160, true)
        case .high, .photo, .inputPriority: nil
        }
    }

    /// What a camera with these formats sends for this preset; nil: it cannot.
    package func choice(from formats: [CaptureFormat]) -> Choice? {
        let usable = formats.filter {
            $0.width > 1 && $0.height > 1 && $0.rate.numerator > 0 && $0.rate.denominator > 0
        }
        guard let format = format(from: usable) else { return nil }
        var (width, height) = (format.width, format.height)
        if let size {
            if size.isLeast || (size.width <= width && size.height <= height) {
                (width, height) = (size.width, size.height)
            }
        }
        let rate = format.rate.perSecond > 60 ? CaptureRate(60) : format.rate
        return Choice(format: format, width: width & ~1, height: height & ~1, rate: rate)
    }

    private func format(from formats: [CaptureFormat]) -> CaptureFormat? {
        switch self {
        case .inputPriority: return formats.first
        case .photo: return Self.best(formats, ofMost: true)
        case .high:
            let usual = formats.filter { $0.area <= 1920 * 1080 }
            let fluent = usual.filter { $0.rate.perSecond >= Self.leastRate }
            return Self.best(fluent.isEmpty ? (usual.isEmpty ? formats : usual) : fluent, ofMost: true)
        case .low, .medium, .vga640x480, .qHD960x540, .hd1280x720, .hd1920x1080, .hd4K3840x2160:
            guard let size else { return nil }
            let large = formats.filter { $0.width >= size.width && $0.height >= size.height }
            if large.isEmpty { return size.isLeast ? nil : Self.best(formats, ofMost: true) }
            let fluent = large.filter { $0.rate.perSecond >= Self.leastRate }
            return Self.best(fluent.isEmpty ? large : fluent, ofMost: false)
        }
    }

    /// The largest or the smallest one; of these the one whose rate is next to the usual one; of these one without JPEG.
    private static func best(_ formats: [CaptureFormat], ofMost isMost: Bool) -> CaptureFormat? {
        func cost(_ format: CaptureFormat) -> (Int, Double, Int) {
            (
                isMost ? -format.area : format.area, abs(format.rate.perSecond - usualRate),
                format.pixels == CaptureFormat.jpeg ? 1 : 0
            )
        }
        return formats.min { cost($0) < cost($1) }
    }
}
