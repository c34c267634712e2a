import EventLoop

/// How long the report of a change waits, because the server is still changing its state.
struct SettleTime {
    enum Change {
        /// Nothing follows.
        case complete
        /// Perhaps one of several: PipeWire's session manager chooses a default in steps.
        case step
        /// A part of the change is not known yet.
        case incomplete
    }

    /// The time without another event after which a step was the last one, in seconds.
    static let quiet = 0.05
    /// How long a change may wait at all, in seconds.
    private static let longest = 0.25

    /// When the change began that is not reported; nil: there is none.
    private var since: UInt64?

    /// `isQuiet`: ``quiet`` has passed since the last event.
    /// - Returns: when the state must be evaluated again at the latest; nil: the change is reported now.
    mutating func end(of change: Change, isQuiet: Bool, at now: UInt64) -> UInt64? {
        let start = since ?? now
        let end = start &+ MonotonicClock.microseconds(SettleTime.longest)
        let isOver =
            switch change {
            case .complete: true
            case .step: isQuiet || now >= end
            case .incomplete: now >= end
            }
        since = isOver ? nil : start
        if isOver { return nil }
        return change == .step ? now &+ MonotonicClock.microseconds(SettleTime.quiet) : end
    }
}
