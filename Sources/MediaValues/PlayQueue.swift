public import PluginAPI

/// The items to play and their order. It is a value without a clock, a file or a bus.
///
/// If the queue is not empty, one item is the current one. Items keep their ids while they are in the queue, and ids
/// are never reused.
public struct PlayQueue: Sendable {
    /// An entry with its own number: the same URI may be in the queue twice.
    public struct Item: Sendable, Hashable {
        /// From 1.
        public let id: UInt64
        /// As added, with metadata that became known later (``PlayQueue/learn(_:title:duration:)``).
        public fileprivate(set) var entry: PlaylistEntry
        /// The nesting depth of the playlists it came from.
        public let depth: Int
        /// It could not be played; skipped until it is selected explicitly.
        public fileprivate(set) var hasFailed = false
    }

    /// The limit of items. No user listens to more, and they need little memory.
    public static let limit = 10_000

    /// In the order in which they were added.
    public private(set) var items: [Item] = [] {
        didSet { revision &+= 1 }
    }
    /// A new value after every change of ``items``.
    package private(set) var revision: UInt64 = 0
    package private(set) var currentID: UInt64?
    /// After the last item comes the first one.
    public var repeatsAll = false
    /// See ``setShuffled(_:)``.
    public private(set) var isShuffled = false
    /// The ids in the order of playing.
    private var order: [UInt64] = []
    private var lastID: UInt64 = 0

    public init() {}

    /// The item that plays, or plays next; nil only if the queue is empty.
    public var current: Item? { currentID.flatMap { self[$0] } }
    /// Nil if it is not in the queue.
    public subscript(id: UInt64) -> Item? { items.first { $0.id == id } }
    /// How many more items can be added.
    public var room: Int { PlayQueue.limit - items.count }

    // MARK: Items

    /// Replaces all items; the item at `start` becomes the current one.
    public mutating func replaceAll(with entries: [PlaylistEntry], startingAt start: Int = 0) {
        items = []
        order = []
        currentID = nil
        _ = insert(entries, at: 0)
        if items.indices.contains(start) { currentID = items[start].id }
        if isShuffled { shuffle() }
    }

    /// Inserts items behind the item `after`; nil: before all others. Returns their ids. Items above the limit are
    /// ignored.
    public mutating func insert(_ entries: [PlaylistEntry], after: UInt64?) -> [UInt64] {
        insert(entries, at: after.flatMap(place(of:)).map { $0 + 1 } ?? 0)
    }

    /// Adds items at the end and returns their ids. Items above the limit are ignored.
    public mutating func append(_ entries: [PlaylistEntry]) -> [UInt64] { insert(entries, at: items.count) }

    private mutating func insert(_ entries: [PlaylistEntry], at place: Int, depth: Int = 0) -> [UInt64] {
        let new = make(entries, depth: depth)
        items.insert(contentsOf: new, at: place)
        let ids = new.map(\.id)
        if isShuffled {
            let first = currentID.flatMap { order.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
            for id in ids { order.insert(id, at: Int.random(in: first...order.count)) }
        } else {
            order = items.map(\.id)
        }
        if currentID == nil { currentID = order.first }
        return ids
    }

    private mutating func make(_ entries: [PlaylistEntry], depth: Int) -> [Item] {
        entries.prefix(max(0, room)).map { entry in
            lastID += 1
            return Item(id: lastID, entry: entry, depth: depth)
        }
    }

    /// Removes an item; if it is the current one, the next item becomes current, else the previous one.
    public mutating func remove(_ id: UInt64) {
        guard let place = place(of: id), let turn = order.firstIndex(of: id) else { return }
        items.remove(at: place)
        order.remove(at: turn)
        if currentID == id { currentID = order.isEmpty ? nil : order[min(turn, order.count - 1)] }
    }

    /// Replaces one item by several: in the list, in the order, and as the current one.
    /// - Parameter nested: whether they are the entries of that item, a playlist.
    public mutating func replace(_ id: UInt64, with entries: [PlaylistEntry], nested: Bool = false) -> [UInt64] {
        guard let place = place(of: id), let turn = order.firstIndex(of: id), !entries.isEmpty else { return [] }
        let depth = nested ? items[place].depth + 1 : 0
        let old = items.remove(at: place)
        let new = make(entries, depth: depth)
        items.insert(contentsOf: new, at: place)
        let ids = new.map(\.id)
        order.replaceSubrange(turn...turn, with: isShuffled ? ids.shuffled() : ids)
        if currentID == old.id { currentID = order[turn] }
        return ids
    }

    // MARK: Position

    /// The item after the current one, if it is certain now; it is not before a new shuffle.
    public var following: Item? {
        guard let turn else { return nil }
        let failed = failed
        let isPlayable: (UInt64) -> Bool = { !failed.contains($0) }
        if let next = order[(turn + 1)...].first(where: isPlayable) { return self[next] }
        guard repeatsAll, !isShuffled || order.count == 1 else { return nil }
        return order[...turn].first(where: isPlayable).flatMap { self[$0] }
    }

    /// Whether there is a next item by position; it may be one that failed.
    public var canGoNext: Bool { turn.map { $0 + 1 < order.count || repeatsAll } ?? false }
    /// Whether there is a previous item by position.
    public var canGoPrevious: Bool { turn.map { $0 > 0 || repeatsAll } ?? false }

    /// Goes to the next item; false if there is none. Failed items are skipped.
    public mutating func goNext() -> Bool { step(1) }
    /// Goes to the previous item, likewise.
    public mutating func goPrevious() -> Bool { step(-1) }

    /// False if it is not in the queue.
    public mutating func go(to id: UInt64) -> Bool {
        guard let place = place(of: id) else { return false }
        items[place].hasFailed = false
        currentID = id
        return true
    }

    /// Goes to the first item that did not fail; if all failed, they may try again.
    public mutating func rewind() {
        if items.allSatisfy(\.hasFailed) {
            for place in items.indices { items[place].hasFailed = false }
        }
        let failed = failed
        let playable = order.filter { !failed.contains($0) }
        currentID = isShuffled ? playable.randomElement() : playable.first
        if isShuffled { shuffle() }
    }

    /// Marks the item as failed: skipped until it is selected explicitly, or the queue starts again.
    public mutating func markFailed(_ id: UInt64) {
        if let place = place(of: id) { items[place].hasFailed = true }
    }

    private mutating func step(_ direction: Int) -> Bool {
        guard let turn, let currentID else { return false }
        var next = turn
        let failed = failed
        // At most one round, including the current item if the list is repeated.
        for _ in order.indices {
            next += direction
            if !order.indices.contains(next) {
                guard repeatsAll else { return false }
                if direction > 0, isShuffled, order.count > 1 {
                    order.shuffle()
                    // Do not play the same item twice in a row.
                    if order[0] == currentID { order.swapAt(0, order.count - 1) }
                }
                next = direction > 0 ? 0 : order.count - 1
            }
            if !failed.contains(order[next]) {
                self.currentID = order[next]
                return true
            }
        }
        return false
    }

    // MARK: Order

    /// Off: the order of the list. On: random order, the current item first.
    public mutating func setShuffled(_ isOn: Bool) {
        guard isOn != isShuffled else { return }
        isShuffled = isOn
        if isOn { shuffle() } else { order = items.map(\.id) }
    }

    private mutating func shuffle() {
        order = items.map(\.id).filter { $0 != currentID }.shuffled()
        if let currentID { order.insert(currentID, at: 0) }
    }

    /// Computed once for all items: searching ten thousand items ten thousand times would take too long.
    private var failed: Set<UInt64> { Set(items.lazy.filter(\.hasFailed).map(\.id)) }
    private var turn: Int? { currentID.flatMap { order.firstIndex(of: $0) } }
    private func place(of id: UInt64) -> Int? { items.firstIndex { $0.id == id } }

    // MARK: Metadata

    /// Stores metadata of an item for later queries.
    public mutating func learn(_ id: UInt64, title: String?, duration: Double?) {
        guard let place = place(of: id) else { return }
        if let title { items[place].entry.title = title }
        if let duration { items[place].entry.duration = duration }
    }
}
