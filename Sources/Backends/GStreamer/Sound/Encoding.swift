import GStreamerBase
import PluginAPI

/// The sample format and the elements for the settings of a recording.
struct Encoding {
    let format: RecordingFormat
    let sampleRate: Int
    let channels: Int
    /// GStreamer's name for the sample format before the encoder.
    let sampleFormat: String
    let bytesPerFrame: Int
    let isFloat: Bool
    /// gst-launch text from the samples to the file sink; empty for WAV, whose samples go to the file as they are.
    let encoder: String

    var caps: String {
        "audio/x-raw,format=\(sampleFormat),layout=interleaved,rate=\(sampleRate),channels=\(channels)"
    }
    var bytesPerSecond: Int { bytesPerFrame * sampleRate }
    /// Whether the file is an MP4 in fragments.
    var isMP4: Bool { encoder.includes("mp4mux") }
    /// gst-launch text of the element that finds the frames in such a file.
    var parser: String {
        switch format {
        case .wav: "wavparse"
        // Without checking the sums, it would count an incomplete last frame as a whole one.
        case .flac: "flacparse check-frame-checksums=true"
        case .vorbis, .opus: "oggdemux"
        case .mp3: "mpegaudioparse"
        case .aac, .alac: isMP4 ? "qtdemux" : "aacparse"
        }
    }

    init(_ settings: RecordingSettings, path: String) throws(SessionError) {
        guard let format = settings.format ?? RecordingFormat(path: path) else {
            throw .badParameter(
                "'\(path)': its extension is not a known format: give one (wav, flac, vorbis, opus, mp3, aac, alac)")
        }
        self.format = format
        sampleRate = try Encoding.sampleRate(settings.sampleRate ?? (format == .opus ? 48_000 : 44_100), format)
        channels = settings.channels ?? 2
        let most = format == .mp3 ? 2 : 8
        guard (1...most).contains(channels) else {
            throw .badParameter("channels \(channels): \(format.rawValue) supports 1 to \(most)")
        }
        isFloat = settings.isFloat
        let depth = try Encoding.bitDepth(settings, format)
        let bytes: Int
        switch (format, depth) {
        case (.wav, _) where isFloat: (sampleFormat, bytes) = ("F32LE", 4)
        case (.wav, 8): (sampleFormat, bytes) = ("U8", 1)
        case (.flac, 8): (sampleFormat, bytes) = ("S8", 1)
        case (.wav, 24), (.flac, 24): (sampleFormat, bytes) = ("S24LE", 3)
        case (.wav, 32), (.alac, 24), (.alac, 32): (sampleFormat, bytes) = ("S32LE", 4)
        case (.vorbis, _): (sampleFormat, bytes) = ("F32LE", 4)
        default: (sampleFormat, bytes) = ("S16LE", 2)
        }
        bytesPerFrame = bytes * channels
        encoder = try Encoding.encoder(
            format, settings.quality, sampleRate: sampleRate, channels: channels, path: path)
    }

    private static func sampleRate(_ wanted: Double, _ format: RecordingFormat) throws(SessionError) -> Int {
        guard let rate = Int(exactly: wanted.rounded()), (1_000...384_000).contains(rate) else {
            throw .badParameter("sample-rate \(wanted): 1000 to 384000 Hz")
        }
        let mpeg = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]
        let allowed: [Int]? =
            switch format {
            case .wav, .flac, .alac, .vorbis: nil
            case .opus: [8_000, 12_000, 16_000, 24_000, 48_000]
            case .mp3: mpeg
            case .aac: mpeg + [64_000, 88_200, 96_000]
            }
        if let allowed, !allowed.contains(rate) {
            let list = allowed.map(String.init).joined(separator: ", ")
            throw .badParameter("sample-rate \(rate): \(format.rawValue) supports \(list) Hz")
        }
        return rate
    }

    private static func bitDepth(_ settings: RecordingSettings, _ format: RecordingFormat) throws(SessionError) -> Int {
        if settings.isFloat {
            guard format == .wav else { throw .badParameter("float: only wav supports it, not \(format.rawValue)") }
            guard settings.bitDepth ?? 32 == 32 else { throw .badParameter("bit-depth: float always has 32") }
            return 32
        }
        let allowed: [Int] =
            switch format {
            case .wav: [8, 16, 24, 32]
            case .flac: [8, 16, 24]
            case .alac: [16, 24, 32]
            case .vorbis, .opus, .mp3, .aac: []
            }
        guard let depth = settings.bitDepth else { return 16 }
        guard !allowed.isEmpty else { throw .badParameter("bit-depth: \(format.rawValue) has none; use quality") }
        guard allowed.contains(depth) else {
            let list = allowed.map(String.init).joined(separator: ", ")
            throw .badParameter("bit-depth \(depth): \(format.rawValue) supports \(list)")
        }
        return depth
    }

    private static func encoder(
        _ format: RecordingFormat, _ quality: RecordingQuality, sampleRate: Int, channels: Int, path: String
    ) throws(SessionError) -> String {
        let step = RecordingQuality.allCases.firstIndex(of: quality) ?? 2
        // Timestamps follow the samples, not the clock: a pause leaves no hole in the file.
        let exact = "perfect-timestamp=true"
        // Ogg pages are short, so that a killed process loses a quarter of a second, not the muxer's default of half a
        // second.
        let ogg = "oggmux max-delay=200000000 max-page-delay=200000000"
        // An MP4 in fragments can be played even if its end is missing.
        let mp4 = "mp4mux fragment-duration=500"
        switch format {
        case .wav: return ""
        case .flac:
            try need(.flac, for: format)
            return "flacenc name=encoder \(exact) quality=\([0, 2, 5, 7, 8][step])"
        case .vorbis:
            try need(.vorbis, for: format)
            return "vorbisenc name=encoder \(exact) quality=\([0.0, 0.2, 0.4, 0.6, 0.9][step]) ! \(ogg)"
        case .opus:
            try need(.opus, for: format)
            let rate = [24_000, 40_000, 64_000, 96_000, 128_000][step] * channels
            return "opusenc name=encoder \(exact) bitrate=\(min(rate, 650_000)) ! \(ogg)"
        case .mp3:
            try need(.mp3, for: format)
            let rates =
                switch sampleRate {
                case 32_000...: [64, 96, 128, 192, 320]
                case 16_000...: [32, 48, 64, 96, 160]
                default: [16, 24, 32, 48, 64]
                }
            return "lamemp3enc name=encoder \(exact) target=bitrate cbr=true bitrate=\(rates[step])"
        case .aac:
            let found = try need(.aac, for: format)
            let rate = [32_000, 48_000, 64_000, 96_000, 128_000][step] * channels
            let file = path.lowercased().hasSuffix(".aac") ? "audio/mpeg,stream-format=adts" : mp4
            return "audioconvert ! \(found) name=encoder \(exact) bitrate=\(rate) ! aacparse ! \(file)"
        case .alac:
            try need(.alac, for: format)
            return "audioconvert ! avenc_alac name=encoder \(exact) ! \(mp4)"
        }
    }

    /// The first of these encoders that is installed.
    @discardableResult
    private static func need(_ encoders: Encoders, for format: RecordingFormat) throws(SessionError) -> String {
        if let found = Runtime.find(encoders.elements) { return found }
        throw SessionError(
            .cannotStartRecording,
            "\(format.rawValue) needs the GStreamer element \(encoders.names): install \(encoders.package)")
    }
}
