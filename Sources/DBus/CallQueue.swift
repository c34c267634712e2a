/// Calls of peers that send more than their share.
///
/// A bus delivers all calls in one sequence. A peer that sends thousands at once would delay all others, so after a few
/// calls in one turn the calls of a peer wait here, in order, while the sequence is read on. Peers with few calls never
/// wait here.
struct CallQueue {
    /// Calls handled at once, of all peers together, before the senders are counted.
    static let freeCalls = 16
    /// Then, calls of one peer handled at once while there is more to read.
    static let callsInTurn = 4
    /// The most waiting calls of one peer; more are refused.
    static let limit = 1024

    enum Verdict {
        case handle, wait, refuse
    }

    /// The waiting calls of one peer. A class, so that adding one copies none.
    private final class Line {
        private var calls: [Message] = []
        private var first = 0

        var count: Int { calls.count - first }

        func append(_ call: Message) { calls.append(call) }

        func next() -> Message? {
            guard first < calls.count else { return nil }
            defer {
                first += 1
                // Handled calls are removed now and then, not one by one.
                if first == calls.count || first >= 64 {
                    calls.removeFirst(first)
                    first = 0
                }
            }
            return calls[first]
        }
    }

    private var waiting: [String: Line] = [:]
    /// The order of peers, next one first.
    private var order: [String] = []
    private var taken: [String: Int] = [:]
    private var count = 0

    init() {}

    var isEmpty: Bool { order.isEmpty }

    /// Stores the call if the verdict is to wait.
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

    /// Starts a new turn: everything sent so far has been read.
    mutating func startTurn() {
        count = 0
        taken.removeAll(keepingCapacity: true)
    }

    /// The next waiting call, of each peer in turn.
    mutating func next() -> Message? {
        guard let sender = order.first, let line = waiting[sender] else { return nil }
        order.removeFirst()
        let call = line.next()
        if line.count == 0 { waiting[sender] = nil } else { order.append(sender) }
        return call
    }

    mutating func removeAll() { self = CallQueue() }
}
