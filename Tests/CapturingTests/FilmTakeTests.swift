import Capturing
import PluginAPI
import ReferenceModel
import Testing

@Suite struct FilmTakeTests {
    private typealias Fact = FilmTake.Fact
    private typealias Act = FilmTake.Act

    private func acts(_ facts: [Fact]) -> [Act] {
        var take = FilmTake()
        return facts.flatMap { take.handle($0) }
    }

    @Test func callInAFilm_pausesItAndItGoesOn() {
        #expect(
            acts([.started, .interrupted(.pause), .granted, .stopped(.stopped)]) == [.hold, .proceed, .end(.stopped)])
    }

    @Test func pauseByTheUserInACall_staysAfterTheCall() {
        #expect(acts([.started, .interrupted(.pause), .paused, .granted]) == [.hold])
        #expect(acts([.started, .paused, .interrupted(.pause), .granted, .resumed]) == [.hold, .proceed])
    }

    @Test func callThatEndsWithoutTheHint_waitsForTheUser() {
        #expect(acts([.started, .interrupted(.pause), .notResumed, .granted]) == [.hold])
        #expect(acts([.started, .interrupted(.pause), .notResumed, .resumed]) == [.hold, .proceed])
    }

    @Test func callWithTheOtherPolicies() {
        #expect(acts([.started, .interrupted(.silence), .granted]).isEmpty)
        #expect(acts([.started, .interrupted(.stop), .granted, .closed]) == [.end(.interrupted)])
    }

    @Test func cameraThatIsGoneInACall_comesBackAfterIt() {
        #expect(acts([.started, .interrupted(.pause), .cameraGone, .granted, .cameraBack]) == [.hold, .proceed])
        #expect(acts([.started, .cameraGone, .resumed]) == [.hold])
        #expect(acts([.started, .cameraGone, .stopped(.deviceDisconnected)]) == [.hold, .end(.deviceDisconnected)])
    }

    @Test func withoutAFilm_nothingHappens() {
        #expect(acts([.paused, .resumed, .interrupted(.stop), .cameraGone, .stopped(.stopped), .granted]).isEmpty)
        #expect(
            acts([.started, .stopped(.maximumDuration), .paused, .stopped(.stopped), .resumed]) == [
                .end(.maximumDuration)
            ])
    }

    /// All sequences of up to six facts: the take and the second model act alike, and never twice.
    @Test func everySequenceOfFacts_agreesWithTheSecondModel() {
        let facts: [Fact] = [
            .started, .paused, .resumed, .stopped(.stopped), .interrupted(.pause), .interrupted(.silence),
            .interrupted(.stop), .granted, .notResumed, .cameraGone, .cameraBack, .closed,
        ]
        var count = 0
        func walk(_ take: FilmTake, _ model: TakeModel, _ depth: Int) {
            for (number, fact) in facts.enumerated() {
                var (next, second) = (take, model)
                let acts = next.handle(fact)
                let told = second.handle(number)
                count += 1
                let words = acts.map { act in
                    switch act {
                    case .hold: "hold"
                    case .proceed: "proceed"
                    case .end: "end"
                    }
                }
                guard words == told, next.isGrowing == second.grows else {
                    Issue.record("after \(fact): \(words) is not \(told)")
                    return
                }
                if depth > 1 { walk(next, second, depth - 1) }
            }
        }
        walk(FilmTake(), TakeModel(), 6)
        #expect(count > 3_000_000)
    }
}
