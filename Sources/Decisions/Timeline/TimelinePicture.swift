/// A timeline as an SVG picture, for light and dark screens.
public struct TimelinePicture: Sendable {
    private let timeline: Timeline
    private let title: String

    /// - Parameter title: what the picture shows, for people.
    public init(_ timeline: Timeline, title: String) { (self.timeline, self.title) = (timeline, title) }

    // In the picture's own units, which are pixels at its natural size.
    private static let width = 960.0
    private static let gutter = 176.0
    private static let edge = 24.0
    private static let top = 88.0
    private static let rowHeight = 46.0
    private static let barHeight = 22.0
    /// The width of a character, at most.
    private static let letter = 7.2

    /// The colours. A page that contains the picture uses the same ones.
    static let colours = """
        :root { color-scheme: light dark; --paper: #ffffff; --band: #f4f6fa; --edge: #d9dfe9; --ink: #1b2333; --dim: #5d6a80;
          --heard: #16875b; --ducked: #d08a14; --muted: #c9343b; --waiting: #7d8aa3; --onheard: #ffffff; --onducked: #1b2333; }
        @media (prefers-color-scheme: dark) { :root { --paper: #12161d; --band: #1a202a; --edge: #333d4d; --ink: #e8ecf3;
          --dim: #9aa7bb; --heard: #3fc28c; --ducked: #eab14c; --muted: #ff7b7f; --waiting: #8593ab; --onheard: #06231a;
          --onducked: #2a1c02; } }
        """

    static let shapes = """
        .t { font: 13px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink); }
        .h { font-size: 18px; font-weight: 650; }
        .n { font-weight: 600; }
        .d { fill: var(--dim); font-size: 12px; }
        .grid { stroke: var(--edge); }
        .band { fill: var(--band); }
        .heard { fill: var(--heard); }
        .ducked { fill: var(--ducked); }
        .muted { fill: none; stroke: var(--muted); stroke-width: 1.5; stroke-dasharray: 2 3; }
        .waiting { stroke: var(--waiting); stroke-width: 2.5; stroke-dasharray: 5 4; }
        .mark { stroke: var(--dim); stroke-dasharray: 1 3; }
        .flag { fill: var(--dim); }
        .in { font-size: 12px; font-weight: 500; }
        .on-heard { fill: var(--onheard); }
        .on-waiting, .on-muted { fill: var(--dim); }
        """

    /// A complete file.
    public var svg: String { drawing(isFile: true) }

    /// The picture as a part of a page, whose style has the colours and shapes.
    var element: String { drawing(isFile: false) }

    private var room: Double { Self.width - Self.gutter - 2 * Self.edge }
    private var left: Double { Self.edge + Self.gutter }
    private var bottom: Double { Self.top + Double(max(1, timeline.rows.count)) * Self.rowHeight }

    private func x(_ time: UInt64) -> Double {
        left + room * Double(min(max(time, timeline.start), timeline.end) - timeline.start) / Double(timeline.length)
    }

    private func drawing(isFile: Bool) -> String {
        let height = bottom + (timeline.marks.isEmpty ? 0 : 22) + 48
        let size = "\(Markup.number(Self.width)) \(Markup.number(height))"
        var parts = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(size)\" width=\"\(Markup.number(Self.width))\" "
                + "height=\"\(Markup.number(height))\" role=\"img\">",
            "<title>\(Markup.escaped(title))</title>", "<desc>\(Markup.escaped(description))</desc>",
        ]
        if isFile {
            parts.append("<style>\n\(Self.colours)\n\(Self.shapes)\n</style>")
            parts.append(
                "<rect x=\"0.5\" y=\"0.5\" width=\"\(Markup.number(Self.width - 1))\" height=\"\(Markup.number(height - 1))\" "
                    + "rx=\"12\" fill=\"var(--paper)\" stroke=\"var(--edge)\"/>")
            parts.append(text(Self.edge, 38, title, "t h"))
        }
        parts += axis + marks
        for (index, row) in timeline.rows.enumerated() { parts += draw(row, Self.top + Double(index) * Self.rowHeight) }
        if timeline.rows.isEmpty { parts.append(text(left, Self.top + 28, "Nobody was heard.", "t d")) }
        parts += legend(height - 22)
        return (parts + ["</svg>"]).joined(separator: "\n") + "\n"
    }

    /// The same in words, for those who do not see the picture.
    private var description: String {
        timeline.events.map { event in
            let who = event.name.isEmpty ? "" : event.name + ": "
            let length = event.state == nil ? "" : ", \(Timeline.duration(event.length))"
            return "\(timeline.clock(event.time)) \(who)\(event.text)\(length)"
        }.joined(separator: "\n")
    }

    private var axis: [String] {
        timeline.ticks(atMost: 8).flatMap { tick -> [String] in
            let position = x(tick.time)
            // A label at the right edge would be cut.
            let anchor = position > Self.width - 60 ? "end" : "middle"
            return [
                line(position, Self.top - 8, position, bottom, "grid"),
                text(position, Self.top - 16, tick.label, "t d", anchor: anchor),
            ]
        }
    }

    private var marks: [String] {
        timeline.marks.map { mark in
            let position = x(mark.time)
            let title = "<title>\(Markup.escaped("\(timeline.clock(mark.time)) \(mark.text)"))</title>"
            let flag =
                "<path class=\"flag\" d=\"M\(Markup.number(position)) \(Markup.number(bottom + 4)) l5 9 h-10 z\"/>"
            return "<g>\(title)\(line(position, Self.top - 8, position, bottom + 4, "mark"))\(flag)</g>"
        }
    }

    private func draw(_ row: Timeline.Row, _ top: Double) -> [String] {
        let middle = top + Self.rowHeight / 2
        let bar = middle - Self.barHeight / 2
        var parts = [
            rectangle(left, bar - 3, room, Self.barHeight + 6, "band", radius: 6),
            // A long name is cut at the bars.
            "<svg x=\"\(Markup.number(Self.edge))\" y=\"\(Markup.number(top))\" width=\"\(Markup.number(Self.gutter - 14))\" "
                + "height=\"\(Markup.number(Self.rowHeight))\"><title>\(Markup.escaped(row.name))</title>"
                + text(0, row.kind.isEmpty ? 28 : 21, Self.short(row.name), "t n") + text(0, 37, row.kind, "t d")
                + "</svg>",
        ]
        for span in row.spans {
            // Also a very short span is seen.
            let from = min(x(span.start), left + room - 2)
            let width = max(2, x(span.end) - from)
            let note = span.note.isEmpty ? span.state.word : span.note
            let told =
                "\(row.name): \(note), \(timeline.clock(span.start)), \(Timeline.duration(span.end - span.start))"
            let shape: String
            switch span.state {
            case .heard: shape = rectangle(from, bar, width, Self.barHeight, "heard", radius: min(4, width / 2))
            case .ducked:
                let height = Self.barHeight * 0.4
                shape = rectangle(
                    from, bar + Self.barHeight - height, width, height, "ducked", radius: min(3, width / 2))
            case .muted: shape = rectangle(from + 1, bar + 1, max(1, width - 2), Self.barHeight - 2, "muted", radius: 4)
            case .waiting:
                shape = line(from, bar + Self.barHeight - 2, from + width, bar + Self.barHeight - 2, "waiting")
            }
            parts.append("<g><title>\(Markup.escaped(told))</title>\(shape)\(label(span, note, from, width, bar))</g>")
        }
        return parts
    }

    /// The most characters of a name beside the bars.
    private static let mostLetters = 21

    private static func short(_ name: String) -> String {
        name.count > mostLetters ? name.prefix(mostLetters - 1) + "…" : name
    }

    /// What a bar means, if there is room in or above it.
    private func label(_ span: Timeline.Span, _ note: String, _ from: Double, _ width: Double, _ bar: Double) -> String
    {
        let texts = span.state == .heard ? [Timeline.duration(span.end - span.start)] : [note, span.state.word]
        guard let short = texts.first(where: { Double($0.count) * Self.letter + 10 <= width }) else { return "" }
        switch span.state {
        case .heard: return text(from + 8, bar + 15.5, short, "t in on-heard")
        case .ducked: return text(from + 2, bar + 9.5, short, "t in on-waiting")
        case .muted: return text(from + 8, bar + 15.5, short, "t in on-muted")
        case .waiting: return text(from + 2, bar + 14, short, "t in on-waiting")
        }
    }

    private func legend(_ y: Double) -> [String] {
        var parts: [String] = []
        var position = left
        for state in timeline.states {
            switch state {
            case .heard: parts.append(rectangle(position, y - 10, 22, 12, "heard", radius: 3))
            case .ducked: parts.append(rectangle(position, y - 3, 22, 5, "ducked", radius: 2))
            case .muted: parts.append(rectangle(position, y - 9, 22, 10, "muted", radius: 3))
            case .waiting: parts.append(line(position, y, position + 22, y, "waiting"))
            }
            parts.append(text(position + 30, y + 1, state.word, "t d"))
            position += 52 + Double(state.word.count) * Self.letter
        }
        if !timeline.marks.isEmpty {
            parts.append(
                "<path class=\"flag\" d=\"M\(Markup.number(position + 6)) \(Markup.number(y - 9)) l5 9 h-10 z\"/>")
            parts.append(text(position + 20, y + 1, "what changed for all", "t d"))
        }
        return parts
    }

    // MARK: Elements

    private func rectangle(
        _ x: Double, _ y: Double, _ width: Double, _ height: Double, _ style: String, radius: Double
    ) -> String {
        "<rect x=\"\(Markup.number(x))\" y=\"\(Markup.number(y))\" width=\"\(Markup.number(width))\" "
            + "height=\"\(Markup.number(height))\" rx=\"\(Markup.number(radius))\" class=\"\(style)\"/>"
    }

    private func line(_ x1: Double, _ y1: Double, _ x2: Double, _ y2: Double, _ style: String) -> String {
        "<line x1=\"\(Markup.number(x1))\" y1=\"\(Markup.number(y1))\" x2=\"\(Markup.number(x2))\" "
            + "y2=\"\(Markup.number(y2))\" class=\"\(style)\"/>"
    }

    private func text(_ x: Double, _ y: Double, _ text: String, _ style: String, anchor: String = "start") -> String {
        guard !text.isEmpty else { return "" }
        return "<text x=\"\(Markup.number(x))\" y=\"\(Markup.number(y))\" class=\"\(style)\""
            + (anchor == "start" ? "" : " text-anchor=\"\(anchor)\"") + ">\(Markup.escaped(text))</text>"
    }
}
