import Testing

@testable import DBus

/// Limits the replies that wait for a peer which does not read them.
@Suite struct AnswerBudgetTests {
    private static let deaf = (0..<10).map { ":1.10\($0)" }

    /// Peers that have read nothing, and the bus has said so: more than all may have together.
    private static func crowded() -> AnswerBudget {
        var budget = AnswerBudget()
        for peer in deaf {
            budget.add(7 << 20, to: peer)
            if budget.asks(peer) { _ = budget.settle(peer, .unread(7 << 20)) }
        }
        return budget
    }

    /// What the bus is asked, at which pauses, until the calls of the peer no longer wait. Before each question the peer
    /// reads what `read` returns.
    private static func wait(
        _ budget: inout AnswerBudget, _ peer: String, unread: inout Int, read: () -> Int
    ) -> (outcome: AnswerBudget.Outcome, pauses: [Double]) {
        var pauses = [budget.pause(before: peer) ?? -1]
        while pauses.count < 100_000, budget.asks(peer) {
            unread = max(0, unread - read())
            switch budget.settle(peer, .unread(unread)) {
            case .ask(let pause): pauses.append(pause)
            case let outcome: return (outcome, pauses)
            }
        }
        return (.forget, pauses)
    }

    @Test func peerThatReads_isAlwaysAnswered() {
        var budget = AnswerBudget()
        for _ in 0..<1_000 {
            #expect(!budget.doubts(":1.1"))
            budget.add(500_000, to: ":1.1")
            if budget.wantsQuestion(":1.1"), budget.asks(":1.1") {
                let outcome = budget.settle(":1.1", .unread(200_000))
                #expect(outcome == .handle)
            }
        }
    }

    /// It had one large answer before the others stopped reading.
    @Test func readerBesideDeafPeers_losesNoCall() {
        var budget = Self.crowded()
        budget.add(6 << 20, to: ":1.1")
        #expect(budget.doubts(":1.1"), "the bus is asked first")
        var unread = 0
        let (outcome, pauses) = Self.wait(&budget, ":1.1", unread: &unread) { 0 }
        #expect(outcome == .handle)
        #expect(pauses == [0], "one question, at once")
        #expect(!budget.doubts(":1.1"))
    }

    @Test func peerThatIsStillReading_waitsAndIsAnswered() {
        var budget = Self.crowded()
        budget.add(6 << 20, to: ":1.1")
        var unread = 6 << 20
        let (outcome, pauses) = Self.wait(&budget, ":1.1", unread: &unread) { 200_000 }
        #expect(outcome == .handle)
        #expect(pauses.count > 10, "the bus was asked until it had read enough")
    }

    @Test func peerThatReadsNothing_isRefusedAfterASecond() {
        var budget = Self.crowded()
        var unread = 7 << 20
        let first = Self.wait(&budget, Self.deaf[0], unread: &unread) { 0 }
        #expect(first.outcome == .refuse)
        #expect((1...1.5).contains(first.pauses.reduce(0, +)), "\(first.pauses)")
        #expect(first.pauses.count < 16)
        // Each later call costs one question, and not at once.
        for _ in 0..<3 {
            let later = Self.wait(&budget, Self.deaf[0], unread: &unread) { 0 }
            #expect(later.outcome == .refuse && later.pauses == [0.25])
        }
        var refusals = 0
        for _ in 0..<1_000 where budget.mayRefuse(Self.deaf[0]) { refusals += 1 }
        #expect(refusals == AnswerBudget.refusals)
        unread = 0
        let last = Self.wait(&budget, Self.deaf[0], unread: &unread) { 0 }
        #expect(last.outcome == .handle, "it has read its answers")
        #expect(!budget.doubts(Self.deaf[0]))
        let mayRefuse = budget.mayRefuse(Self.deaf[0])
        #expect(mayRefuse)
    }

    /// A peer that reads as little as possible makes the bus be asked for a limited time.
    @Test func questionsAboutASlowPeer_end() {
        for read in [1, 1_000, 4_096, 100_000] {
            var budget = Self.crowded()
            var unread = 7 << 20
            let slow = Self.wait(&budget, Self.deaf[0], unread: &unread) { read }
            #expect(slow.pauses.count < (7 << 20) / 4_096 * 5, "\(read)")
        }
    }

    @Test func peerThatDoesNotAnswer_isRefused() {
        var budget = Self.crowded()
        for (reading, expected) in [(AnswerBudget.Reading.silence, AnswerBudget.Outcome.refuse), (.gone, .forget)] {
            let isAsked = budget.asks(Self.deaf[0])
            let outcome = budget.settle(Self.deaf[0], reading)
            #expect(isAsked && outcome == expected)
        }
    }

    @Test func manyPeersThatNeverRead_leaveRoomForOthers() {
        var budget = AnswerBudget()
        var waiting = 0
        for peer in 0..<200 {
            for _ in 0..<100 where !budget.doubts(":1.\(peer)") {
                budget.add(100_000, to: ":1.\(peer)")
                waiting += 100_000
            }
        }
        #expect(waiting < AnswerBudget.ofAll + 200 * (AnswerBudget.limitOfMany + 100_000), "\(waiting)")
        #expect(!budget.doubts(":1.900"))
    }

    @Test func peersThatHaveLeft_leaveRoomForOthers() {
        var budget = AnswerBudget()
        for peer in 0..<200 {
            for _ in 0..<8 { budget.add(100_000, to: ":1.\(peer)") }
        }
        budget.add(150_000, to: ":1.900")
        #expect(budget.isLarge && budget.doubts(":1.900"))
        for peer in 0..<200 { _ = budget.settle(":1.\(peer)", .gone) }
        #expect(!budget.isLarge && !budget.doubts(":1.900"))
    }

    @Test func heldCalls_stayInOrderAndLimited() {
        var held = HeldCalls<Int>()
        for call in 0..<5 { held.add(call, bytes: 100, of: ":1.1") }
        #expect(held.excessive == nil)
        for call in 0..<40 { held.add(call, bytes: 64 << 10, of: ":1.2") }
        for call in 0..<40 { held.add(call, bytes: 60 << 10, of: ":1.3") }
        #expect(held.excessive == ":1.2", "the peer with the most")
        let most = held.take(":1.2")
        #expect(most.count == 40 && held.excessive == nil)
        let (first, again, others) = (held.take(":1.1"), held.take(":1.1"), held.take(":1.3"))
        #expect(first == [0, 1, 2, 3, 4] && again.isEmpty && !held.has(":1.1"))
        #expect(others == Array(0..<40) && held.bytes == 0)
    }
}
