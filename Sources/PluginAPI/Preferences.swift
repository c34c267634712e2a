/// The preferences of a session (`setPreferences`); its properties show the actual values.
public struct Preferences: Sendable, Hashable, Codable {
    /// Hertz, 1,000…768,000; nil: no preference (AVAudioSession.setPreferredSampleRate).
    public var sampleRate: Double?
    /// Seconds, above 0 and up to 10; nil: no preference (AVAudioSession.setPreferredIOBufferDuration).
    public var ioBufferDuration: Double?
    /// Whether losing the output in use pauses it (AVAudioSession.setPrefersInterruptionOnRouteDisconnect).
    public var interruptsOnRouteDisconnect = true
    /// Whether alerts leave it playing (AVAudioSession.setPrefersNoInterruptionsFromSystemAlerts).
    public var noInterruptionsFromAlerts = false

    /// The allowed range, in hertz.
    public static let sampleRates = 1_000.0...768_000.0
    /// The longest allowed buffer, in seconds; the shortest is above 0.
    public static let longestBuffer = 10.0

    /// The default of a new session: no preferences; interrupted by alerts, and when its output is unplugged.
    public init() {}
}

/// The combined preferences of all sessions for the output device.
public struct OutputWish: Sendable, Hashable, Codable {
    /// Hertz; nil: no preference.
    public var sampleRate: Double?
    /// Seconds of sound that the device gets at a time; nil: no preference.
    public var bufferDuration: Double?

    public init(sampleRate: Double? = nil, bufferDuration: Double? = nil) {
        self.sampleRate = sampleRate
        self.bufferDuration = bufferDuration
    }

    public var isEmpty: Bool { sampleRate == nil && bufferDuration == nil }
}

/// `OverrideOutput`'s argument (AVAudioSession.PortOverride). The raw value is the name on the wire.
public enum OutputOverride: String, CaseIterable, Sendable, Hashable, Codable {
    /// No override: the output of the category.
    case none
    /// The loudspeaker, until the route changes; only in play-and-record.
    case speaker
}
