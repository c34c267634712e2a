import Testing

@testable import DBus

/// Limits the replies that wait for a peer which does not read them.
@Suite struct AnswerBudgetTests {
    @Test func peerThatReads_isAlwaysAnswered() {
        var budget = AnswerBudget()
        for _ in 0..<1_000 {
            #expect(budget.verdict(":1.1") == .answer)
            budget.add(500_000, to: ":1.1")
            if budget.asks(":1.1") { budget.settle(":1.1", 200_000) }
        }
    }

    @Test func peerThatNeverReads_isRefusedThenNotAnswered() {
        var budget = AnswerBudget()
        var waiting = 0
        var verdicts: [AnswerBudget.Verdict] = []
        for _ in 0..<2_000 {
            let verdict = budget.verdict(":1.1")
            if verdicts.last != verdict { verdicts.append(verdict) }
            let answer = verdict == .answer ? 300_000 : verdict == .refuse ? 200 : 0
            waiting += answer
            if answer > 0 { budget.add(answer, to: ":1.1") }
            if budget.asks(":1.1") { budget.settle(":1.1", waiting) }
        }
        #expect(verdicts.first == .answer)
        #expect(verdicts.contains(.refuse))
        #expect(waiting < AnswerBudget.limit + 300_000 + 4 * AnswerBudget.refusals, "\(waiting)")
        #expect(budget.verdict(":1.2") == .answer, "another peer")
        let asks = budget.asks(":1.1")
        #expect(asks)
        budget.settle(":1.1", 0)
        #expect(budget.verdict(":1.1") == .answer, "the peer has read its replies")
    }

    @Test func manyPeersThatNeverRead_leaveRoomForOthers() {
        var budget = AnswerBudget()
        var waiting = 0
        for peer in 0..<200 {
            for _ in 0..<100 where budget.verdict(":1.\(peer)") == .answer {
                budget.add(100_000, to: ":1.\(peer)")
                waiting += 100_000
            }
        }
        #expect(waiting < AnswerBudget.ofAll + 200 * (AnswerBudget.asked / 8 + 100_000), "\(waiting)")
        #expect(budget.verdict(":1.900") == .answer)
    }

    @Test func peersThatHaveLeft_leaveRoomForOthers() {
        var budget = AnswerBudget()
        for peer in 0..<200 {
            for _ in 0..<8 { budget.add(100_000, to: ":1.\(peer)") }
        }
        budget.add(150_000, to: ":1.900")
        #expect(budget.isLarge && budget.verdict(":1.900") == .refuse)
        for peer in 0..<200 { budget.settle(":1.\(peer)", nil) }
        #expect(!budget.isLarge && budget.verdict(":1.900") == .answer)
    }
}
