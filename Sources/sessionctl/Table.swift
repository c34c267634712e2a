/// Aligned columns. The last one is wrapped at the width of the terminal.
struct Table {
    struct Cell {
        var text: String
        var style: Style

        init(_ text: String, _ style: Style = .plain) {
            self.text = text
            self.style = style
        }
    }

    /// The number of spaces before each line.
    var indent = 0
    private var rows: [[Cell]] = []

    private static let gap = 2
    /// The minimal width of the last column, as long as other columns can be made narrower.
    private static let lastMinimum = 28
    /// The minimal width of each column: the length of `interrupted`.
    private static let minimum = 11
    /// The minimal width on a terminal that is too narrow for that.
    private static let leastMinimum = 4

    init(indent: Int = 0) { self.indent = indent }

    var isEmpty: Bool { rows.isEmpty }

    /// Texts of clients and servers must be ``Swift/String/escaped``.
    mutating func add(_ cells: [Cell]) { rows.append(cells) }

    mutating func addHeader(_ titles: [String]) { add(titles.map { Cell($0, .dim) }) }

    func lines(on terminal: Terminal, width: Int?) -> [String] {
        var widths = naturalWidths
        var last = Int.max
        if let width {
            last = shrink(&widths, to: width - indent)
        }
        return rows.flatMap { lines(of: $0, widths, last, terminal) }
    }

    /// The widths of all columns but the last, without a limit.
    private var naturalWidths: [Int] {
        let count = (rows.map(\.count).max() ?? 1) - 1
        return (0..<max(0, count)).map { column in
            rows.map { column < $0.count - 1 ? $0[column].text.columns : 0 }.max() ?? 0
        }
    }

    /// Narrows the widest columns until the last one has enough room. Returns its width.
    private func shrink(_ widths: inout [Int], to available: Int) -> Int {
        func room() -> Int { available - widths.reduce(0) { $0 + $1 + Self.gap } }
        let wanted = min(Self.lastMinimum, rows.map { $0.last?.text.columns ?? 0 }.max() ?? 0)
        while room() < wanted, let widest = widths.indices.max(by: { widths[$0] < widths[$1] }),
            widths[widest] > Self.minimum
        {
            widths[widest] -= 1
        }
        while room() < min(wanted, Self.minimum), let widest = widths.indices.max(by: { widths[$0] < widths[$1] }),
            widths[widest] > Self.leastMinimum
        {
            widths[widest] -= 1
        }
        return max(Self.leastMinimum, room())
    }

    private func lines(of row: [Cell], _ widths: [Int], _ last: Int, _ terminal: Terminal) -> [String] {
        guard let final = row.last else { return [""] }
        var line = String(repeating: " ", count: indent)
        for (cell, width) in zip(row.dropLast(), widths) {
            let text = cell.text.truncated(to: width)
            line += terminal.styled(text, cell.style)
            line += String(repeating: " ", count: width - text.columns + Self.gap)
        }
        let wrapped = final.text.wrapped(to: last)
        let margin = indent + widths.prefix(row.count - 1).reduce(0) { $0 + $1 + Self.gap }
        return wrapped.enumerated().map { number, text in
            let start = number == 0 ? line : String(repeating: " ", count: margin)
            let whole = start + terminal.styled(text, final.style)
            return text.isEmpty ? trimmed(whole) : whole
        }
    }

    private func trimmed(_ line: String) -> String {
        var line = line
        while line.hasSuffix(" ") { line.removeLast() }
        return line
    }
}

extension Output {
    static func write(_ table: Table) {
        let terminal = Terminal.standard
        for line in table.lines(on: terminal, width: terminal.size?.columns) { Output.line(line) }
    }
}
