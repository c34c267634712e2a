package import PluginAPI

/// Pictures per second, as a fraction.
package struct CaptureRate: Sendable, Hashable, Comparable {
    package let numerator: Int
    package let denominator: Int

    /// - Parameters: both above 0.
    package init(_ numerator: Int, _ denominator: Int = 1) {
        (self.numerator, self.denominator) = (numerator, denominator)
    }

    package var perSecond: Double { Double(numerator) / Double(denominator) }

    package static func < (left: CaptureRate, right: CaptureRate) -> Bool { left.perSecond < right.perSecond }

    /// The pictures of that many seconds, at least one: a limit is counted in pictures, because the first one comes late.
    package func pictures(in seconds: Double) -> UInt64 {
        let number = (seconds * perSecond).rounded()
        return number >= 1 ? UInt64(min(number, 1e15)) : 1
    }

    /// The length of that many pictures, in seconds.
    package func seconds(of pictures: UInt64) -> Double { Double(pictures) * Double(denominator) / Double(numerator) }
}

/// What a camera can send.
package struct CaptureFormat: Sendable, Hashable {
    package let width: Int
    package let height: Int
    package let rate: CaptureRate
    /// GStreamer's name of the pixels, such as `YUY2`, or `JPEG`.
    package let pixels: String

    package init(width: Int, height: Int, rate: CaptureRate, pixels: String) {
        (self.width, self.height, self.rate, self.pixels) = (width, height, rate, pixels)
    }

    package static let jpeg = "JPEG"

    var area: Int { width * height }
}

/// A camera or a microphone (AVCaptureDevice).
package struct CaptureSource: Sendable, Hashable {
    /// The same after a restart of the machine.
    package let id: String
    /// For display.
    package let name: String
    package let media: CaptureMediaType
    package let position: CapturePosition
    /// Of a camera.
    package let formats: [CaptureFormat]
    /// The device of Video4Linux, such as `/dev/video0`; nil: it has none.
    package let videoDevice: String?
    /// It stands for the first camera that the user allows: until then nothing is known about it.
    package let isHidden: Bool

    package init(
        id: String, name: String, media: CaptureMediaType, position: CapturePosition = .unspecified,
        formats: [CaptureFormat] = [], videoDevice: String? = nil, isHidden: Bool = false
    ) {
        (self.id, self.name, self.media, self.position, self.formats) = (id, name, media, position, formats)
        (self.videoDevice, self.isHidden) = (videoDevice, isHidden)
    }

    /// The presets that it can have; none for a microphone. Of a camera that is hidden, those that it may have.
    package var presets: [CapturePreset] {
        media == .video ? CapturePreset.allCases.filter { isHidden || $0.choice(from: formats) != nil } : []
    }
}
