/// Whether a session may play or record. The raw value is the name on the wire.
public enum SessionState: String, CaseIterable, Sendable, Hashable, Codable {
    /// It has not been activated, was deactivated, or its interruption ended and it may still hold a claim for a while.
    ///
    /// Can transition to: `active`; `interrupted`, if its output is unplugged or the microphone is muted.
    case inactive
    /// It may play or record, unless it is muted or ducked.
    ///
    /// Can transition to: `inactive`, `interrupted`.
    case active
    /// Silent and inactive for all others, but it holds a claim to come back.
    ///
    /// Can transition to: `inactive`, when the interruption ends or it gives up; `active`, when it takes the sound back.
    case interrupted
}

/// Why a session was interrupted (AVAudioSession.InterruptionReason). The raw value is the name on the wire.
public enum InterruptionReason: String, CaseIterable, Sendable, Hashable, Codable {
    /// Another session interrupted it.
    case `default`
    /// From AVAudioSession and in the contract; this service never uses it.
    case appWasSuspended = "app-was-suspended"
    /// The microphone it records from was muted, and it has no ``Options/overrideMutedMicrophoneInterruption``.
    case builtInMicMuted = "built-in-mic-muted"
    /// Its output was unplugged; the interruption does not end automatically.
    case routeDisconnected = "route-disconnected"
}
