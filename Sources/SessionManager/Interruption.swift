public import PluginAPI

/// One interruption: from `began` to `ended`.
public struct Interruption: Sendable, Hashable {
    public var reason: InterruptionReason
    /// The session that caused it; nil if none did.
    public var by: SessionID?
    /// That session's name, kept for the time after it has gone; for a disconnected route, the output's name.
    public var byName: String
    public var since: Instant
    public var rule: Rule
    /// The order in which interruptions were reported.
    public var order: UInt64
    /// Also held by the muted microphone.
    public var microphoneMuted: Bool
    /// The first reason against the should-resume hint (R8): a session that left without notify-others, or a conflict
    /// that ended. Nil: none.
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

    /// Whether all sessions that have left so far recommended to resume (R8).
    public var recommendsResume: Bool { spoiler == nil }

    /// A disconnected route does not come back when another session leaves.
    var endsByItself: Bool { reason != .routeDisconnected }
}
