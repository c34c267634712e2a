import CGStreamer
import GStreamerBackend
import GStreamerBase
import LiveStreaming
import PluginAPI

/// The description of the elements from a source to the tees behind the encoders.
struct LiveChain {
    let text: String
    let hasSound: Bool
    /// The encoder of the pictures; its element has the name `encoder`.
    let encoder: String

    /// - Throws: `EncoderNotFound` with the package, `NotSupported`.
    /// - Parameters:
    ///   - method: WebRTC has sound of Opus.
    ///   - camera: the elements behind it.
    init(_ settings: LiveSettings, _ method: LiveTarget.Method, camera: String? = nil) throws(SessionError) {
        guard let encoder = Runtime.find(Encoders.h264.elements) else { throw Self.missing("H.264", Encoders.h264) }
        let sound = try Self.soundEncoder(for: method)
        self.encoder = encoder
        hasSound = true
        let pictures = [
            camera ?? Self.source(of: settings), "videoconvert", "videoscale", Self.rate(settings),
            "capsfilter name=format caps=\"\(Self.format(settings))\"", LiveFilters.chain(settings.filters),
            "queue name=late max-size-buffers=0 max-size-bytes=0 max-size-time=1000000000 "
                + (settings.isFile ? "" : "leaky=downstream"),
            Self.element(encoder, settings.bitrate, Self.keyDistance(settings)), Self.encodedPictures(for: method),
            "tee name=pictures allow-not-linked=true",
        ]
        let heard = [
            Self.sound(of: settings), "audioconvert", "audioresample",
            "capsfilter caps=\"audio/x-raw,rate=48000,channels=2\"", "queue max-size-time=1000000000",
            "\(sound) bitrate=\(settings.audioBitrate)", Self.encodedSound(for: method),
            "tee name=sound allow-not-linked=true",
        ]
        text =
            [pictures, heard].map { $0.filter { !$0.isEmpty }.joined(separator: " ! ") }.joined(separator: " ")
            + (settings.isFile ? " filesrc name=file ! decodebin name=source" : "")
    }

    /// The encoder of H.264 that is used; nil: none is installed.
    static var encoder: String? { Runtime.find(Encoders.h264.elements) }

    /// The elements between the pictures, and the sound, of a capture session and the tees.
    /// - Throws: `EncoderNotFound` with the package.
    static func encoders(
        _ settings: LiveSettings, _ method: LiveTarget.Method, rate: Double
    ) throws(SessionError) -> (pictures: String, sound: String) {
        guard let encoder else { throw missing("H.264", Encoders.h264) }
        let sound = try soundEncoder(for: method)
        let distance = max(1, Int((settings.keyFrameInterval * rate).rounded()))
        let pictures = [
            LiveFilters.chain(settings.filters), element(encoder, settings.bitrate, distance),
            encodedPictures(for: method),
        ]
        return (
            pictures.filter { !$0.isEmpty }.joined(separator: " ! "),
            "\(sound) bitrate=\(settings.audioBitrate) ! \(encodedSound(for: method))"
        )
    }

    /// Every browser shows the baseline profile.
    private static func encodedPictures(for method: LiveTarget.Method) -> String {
        (method == .whip ? "capsfilter caps=\"video/x-h264,profile=constrained-baseline\" ! " : "")
            + "h264parse ! capsfilter caps=\"video/x-h264,stream-format=avc,alignment=au\""
    }

    private static func encodedSound(for method: LiveTarget.Method) -> String {
        method == .whip ? "opusparse" : "aacparse ! capsfilter caps=\"audio/mpeg,mpegversion=4,stream-format=raw\""
    }

    private static func soundEncoder(for method: LiveTarget.Method) throws(SessionError) -> String {
        let (format, encoders) = method == .whip ? ("Opus", Encoders.opus) : ("AAC", Encoders.aac)
        guard let name = Runtime.find(encoders.elements) else { throw missing(format, encoders) }
        return name
    }

    private static func missing(_ format: String, _ encoders: Encoders) -> SessionError {
        SessionError(
            .encoderNotFound, "no encoder for \(format) (\(encoders.names)) is installed; \(encoders.package) has one")
    }

    private static func source(of settings: LiveSettings) -> String {
        switch settings.source {
        // Its pictures come at their times, as those of a camera do.
        case .file: "queue name=picture-head max-size-buffers=4 ! clocksync ! videoflip video-direction=auto"
        case .screen(let display):
            "ximagesrc name=screen use-damage=false\(Self.name(of: display)) ! capsfilter caps=\"video/x-raw,framerate=\(settings.frameRate ?? 30)/1\""
        case .camera: ""
        case .test:
            "videotestsrc is-live=true pattern=smpte75 horizontal-speed=2 "
                + "! capsfilter caps=\"video/x-raw,framerate=\(settings.frameRate ?? 30)/1\""
        }
    }

    /// It is asked for its formats when it is made. A name with other characters is set later.
    private static func name(of display: String?) -> String {
        guard let display, !display.isEmpty,
            display.utf8.allSatisfy({
                (UInt8(ascii: "-")...UInt8(ascii: ":")).contains($0)
                    || (UInt8(ascii: "A")...UInt8(ascii: "z")).contains($0)
            }), !display.utf8.contains(UInt8(ascii: "\\"))
        else { return "" }
        return " display-name=\(display)"
    }

    private static func sound(of settings: LiveSettings) -> String {
        // Without them, it would be made at another rate, and converted.
        let format = "! capsfilter caps=\"audio/x-raw,rate=48000,channels=2\""
        if settings.hasMicrophone {
            // The mixer goes on without the microphone, and then gives silence.
            return "audiotestsrc is-live=true wave=silence \(format) "
                + "! audiomixer name=mixer latency=\(LiveMicrophone.latency) "
                + "min-upstream-latency=\(LiveMicrophone.latency)"
        }
        return switch settings.source {
        case .file: "queue name=sound-head max-size-time=1000000000 ! clocksync"
        case .screen, .camera: "audiotestsrc is-live=true wave=silence \(format)"
        case .test: "audiotestsrc is-live=true freq=440 volume=0.1 \(format)"
        }
    }

    /// A film keeps its pictures as they are unless a rate is wanted.
    private static func rate(_ settings: LiveSettings) -> String {
        switch settings.source {
        case .file, .camera: settings.frameRate != nil ? "videorate" : ""
        case .screen, .test: ""
        }
    }

    private static func format(_ settings: LiveSettings) -> String {
        var words = ["video/x-raw", "format=I420", "pixel-aspect-ratio=1/1"]
        if let size = settings.size {
            words += ["width=\(size.width)", "height=\(size.height)"]
        } else if settings.source == .test {
            words += ["width=1280", "height=720"]
        } else {
            // H.264 needs even numbers.
            words += ["width=[16,1920,2]", "height=[16,1080,2]"]
        }
        if let rate = settings.frameRate { words.append("framerate=\(rate)/1") }
        return words.joined(separator: ",")
    }

    /// The longest distance of key frames, in pictures. Those of a film, whose rate is not known, are asked for by their times
    /// (`shim_beat_keys`); an encoder of a live source may not listen to that.
    private static func keyDistance(_ settings: LiveSettings) -> Int {
        guard !settings.isFile else { return 1_200 }
        return max(1, Int((settings.keyFrameInterval * Double(settings.frameRate ?? 30)).rounded()))
    }

    private static func element(_ encoder: String, _ bitrate: Int, _ distance: Int) -> String {
        switch encoder {
        case "x264enc":
            "x264enc name=encoder tune=zerolatency speed-preset=superfast bframes=0 key-int-max=\(distance) "
                + "vbv-buf-capacity=1000 bitrate=\(bitrate / 1_000)"
        case _:
            "\(encoder) name=encoder rate-control=bitrate complexity=low gop-size=\(distance) bitrate=\(bitrate)"
        }
    }

    /// Sets the bit rate of an encoder that runs.
    static func set(bitrate: Int, of element: UnsafeMutablePointer<GstElement>, _ encoder: String) {
        shim_set_int(element, "bitrate", gint(clamping: encoder == "x264enc" ? bitrate / 1_000 : bitrate))
    }
}

extension LiveSettings {
    var isFile: Bool { if case .file = source { true } else { false } }
}
