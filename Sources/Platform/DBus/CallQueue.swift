/// The waiting calls of peers that send many calls.
///
/// A bus delivers all calls in one sequence. A peer that sends thousands at once would delay all others. So after a few
/// calls in one turn, further calls of a peer wait here, in order, while the sequence is read. Peers with few calls
/// never wait here.
///
/// The shares are counted in bytes of answers: while many peers send, a bus takes answers slowly, so one long answer
/// delays all later ones. Each call has a price, which is about the size of the last answers to that method. The next
/// call is the one whose peer will have received the fewest bytes after it (weighted fair queueing); a new peer begins
/// with as many as the others have received. So a peer with one small call comes before all peers that wait for large
/// answers, however many they are.
///
/// If several users share the bus, this holds for users: all connections of a user together have the share of one user,
/// and each connection has a share of that. A user is nil until the bus has reported it. All connections of unknown
/// users have the share of one user, so that a program gains nothing from new connections.
struct CallQueue<Call> {
    /// The price of a call with a small answer.
    static var leastPrice: Int { 512 }
    /// The price of the calls that are handled at once, of all peers together, before the senders are counted.
    static var free: Int { 16 * leastPrice }
    /// Then, of the calls of one peer that are handled at once while there is more to read; on a shared bus, of one
    /// user.
    static var turn: Int { 4 * leastPrice }
    /// The most waiting calls of one peer; more are refused. A program that sends thousands of calls at once, and reads
    /// the answers, must not reach this. libdbus's limit of received bytes limits the memory.
    static var limit: Int { 4096 }
    /// On a shared bus, the most of one user, except that each of its connections may have ``assured`` waiting.
    static var limitOfUser: Int { 1024 }
    static var assured: Int { 4 }
    /// The most methods whose price is remembered. A service has fewer with large answers.
    private static var methods: Int { 64 }

    enum Verdict {
        case handle, wait, refuse
    }

    /// A user, or a peer of one user. A class, so that changing one copies none.
    private class Party {
        /// How many bytes it has received; compared with ``Fair/time``.
        var received: Int
        /// The price of its next call.
        var price = leastPrice

        init(received: Int) { self.received = received }
    }

    private final class Line: Party {
        let sender: String
        var user: UInt32?
        private var calls: [(call: Call, method: String)] = []
        private var first = 0

        init(_ sender: String, of user: UInt32?, received: Int) {
            self.sender = sender
            self.user = user
            super.init(received: received)
        }

        var count: Int { calls.count - first }
        /// The method of its next call.
        var method: String? { first < calls.count ? calls[first].method : nil }

        var rest: [Call] { calls[first...].map(\.call) }

        func append(_ call: Call, _ method: String) { calls.append((call, method)) }

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
            return calls[first].call
        }
    }

    /// The peers of one user with waiting calls.
    private final class Share: Party {
        let user: UInt32?
        var peers = Fair<Line>()
        /// The number of waiting calls of all of them.
        var count = 0

        init(_ user: UInt32?, received: Int) {
            self.user = user
            super.init(received: received)
        }
    }

    /// Parties that have equal shares, in the order of their first calls.
    private struct Fair<Member: Party> {
        private(set) var members: [Member] = []
        /// The bytes of the member that has received the fewest. A new member begins with as many.
        private(set) var time = 0

        var isEmpty: Bool { members.isEmpty }

        mutating func add(_ member: Member) {
            member.received += time
            members.append(member)
        }

        mutating func remove(where isGone: (Member) -> Bool) { members.removeAll(where: isGone) }

        /// The member that will have received the fewest bytes after its next call; of several, the first.
        mutating func next() -> Member? {
            guard var chosen = members.first else { return nil }
            var least = chosen.received
            for member in members {
                if member.received + member.price < chosen.received + chosen.price { chosen = member }
                least = min(least, member.received)
            }
            time = max(time, least)
            return chosen
        }
    }

    /// Whether several users share the bus.
    var isShared = false

    private var waiting: [String: Line] = [:]
    private var shares: [UInt32?: Share] = [:]
    private var users = Fair<Share>()
    /// The bytes that each peer, and each user, has received in this turn.
    private var taken: [String: Int] = [:]
    private var takenByUser: [UInt32?: Int] = [:]
    private var spent = 0
    /// The bytes that may be answered while there is more to read: a few for each time that something was read.
    private var earned = 0
    /// The number of waiting calls.
    private(set) var count = 0
    /// Of methods with large answers.
    private var prices: [String: Int] = [:]

    init() {}

    var isEmpty: Bool { users.isEmpty }

    /// Whether the sender of the next call matters. Otherwise ``judge(_:method:from:of:)`` handles the call of any
    /// sender.
    var counts: Bool { !isEmpty || spent >= Self.free }

    /// Stores the call if the verdict is to wait. On a bus that is not shared, `user` is nil.
    mutating func judge(_ call: Call, method: String = "", from sender: String?, of user: UInt32?) -> Verdict {
        let price = price(of: method)
        let before = spent
        spent += price
        if isEmpty, before < Self.free { return .handle }
        guard let sender else { return .handle }
        if let line = waiting[sender] {
            guard line.count < Self.limit, line.count < Self.assured || hasRoom(line.user) else { return .refuse }
            line.append(call, method)
            shares[line.user]?.count += 1
            count += 1
            return .wait
        }
        let received = taken[sender, default: 0]
        let receivedByUser = isShared ? takenByUser[user, default: 0] : 0
        if (isShared ? receivedByUser : received) + price <= Self.turn {
            taken[sender] = received + price
            if isShared { takenByUser[user] = receivedByUser + price }
            return .handle
        }
        let line = Line(sender, of: user, received: received)
        line.append(call, method)
        line.price = price
        count += 1
        waiting[sender] = line
        enter(line)
        return .wait
    }

    /// The size of an answer to that method. The price follows a larger one at once, a smaller one slowly.
    mutating func learn(_ bytes: Int, of method: String) {
        let before = price(of: method)
        let now = max(Self.leastPrice, bytes, before - before / 8)
        guard now != before else { return }
        if prices.count >= Self.methods, prices[method] == nil { prices.removeAll(keepingCapacity: true) }
        prices[method] = now > Self.leastPrice ? now : nil
        for line in waiting.values where line.method == method { line.price = now }
    }

    private func price(of method: String) -> Int {
        prices.isEmpty ? Self.leastPrice : prices[method] ?? Self.leastPrice
    }

    /// The number of waiting calls of that peer.
    func count(of sender: String) -> Int { waiting[sender]?.count ?? 0 }

    /// Moves the waiting calls of that peer to its user, and the bytes that it has received in this turn.
    mutating func learn(_ user: UInt32, of sender: String) {
        guard let line = waiting[sender], line.user == nil else { return }
        let received = taken[sender, default: 0]
        if let unknown = shares[nil] {
            line.received -= unknown.peers.time
            unknown.received -= received
        }
        leave(line)
        line.user = user
        if let share = shares[user] {
            share.received += received
        } else {
            takenByUser[user, default: 0] += received
        }
        enter(line)
    }

    /// Forgets the waiting calls of a peer that is gone.
    mutating func forget(_ sender: String) { _ = take(sender) }

    /// Removes the waiting calls of that peer.
    mutating func take(_ sender: String) -> [Call] {
        guard let line = waiting.removeValue(forKey: sender) else { return [] }
        count -= line.count
        leave(line)
        return line.rest
    }

    /// Starts a new turn: everything sent so far has been read.
    mutating func startTurn() {
        spent = 0
        taken.removeAll(keepingCapacity: true)
        takenByUser.removeAll(keepingCapacity: true)
    }

    /// The next waiting call. While there is more to read, nil until enough was read since the last one: a large answer
    /// would delay what is behind.
    mutating func next(whileReading isReading: Bool = false) -> Call? {
        if isShared { for share in users.members { share.price = share.peers.next()?.price ?? 0 } }
        guard let share = users.next(), let line = share.peers.next() else { return nil }
        earned = isReading ? earned + Self.leastPrice : 0
        if isReading {
            guard line.price <= earned else { return nil }
            earned -= line.price
        }
        guard let call = line.next() else { return nil }
        count -= 1
        share.count -= 1
        share.received += line.price
        line.received += line.price
        if let method = line.method {
            line.price = price(of: method)
        } else {
            waiting[line.sender] = nil
            // This counts if it calls again before everything is read.
            taken[line.sender] = line.received - share.peers.time
            leave(line)
        }
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

    private mutating func enter(_ line: Line) {
        let share: Share
        if let known = shares[line.user] {
            share = known
        } else {
            share = Share(line.user, received: takenByUser[line.user] ?? 0)
            shares[line.user] = share
            users.add(share)
        }
        share.peers.add(line)
        share.count += line.count
    }

    private mutating func leave(_ line: Line) {
        guard let share = shares[line.user] else { return }
        share.peers.remove { $0 === line }
        share.count -= line.count
        guard share.peers.isEmpty else { return }
        if isShared { takenByUser[share.user] = share.received - users.time }
        shares[share.user] = nil
        users.remove { $0 === share }
    }
}
