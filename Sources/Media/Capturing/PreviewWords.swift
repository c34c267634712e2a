/// The line at the bottom of a preview: the time, and the level of the microphone.
package struct PreviewWords: Sendable, Hashable {
    /// Of the film, or since the camera runs.
    package let seconds: Double
    package let isRecording: Bool
    package let isPaused: Bool
    /// In dBFS; nil: there is no microphone.
    package let level: Double?

    private static let cells = 10
    /// The level at the left end of the meter, in dBFS.
    private static let floor = -60.0

    package init(seconds: Double, isRecording: Bool, isPaused: Bool, level: Double?) {
        (self.seconds, self.isRecording, self.isPaused, self.level) = (seconds, isRecording, isPaused, level)
    }

    /// Such as `● 1:02  ▮▮▮▮▯▯▯▯▯▯`.
    package var text: String {
        let sign = isPaused ? "▮▮ " : isRecording ? "● " : ""
        return sign + clock + (level.map { "  " + Self.meter($0) } ?? "")
    }

    private var clock: String {
        let all = seconds.isFinite ? Int(min(max(0, seconds), 1e9)) : 0
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let minutes = all / 60 % 60
        return (all >= 3_600 ? "\(all / 3_600):\(two(minutes))" : "\(minutes)") + ":\(two(all % 60))"
    }

    private static func meter(_ level: Double) -> String {
        let share = level.isFinite ? (level - floor) / -floor : 0
        let full = Int((min(max(0, share), 1) * Double(cells)).rounded(.up))
        return String(repeating: "▮", count: full) + String(repeating: "▯", count: cells - full)
    }
}
