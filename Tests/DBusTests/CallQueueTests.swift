import Testing

@testable import DBus

/// The order of calls when clients send more than the service can handle.
@Suite struct CallQueueTests {
    /// Each call is represented by the name of its sender. `users` has the senders whose user the bus has reported.
    private static func handled(
        _ senders: [String], users: [String: UInt32] = [:], isShared: Bool, learning: [String: UInt32] = [:]
    ) -> (order: [String], refused: [String]) {
        var queue = CallQueue<String>()
        queue.isShared = isShared
        var order: [String] = []
        var refused: [String] = []
        for sender in senders {
            switch queue.judge(sender, from: sender, of: users[sender]) {
            case .handle: order.append(sender)
            case .wait: break
            case .refuse: refused.append(sender)
            }
        }
        for (sender, user) in learning { queue.learn(user, of: sender) }
        while let next = queue.next() { order.append(next) }
        return (order, refused)
    }

    /// 32 connections with `count` calls each, then one call of another user.
    private static func crowd(_ count: Int) -> [String] {
        (0..<32).flatMap { Array(repeating: "crowd \($0)", count: count) } + ["other"]
    }

    private static let users = Dictionary(uniqueKeysWithValues: (0..<32).map { ("crowd \($0)", UInt32(1)) })

    @Test func manyConnectionsOfOneUser_shareTheTurnsOfOneUser() {
        let users = Self.users.merging(["other": 2]) { $1 }
        let shared = Self.handled(Self.crowd(30), users: users, isShared: true)
        #expect(shared.order.firstIndex(of: "other") == 20, "16 free calls, 4 of the user")
        #expect(shared.order.count == 961)
        // Every connection of that user has its share.
        #expect(Set(shared.order[21..<200]).count == 32)
        let alone = Self.handled(Self.crowd(30), isShared: false)
        #expect(alone.order.firstIndex(of: "other") == 144, "16 free calls, 4 of each connection")
    }

    @Test func connectionsOfUnknownUsers_countAsOneUserUntilTheyAreKnown() {
        let unknown = Self.handled(Self.crowd(30), users: ["other": 2], isShared: true)
        #expect(unknown.order.firstIndex(of: "other") == 20)
        // If no user is known, the call comes after one call of each of the connections that had none yet.
        let none = Self.handled(Self.crowd(30), isShared: true)
        #expect(none.order.firstIndex(of: "other") == 20 + 31)
        // As soon as the bus has reported their user, the 32 connections share the time of one user again.
        let learned = Self.handled(Self.crowd(30), isShared: true, learning: Self.users)
        #expect(learned.order.firstIndex(of: "other").map { $0 <= 21 } == true)
    }

    @Test func callsOfOneConnection_stayInOrderWhenItsUserIsReported() {
        var queue = CallQueue<Int>()
        queue.isShared = true
        var order: [Int] = []
        for number in 0..<100 {
            if number == 50 { queue.learn(1, of: "a") }
            if queue.judge(number, from: "a", of: number < 50 ? nil : 1) == .handle { order.append(number) }
            if number % 3 == 0, let next = queue.next() { order.append(next) }
        }
        while let next = queue.next() { order.append(next) }
        #expect(order == Array(0..<100))
    }

    @Test(arguments: [false, true]) func smallCalls_doNotWaitForLargeAnswers(isShared: Bool) {
        var queue = CallQueue<String>()
        queue.isShared = isShared
        queue.learn(20_000, of: "History")
        for _ in 0..<40 {
            for peer in 0..<64 {
                _ = queue.judge("History", method: "History", from: "deaf \(peer)", of: isShared ? 1 : nil)
            }
        }
        // So many that they wait, too.
        let calls = 100
        let handled = (0..<calls).filter { _ in
            queue.judge("Activate", method: "Activate", from: "other", of: isShared ? 2 : nil) == .handle
        }.count
        var bytes = 0
        for _ in handled..<calls {
            while let call = queue.next(), call == "History" { bytes += 20_000 }
        }
        let least = CallQueue<String>.leastPrice
        // All of the others together, where users share; otherwise each of them has had as much.
        #expect(bytes <= (isShared ? 1 : 64) * (calls * least + 20_000), "\(bytes) bytes")
        #expect(queue.next() == "History")
    }

    @Test func largeAnswers_waitWhileThereIsMoreToRead() {
        var queue = CallQueue<Int>()
        queue.learn(10 * CallQueue<Int>.leastPrice, of: "History")
        for number in 0..<10 { _ = queue.judge(number, method: "History", from: "a", of: nil) }
        for _ in 0..<9 { #expect(queue.next(whileReading: true) == nil) }
        #expect(queue.next(whileReading: true) != nil, "they are made, though")
        #expect(queue.next(whileReading: true) == nil)
        #expect(queue.next() != nil)
        // The price falls as slowly as a program that asks for large answers now and then.
        for _ in 0..<100 { queue.learn(60, of: "History") }
        #expect(queue.next(whileReading: true) != nil)
    }

    @Test(arguments: [false, true]) func peerThatHasLeft_isForgottenWithItsCalls(isShared: Bool) {
        var queue = CallQueue<String>()
        queue.isShared = isShared
        for _ in 0..<100 {
            for peer in ["a", "b", "c"] { _ = queue.judge(peer, from: peer, of: isShared ? 1 : nil) }
        }
        let waiting = queue.count
        for peer in ["a", "c", "nobody"] { queue.forget(peer) }
        var order: [String] = []
        while let next = queue.next() { order.append(next) }
        #expect(Set(order) == ["b"] && order.count < waiting)
        #expect(queue.isEmpty && queue.count == 0)
        for _ in 0..<100 { _ = queue.judge("b", from: "b", of: isShared ? 1 : nil) }
        queue.forget("b")
        #expect(queue.isEmpty && queue.count == 0 && queue.next() == nil)
    }

    @Test func oneUsersWaitingCalls_areLimitedAndEveryConnectionHasSome() {
        let users = Self.users.merging(["other": 2]) { $1 }
        let shared = Self.handled(Self.crowd(200), users: users, isShared: true)
        let limit = CallQueue<String>.limitOfUser + 32 * CallQueue<String>.assured
        #expect(shared.order.count <= limit + 20 + 1)
        #expect(Set(shared.order).count == 33, "every connection has some calls handled")
        #expect(!shared.refused.contains("other"))
        let alone = Self.handled(Array(repeating: "a", count: CallQueue<String>.limit + 1_000), isShared: false)
        #expect(alone.order.count == CallQueue<String>.limit + 20)
    }
}
