/// Whether a session has the sound. The raw value is the name on the wire.
public enum SessionState: String, CaseIterable, Sendable, Hashable {
    case inactive
    case active
    /// Silent, inactive to everyone else, and holding a claim to come back.
    case interrupted
}

/// Why a session was interrupted (AVAudioSession.InterruptionReason). The raw value is the name on the wire.
public enum InterruptionReason: String, CaseIterable, Sendable, Hashable {
    /// Another session.
    case `default`
    case appWasSuspended = "app-was-suspended"
    case builtInMicMuted = "built-in-mic-muted"
    case routeDisconnected = "route-disconnected"
}
