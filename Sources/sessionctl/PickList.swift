import DBus
import PluginAPI

/// The state of a list from which the user picks items: the filter, the matching items, the cursor and the marks. It
/// uses neither a terminal nor the library.
struct PickList {
    typealias Row = [String: Value]

    enum Outcome: Equatable {
        case nothing
        /// Only the display has changed.
        case shown
        /// The filter has changed.
        case filtered
        case picked
        case cancelled
    }

    /// The number of rows in a page.
    static let pageSize = 200

    let picksSeveral: Bool
    private(set) var filter: String
    /// The number of items that match the filter.
    private(set) var count = 0
    private(set) var cursor = 0
    /// The first visible row.
    private(set) var top = 0
    private var pages: [Int: [Row]] = [:]
    /// The marked rows, in the order in which they were marked.
    private(set) var marked: [Row] = []
    private var markedIDs: Set<UInt64> = []

    init(picksSeveral: Bool, filter: String) { (self.picksSeveral, self.filter) = (picksSeveral, filter) }

    subscript(row: Int) -> Row? {
        guard let page = pages[row / Self.pageSize], page.indices.contains(row % Self.pageSize) else { return nil }
        return page[row % Self.pageSize]
    }

    func isMarked(_ row: Row) -> Bool { row["id"]?.uint64Value.map(markedIDs.contains) ?? false }

    /// The picked rows: the marked ones, otherwise the one at the cursor.
    var picked: [Row] { marked.isEmpty ? self[cursor].map { [$0] } ?? [] : marked }

    /// The first missing page of the visible rows.
    func missingPage(height: Int) -> Int? {
        guard count > 0 else { return nil }
        let last = min(count, top + max(1, height)) - 1
        return (top / Self.pageSize...max(top, last) / Self.pageSize).first { pages[$0] == nil }
    }

    /// Stores an answer of the library.
    /// - Parameter isNew: whether it is the first answer for a filter, or after a change of the library.
    mutating func learn(_ count: Int, page: Int, _ rows: [Row], isNew: Bool) {
        if isNew { pages = [:] }
        self.count = count
        pages[page] = rows
        cursor = max(0, min(cursor, count - 1))
    }

    /// Keeps the cursor in the visible rows.
    mutating func scroll(height: Int) {
        let height = max(1, height)
        if cursor < top { top = cursor }
        if cursor >= top + height { top = cursor - height + 1 }
        top = max(0, min(top, count - height))
    }

    mutating func press(_ key: Keyboard.Key, height: Int) -> Outcome {
        switch key {
        case .up: return move(to: cursor - 1)
        case .down: return move(to: cursor + 1)
        case .left, .right: return .nothing
        case .space: return filter.isEmpty || filter.hasSuffix(" ") ? .nothing : type(" ")
        case .letter(let letter): return letter.unicodeScalars.contains(where: \.isUnsafe) ? .nothing : type(letter)
        case .editing(.pageUp): return move(to: cursor - height)
        case .editing(.pageDown): return move(to: cursor + height)
        case .editing(.home): return move(to: 0)
        case .editing(.end): return move(to: count - 1)
        case .editing(.backspace): return filter.isEmpty ? .nothing : filter(by: String(filter.dropLast()))
        case .editing(.deleteAll): return filter.isEmpty ? .nothing : filter(by: "")
        case .editing(.tab): return mark()
        case .editing(.enter): return picked.isEmpty ? .nothing : .picked
        case .editing(.escape): return .cancelled
        }
    }

    private mutating func type(_ letter: Character) -> Outcome { filter(by: filter + String(letter)) }

    private mutating func filter(by text: String) -> Outcome {
        // The library does not accept longer texts.
        guard text.utf8.count <= 200 else { return .nothing }
        filter = text
        (cursor, top) = (0, 0)
        return .filtered
    }

    private mutating func move(to row: Int) -> Outcome {
        let target = max(0, min(row, count - 1))
        guard target != cursor else { return .nothing }
        cursor = target
        return .shown
    }

    /// Marks the row at the cursor, or removes its mark, and moves to the next row.
    private mutating func mark() -> Outcome {
        guard picksSeveral, let row = self[cursor], let id = row["id"]?.uint64Value else { return .nothing }
        if markedIDs.remove(id) != nil {
            marked.removeAll { $0["id"]?.uint64Value == id }
        } else {
            markedIDs.insert(id)
            marked.append(row)
        }
        _ = move(to: cursor + 1)
        return .shown
    }
}
