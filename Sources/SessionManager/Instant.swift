/// A point on the monotonic clock, in microseconds. The core never reads a clock: it is told.
public struct Instant: Hashable, Comparable, Sendable {
    /// Since a beginning that only the shell knows.
    public let microseconds: UInt64
    public init(microseconds: UInt64) { self.microseconds = microseconds }
    public static func < (a: Instant, b: Instant) -> Bool { a.microseconds < b.microseconds }

    /// Saturates at the end of time; a negative number of seconds counts as none.
    public func advanced(bySeconds seconds: Double) -> Instant {
        let (sum, overflow) = microseconds.addingReportingOverflow(
            seconds > 0 ? UInt64(min(seconds, 1e12) * 1_000_000) : 0)
        return Instant(microseconds: overflow ? .max : sum)
    }

    /// Microseconds since `earlier`; 0 where that is later.
    public func since(_ earlier: Instant) -> UInt64 {
        microseconds > earlier.microseconds ? microseconds - earlier.microseconds : 0
    }
}
