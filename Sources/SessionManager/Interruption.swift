public import PluginAPI

/// One interruption: from `began` to `ended`.
public struct Interruption: Sendable, Hashable, Codable {
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
    /// The session's outputs that were unplugged, by their uids: those whose loss is the reason, or those that were lost
    /// during it and are not back.
    public var away: [AwayOutput]
    /// The first reason against the should-resume hint (R8): a session that left without notify-others, or a conflict
    /// that ended. Nil: none.
    public var spoiler: Cause?

    public init(
        reason: InterruptionReason, by: SessionID?, byName: String, since: Instant, rule: Rule, order: UInt64,
        microphoneMuted: Bool = false, away: [AwayOutput] = [], spoiler: Cause? = nil
    ) {
        self.reason = reason
        self.by = by
        self.byName = byName
        self.since = since
        self.rule = rule
        self.order = order
        self.microphoneMuted = microphoneMuted
        self.away = away
        self.spoiler = spoiler
    }

    /// Whether all sessions that have left so far recommended to resume (R8).
    public var recommendsResume: Bool { spoiler == nil }

    /// Whether it ends without the should-resume hint because an output was lost during it, and is not back (§7).
    public var lacksOutput: Bool { endsByItself && !away.isEmpty }

    /// Whether it would end with the should-resume hint now.
    var mayResume: Bool { recommendsResume && !lacksOutput }

    /// Whether the interruption ends when the last wait ends. One by an unplugged output ends only by a replug or an
    /// activation.
    var endsByItself: Bool { reason != .routeDisconnected }
}

/// An output that was unplugged.
public struct AwayOutput: Sendable, Hashable, Codable {
    public var uid: String
    /// For display.
    public var name: String

    public init(uid: String, name: String) {
        self.uid = uid
        self.name = name
    }

    init(_ port: Port) { self.init(uid: port.uid, name: port.name) }

    /// Whether the port is that output; a Bluetooth headset in any of its profiles.
    func isSame(as port: Port) -> Bool { uid == port.uid || port.isHeadset && port.device == Port.device(of: uid) }
}

extension Port {
    /// Whether it is the output of a Bluetooth headset, which has another one in each profile.
    var isHeadset: Bool { type == .bluetoothA2DP || type == .bluetoothHFP }
}
