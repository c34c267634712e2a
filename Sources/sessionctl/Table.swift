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
    /// Columns that are never cut.
    var whole: Set<Int> = []
    /// Columns that are cut only to this width, if the last one can be moved below.
    var kept: [Int: Int] = [:]
    /// If there is no room for the last column beside the others, it is moved below them, this number of spaces from the
    /// left.
    var below: Int?
    private var rows: [[Cell]] = []
    private var hasHeading = false

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

    /// The first row: the titles of the columns.
    mutating func addHeader(_ titles: [String]) {
        hasHeading = true
        add(titles.map { Cell($0, .dim) })
    }

    func lines(on terminal: Terminal, width: Int?) -> [String] {
        var widths = naturalWidths
        guard let width else { return rows.flatMap { lines(of: $0, widths, Int.max, terminal) } }
        let last = shrink(&widths, to: width - indent)
        if let below, last < wanted {
            widths = naturalWidths
            narrow(&widths, to: width - indent, Self.leastMinimum)
            return rows.enumerated().flatMap { number, row in
                let isHeading = hasHeading && number == 0
                return stackedLines(
                    of: isHeading ? row.dropLast() + [Cell("")] : row, widths, width - indent - below, terminal)
            }
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

    /// The width that the last column wants.
    private var wanted: Int { min(Self.lastMinimum, rows.map { $0.last?.text.columns ?? 0 }.max() ?? 0) }

    /// Narrows the widest columns until the last one has enough room. Returns its width.
    private func shrink(_ widths: inout [Int], to available: Int) -> Int {
        func room() -> Int { available - widths.reduce(0) { $0 + $1 + Self.gap } }
        while room() < wanted, let widest = widest(widths, Self.minimum) { widths[widest] -= 1 }
        if below == nil {
            while room() < min(wanted, Self.minimum), let widest = widest(widths, Self.leastMinimum) {
                widths[widest] -= 1
            }
        }
        return max(Self.leastMinimum, room())
    }

    /// Narrows the widest columns until all but the last one have room.
    private func narrow(_ widths: inout [Int], to available: Int, _ minimum: Int) {
        while widths.reduce(0, { $0 + $1 + Self.gap }) - Self.gap > available {
            let free = widths.indices.filter { widths[$0] > minimum }
            // Without another choice, a whole column is cut, too.
            let loose = free.filter { !whole.contains($0) }
            guard let widest = (loose.isEmpty ? free : loose).max(by: { widths[$0] < widths[$1] }) else { return }
            widths[widest] -= 1
        }
    }

    private func widest(_ widths: [Int], _ minimum: Int) -> Int? {
        widths.indices.filter { !whole.contains($0) && widths[$0] > max(minimum, below == nil ? 0 : kept[$0] ?? 0) }
            .max { widths[$0] < widths[$1] }
    }

    /// The row, and below it the last cell.
    private func stackedLines(of row: [Cell], _ widths: [Int], _ room: Int, _ terminal: Terminal) -> [String] {
        guard row.count > 1, let final = row.last else {
            return lines(of: row, widths, room, terminal)
        }
        var first = row
        first[first.count - 1] = Cell("")
        let head = lines(of: first, widths, room, terminal).map(trimmed)
        guard !final.text.isEmpty else { return head }
        let margin = String(repeating: " ", count: indent + (below ?? 0))
        return head
            + final.text.wrapped(to: max(Self.leastMinimum, room)).map {
                margin + terminal.styled($0, final.style)
            }
    }

    private func lines(of row: [Cell], _ widths: [Int], _ last: Int, _ terminal: Terminal) -> [String] {
        guard let final = row.last else { return [""] }
        var line = String(repeating: " ", count: indent)
        for (cell, width) in zip(row.dropLast(), widths) {
            let text = cell.text.truncated(to: width)
            line += terminal.styled(text, cell.style)
            line += String(repeating: " ", count: width - text.columns + Self.gap)
        }
        let margin = indent + widths.prefix(row.count - 1).reduce(0) { $0 + $1 + Self.gap }
        // A short row has the room of the columns that it lacks, too.
        let spare = widths.dropFirst(row.count - 1).reduce(0) { $0 + $1 + Self.gap }
        let wrapped = final.text.wrapped(to: last == .max ? last : last + spare)
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
