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
    /// Whether the muted microphone keeps the session silent, besides the sessions that it waits for.
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

    /// Whether the interruption ends when the last wait ends. One by an unplugged output ends only by a replug or an
    /// activation.
    var endsByItself: Bool { reason != .routeDisconnected }
}
