public import PluginAPI

/// A change of waits only, for sessions that were already interrupted: a session that all of them wait for from now on,
/// or no longer wait for.
public struct WaitChange: Sendable, Hashable {
    /// The session they wait for.
    public let owner: SessionID
    /// The sessions that wait for it, or no longer do.
    public internal(set) var waiters: SessionSet
    /// False: they wait for it from now on.
    public let isOver: Bool
    /// Why its end gives no should-resume hint; nil: it does.
    public let spoiler: Cause?

    public init(owner: SessionID, waiters: SessionSet, isOver: Bool, spoiler: Cause? = nil) {
        self.owner = owner
        self.waiters = waiters
        self.isOver = isOver
        self.spoiler = spoiler
    }
}

extension Memory.Member {
    /// Applies the change to one of the waiting sessions.
    public mutating func apply(_ change: WaitChange) {
        guard change.isOver else {
            waitingFor.insert(change.owner)
            return
        }
        waitingFor.remove(change.owner)
        if let spoiler = change.spoiler, interruption?.spoiler == nil { interruption?.spoiler = spoiler }
    }
}
