/// Plays items one after the other without a gap (AVQueuePlayer). An item leaves the queue when it has been played.
public final class QueuePlayer: Player, @unchecked Sendable {
    /// - Parameters:
    ///   - items: played in this order.
    ///   - output: where pictures are shown; nil: only sound is played. Films do not follow each other without a gap.
    ///   - session: nil: that of ``AudioSession/sharedInstance(bus:)``.
    public convenience init(items: [PlayerItem], output: MoviePlayer.Output? = nil, session: AudioSession? = nil) {
        self.init(items, output: output, session, removesPlayed: true, environment: [:])
    }

    /// What is played now and then.
    public func items() -> [PlayerItem] { allItems }

    /// Adds an item.
    /// - Parameters:
    ///   - item: nothing happens if it is in the queue already.
    ///   - after: nil: at the end.
    public func insert(_ item: PlayerItem, after: PlayerItem?) {
        change { items in
            guard !items.contains(item) else { return }
            let place = after.flatMap(items.firstIndex).map { $0 + 1 }
            items.insert(item, at: place ?? items.endIndex)
        }
    }

    /// Whether ``insert(_:after:)`` would add it.
    public func canInsert(_ item: PlayerItem, after: PlayerItem?) -> Bool {
        let items = allItems
        return !items.contains(item) && after.map(items.contains) ?? true
    }

    /// Removes an item. If it is the current one, the next one follows.
    public func remove(_ item: PlayerItem) { change { $0.removeAll { $0 === item } } }
    public func removeAllItems() { change { $0 = [] } }
    /// The next item follows; after the last one it is silent.
    public func advanceToNextItem() { change { if !$0.isEmpty { $0.removeFirst() } } }
}
