public import DBus
public import PluginAPI

/// A signal for a session, as received from the bus.
public enum SessionEvent: Sendable, Hashable {
    /// The cause: the session's path and name; without a session `/`, and the name of the unplugged output, or "".
    /// The number of the decision; 0 if unknown.
    case interruptionBegan(reason: InterruptionReason, by: String, byName: String, sequence: UInt64)
    /// The duration; the number of the decision, 0 if unknown.
    case interruptionEnded(shouldResume: Bool, microseconds: UInt64, sequence: UInt64)
    /// Decibels, 0 when no longer ducked.
    case duckingChanged(isDucked: Bool, gain: Double)
    /// The part of the route that the session's category uses.
    case routeChanged(RouteChangeReason, previous: Route, current: Route)
    /// Whether secondary sound should be silent from now on.
    case silenceSecondaryAudioHint(begin: Bool)
    /// By the silent switch or the screen lock; sent as a change of the property.
    case mutedChanged(Bool)

    /// Reads a signal on a session's path; nil for other signals, or if it is not as in the contract.
    public init?(_ message: Message) {
        guard let values = try? message.arguments() else { return nil }
        switch (message.member, values.count) {
        case ("InterruptionBegan", 2):
            let details = values[1].asProperties ?? [:]
            guard let reason = values[0].stringValue.flatMap(InterruptionReason.init(rawValue:)) else { return nil }
            self = .interruptionBegan(
                reason: reason, by: details["by"]?.objectPathValue ?? ObjectPath.none,
                byName: details["by-name"]?.stringValue ?? "", sequence: details["sequence"]?.uint64Value ?? 0)
        case ("InterruptionEnded", 2):
            let details = values[1].asProperties ?? [:]
            guard let shouldResume = values[0].boolValue else { return nil }
            self = .interruptionEnded(
                shouldResume: shouldResume, microseconds: details["duration-usec"]?.uint64Value ?? 0,
                sequence: details["sequence"]?.uint64Value ?? 0)
        case ("DuckingChanged", 2):
            guard let isDucked = values[0].boolValue, let gain = values[1].doubleValue else { return nil }
            self = .duckingChanged(isDucked: isDucked, gain: gain)
        case ("RouteChanged", 3):
            guard let reason = values[0].uint32Value.flatMap(RouteChangeReason.init(rawValue:)),
                let previous = values[1].route, let current = values[2].route
            else { return nil }
            self = .routeChanged(reason, previous: previous, current: current)
        case ("SilenceSecondaryAudioHint", 1):
            guard let begin = values[0].boolValue else { return nil }
            self = .silenceSecondaryAudioHint(begin: begin)
        case ("PropertiesChanged", 3):
            guard let muted = values[1].asProperties?["Muted"]?.boolValue else { return nil }
            self = .mutedChanged(muted)
        default: return nil
        }
    }
}
