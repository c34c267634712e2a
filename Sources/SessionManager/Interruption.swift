public import PluginAPI

/// A stretch of being interrupted: from one `began` to its `ended`.
public struct Interruption: Sendable, Hashable {
    public var reason: InterruptionReason
    /// Who caused it; nil where no session did.
    public var by: SessionID?
    /// That session's name, kept for when it has gone; where a route was disconnected, the output's.
    public var byName: String
    public var since: Instant
    public var rule: Rule
    /// Interruptions in the order they were told.
    public var order: UInt64
    /// Held by the muted microphone, whoever else is waited for.
    public var microphoneMuted: Bool
    /// Who left, or no longer conflicts, without recommending to resume, first of all; nil: everyone recommended (R8).
    public var spoiler: Cause?

    public init(
        reason: InterruptionReason, by: SessionID?, byName: String, since: Instant, rule: Rule, order: UInt64,
        microphoneMuted: Bool = false, spoiler: Cause? = nil
    ) {
        self.reason = reason
        self.by = by
        self.byName = byName
        self.since = since
        self.rule = rule
        self.order = order
        self.microphoneMuted = microphoneMuted
        self.spoiler = spoiler
    }

    /// Whether everyone who has left so far recommended to resume (R8).
    public var recommendsResume: Bool { spoiler == nil }

    /// A disconnected route does not come back because somebody else left.
    var endsByItself: Bool { reason != .routeDisconnected }
}
