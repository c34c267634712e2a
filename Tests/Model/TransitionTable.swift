/// The transitions of a state machine as text: a row for each input, a column for each state.
struct TransitionTable {
    private let nameWidth: Int
    private let cellWidth: Int
    private var lines: [String] = []

    /// `states` has the letter of each state, which is the head of its column.
    init(_ states: [Character], nameWidth: Int = 18, cellWidth: Int) {
        self.nameWidth = nameWidth
        self.cellWidth = cellWidth
        add("", states.map { String($0) })
    }

    mutating func add(_ input: String, _ cells: [String]) {
        let row = padded(input, nameWidth) + " | " + cells.map { padded($0, cellWidth) }.joined()
        lines.append(String(row.reversed().drop { $0 == " " }.reversed()))
    }

    var text: String { lines.joined(separator: "\n") }

    private func padded(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
