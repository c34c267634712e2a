/// The waiting calls of peers that send many calls.
///
/// A bus delivers all calls in one sequence. A peer that sends thousands at once would delay all others. So after a few
/// calls in one turn, further calls of a peer wait here, in order, while the sequence is read. Peers with few calls
/// never wait here.
///
/// If several users share the bus, the turns are those of users, and the connections of a user share its turns. A user
/// is nil until the bus has reported it. All connections of unknown users share the turns of one user, so that a
/// program gains nothing from new connections.
struct CallQueue<Call> {
    /// Calls handled at once, of all peers together, before the senders are counted.
    static var freeCalls: Int { 16 }
    /// Then, calls of one peer handled at once while there is more to read; on a shared bus, of one user.
    static var callsInTurn: Int { 4 }
    /// The most waiting calls of one peer; more are refused.
    static var limit: Int { 1024 }
    /// On a shared bus, the most of one user, except that each of its connections may have ``assured`` waiting.
    static var limitOfUser: Int { 1024 }
    static var assured: Int { 4 }

    enum Verdict {
        case handle, wait, refuse
    }

    /// The waiting calls of one peer. A class, so that adding one copies none.
    private final class Line {
        var user: UInt32?
        private var calls: [Call] = []
        private var first = 0

        init(_ user: UInt32?) { self.user = user }

        var count: Int { calls.count - first }

        func append(_ call: Call) { calls.append(call) }

        func next() -> Call? {
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

    /// The peers of one user with waiting calls, the next one first.
    private struct Share {
        var peers: [String] = []
        /// The number of waiting calls of all of them.
        var count = 0
    }

    /// Whether several users share the bus.
    var isShared = false

    private var waiting: [String: Line] = [:]
    private var shares: [UInt32?: Share] = [:]
    /// The order of users, next one first.
    private var order: [UInt32?] = []
    private var taken: [String: Int] = [:]
    private var takenByUser: [UInt32?: Int] = [:]
    private var count = 0

    init() {}

    var isEmpty: Bool { order.isEmpty }

    /// Whether the sender of the next call matters. Otherwise ``judge(_:from:of:)`` handles the call of any sender.
    var counts: Bool { !order.isEmpty || count >= Self.freeCalls }

    /// Stores the call if the verdict is to wait. On a bus that is not shared, `user` is nil.
    mutating func judge(_ call: Call, from sender: String?, of user: UInt32?) -> Verdict {
        count += 1
        if order.isEmpty, count <= Self.freeCalls { return .handle }
        guard let sender else { return .handle }
        if let line = waiting[sender] {
            guard line.count < Self.limit, line.count < Self.assured || hasRoom(line.user) else { return .refuse }
            line.append(call)
            shares[line.user]?.count += 1
            return .wait
        }
        let number = taken[sender, default: 0] + 1
        taken[sender] = number
        var isWithinShare = number <= Self.callsInTurn
        if isShared {
            let number = takenByUser[user, default: 0] + 1
            takenByUser[user] = number
            isWithinShare = number <= Self.callsInTurn
        }
        guard !isWithinShare else { return .handle }
        let line = Line(user)
        line.append(call)
        waiting[sender] = line
        enter(sender, with: 1, to: user)
        return .wait
    }

    /// Moves the waiting calls of the peer to its user.
    mutating func learn(_ user: UInt32, of sender: String) {
        guard let line = waiting[sender], line.user == nil else { return }
        leave(sender, with: line.count)
        line.user = user
        enter(sender, with: line.count, to: user)
    }

    /// Starts a new turn: everything sent so far has been read.
    mutating func startTurn() {
        count = 0
        taken.removeAll(keepingCapacity: true)
        takenByUser.removeAll(keepingCapacity: true)
    }

    /// The next waiting call: of each user in turn, and of each peer of that user in turn.
    mutating func next() -> Call? {
        guard let user = order.first, var share = shares[user], let sender = share.peers.first,
            let line = waiting[sender]
        else { return nil }
        order.removeFirst()
        share.peers.removeFirst()
        share.count -= 1
        let call = line.next()
        if line.count == 0 { waiting[sender] = nil } else { share.peers.append(sender) }
        shares[user] = share.peers.isEmpty ? nil : share
        if !share.peers.isEmpty { order.append(user) }
        return call
    }

    mutating func removeAll() {
        let isShared = isShared
        self = CallQueue()
        self.isShared = isShared
    }

    private func hasRoom(_ user: UInt32?) -> Bool {
        !isShared || (shares[user]?.count ?? 0) < Self.limitOfUser
    }

    private mutating func enter(_ sender: String, with calls: Int, to user: UInt32?) {
        if shares[user] == nil { order.append(user) }
        shares[user, default: Share()].peers.append(sender)
        shares[user, default: Share()].count += calls
    }

    /// Removes the peer from those with an unknown user.
    private mutating func leave(_ sender: String, with calls: Int) {
        shares[nil]?.peers.removeAll { $0 == sender }
        shares[nil]?.count -= calls
        if shares[nil]?.peers.isEmpty ?? false {
            shares[nil] = nil
            order.removeAll { $0 == nil }
        }
    }
}
