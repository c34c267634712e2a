/// A time in media (CMTime): a fraction of a second, without rounding. The time scale 600 represents pictures at 24,
/// 25, 30 and 60 per second exactly.
public struct MediaTime: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// In units of 1/``timescale`` s; may be negative.
    public let value: Int64
    /// Units per second; above 0.
    public let timescale: Int32

    public static let zero = MediaTime(value: 0, timescale: 1)

    /// The fraction is reduced, so that equal times are equal.
    /// - Parameter timescale: above 0; other values are a programming error.
    public init(value: Int64, timescale: Int32) {
        precondition(timescale > 0, "a time scale is above 0")
        var (larger, smaller) = (value.magnitude, UInt64(timescale))
        while smaller > 0 { (larger, smaller) = (smaller, larger % smaller) }
        let divisor = Int64(max(1, larger))
        self.value = value / divisor
        self.timescale = Int32(Int64(timescale) / divisor)
    }

    /// The nearest time with that time scale (CMTimeMakeWithSeconds). NaN becomes 0.
    public init(seconds: Double, preferredTimescale: Int32 = 600) {
        let parts = (seconds * Double(preferredTimescale)).rounded()
        let limit = 9.2e18
        self.init(
            value: parts.isNaN ? 0 : Int64(min(max(parts, -limit), limit)), timescale: preferredTimescale)
    }

    /// A number of nanoseconds, the unit of the service.
    public init(nanoseconds: Int64) { self.init(value: nanoseconds, timescale: 1_000_000_000) }

    public var seconds: Double { Double(value) / Double(timescale) }

    public static func < (one: MediaTime, other: MediaTime) -> Bool {
        let left = one.value.multipliedFullWidth(by: Int64(other.timescale))
        let right = other.value.multipliedFullWidth(by: Int64(one.timescale))
        return (left.high, left.low) < (right.high, right.low)
    }

    /// Exact, unless the sum needs a time scale above the largest one; then it is rounded to nanoseconds.
    public static func + (one: MediaTime, other: MediaTime) -> MediaTime {
        let scale = Int64(one.timescale) * Int64(other.timescale)
        let (left, isTooLarge) = one.value.multipliedReportingOverflow(by: Int64(other.timescale))
        let (right, isOtherTooLarge) = other.value.multipliedReportingOverflow(by: Int64(one.timescale))
        let (sum, isSumTooLarge) = left.addingReportingOverflow(right)
        guard !isTooLarge, !isOtherTooLarge, !isSumTooLarge, let reduced = MediaTime(sum, scale) else {
            return MediaTime(seconds: one.seconds + other.seconds, preferredTimescale: 1_000_000_000)
        }
        return reduced
    }

    public static func - (one: MediaTime, other: MediaTime) -> MediaTime {
        one + MediaTime(value: -other.value, timescale: other.timescale)
    }

    /// Nil if the reduced time scale is too large.
    private init?(_ value: Int64, _ scale: Int64) {
        var (larger, smaller) = (value.magnitude, scale.magnitude)
        while smaller > 0 { (larger, smaller) = (smaller, larger % smaller) }
        let divisor = Int64(max(1, larger))
        guard let scale = Int32(exactly: scale / divisor) else { return nil }
        self.init(value: value / divisor, timescale: scale)
    }

    public var description: String { "\(value)/\(timescale) s" }
}
