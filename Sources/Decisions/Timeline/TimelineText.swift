/// A timeline as lines of a terminal: a bar for each row.
public struct TimelineText: Sendable {
    /// A part of a line, in one style.
    public struct Piece: Hashable, Sendable {
        public enum Style: Hashable, Sendable { case plain, name, dim, state(Timeline.State) }

        public let text: String
        public let style: Style
    }

    /// How a terminal measures texts.
    public struct Measure: Sendable {
        /// Columns of a text.
        let columns: @Sendable (String) -> Int
        /// The text, cut or filled with spaces to exactly this number of columns.
        let fitted: @Sendable (String, Int) -> String

        public init(
            columns: @escaping @Sendable (String) -> Int, fitted: @escaping @Sendable (String, Int) -> String
        ) { (self.columns, self.fitted) = (columns, fitted) }
    }

    private let timeline: Timeline
    private let width: Int
    private let measure: Measure

    /// - Parameter width: the columns of the terminal; at least 24 are used.
    public init(_ timeline: Timeline, width: Int, _ measure: Measure) {
        (self.timeline, self.width, self.measure) = (timeline, max(24, width), measure)
    }

    /// Below this width, the kinds are not shown.
    private static let leastWithKinds = 60

    /// The character of a state: as high as what is heard.
    public static func character(_ state: Timeline.State) -> Character {
        switch state {
        case .heard: "█"
        case .ducked: "▄"
        case .muted: "×"
        case .waiting: "┄"
        }
    }

    /// The lines. Those of an empty timeline say that nobody was heard. At most `limit` marks are listed, the latest ones.
    public func lines(marks limit: Int = 20) -> [[Piece]] {
        guard !timeline.rows.isEmpty || !timeline.marks.isEmpty else {
            return [[Piece(text: "Nobody was heard from \(timeline.period).", style: .dim)]]
        }
        let names = timeline.rows.map { measure.columns($0.name) }.max() ?? 0
        let kinds = width < Self.leastWithKinds ? 0 : timeline.rows.map { measure.columns($0.kind) }.max() ?? 0
        let kindRoom = kinds == 0 ? 0 : kinds + 2
        let nameRoom = min(names, max(8, width / 3 - kindRoom / 2))
        let margin = names == 0 ? 0 : nameRoom + 2 + kindRoom
        let room = width - margin
        var lines = [axis(room, margin)]
        for row in timeline.rows {
            var line = [Piece(text: measure.fitted(row.name, nameRoom) + "  ", style: .name)]
            if kinds > 0 { line.append(Piece(text: measure.fitted(row.kind, kinds) + "  ", style: .dim)) }
            lines.append(line + bar(row, room))
        }
        if !timeline.marks.isEmpty { lines.append([space(margin)] + marks(room)) }
        lines += [[]] + legend(margin)
        let told = timeline.marks.suffix(limit)
        if told.count < timeline.marks.count {
            lines.append([Piece(text: "… and \(timeline.marks.count - told.count) earlier changes", style: .dim)])
        }
        for mark in told {
            let clock = timeline.clock(mark.time) + "  "
            for (number, text) in wrapped(mark.text, width - clock.count).enumerated() {
                lines.append([
                    number == 0 ? Piece(text: clock, style: .dim) : space(clock.count),
                    Piece(text: text, style: .plain),
                ])
            }
        }
        return lines
    }

    /// The text in lines of at most that many columns. Only a word that is longer than a line is cut.
    private func wrapped(_ text: String, _ room: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            let whole = measure.fitted(String(word), min(measure.columns(String(word)), room))
            if let last = lines.last, measure.columns(last) + 1 + measure.columns(whole) <= room {
                lines[lines.count - 1] = last + " " + whole
            } else {
                lines.append(whole)
            }
        }
        return lines
    }

    private func space(_ count: Int) -> Piece { Piece(text: String(repeating: " ", count: count), style: .plain) }

    /// The labels, each beginning at its time.
    private func axis(_ room: Int, _ margin: Int) -> [Piece] {
        var text = ""
        for tick in timeline.ticks(atMost: max(1, room / 10)) {
            let column = timeline.cell(at: tick.time, of: room)
            let label = "│" + tick.label
            guard column >= text.count, column + label.count <= room else { continue }
            text += String(repeating: " ", count: column - text.count) + label
        }
        return [space(margin), Piece(text: text, style: .dim)]
    }

    private func bar(_ row: Timeline.Row, _ room: Int) -> [Piece] {
        var pieces: [Piece] = []
        var cells = timeline.cells(of: row, room)[...]
        while let state = cells.last, state == nil { cells.removeLast() }
        while let first = cells.first {
            let same = cells.prefix { $0 == first }
            cells = cells.dropFirst(same.count)
            pieces.append(
                first.map {
                    Piece(text: String(repeating: Self.character($0), count: same.count), style: .state($0))
                } ?? space(same.count))
        }
        return pieces
    }

    private func marks(_ room: Int) -> [Piece] {
        let columns = Set(timeline.marks.map { timeline.cell(at: $0.time, of: room) })
        let last = columns.max() ?? 0
        return [Piece(text: String((0...last).map { columns.contains($0) ? "▲" : " " }), style: .dim)]
    }

    /// What the characters mean, as far as they occur.
    private func legend(_ margin: Int) -> [[Piece]] {
        var items: [[Piece]] = timeline.states.map {
            [
                Piece(text: String(repeating: Self.character($0), count: 2), style: .state($0)),
                Piece(text: " \($0.word)", style: .dim),
            ]
        }
        if !timeline.marks.isEmpty { items.append([Piece(text: "▲ what changed for all", style: .dim)]) }
        var lines: [[Piece]] = []
        var used = Int.max
        for item in items {
            let length = item.reduce(0) { $0 + measure.columns($1.text) }
            if used == .max || used + 3 + length > width {
                lines.append(item)
                used = length
            } else {
                lines[lines.count - 1] += [space(3)] + item
                used += 3 + length
            }
        }
        return lines
    }
}
