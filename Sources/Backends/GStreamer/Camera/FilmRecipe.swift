import CGStreamer
package import Capturing
import EventLoop
import GStreamerBackend
import GStreamerBase
package import PluginAPI

/// How a film of a camera is written: the file, its format, the encoders and the limit.
package struct FilmRecipe: Sendable, Hashable {
    /// The format of the file, by the ending of its name.
    package enum Container: String, Sendable, Hashable, CaseIterable {
        case mp4, mov, mkv, webm

        package init?(path: String) {
            guard let name = path.split(separator: "/").last, let dot = name.lastIndex(of: ".") else { return nil }
            let ending = name[name.index(after: dot)...].lowercased()
            self.init(rawValue: ending == "m4v" ? "mp4" : ending)
        }

        /// Whether it is written in fragments, which become one index at the end.
        var isFragmented: Bool { self == .mp4 || self == .mov }
    }

    /// The raw value is the name on the wire.
    package enum Quality: String, Sendable, Hashable, CaseIterable { case low, medium, high }

    /// How the pictures are encoded. The raw value is the name on the wire.
    package enum Codec: String, Sendable, Hashable, CaseIterable {
        /// By the first encoder that is installed, or by that one.
        case h264, x264, openh264
        case vp8

        /// The elements that can do it, of the one list of encoders.
        var elements: [String] {
            switch self {
            case .h264: Encoders.h264.elements
            case .x264, .openh264: Encoders.h264.elements.filter { $0 == rawValue + "enc" }
            case .vp8: Encoders.vp8.elements
            }
        }

        var package: String {
            switch self {
            case .h264, .x264: Encoders.h264.package
            case .openh264: "gstreamer1.0-plugins-bad"
            case .vp8: Encoders.vp8.package
            }
        }

        /// What a file of that format can hold; the first one is usual.
        static func possible(in container: Container) -> [Codec] {
            switch container {
            case .mp4, .mov: [.h264, .x264, .openh264]
            case .mkv: [.h264, .x264, .openh264, .vp8]
            case .webm: [.vp8]
            }
        }
    }

    package let path: String
    /// A film in MP4 and MOV tells players to turn it; in the others, the pictures are turned.
    package let orientation: CaptureOrientation
    package let container: Container
    package let replaces: Bool
    /// The most pictures; 0: any number.
    package let limit: UInt64
    /// Whether it can have the pictures of an encoder of H.264 that does not turn them.
    package let isPlainH264: Bool
    let video: String
    let audio: String
    /// The samples by which the encoder delays the sound, if the index can take them back.
    package let soundDelay: Int

    /// - Throws: `BadParameter` for another ending, `EncoderNotFound` with the package to install.
    package init(
        path: String, _ choice: CapturePreset.Choice, hasSound: Bool, quality: Quality = .medium, codec: Codec? = nil,
        orientation: CaptureOrientation = .upright, limit: UInt64 = 0, replaces: Bool = false
    ) throws(SessionError) {
        guard let container = Container(path: path) else {
            throw .badParameter("'\(path)': the name of a film must end in .mp4, .mov, .mkv or .webm")
        }
        (self.path, self.container, self.replaces, self.limit) = (path, container, replaces, limit)
        self.orientation = orientation
        let possible = Codec.possible(in: container)
        let codec = codec ?? possible[0]
        guard possible.contains(codec) else {
            let words = possible.map(\.rawValue).joined(separator: ", ")
            throw .badParameter("a film in \(container.rawValue) cannot be encoded as \(codec.rawValue): use \(words)")
        }
        guard let encoder = Runtime.find(codec.elements) else {
            let names = codec.elements.joined(separator: " or ")
            throw SessionError(
                .encoderNotFound,
                "a film in \(container.rawValue) needs the GStreamer element \(names): install \(codec.package)")
        }
        let factor =
            switch quality {
            case .low: 0.05;
            case .medium: 0.1;
            case .high: 0.2
            }
        let rate = choice.rate.perSecond
        let bits = max(200_000, Int(Double(choice.width * choice.height) * rate * factor))
        // A key picture each second: a film that is cut off loses no more, and seeking is fast.
        let distance = max(1, Int(rate.rounded()))
        let turn =
            container.isFragmented ? "" : Self.turns[orientation].map { "videoflip video-direction=\($0) ! " } ?? ""
        isPlainH264 = codec != .vp8 && turn.isEmpty
        switch codec {
        case .vp8:
            video =
                turn
                + "vp8enc deadline=1 cpu-used=8 lag-in-frames=0 keyframe-max-dist=\(distance) target-bitrate=\(bits)"
        case .h264, .x264, .openh264:
            let settings =
                encoder == "x264enc"
                ? "x264enc tune=zerolatency speed-preset=superfast key-int-max=\(distance) bitrate=\(bits / 1_000)"
                : "openh264enc complexity=low rate-control=bitrate gop-size=\(distance) bitrate=\(bits)"
            video = turn + settings + " ! h264parse"
        }
        guard hasSound else {
            (audio, soundDelay) = ("", 0)
            return
        }
        switch container {
        case .webm:
            try Self.need(.opus, "webm")
            (audio, soundDelay) = ("opusenc bitrate=96000", 0)
        case .mp4, .mov, .mkv:
            let found = try Self.need(.aac, container.rawValue)
            audio = "\(found) bitrate=128000 ! aacparse"
            soundDelay = container.isFragmented ? Encoders.delay(ofAAC: found) ?? 0 : 0
        }
    }

    /// The names of videoflip.
    private static let turns: [CaptureOrientation: String] = [.right: "90r", .upsideDown: "180", .left: "90l"]

    /// Loads the usual encoders in the background: that takes up to a second, and a film should begin at once.
    static func loadEncoders(on loop: EventLoop) {
        let names = [Encoders.h264, Encoders.aac].compactMap { Runtime.find($0.elements) }
        _ = Errand.run(
            on: loop,
            {
                for name in names {
                    guard let element = gst_element_factory_make(name, nil) else { continue }
                    gst_object_ref_sink(element)
                    gst_element_set_state(element, GST_STATE_READY)
                    gst_element_set_state(element, GST_STATE_NULL)
                    gst_object_unref(element)
                }
            }, done: { _ in })
    }

    @discardableResult
    private static func need(_ encoders: Encoders, _ format: String) throws(SessionError) -> String {
        if let found = Runtime.find(encoders.elements) { return found }
        throw SessionError(
            .encoderNotFound,
            "a film in \(format) needs the GStreamer element \(encoders.names): install \(encoders.package)")
    }

    var muxer: String {
        switch container {
        case .mp4: "mp4mux fragment-duration=500"
        case .mov: "qtmux fragment-duration=500"
        case .mkv: "matroskamux"
        case .webm: "webmmux"
        }
    }
}
