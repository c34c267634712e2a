public import PluginAPI

/// What one event changed of waiting, and of nothing else, for sessions that were interrupted before: a session that all
/// of them wait for now, or no longer do.
public struct WaitChange: Sendable, Hashable {
    /// Who is waited for.
    public let owner: SessionID
    /// Who waits for it, or no longer does.
    public internal(set) var waiters: SessionSet
    /// False: they wait for it from now on.
    public let isOver: Bool
    /// Why that one's going recommends no resume; nil: it does.
    public let spoiler: Cause?

    public init(owner: SessionID, waiters: SessionSet, isOver: Bool, spoiler: Cause? = nil) {
        self.owner = owner
        self.waiters = waiters
        self.isOver = isOver
        self.spoiler = spoiler
    }
}

extension Memory.Member {
    /// Takes over what happened to it as one of the change's waiters.
    public mutating func apply(_ change: WaitChange) {
        guard change.isOver else {
            waitingFor.insert(change.owner)
            return
        }
        waitingFor.remove(change.owner)
        if let spoiler = change.spoiler, interruption?.spoiler == nil { interruption?.spoiler = spoiler }
    }
}
