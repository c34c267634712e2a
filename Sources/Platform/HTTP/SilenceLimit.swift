import EventLoop

/// How long a connection may be silent: while bytes move, and from the last byte of the request to the head of its answer.
/// It is a value: it gets the times, in microseconds.
struct SilenceLimit {
    enum Verdict: Equatable {
        case tooLong
        /// It must be looked at again then.
        case look(at: UInt64)
    }

    /// The limits, in seconds.
    let moving: Double
    let answering: Double
    /// When a byte last moved.
    private var movedAt: UInt64

    init(moving: Double, answering: Double, at now: UInt64) {
        (self.moving, self.answering, movedAt) = (moving, answering, now)
    }

    mutating func moved(at now: UInt64) { movedAt = now }

    func verdict(on progress: BodyProgress, isHeadWhole: Bool, at now: UInt64) -> Verdict {
        let isWaiting = progress.isSent && progress.delivered == progress.sent && !isHeadWhole
        let due = movedAt &+ MonotonicClock.microseconds(isWaiting ? answering : moving)
        if now >= due { return .tooLong }
        // No event says that the last byte was acknowledged, which begins the other limit.
        return .look(at: progress.isSent && !isWaiting && !isHeadWhole ? min(due, now &+ 1_000_000) : due)
    }
}
