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

    private var waiting: [String: [Message]] = [:]
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
        if let calls = waiting[sender] {
            guard calls.count < Self.limit else { return .refuse }
            waiting[sender]?.append(call)
            return .wait
        }
        let number = taken[sender, default: 0] + 1
        taken[sender] = number
        guard number > Self.callsInTurn else { return .handle }
        waiting[sender] = [call]
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
        guard let sender = order.first else { return nil }
        order.removeFirst()
        guard let call = waiting[sender]?.removeFirst() else { return nil }
        if waiting[sender]?.isEmpty == true { waiting[sender] = nil } else { order.append(sender) }
        return call
    }

    mutating func removeAll() { self = CallQueue() }
}
