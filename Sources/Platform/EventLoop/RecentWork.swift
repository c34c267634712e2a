/// How often a loop woke up in the last minute, and how much processor time the process used.
///
/// Nothing wakes up for it: each wake-up is counted when it happens anyway.
public struct RecentWork: Sendable, Hashable {
    /// The counts until a time.
    private struct Mark: Sendable, Hashable {
        let time: UInt64
        let wakeUps: UInt64
        let processor: UInt64
    }

    /// The minute, in microseconds.
    public static let span: UInt64 = 60_000_000
    /// Microseconds between two marks, at least.
    private static let pace: UInt64 = 5_000_000

    /// Those of the last minute, oldest first.
    private var marks: [Mark] = []
    /// Since the loop was created.
    private var wakeUps: UInt64 = 0

    public init() {}

    /// The loop woke up at that time, in microseconds of ``MonotonicClock``.
    /// - Parameter processor: the processor time that the process has used until now, in microseconds. It is read once in
    ///   five seconds, at most.
    public mutating func wokeUp(at now: UInt64, processor: () -> UInt64) {
        if marks.last.map({ $0.time &+ RecentWork.pace <= now }) ?? true {
            forget(at: now)
            marks.append(Mark(time: now, wakeUps: wakeUps, processor: processor()))
        }
        wakeUps += 1
    }

    /// What was used in the minute before that time; up to five seconds at its beginning may be missing.
    /// - Returns: wake-ups, and microseconds of a processor.
    public func used(until now: UInt64, processor: UInt64) -> (wakeUps: UInt64, processor: UInt64) {
        guard let first = marks.first(where: { now &- $0.time <= RecentWork.span }) else { return (0, 0) }
        return (wakeUps - first.wakeUps, processor - min(processor, first.processor))
    }

    private mutating func forget(at now: UInt64) { marks.removeAll { now &- $0.time > RecentWork.span } }
}
