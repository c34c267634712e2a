// The time of day at the axis.

extension Timeline {
    /// A moment with a label at the axis.
    public struct Tick: Hashable, Sendable {
        public let time: UInt64
        /// `14:05`, or `14:05:30` if there are several in one minute.
        public let label: String
    }

    /// The distances of labels, in seconds.
    private static let steps: [UInt64] = [
        1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    ]

    /// Round times of day, at most `limit` of them.
    public func ticks(atMost limit: Int) -> [Tick] {
        let wanted = UInt64(max(1, limit))
        let step =
            (Self.steps.first { length / ($0 * 1_000_000) + 1 <= wanted } ?? Self.days(length, wanted)) * 1_000_000
        let local = Int64(clamping: start) + offset
        let remainder = UInt64(Self.positive(local, UInt64(step)))
        var next = start + (remainder == 0 ? 0 : step - remainder)
        var ticks: [Tick] = []
        while next <= end, ticks.count < wanted {
            let text = clock(next)
            ticks.append(Tick(time: next, label: step < 60_000_000 ? text : String(text.prefix(5))))
            next += step
        }
        return ticks
    }

    private static func days(_ length: UInt64, _ wanted: UInt64) -> UInt64 {
        (length / 86_400_000_000 / wanted + 1) * 86_400
    }

    private static func positive(_ value: Int64, _ modulus: UInt64) -> Int64 {
        let modulus = Int64(clamping: modulus)
        return ((value % modulus) + modulus) % modulus
    }

    /// The time of day: `14:05:30`.
    public func clock(_ time: UInt64) -> String {
        let second = Self.positive(Int64(clamping: time) + offset, 86_400_000_000) / 1_000_000
        return [second / 3600, second / 60 % 60, second % 60].map { $0 < 10 ? "0\($0)" : String($0) }
            .joined(separator: ":")
    }

    /// A duration for people: `0.2 s`, `12 s`, `3 min`, `2 h`.
    public static func duration(_ microseconds: UInt64) -> String {
        let seconds = microseconds / 1_000_000
        switch seconds {
        case 0..<10:
            let tenths = (microseconds + 50_000) / 100_000
            return tenths % 10 == 0 ? "\(tenths / 10) s" : "\(tenths / 10).\(tenths % 10) s"
        case 10..<120: return "\(seconds) s"
        case 120..<7200: return "\(seconds / 60) min"
        case 7200..<172_800: return "\(seconds / 3600) h"
        default: return "\(seconds / 86_400) d"
        }
    }

    /// `14:02:10 to 14:12:10`.
    public var period: String { "\(clock(start)) to \(clock(end))" }
}
