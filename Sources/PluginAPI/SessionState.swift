/// Whether a session has the sound. The raw value is the name on the wire.
public enum SessionState: String, CaseIterable, Sendable, Hashable {
    /// It has not asked for the sound, gave it back, or got `ended` and may still hold its claim for a while.
    case inactive
    /// It may sound, as far as nothing mutes or lowers it.
    case active
    /// Silent, inactive to everyone else, and holding a claim to come back.
    case interrupted
}

/// Why a session was interrupted (AVAudioSession.InterruptionReason). The raw value is the name on the wire.
public enum InterruptionReason: String, CaseIterable, Sendable, Hashable {
    /// Another session.
    case `default`
    /// AVAudioSession's, in the contract; this service gives it to nobody.
    case appWasSuspended = "app-was-suspended"
    /// The microphone it records from was muted, and it has no ``Options/overrideMutedMicrophoneInterruption``.
    case builtInMicMuted = "built-in-mic-muted"
    /// The output it played on went; no `ended` follows by itself.
    case routeDisconnected = "route-disconnected"
}
