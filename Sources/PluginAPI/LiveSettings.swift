/// What a live stream shows, and how it is encoded.
public struct LiveSettings: Sendable, Hashable {
    public enum Source: Sendable, Hashable {
        /// A film, by its absolute path: its pictures and its sound, at their own pace.
        case file(String)
        /// The screen of an X11 server; nil: that of `DISPLAY`.
        case screen(display: String?)
        /// A camera, by its id, its position or its name; nil: the first one.
        case camera(String?)
        /// A test picture, with a tone unless there is a microphone.
        case test
    }

    public var source: Source
    /// Of the pictures, in bits per second.
    public var bitrate = 2_500_000
    /// Of the sound, in bits per second.
    public var audioBitrate = 128_000
    /// The distance of key frames, in seconds.
    public var keyFrameInterval = 2.0
    /// Whether the bit rate follows what the network carries.
    public var isAdaptive = true
    /// The size of the pictures; nil: that of the source, at most 1920 × 1080. Even numbers.
    public var size: PictureSize?
    /// Pictures per second; nil: those of a film, or 30.
    public var frameRate: Int?
    /// Applied one after the other.
    public var filters: [LiveFilter] = []
    /// The delay that SRT may use to send again what was lost, in milliseconds.
    public var latency = 120
    /// A file that gets the same stream; nil: none. The ending says the format: mp4, mov or mkv.
    public var recording: String?
    /// Whether an existing file is replaced.
    public var overwrites = false
    /// Whether the sound is that of the microphone.
    public var hasMicrophone = false
    /// How long it tries to connect again, in seconds.
    public var giveUp = 300.0

    public init(_ source: Source) { self.source = source }
}
