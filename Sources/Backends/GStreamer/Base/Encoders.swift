/// The encoders of each format, and which package has them: the one list for recordings, exports and all that comes.
///
/// The first one that is installed is used.
package struct Encoders: Sendable, Hashable {
    /// The names of GStreamer's elements, the best one first.
    package let elements: [String]
    /// The Debian package of one that every machine may have.
    package let package: String

    /// The encoders that work in hardware are not listed: what they can do differs from machine to machine.
    package static let h264 = Encoders(["x264enc", "openh264enc"], in: "gstreamer1.0-plugins-ugly")
    package static let vp8 = Encoders(["vp8enc"], in: "gstreamer1.0-plugins-good")
    package static let aac = Encoders(["fdkaacenc", "avenc_aac", "voaacenc"], in: "gstreamer1.0-libav")
    package static let alac = Encoders(["avenc_alac"], in: "gstreamer1.0-libav")
    package static let opus = Encoders(["opusenc"], in: "gstreamer1.0-plugins-base")
    package static let vorbis = Encoders(["vorbisenc"], in: "gstreamer1.0-plugins-base")
    package static let flac = Encoders(["flacenc"], in: "gstreamer1.0-plugins-good")
    package static let mp3 = Encoders(["lamemp3enc"], in: "gstreamer1.0-plugins-good")

    private init(_ elements: [String], in package: String) { (self.elements, self.package) = (elements, package) }

    /// The samples by which an encoder of AAC delays the sound; nil for others.
    package static func delay(ofAAC element: String) -> Int? {
        switch element {
        case "fdkaacenc": 2_048
        case "avenc_aac": 1_024
        case "voaacenc": 1_600
        default: nil
        }
    }

    /// For messages, such as `x264enc or openh264enc`.
    package var names: String { elements.joined(separator: " or ") }
}
