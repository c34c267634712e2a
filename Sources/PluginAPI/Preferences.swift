/// What a session would like (`setPreferences`): wishes, not facts; what really is stands in its properties.
public struct Preferences: Sendable, Hashable {
    /// Hertz, 1,000…768,000; nil: no wish.
    public var sampleRate: Double?
    /// Seconds, above 0 and up to 10; nil: no wish.
    public var ioBufferDuration: Double?
    /// Whether losing the output in use pauses it.
    public var interruptsOnRouteDisconnect = true
    /// Whether alerts leave it playing (AVAudioSession.setPrefersNoInterruptionsFromSystemAlerts).
    public var noInterruptionsFromAlerts = false

    public init() {}
}

/// `OverrideOutput`'s argument (AVAudioSession.PortOverride). The raw value is the name on the wire.
public enum OutputOverride: String, CaseIterable, Sendable, Hashable {
    case none
    case speaker
}
