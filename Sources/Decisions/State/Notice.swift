public import PluginAPI
public import SessionManager

/// A signal that must not be sent twice.
public enum Notice: Hashable, Sendable {
    case began(SessionID, InterruptionReason, by: SessionID?, byName: String)
    case ended(SessionID, shouldResume: Bool, microseconds: UInt64, reason: InterruptionReason)
    case ducking(SessionID, isDucked: Bool, gain: Double)
    case hint(SessionID, begin: Bool)
    case servicesLost
    case servicesReset

    /// Nil for an effect that causes no signal, or only property changes that clients read again.
    public init?(_ effect: Effect) {
        switch effect {
        case .interruptionBegan(let id, let interruption):
            self = .began(id, interruption.reason, by: interruption.by, byName: interruption.byName)
        case .interruptionEnded(let id, let shouldResume, let microseconds, let reason, _):
            self = .ended(id, shouldResume: shouldResume, microseconds: microseconds, reason: reason)
        case .duckingChanged(let id, let isDucked, let gain): self = .ducking(id, isDucked: isDucked, gain: gain)
        case .silenceSecondaryAudioHint(let id, let begin): self = .hint(id, begin: begin)
        case .servicesLost: self = .servicesLost
        case .servicesReset: self = .servicesReset
        case .created, .activated, .deactivated, .closed, .claimDropped, .interruptionIgnored, .mutedChanged,
            .routeChanged, .selectOutput, .selectInput, .propertiesChanged, .waitsChanged,
            .managerPropertiesChanged:
            return nil
        }
    }
}
