public import Enforcement
public import PluginAPI
public import Routing
public import SessionManager

/// The latest facts, in a ring buffer, with all that a replay needs: when each was handled, what the server showed
/// meanwhile, and from time to time a copy of the complete state. A copy costs nothing until the state changes next.
public struct FactLog: Sendable {
    /// A fact, and what followed from it.
    public struct Record: Sendable {
        public let time: Instant
        public let content: Content
        /// Where the server's state differed from what was seen of it before. In order.
        public internal(set) var views: [ChangedView] = []
        /// The requests that followed, as in ``History/Entry/requests``.
        public internal(set) var requests: [History.Request] = []
        /// The number of recorded decisions before it (``History/total``).
        public let position: Int
    }

    public enum Content: Sendable {
        /// Any other than ``Fact/streams(_:)``.
        case fact(Fact)
        indirect case streams(StreamsChange)
    }

    /// The streams at one look, as the difference to the look before.
    public struct StreamsChange: Sendable {
        /// Without the streams.
        public let seen: StreamsSeen
        /// The streams that are new or different.
        public let changed: [StreamFacts]
        /// All streams, in the server's order; nil: as before.
        public let order: [AudioStream.ID]?

        init(_ new: StreamsSeen, since old: StreamsSeen) {
            var seen = new
            seen.streams = []
            self.seen = seen
            var isSameOrder = new.streams.count == old.streams.count
            var changed: [StreamFacts] = []
            for (place, facts) in new.streams.enumerated() {
                if place < old.streams.count, old.streams[place].stream.id == facts.stream.id {
                    if old.streams[place] != facts { changed.append(facts) }
                    continue
                }
                isSameOrder = false
                if !old.streams.contains(facts) { changed.append(facts) }
            }
            self.changed = changed
            order = isSameOrder ? nil : new.streams.map(\.stream.id)
        }
    }

    /// The server's state, from the given look at it while a fact was handled.
    public struct ChangedView: Sendable {
        /// From 0.
        public let look: Int
        public let view: Routing.View
    }

    /// Where a replay can start.
    public struct Start: Sendable {
        /// The number of facts before it.
        fileprivate let facts: Int
        /// The number of recorded decisions before it.
        public let position: Int
        /// The state, without a history.
        public let decider: Decider
        /// What was last seen of the server's state.
        public let view: Routing.View
    }

    /// The most facts that are kept; at least 1.
    let capacity: Int
    private var ring: [Record] = []
    private var next = 0
    /// The number of facts so far.
    private var total = 0
    public private(set) var starts: [Start] = []
    private var view = Routing.View()
    private var looks = 0

    /// Each decision may follow from several facts: a stream that is ducked is seen at each step of the ramp.
    private static let factsPerDecision = 4

    init(decisions: Int) { capacity = max(1, decisions) * FactLog.factsPerDecision }

    /// Changes the capacity, and keeps the latest facts.
    init(decisions: Int, keeping other: FactLog) {
        self.init(decisions: decisions)
        ring = Array(other.records.suffix(capacity))
        (total, starts, view, looks) = (other.total, other.starts, other.view, other.looks)
        dropStarts()
    }

    /// In order.
    var records: [Record] { Array(ring[next...] + ring[..<next]) }

    /// The facts since that start, and what was last recorded before them.
    func records(since start: Start) -> [Record] { Array(records.suffix(total - start.facts)) }

    /// Whether the state should be kept before the next fact. If it is asked each time, there is always a start.
    func wantsStart(decisions: Int, capacity history: Int) -> Bool {
        guard let last = starts.last else { return true }
        return total - last.facts >= max(1, capacity / 4) || decisions - last.position >= max(1, history / 4)
    }

    mutating func keep(_ decider: Decider, decisions: Int) {
        starts.append(Start(facts: total, position: decisions, decider: decider, view: view))
        dropStarts()
    }

    mutating func append(_ content: Content, at time: Instant, decisions: Int) {
        let record = Record(time: time, content: content, position: decisions)
        total += 1
        looks = 0
        if ring.count < capacity {
            ring.append(record)
        } else {
            ring[next] = record
            next = (next + 1) % capacity
            dropStarts()
        }
    }

    /// The server's state was looked at.
    mutating func look(_ current: Routing.View) {
        defer { looks += 1 }
        guard current != view else { return }
        view = current
        if let latest { ring[latest].views.append(ChangedView(look: looks, view: current)) }
    }

    mutating func note(_ request: History.Request) {
        if let latest { ring[latest].requests.append(request) }
    }

    /// The fact in progress; nil: none was handled yet.
    private var latest: Int? { ring.isEmpty ? nil : (next + ring.count - 1) % ring.count }

    public var last: Record? { latest.map { ring[$0] } }

    private mutating func dropStarts() {
        let oldest = total - ring.count
        let useless = starts.prefix { $0.facts < oldest }.count
        if useless > 0 { starts.removeFirst(useless) }
    }

    /// Decisions were dropped from the history: a replay could not be compared with them.
    mutating func dropStarts(before position: Int) {
        let useless = starts.prefix { $0.position < position }.count
        if useless > 0 { starts.removeFirst(useless) }
    }
}
