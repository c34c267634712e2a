import MediaControl
import Testing

/// Situations one at a time; random ones are in ``RandomPlayersTests``.
@Suite struct PauseBookTests {
    private var book = PauseBook<Int>()
    private let playing = PlayerFacts(.playing, track: Track(id: "/1"))
    private let paused = PlayerFacts(.paused, track: Track(id: "/1"))
    private let second: UInt64 = 1_000_000

    /// A player that played, was paused by us at 1 s, and answered at once.
    private mutating func pausedByUs() {
        #expect(book.demand(.free, of: 1, at: 0).isEmpty)
        #expect(book.told(playing, by: 1, at: 0).isEmpty)
        #expect(book.demand(.silent, of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.told(paused, by: 1, at: second).isEmpty)
        #expect(book.pauseEnded(1, succeeded: true, at: second).isEmpty)
    }

    @Test mutating func interruptedAndEnded_isPausedAndResumed() {
        pausedByUs()
        #expect(book.demand(.resume, of: 1, at: 9 * second) == [.ask(1)])
        #expect(book.answered(1, paused, at: 9 * second) == [.play(1)])
        #expect(book.told(playing, by: 1, at: 9 * second).isEmpty)
        #expect(book.playEnded(1, succeeded: true, at: 9 * second).isEmpty)
        #expect(book.demand(.free, of: 1, at: 9 * second).isEmpty)
    }

    @Test mutating func anotherBookGoesOn_resumesWhatIsAsItWasLeft() throws {
        #expect(book.kept(at: 9 * second).isEmpty)
        pausedByUs()
        let kept = try #require(book.kept(at: second).first)
        #expect(
            kept == PauseBook.Kept(player: 1, track: Track(id: "/1"), since: second, isSeen: true)
                && book.kept(at: second).count == 1)
        for (facts, isResumed) in [
            (paused, true), (playing, false), (PlayerFacts(.stopped), false),
            (PlayerFacts(.paused, track: Track(id: "/2")), false),
        ] {
            book = PauseBook()
            book.keep(kept)
            #expect(book.told(facts, by: 1, at: 5 * second).isEmpty)
            #expect(book.demand(.silent, of: 1, at: 5 * second).isEmpty)
            #expect(book.demand(.resume, of: 1, at: 9 * second) == (isResumed ? [.ask(1)] : []))
            guard isResumed else { continue }
            #expect(book.answered(1, facts, at: 9 * second) == [.play(1)])
            // Until it is seen to play, a third one would have to ask again.
            #expect(book.kept(at: 9 * second) == [kept])
            #expect(book.told(playing, by: 1, at: 9 * second).isEmpty)
            #expect(book.kept(at: 9 * second).isEmpty)
        }
        // Its interruption is over without the advice to resume.
        book = PauseBook()
        book.keep(kept)
        #expect(book.told(paused, by: 1, at: 5 * second).isEmpty)
        #expect(book.demand(.free, of: 1, at: 5 * second).isEmpty)
        #expect(book.kept(at: 9 * second).isEmpty)
    }

    /// The next book, after this one told a player to pause, and nothing was seen of it.
    @Test mutating func anotherBookGoesOnFromAnUnseenPause_resumesWhatWasPausedByUs() throws {
        #expect(book.demand(.silent, of: 1, at: second) == [.ask(1)])
        #expect(book.kept(at: second).isEmpty)
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        let kept = try #require(book.kept(at: second).first)
        #expect(kept == PauseBook.Kept(player: 1, track: Track(id: "/1"), since: second, isSeen: false))
        for facts in [paused, playing, PlayerFacts(.stopped), PlayerFacts(.paused, track: Track(id: "/2"))] {
            book = PauseBook()
            book.keep(kept)
            #expect(book.kept(at: 2 * second) == [kept])
            // It plays: so it was never told, or is told once more.
            #expect(book.told(facts, by: 1, at: 5 * second) == (facts == playing ? [.ask(1)] : []))
            #expect(book.kept(at: 5 * second).map(\.isSeen) == (facts == paused ? [true] : []))
            if facts == playing { #expect(book.answered(1, playing, at: 5 * second) == [.pause(1)]) }
            #expect(book.demand(.silent, of: 1, at: 5 * second).isEmpty)
            #expect(book.demand(.resume, of: 1, at: 9 * second) == (facts == paused ? [.ask(1)] : []))
        }
        // Its interruption is over, and it was never paused.
        book = PauseBook()
        book.keep(kept)
        #expect(book.told(playing, by: 1, at: 5 * second) == [.ask(1)])
        #expect(book.demand(.resume, of: 1, at: 5 * second).isEmpty)
        #expect(book.answered(1, playing, at: 5 * second).isEmpty)
    }

    @Test mutating func saysThatItPausedAndPlaysOn_isNotKept() {
        #expect(book.demand(.silent, of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.keptExpires == nil)
        #expect(book.pauseEnded(1, succeeded: true, at: 2 * second) == [.ask(1)])
        #expect(book.answered(1, playing, at: 2 * second).isEmpty)
        #expect(book.kept(at: 3 * second).count == 1 && book.keptExpires == 3 * second + 1)
        #expect(book.kept(at: 3 * second + 1).isEmpty)
    }

    @Test mutating func theSameTwice_doesNothing() {
        pausedByUs()
        #expect(book.demand(.silent, of: 1, at: 2 * second).isEmpty)
        #expect(book.told(paused, by: 1, at: 2 * second).isEmpty)
    }

    @Test mutating func pausedByAPersonBefore_isNeitherPausedNorResumed() {
        #expect(book.demand(.free, of: 1, at: 0).isEmpty)
        #expect(book.told(paused, by: 1, at: 0).isEmpty)
        #expect(book.demand(.silent, of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, paused, at: second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 2 * second).isEmpty)
    }

    @Test mutating func pausedByAPersonWithoutTelling_isSeenByAsking() {
        #expect(book.demand(.free, of: 1, at: 0).isEmpty)
        #expect(book.told(playing, by: 1, at: 0).isEmpty)
        #expect(book.demand(.silent, of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, paused, at: second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 2 * second).isEmpty)
    }

    @Test mutating func endedWithoutResume_staysPaused() {
        pausedByUs()
        #expect(book.demand(.free, of: 1, at: 3 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 4 * second).isEmpty)
    }

    @Test mutating func startedByHandDuringIt_takesTheSoundBackAndIsLeftAlone() {
        pausedByUs()
        #expect(book.told(playing, by: 1, at: 5 * second) == [.takeBack(1)])
        #expect(book.demand(.free, of: 1, at: 5 * second).isEmpty)
    }

    @Test mutating func startedAndPausedByHandDuringIt_isNotResumed() {
        pausedByUs()
        #expect(book.told(playing, by: 1, at: 5 * second) == [.takeBack(1)])
        #expect(book.told(paused, by: 1, at: 6 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }

    @Test mutating func touchedByTheMediaKeys_isNotResumed() {
        pausedByUs()
        book.touched(1)
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }

    @Test mutating func anotherTrack_isNotResumed() {
        pausedByUs()
        #expect(book.told(PlayerFacts(.paused, track: Track(id: "/2")), by: 1, at: 5 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }

    @Test mutating func anotherTrackWithoutTelling_isSeenByAsking() {
        pausedByUs()
        #expect(book.demand(.resume, of: 1, at: 7 * second) == [.ask(1)])
        #expect(book.answered(1, PlayerFacts(.paused, track: Track(id: "/2")), at: 7 * second).isEmpty)
    }

    @Test mutating func stoppedInsteadOfPaused_isNotResumed() {
        pausedByUs()
        #expect(book.told(PlayerFacts(.stopped, track: Track(id: "/1")), by: 1, at: 2 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }

    @Test mutating func tooOld_isNotResumed() {
        book.maxAge = 5 * second
        pausedByUs()
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }

    @Test mutating func ignoredThePause_isNotToldAgainAndNotResumed() {
        #expect(book.demand(.silent, of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.pauseEnded(1, succeeded: true, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second).isEmpty)
        // Long after: a person.
        #expect(book.told(paused, by: 1, at: 20 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 30 * second).isEmpty)
    }

    @Test mutating func pausedWithoutTelling_isSeenByAskingAndResumed() {
        #expect(book.demand(.silent, of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.pauseEnded(1, succeeded: true, at: second) == [.ask(1)])
        #expect(book.answered(1, paused, at: second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 9 * second) == [.ask(1)])
        #expect(book.answered(1, paused, at: 9 * second) == [.play(1)])
    }

    @Test mutating func pausedTooLate_isResumedAtOnce() {
        #expect(book.demand(.silent, of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.demand(.resume, of: 1, at: 2 * second).isEmpty)
        #expect(book.told(paused, by: 1, at: 3 * second) == [.ask(1)])
        #expect(book.pauseEnded(1, succeeded: true, at: 3 * second).isEmpty)
        #expect(book.answered(1, paused, at: 3 * second) == [.play(1)])
    }

    @Test mutating func refusedOrSilent_isLeftAlone() {
        #expect(book.demand(.silent, of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, nil, at: 6 * second).isEmpty)
        #expect(book.demand(.silent, of: 2, at: second) == [.ask(2)])
        #expect(book.answered(2, playing, at: second) == [.pause(2)])
        #expect(book.pauseEnded(2, succeeded: false, at: second).isEmpty)
        for player in [1, 2] { #expect(book.demand(.resume, of: player, at: 9 * second).isEmpty) }
    }

    @Test mutating func cannotPause_isLeftAlone() {
        #expect(book.demand(.silent, of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, PlayerFacts(.playing, canPause: false), at: second).isEmpty)
    }

    @Test mutating func interruptedAgainBeforeItPlayed_isPausedAgain() {
        pausedByUs()
        #expect(book.demand(.resume, of: 1, at: 3 * second) == [.ask(1)])
        #expect(book.answered(1, paused, at: 3 * second) == [.play(1)])
        #expect(book.demand(.silent, of: 1, at: 3 * second).isEmpty)
        #expect(book.told(playing, by: 1, at: 3 * second) == [.ask(1)])
        #expect(book.answered(1, playing, at: 3 * second) == [.pause(1)])
        #expect(book.playEnded(1, succeeded: true, at: 3 * second).isEmpty)
    }

    @Test mutating func interruptedAgainBeforeItWasAsked_staysOurs() {
        pausedByUs()
        #expect(book.demand(.resume, of: 1, at: 3 * second) == [.ask(1)])
        #expect(book.demand(.silent, of: 1, at: 3 * second).isEmpty)
        #expect(book.answered(1, paused, at: 3 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 4 * second) == [.ask(1)])
        #expect(book.answered(1, paused, at: 4 * second) == [.play(1)])
    }

    @Test mutating func pausedByHandAsWeDid_aTogglingPlayerIsLeftAlone() {
        #expect(book.demand(.silent, of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.told(paused, by: 1, at: second).isEmpty)
        // Our Pause turned the person's around.
        #expect(book.told(playing, by: 1, at: second).isEmpty)
        #expect(book.pauseEnded(1, succeeded: true, at: second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 9 * second).isEmpty)
    }

    @Test mutating func gone_isForgotten() {
        pausedByUs()
        book.forget(1)
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }
}
