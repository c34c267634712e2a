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

    package let path: String
    package let container: Container
    package let replaces: Bool
    /// The most pictures; 0: any number.
    package let limit: UInt64
    let video: String
    let audio: String
    /// The samples by which the encoder delays the sound, if the index can take them back.
    package let soundDelay: Int

    /// - Throws: `BadParameter` for another ending, `EncoderNotFound` with the package to install.
    package init(
        path: String, _ choice: CapturePreset.Choice, hasSound: Bool, quality: Quality = .medium, limit: UInt64 = 0,
        replaces: Bool = false
    ) throws(SessionError) {
        guard let container = Container(path: path) else {
            throw .badParameter("'\(path)': the name of a film must end in .mp4, .mov, .mkv or .webm")
        }
        (self.path, self.container, self.replaces, self.limit) = (path, container, replaces, limit)
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
        switch container {
        case .webm:
            try Self.need(.vp8, "webm")
            video =
                "vp8enc deadline=1 cpu-used=8 lag-in-frames=0 keyframe-max-dist=\(distance) target-bitrate=\(bits)"
        case .mp4, .mov, .mkv:
            let found = try Self.need(.h264, container.rawValue)
            let encoder =
                found == "x264enc"
                ? "x264enc tune=zerolatency speed-preset=superfast key-int-max=\(distance) bitrate=\(bits / 1_000)"
                : "openh264enc complexity=low rate-control=bitrate gop-size=\(distance) bitrate=\(bits)"
            video = encoder + " ! h264parse"
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
