import DBus
import Glibc
import PluginAPI

/// One line of a terminal that is overwritten: the item that plays or records, the position, and the level.
struct ProgressLine {
    var state = ""
    var style = Style.good
    var title = ""
    var position = 0.0
    /// Seconds; nil if there is no known end.
    var duration: Double?
    /// The progress if it is not a time; shown instead of the position and the duration.
    var figures: String?
    /// A text shown instead of the levels.
    var remark = ""
    /// A text shown for a moment instead of the levels, such as a new volume.
    var note = ""
    /// Average and peak of each channel, in dBFS.
    var levels: [(average: Double, peak: Double)] = []

    private static let meterWidth = 10
    /// The level at the left end of a meter, in dBFS.
    private static let floor = -60.0

    /// Writes it where the cursor's line is.
    func draw() {
        let terminal = Terminal.standard
        // The last column stays free: a terminal may break the line there.
        Output.write("\r" + text(terminal, width: (terminal.size?.columns ?? 80) - 1) + "\u{1B}[K")
    }

    static func clear() { Output.write("\r\u{1B}[K") }

    private func text(_ terminal: Terminal, width: Int) -> String {
        let clock = figures ?? Wording.clock(position) + (duration.map { " / " + Wording.clock($0) } ?? "")
        let end = !remark.isEmpty ? remark : note.isEmpty ? meters : note
        // The first parts are cut last.
        var room = width - state.columns - clock.columns - 4
        let tail = end.columns + 2 <= room / 2 ? end : end.truncated(to: max(0, room / 2))
        room -= tail.isEmpty ? 0 : tail.columns + 2
        let name = title.truncated(to: max(0, duration == nil ? room : min(room, max(12, room * 2 / 3))))
        room -= name.columns + 2
        let progress = duration.map { bar(position / $0, width: room) } ?? ""
        let parts = [
            terminal.styled(state, style), terminal.styled(name, .strong), progress, clock,
            remark.isEmpty ? tail : terminal.styled(tail, .warning),
        ]
        return parts.filter { !$0.isEmpty }.joined(separator: "  ")
    }

    private func bar(_ share: Double, width: Int) -> String {
        guard width >= 6, share.isFinite else { return "" }
        let done = Wording.whole(share * Double(width), 0...width)
        let (full, empty) = Terminal.isUnicode ? ("━", "─") : ("=", "-")
        return String(repeating: full, count: done) + String(repeating: empty, count: width - done)
    }

    private var meters: String { levels.prefix(2).map { Self.meter($0.average, $0.peak) }.joined(separator: " ") }

    /// A bar as long as the average, with a mark where the peak is.
    private static func meter(_ average: Double, _ peak: Double) -> String {
        func cells(_ level: Double) -> Int {
            Wording.whole(((level - floor) / -floor * Double(meterWidth)).rounded(.up), 0...meterWidth)
        }
        let (full, empty, mark) = Terminal.isUnicode ? ("▮", "▯", "▸") : ("#", ".", "|")
        var meter = (0..<meterWidth).map { $0 < cells(average) ? full : empty }
        let top = cells(peak)
        if top > 0, top > cells(average) { meter[top - 1] = mark }
        return meter.joined()
    }

    /// Levels as returned by `Meters`: peak and average of each channel.
    static func levels(_ value: Value?) -> [(average: Double, peak: Double)] {
        (value?.arrayValue ?? []).compactMap { level in
            guard let fields = level.structureValue, fields.count == 2, let peak = fields[0].doubleValue,
                let average = fields[1].doubleValue
            else { return nil }
            return (average, peak)
        }
    }
}
