public import PluginAPI

/// What is to be played and in which order: a value, without a clock, a file or a bus.
///
/// One item is the current one as long as there is any. Items keep their ids for as long as they are in the queue, and
/// no id is used again.
public struct PlayQueue: Sendable {
    /// An entry with a number of its own: the same thing may be in the queue twice.
    public struct Item: Sendable, Hashable {
        /// From 1.
        public let id: UInt64
        /// As it was put in, with what became known of it since (``PlayQueue/learn(_:title:duration:)``).
        public fileprivate(set) var entry: PlaylistEntry
        /// How many lists it came out of, one inside the other.
        public let depth: Int
        /// It could not be played; skipped until somebody goes to it.
        public fileprivate(set) var hasFailed = false
    }

    /// More than anybody listens to, and little memory.
    public static let limit = 10_000

    /// As they were put in.
    public private(set) var items: [Item] = [] {
        didSet { revision &+= 1 }
    }
    /// Another one after every change of ``items``.
    package private(set) var revision: UInt64 = 0
    package private(set) var currentID: UInt64?
    /// After the last one comes the first one.
    public var repeatsAll = false
    /// See ``setShuffled(_:)``.
    public private(set) var isShuffled = false
    /// Ids as they are played.
    private var order: [UInt64] = []
    private var lastID: UInt64 = 0

    public init() {}

    /// What plays, or is next to; nil exactly while the queue is empty.
    public var current: Item? { currentID.flatMap { self[$0] } }
    /// Nil where it is not in the queue.
    public subscript(id: UInt64) -> Item? { items.first { $0.id == id } }
    /// How many more items it takes.
    public var room: Int { PlayQueue.limit - items.count }

    // MARK: What is in it

    /// Everything anew; the item at `start` is the current one.
    public mutating func replaceAll(with entries: [PlaylistEntry], startingAt start: Int = 0) {
        items = []
        order = []
        currentID = nil
        _ = insert(entries, at: 0)
        if items.indices.contains(start) { currentID = items[start].id }
        if isShuffled { shuffle() }
    }

    /// The ids they got. Behind the item `after`; nil: before all others. What finds no room is left out.
    public mutating func insert(_ entries: [PlaylistEntry], after: UInt64?) -> [UInt64] {
        insert(entries, at: after.flatMap(place(of:)).map { $0 + 1 } ?? 0)
    }

    /// Behind all others; the ids they got. What finds no room is left out.
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

    /// Takes it out; the current one's place is taken by the one after it, else by the one before it.
    public mutating func remove(_ id: UInt64) {
        guard let place = place(of: id), let turn = order.firstIndex(of: id) else { return }
        items.remove(at: place)
        order.remove(at: turn)
        if currentID == id { currentID = order.isEmpty ? nil : order[min(turn, order.count - 1)] }
    }

    /// Puts these where that one was: in the list, in the order, and as the current one.
    /// - Parameter nested: they are what that one, a list, holds.
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

    // MARK: Where it is

    /// What comes when the current one ends, where that is certain now; a new shuffle is not.
    public var following: Item? {
        guard let turn else { return nil }
        let isPlayable: (UInt64) -> Bool = { self[$0]?.hasFailed == false }
        if let next = order[(turn + 1)...].first(where: isPlayable) { return self[next] }
        guard repeatsAll, !isShuffled || order.count == 1 else { return nil }
        return order[...turn].first(where: isPlayable).flatMap { self[$0] }
    }

    /// Whether there is one to go to, by place alone: it may be one that failed.
    public var canGoNext: Bool { turn.map { $0 + 1 < order.count || repeatsAll } ?? false }
    /// The same backwards.
    public var canGoPrevious: Bool { turn.map { $0 > 0 || repeatsAll } ?? false }

    /// Whether there is a next one; it is the current one then. Those that failed are passed over.
    public mutating func goNext() -> Bool { step(1) }
    /// The same backwards.
    public mutating func goPrevious() -> Bool { step(-1) }

    /// False where it is not in the queue.
    public mutating func go(to id: UInt64) -> Bool {
        guard let place = place(of: id) else { return false }
        items[place].hasFailed = false
        currentID = id
        return true
    }

    /// To the first of the order that did not fail; where all did, they may try again.
    public mutating func rewind() {
        if items.allSatisfy(\.hasFailed) {
            for place in items.indices { items[place].hasFailed = false }
        }
        let playable = order.filter { self[$0]?.hasFailed == false }
        currentID = isShuffled ? playable.randomElement() : playable.first
        if isShuffled { shuffle() }
    }

    /// It could not be played: passed over until somebody goes to it, or all begins again.
    public mutating func markFailed(_ id: UInt64) {
        if let place = place(of: id) { items[place].hasFailed = true }
    }

    private mutating func step(_ direction: Int) -> Bool {
        guard let turn, let currentID else { return false }
        var next = turn
        // Once around at the most, the current one included where the list is repeated.
        for _ in order.indices {
            next += direction
            if !order.indices.contains(next) {
                guard repeatsAll else { return false }
                if direction > 0, isShuffled, order.count > 1 {
                    order.shuffle()
                    // Not the same one twice.
                    if order[0] == currentID { order.swapAt(0, order.count - 1) }
                }
                next = direction > 0 ? 0 : order.count - 1
            }
            if self[order[next]]?.hasFailed == false {
                self.currentID = order[next]
                return true
            }
        }
        return false
    }

    // MARK: The order

    /// Off: as they are listed. On: any order, the current one first.
    public mutating func setShuffled(_ isOn: Bool) {
        guard isOn != isShuffled else { return }
        isShuffled = isOn
        if isOn { shuffle() } else { order = items.map(\.id) }
    }

    private mutating func shuffle() {
        order = items.map(\.id).filter { $0 != currentID }.shuffled()
        if let currentID { order.insert(currentID, at: 0) }
    }

    private var turn: Int? { currentID.flatMap { order.firstIndex(of: $0) } }
    private func place(of id: UInt64) -> Int? { items.firstIndex { $0.id == id } }

    // MARK: What became known

    /// What an item said of itself is kept for those who ask for it later.
    public mutating func learn(_ id: UInt64, title: String?, duration: Double?) {
        guard let place = place(of: id) else { return }
        if let title { items[place].entry.title = title }
        if let duration { items[place].entry.duration = duration }
    }
}
