/// What a session would like (`setPreferences`): wishes, not facts; what really is stands in its properties.
public struct Preferences: Sendable, Hashable {
    /// Hertz, 1,000…768,000; nil: no wish (AVAudioSession.setPreferredSampleRate).
    public var sampleRate: Double?
    /// Seconds, above 0 and up to 10; nil: no wish (AVAudioSession.setPreferredIOBufferDuration).
    public var ioBufferDuration: Double?
    /// Whether losing the output in use pauses it (AVAudioSession.setPrefersInterruptionOnRouteDisconnect).
    public var interruptsOnRouteDisconnect = true
    /// Whether alerts leave it playing (AVAudioSession.setPrefersNoInterruptionsFromSystemAlerts).
    public var noInterruptionsFromAlerts = false

    /// What may be wished for, in hertz.
    public static let sampleRates = 1_000.0...768_000.0
    /// The longest buffer that may be, in seconds; the shortest is above 0.
    public static let longestBuffer = 10.0

    /// What a new session has: no wishes, interrupted when its output goes, and by alerts.
    public init() {}
}

/// What sessions together would like of the device that plays.
public struct OutputWish: Sendable, Hashable {
    /// Hertz; nil: no wish.
    public var sampleRate: Double?
    /// Seconds of sound that the device is given at a time; nil: no wish.
    public var bufferDuration: Double?

    public init(sampleRate: Double? = nil, bufferDuration: Double? = nil) {
        self.sampleRate = sampleRate
        self.bufferDuration = bufferDuration
    }

    public var isEmpty: Bool { sampleRate == nil && bufferDuration == nil }
}

/// `OverrideOutput`'s argument (AVAudioSession.PortOverride). The raw value is the name on the wire.
public enum OutputOverride: String, CaseIterable, Sendable, Hashable {
    /// As the category has it.
    case none
    /// The loudspeaker, until the route changes; in play-and-record alone.
    case speaker
}
