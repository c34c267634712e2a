import SessionManager
import Testing

@Suite struct UsersHandTests {
    @Test(
        arguments: [
            // Players: more than 0.3 s after the pause, or for the second time.
            (.player(afterPause: 0, isSecond: false), .pauseAgain),
            (.player(afterPause: 300_000, isSecond: false), .pauseAgain),
            (.player(afterPause: 300_001, isSecond: false), .started),
            (.player(afterPause: 60_000_000, isSecond: false), .started),
            (.player(afterPause: 0, isSecond: true), .started),
            (.player(afterPause: 60_000_000, isSecond: true), .started),
            // A stream that its program paused: not just after a move.
            (.sameStream(afterMove: nil), .started),
            (.sameStream(afterMove: 0), .none),
            (.sameStream(afterMove: 499_999), .none),
            (.sameStream(afterMove: 500_000), .started),
            // A new stream: not just after the last one.
            (.newStream(afterSilence: nil), .none),
            (.newStream(afterSilence: 0), .none),
            (.newStream(afterSilence: 499_999), .none),
            (.newStream(afterSilence: 500_000), .started),
        ] as [(UsersHand.Beginning, UsersHand)])
    func programBeginsToPlayInAnInterruption_isJudgedByTheTable(_ beginning: UsersHand.Beginning, _ hand: UsersHand) {
        #expect(UsersHand(beginning) == hand)
    }
}
