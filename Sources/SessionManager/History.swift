/// The newest decisions, in a ring: the oldest goes when it is full.
public struct History: Sendable {
    /// How many decisions it holds; at least 1.
    public let capacity: Int
    private var ring: [Decision] = []
    private var next = 0

    public init(capacity: Int) { self.capacity = max(1, capacity) }

    /// Another capacity, with the newest of the old one's.
    public init(capacity: Int, keeping other: History) {
        self.init(capacity: capacity)
        ring = other.latest(self.capacity)
    }

    /// Keeps the decision, where it changed or refused anything.
    public mutating func append(_ decision: Decision) {
        guard decision.isNoteworthy else { return }
        if ring.count < capacity {
            ring.append(decision)
        } else {
            ring[next] = decision
            next = (next + 1) % capacity
        }
    }

    /// The newest `count` decisions, newest last.
    public func latest(_ count: Int) -> [Decision] {
        let ordered = ring[next...] + ring[..<next]
        return Array(ordered.suffix(max(0, count)))
    }
}
