public import PluginAPI

/// The parts of the queue that are in random order (MPMusicShuffleMode).
public enum ShuffleMode: String, CaseIterable, Sendable, Hashable {
    case off
    case songs
    /// The albums are in random order; the items of each album keep their order.
    case albums
}

/// The items to play and their order. It is a value without a clock, a file or a bus.
///
/// If the queue is not empty, one item is the current one. Items keep their ids while they are in the queue, and ids
/// are never reused.
///
/// An item is found by its id without a search, and an edit moves only numbers. So a program that adds ten thousand
/// items one by one does not delay other clients.
public struct PlayQueue: Sendable {
    /// An entry with its own number: the same URI may be in the queue twice.
    public struct Item: Sendable, Hashable {
        /// From 1.
        public let id: UInt64
        /// The entry as added, with metadata that became known later (``PlayQueue/learn(_:title:duration:)``).
        public fileprivate(set) var entry: PlaylistEntry
        /// The nesting depth of the playlists it came from.
        public let depth: Int
    }

    /// The limit of items. Real queues are shorter.
    public static let limit = 10_000
    /// The limit of all texts of all items, in bytes. It limits the time and the memory for saving the queue, and the file
    /// of it (``SavedQueue/largestFile``).
    public static let byteLimit = 8 << 20

    /// The ids in the order of the list.
    public private(set) var ids: [UInt64] = []
    private var contents: [UInt64: Item] = [:]
    /// The items that could not be played; skipped until they are selected explicitly.
    private var failed: Set<UInt64> = []
    /// A new value after every change of ``ids``.
    package private(set) var revision: UInt64 = 0
    /// The number of ids at both ends that are unchanged since the last ``takeUnchanged()``.
    private var unchanged = (start: 0, end: 0)
    package private(set) var currentID: UInt64?
    /// Whether the first item follows the last one.
    public var repeatsAll = false
    /// See ``setShuffleMode(_:)``.
    public private(set) var shuffleMode = ShuffleMode.off
    public var isShuffled: Bool { shuffleMode != .off }
    /// The ids in the order of playing, if that is not the order of the list.
    private var shuffled: [UInt64] = []
    private var lastID: UInt64 = 0
    /// The bytes of all texts.
    private(set) var bytes = 0

    public init() {}

    /// The item that plays or will play next; nil only if the queue is empty.
    public var current: Item? { currentID.flatMap { self[$0] } }
    /// Nil if the item is not in the queue.
    public subscript(id: UInt64) -> Item? { contents[id] }
    /// The items in the order of the list; the array is built at each call.
    public var items: [Item] { ids.compactMap { contents[$0] } }
    public var count: Int { ids.count }
    /// How many more items can be added.
    public var room: Int { PlayQueue.limit - contents.count }
    /// How many more bytes of texts can be added.
    public var byteRoom: Int { PlayQueue.byteLimit - bytes }

    // MARK: Items

    /// Replaces all items; the item at `start` becomes the current one.
    public mutating func replaceAll(with entries: [PlaylistEntry], startingAt start: Int = 0) {
        for id in ids { forget(id) }
        change(0..<count, to: [])
        shuffled = []
        currentID = nil
        _ = insert(entries, at: 0)
        if ids.indices.contains(start) { currentID = ids[start] }
        if isShuffled { shuffle() }
    }

    /// Inserts items after the item `after`; nil: before all others. Returns their ids. Items above the limits are
    /// ignored.
    public mutating func insert(_ entries: [PlaylistEntry], after: UInt64?) -> [UInt64] {
        insert(entries, at: after.flatMap(place(of:)).map { $0 + 1 } ?? 0)
    }

    /// Adds items at the end and returns their ids. Items above the limits are ignored.
    public mutating func append(_ entries: [PlaylistEntry]) -> [UInt64] { insert(entries, at: count) }

    private mutating func insert(_ entries: [PlaylistEntry], at place: Int) -> [UInt64] {
        let new = make(entries, depth: 0)
        change(place..<place, to: new)
        switch shuffleMode {
        case .off: break
        case .songs:
            let first = turn.map { $0 + 1 } ?? 0
            for id in new { shuffled.insert(id, at: Int.random(in: first...shuffled.count)) }
        case .albums: if currentID != nil { shuffle() } else { shuffled = randomAlbums(first: nil) }
        }
        if currentID == nil { currentID = order.first }
        return new
    }

    private mutating func make(_ entries: [PlaylistEntry], depth: Int) -> [UInt64] {
        var new: [UInt64] = []
        for entry in entries {
            guard room > 0, entry.size <= byteRoom else { break }
            lastID += 1
            contents[lastID] = Item(id: lastID, entry: entry, depth: depth)
            bytes += entry.size
            new.append(lastID)
        }
        return new
    }

    private mutating func forget(_ id: UInt64) {
        bytes -= contents[id]?.entry.size ?? 0
        contents[id] = nil
        failed.remove(id)
    }

    /// The only place that changes the list.
    private mutating func change(_ range: Range<Int>, to new: [UInt64]) {
        unchanged.start = min(unchanged.start, range.lowerBound)
        unchanged.end = min(unchanged.end, count - range.upperBound)
        ids.replaceSubrange(range, with: new)
        revision &+= 1
    }

    /// The number of ids at the start and at the end of the list that no edit has changed since the last call.
    package mutating func takeUnchanged() -> (start: Int, end: Int) {
        defer { unchanged = (count, count) }
        return unchanged
    }

    /// Removes an item; if it is the current one, the next item becomes current, else the previous one.
    public mutating func remove(_ id: UInt64) {
        guard let place = place(of: id), let turn = order.firstIndex(of: id) else { return }
        forget(id)
        change(place..<place + 1, to: [])
        if isShuffled { shuffled.remove(at: turn) }
        if currentID == id { currentID = order.isEmpty ? nil : order[min(turn, order.count - 1)] }
    }

    /// Replaces one item by several: in the list, in the order, and as the current one.
    /// - Parameter nested: whether they are the entries of that item, a playlist.
    public mutating func replace(_ id: UInt64, with entries: [PlaylistEntry], nested: Bool = false) -> [UInt64] {
        guard let old = contents[id], let place = place(of: id), let turn = order.firstIndex(of: id), !entries.isEmpty
        else { return [] }
        forget(id)
        let new = make(entries, depth: nested ? old.depth + 1 : 0)
        change(place..<place + 1, to: new)
        if isShuffled { shuffled.replaceSubrange(turn...turn, with: new.shuffled()) }
        if currentID == id { currentID = order[turn] }
        return new
    }

    // MARK: Position

    /// The item after the current one; nil if it is not known yet, because a new shuffle comes first.
    public var following: Item? {
        guard let turn else { return nil }
        let (order, failed) = (order, failed)
        let isPlayable: (UInt64) -> Bool = { !failed.contains($0) }
        if let next = order[(turn + 1)...].first(where: isPlayable) { return self[next] }
        guard repeatsAll, !isShuffled || order.count == 1 else { return nil }
        return order[...turn].first(where: isPlayable).flatMap { self[$0] }
    }

    /// Whether there is a next item by position; it may be one that failed.
    public var canGoNext: Bool { currentID != nil && (repeatsAll || currentID != order.last) }
    /// Whether there is a previous item by position.
    public var canGoPrevious: Bool { currentID != nil && (repeatsAll || currentID != order.first) }

    /// Goes to the next item; false if there is none. Failed items are skipped.
    public mutating func goNext() -> Bool { step(1) }
    /// Goes to the previous item in the same way.
    public mutating func goPrevious() -> Bool { step(-1) }

    /// Goes to an item; false if it is not in the queue.
    public mutating func go(to id: UInt64) -> Bool {
        guard contents[id] != nil else { return false }
        failed.remove(id)
        currentID = id
        return true
    }

    /// Goes to the first item that did not fail; if all failed, they may try again.
    public mutating func rewind() {
        if failed.count == count { failed = [] }
        if shuffleMode == .albums { shuffled = randomAlbums(first: nil) }
        let playable = order.filter { !failed.contains($0) }
        currentID = shuffleMode == .songs ? playable.randomElement() : playable.first
        if shuffleMode == .songs { shuffle() }
    }

    /// Marks the item as failed: skipped until it is selected explicitly, or the queue starts again.
    public mutating func markFailed(_ id: UInt64) {
        if contents[id] != nil { failed.insert(id) }
    }

    private mutating func step(_ direction: Int) -> Bool {
        guard let turn, let currentID else { return false }
        var next = turn
        // At most one round, including the current item if the list is repeated.
        for _ in order.indices {
            next += direction
            if !order.indices.contains(next) {
                guard repeatsAll else { return false }
                if direction > 0, order.count > 1 { reshuffle(after: currentID) }
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
        if isOn != isShuffled { setShuffleMode(isOn ? .songs : .off) }
    }

    /// Songs: the current item comes first. Albums: the album of the current item comes first.
    public mutating func setShuffleMode(_ mode: ShuffleMode) {
        guard mode != shuffleMode else { return }
        shuffleMode = mode
        shuffle()
    }

    private mutating func shuffle() {
        switch shuffleMode {
        case .off: shuffled = []
        case .songs:
            shuffled = ids.filter { $0 != currentID }.shuffled()
            if let currentID { shuffled.insert(currentID, at: 0) }
        case .albums: shuffled = randomAlbums(first: currentID)
        }
    }

    /// Shuffles again after the last item, so that the same item, or the same album, does not play twice in a row.
    private mutating func reshuffle(after last: UInt64) {
        switch shuffleMode {
        case .off: break
        case .songs:
            shuffled.shuffle()
            if shuffled[0] == last { shuffled.swapAt(0, shuffled.count - 1) }
        case .albums:
            let albums = albums
            let others = albums.filter { !$0.contains(last) }.shuffled()
            guard let next = others.first else { return }
            shuffled = next + (albums.filter { $0 != next }.shuffled().flatMap { $0 })
        }
    }

    /// The ids of each album in the order of the list. An item without an album is a group of its own.
    private var albums: [[UInt64]] {
        var albums: [[UInt64]] = []
        var places: [String: Int] = [:]
        for id in ids {
            if let album = contents[id]?.entry.album, !album.isEmpty {
                if let place = places[album] {
                    albums[place].append(id)
                    continue
                }
                places[album] = albums.count
            }
            albums.append([id])
        }
        return albums
    }

    private func randomAlbums(first id: UInt64?) -> [UInt64] {
        let albums = albums.shuffled()
        let first = id.flatMap { id in albums.firstIndex { $0.contains(id) } }
        return (first.map { albums[$0] } ?? []) + albums.indices.filter { $0 != first }.flatMap { albums[$0] }
    }

    /// The indices in the list of all items, in the order of playing.
    public var orderOfPlaces: [Int] {
        let places = Dictionary(uniqueKeysWithValues: ids.enumerated().map { ($1, $0) })
        return order.compactMap { places[$0] }
    }

    /// Restores a shuffled order: `places` are the indices of all items, in the order of playing.
    public mutating func restore(_ mode: ShuffleMode, order places: [Int]) {
        shuffleMode = mode
        guard mode != .off else {
            shuffled = []
            return
        }
        guard places.sorted() == Array(0..<count) else { return shuffle() }
        shuffled = places.map { ids[$0] }
    }

    /// The ids in the order of playing.
    private var order: [UInt64] { isShuffled ? shuffled : ids }
    private var turn: Int? { currentID.flatMap { order.firstIndex(of: $0) } }
    /// Searches from the end, where most items are added.
    private func place(of id: UInt64) -> Int? { ids.lastIndex(of: id) }

    // MARK: Metadata

    /// Stores metadata of an item for later queries.
    public mutating func learn(_ id: UInt64, title: String?, duration: Double?) {
        // The title comes from the file, which may state anything.
        if let title, var entry = contents[id]?.entry {
            let before = entry.size
            entry.title = title
            if entry.size - before <= byteRoom {
                contents[id]?.entry = entry
                bytes += entry.size - before
            }
        }
        if let duration { contents[id]?.entry.duration = duration }
    }

    /// Sets the position at which an item starts the next time, in seconds.
    public mutating func setStart(_ id: UInt64, _ seconds: Double) { contents[id]?.entry.start = seconds }
}

extension PlaylistEntry {
    /// The bytes of its texts.
    public var size: Int {
        uri.utf8.count + (title?.utf8.count ?? 0) + (artist?.utf8.count ?? 0) + (album?.utf8.count ?? 0)
    }
}
