/// Calls of peers that ask for more than their turn.
///
/// A bus delivers everybody's calls in one line. Whoever sends thousands at once would keep all others waiting, so
/// beyond a few calls in one turn a peer's calls wait here, in their order, while the line is read on. Peers that ask
/// now and then never come here.
struct CallQueue {
    /// Calls handled as they come, of everybody together, before it is looked at who sends them.
    static let freeCalls = 16
    /// Of one peer, then, as long as there is something to read.
    static let callsInTurn = 4
    /// Waiting calls of one peer; those beyond are refused.
    static let limit = 1024

    enum Verdict {
        case handle, wait, refuse
    }

    /// One peer's waiting calls. A class, so that adding one copies none.
    private final class Line {
        private var calls: [Message] = []
        private var first = 0

        var count: Int { calls.count - first }

        func append(_ call: Message) { calls.append(call) }

        func next() -> Message? {
            guard first < calls.count else { return nil }
            defer {
                first += 1
                // What was handled goes now and then, not with each call.
                if first == calls.count || first >= 64 {
                    calls.removeFirst(first)
                    first = 0
                }
            }
            return calls[first]
        }
    }

    private var waiting: [String: Line] = [:]
    /// Whose turn it is next, first.
    private var order: [String] = []
    private var taken: [String: Int] = [:]
    private var count = 0

    init() {}

    var isEmpty: Bool { order.isEmpty }

    /// Takes the call where the verdict is to wait.
    mutating func judge(_ call: Message) -> Verdict {
        count += 1
        if order.isEmpty, count <= Self.freeCalls { return .handle }
        guard let sender = call.sender else { return .handle }
        if let line = waiting[sender] {
            guard line.count < Self.limit else { return .refuse }
            line.append(call)
            return .wait
        }
        let number = taken[sender, default: 0] + 1
        taken[sender] = number
        guard number > Self.callsInTurn else { return .handle }
        let line = Line()
        line.append(call)
        waiting[sender] = line
        order.append(sender)
        return .wait
    }

    /// Everybody may ask anew: what was sent up to now has been read.
    mutating func startTurn() {
        count = 0
        taken.removeAll(keepingCapacity: true)
    }

    /// The next call that waits, of each peer in turn.
    mutating func next() -> Message? {
        guard let sender = order.first, let line = waiting[sender] else { return nil }
        order.removeFirst()
        let call = line.next()
        if line.count == 0 { waiting[sender] = nil } else { order.append(sender) }
        return call
    }

    mutating func removeAll() { self = CallQueue() }
}
