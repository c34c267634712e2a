/// A point in time on the monotonic clock, in microseconds. The rules never read a clock; they get the time.
public struct Instant: Hashable, Comparable, Sendable, Codable {
    /// Since a start that only the caller knows.
    public let microseconds: UInt64
    public init(microseconds: UInt64) { self.microseconds = microseconds }

    public init(from decoder: any Decoder) throws {
        microseconds = try decoder.singleValueContainer().decode(UInt64.self)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(microseconds)
    }

    public static func < (a: Instant, b: Instant) -> Bool { a.microseconds < b.microseconds }

    /// Saturates at the maximum; a negative number of seconds counts as 0.
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
