import MediaControl
import Testing

/// Single situations. ``RandomPlayersTests`` tests random ones.
@Suite struct PauseBookTests {
    private var book = PauseBook<Int>()
    private let playing = PlayerFacts(.playing, track: Track(id: "/1"))
    private let paused = PlayerFacts(.paused, track: Track(id: "/1"))
    private let second: UInt64 = 1_000_000

    /// A player that played, was paused by the daemon at 1 s, and replied at once.
    private mutating func pausedByUs() {
        #expect(book.demand(.free, of: 1, at: 0).isEmpty)
        #expect(book.told(playing, by: 1, at: 0).isEmpty)
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
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

    @Test mutating func nextBook_resumesThePlayerUnlessItChanged() throws {
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
            // The user started it while no daemon was there.
            #expect(book.told(facts, by: 1, at: 5 * second).isEmpty)
            #expect(
                book.demand(.silent(since: second), of: 1, at: 5 * second) == (facts == playing ? [.takeBack(1)] : []))
            #expect(book.demand(.resume, of: 1, at: 9 * second) == (isResumed ? [.ask(1)] : []))
            guard isResumed else { continue }
            #expect(book.answered(1, facts, at: 9 * second) == [.play(1)])
            // The pause is kept until the player plays, so that another daemon would try again.
            #expect(book.kept(at: 9 * second) == [kept])
            #expect(book.told(playing, by: 1, at: 9 * second).isEmpty)
            #expect(book.kept(at: 9 * second).isEmpty)
        }
        // The interruption ended without a should-resume hint.
        book = PauseBook()
        book.keep(kept)
        #expect(book.told(paused, by: 1, at: 5 * second).isEmpty)
        #expect(book.demand(.free, of: 1, at: 5 * second).isEmpty)
        #expect(book.kept(at: 9 * second).isEmpty)
    }

    /// The next book continues after this one sent a pause whose effect was not seen.
    @Test mutating func nextBookAfterAnUnseenPause_resumesThePlayerIfItIsPaused() throws {
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
        #expect(book.kept(at: second).isEmpty)
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        let kept = try #require(book.kept(at: second).first)
        #expect(kept == PauseBook.Kept(player: 1, track: Track(id: "/1"), since: second, isSeen: false))
        for facts in [paused, playing, PlayerFacts(.stopped), PlayerFacts(.paused, track: Track(id: "/2"))] {
            book = PauseBook()
            book.keep(kept)
            #expect(book.kept(at: 2 * second) == [kept])
            // A player that plays did not get the pause, so the book sends it again.
            #expect(book.told(facts, by: 1, at: 5 * second) == (facts == playing ? [.ask(1)] : []))
            #expect(book.kept(at: 5 * second).map(\.isSeen) == (facts == paused ? [true] : []))
            if facts == playing { #expect(book.answered(1, playing, at: 5 * second) == [.pause(1)]) }
            #expect(book.demand(.silent(since: second), of: 1, at: 5 * second).isEmpty)
            #expect(book.demand(.resume, of: 1, at: 9 * second) == (facts == paused ? [.ask(1)] : []))
        }
        // The interruption is over, and the player was never paused.
        book = PauseBook()
        book.keep(kept)
        #expect(book.told(playing, by: 1, at: 5 * second) == [.ask(1)])
        #expect(book.demand(.resume, of: 1, at: 5 * second).isEmpty)
        #expect(book.answered(1, playing, at: 5 * second).isEmpty)
    }

    @Test mutating func playerConfirmsThePauseButPlaysOn_isNotKept() {
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.keptExpires == nil)
        #expect(book.pauseEnded(1, succeeded: true, at: 2 * second) == [.ask(1)])
        #expect(book.answered(1, playing, at: 2 * second).isEmpty)
        #expect(book.kept(at: 3 * second).count == 1 && book.keptExpires == 3 * second + 1)
        #expect(book.kept(at: 3 * second + 1).isEmpty)
    }

    @Test mutating func sameDemandTwice_doesNothing() {
        pausedByUs()
        #expect(book.demand(.silent(since: second), of: 1, at: 2 * second).isEmpty)
        #expect(book.told(paused, by: 1, at: 2 * second).isEmpty)
    }

    @Test mutating func userPausedThePlayerBefore_isNeitherPausedNorResumed() {
        #expect(book.demand(.free, of: 1, at: 0).isEmpty)
        #expect(book.told(paused, by: 1, at: 0).isEmpty)
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, paused, at: second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 2 * second).isEmpty)
    }

    @Test mutating func userPausedAPlayerWithoutSignals_isNoticedByAsking() {
        #expect(book.demand(.free, of: 1, at: 0).isEmpty)
        #expect(book.told(playing, by: 1, at: 0).isEmpty)
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, paused, at: second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 2 * second).isEmpty)
    }

    @Test mutating func interruptionEndsWithoutResume_playerStaysPaused() {
        pausedByUs()
        #expect(book.demand(.free, of: 1, at: 3 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 4 * second).isEmpty)
    }

    @Test mutating func userPlaysDuringTheInterruption_playerTakesTheSoundBack() {
        pausedByUs()
        #expect(book.told(playing, by: 1, at: 5 * second) == [.takeBack(1)])
        #expect(book.demand(.free, of: 1, at: 5 * second).isEmpty)
    }

    @Test mutating func userPlaysAndPausesDuringTheInterruption_isNotResumed() {
        pausedByUs()
        #expect(book.told(playing, by: 1, at: 5 * second) == [.takeBack(1)])
        #expect(book.told(paused, by: 1, at: 6 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }

    @Test mutating func mediaKeysDuringTheInterruption_preventTheResume() {
        pausedByUs()
        book.touched(1)
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }

    @Test mutating func otherTrack_isNotResumed() {
        pausedByUs()
        #expect(book.told(PlayerFacts(.paused, track: Track(id: "/2")), by: 1, at: 5 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }

    @Test mutating func otherTrackOfAPlayerWithoutSignals_isNoticedByAsking() {
        pausedByUs()
        #expect(book.demand(.resume, of: 1, at: 7 * second) == [.ask(1)])
        #expect(book.answered(1, PlayerFacts(.paused, track: Track(id: "/2")), at: 7 * second).isEmpty)
    }

    @Test mutating func playerStopsInsteadOfPausing_isNotResumed() {
        pausedByUs()
        #expect(book.told(PlayerFacts(.stopped, track: Track(id: "/1")), by: 1, at: 2 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }

    @Test mutating func interruptionLongerThanMaxAge_isNotResumed() {
        book.maxAge = 5 * second
        pausedByUs()
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }

    @Test mutating func ignoredPause_isNotRepeatedAndNotResumed() {
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.pauseEnded(1, succeeded: true, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second).isEmpty)
        // A pause that comes long after is the user's.
        #expect(book.told(paused, by: 1, at: 20 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 30 * second).isEmpty)
    }

    @Test mutating func playerWithoutSignalsPauses_isNoticedByAsking_andResumed() {
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.pauseEnded(1, succeeded: true, at: second) == [.ask(1)])
        #expect(book.answered(1, paused, at: second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 9 * second) == [.ask(1)])
        #expect(book.answered(1, paused, at: 9 * second) == [.play(1)])
    }

    @Test mutating func playerPausesAfterTheInterruption_isResumedAtOnce() {
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.demand(.resume, of: 1, at: 2 * second).isEmpty)
        #expect(book.told(paused, by: 1, at: 3 * second) == [.ask(1)])
        #expect(book.pauseEnded(1, succeeded: true, at: 3 * second).isEmpty)
        #expect(book.answered(1, paused, at: 3 * second) == [.play(1)])
    }

    @Test mutating func playerRefusesOrDoesNotReply_isNotResumed() {
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, nil, at: 6 * second).isEmpty)
        #expect(book.demand(.silent(since: second), of: 2, at: second) == [.ask(2)])
        #expect(book.answered(2, playing, at: second) == [.pause(2)])
        #expect(book.pauseEnded(2, succeeded: false, at: second).isEmpty)
        for player in [1, 2] { #expect(book.demand(.resume, of: player, at: 9 * second).isEmpty) }
    }

    @Test mutating func playerThatCannotPause_isNotPaused() {
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, PlayerFacts(.playing, canPause: false), at: second).isEmpty)
    }

    @Test mutating func interruptedAgainBeforeItPlays_isPausedAgain() {
        pausedByUs()
        #expect(book.demand(.resume, of: 1, at: 3 * second) == [.ask(1)])
        #expect(book.answered(1, paused, at: 3 * second) == [.play(1)])
        #expect(book.demand(.silent(since: 3 * second), of: 1, at: 3 * second).isEmpty)
        #expect(book.told(playing, by: 1, at: 3 * second) == [.ask(1)])
        #expect(book.answered(1, playing, at: 3 * second) == [.pause(1)])
        #expect(book.playEnded(1, succeeded: true, at: 3 * second).isEmpty)
    }

    /// What can happen after the daemon's Play was sent.
    enum AfterPlay: CaseIterable, Sendable {
        case interrupted, saysPlaying, replies
    }

    /// Every order of the three.
    private static let orders: [[AfterPlay]] = AfterPlay.allCases.flatMap { first in
        let rest = AfterPlay.allCases.filter { $0 != first }
        return [[first] + rest, [first] + rest.reversed()]
    }

    /// The stream of the player continues at any time after the Play. From the interruption until the player has obeyed the
    /// Pause, that is not the user's hand.
    @Test(arguments: orders)
    mutating func interruptedBesideTheDaemonsPlay_itsEffectsAreNotTheUsers(order: [AfterPlay]) {
        pausedByUs()
        #expect(book.demand(.resume, of: 1, at: 3 * second) == [.ask(1)])
        #expect(book.answered(1, paused, at: 3 * second) == [.play(1)])
        var (now, state, isInterrupted) = (3 * second, paused, false)
        var open: [PauseBook<Int>.Command] = []
        for step in order {
            now += 250_000
            switch step {
            case .interrupted:
                isInterrupted = true
                open += book.demand(.silent(since: now), of: 1, at: now)
            case .saysPlaying:
                state = playing
                open += book.told(playing, by: 1, at: now)
            case .replies: open += book.playEnded(1, succeeded: true, at: now)
            }
            #expect(book.isPausing(1, at: now) == isInterrupted, "\(step)")
        }
        while !open.isEmpty {
            now += 250_000
            switch open.removeFirst() {
            case .ask: open += book.answered(1, state, at: now)
            case .pause:
                state = paused
                open += book.told(paused, by: 1, at: now)
                open += book.pauseEnded(1, succeeded: true, at: now)
            case .play, .takeBack: Issue.record("it must stay silent")
            }
            #expect(book.isPausing(1, at: now))
        }
        #expect(state == paused && !book.isPausing(1, at: now + second))
    }

    @Test mutating func playerThatDoesNotAnswer_itsStreamsAreTheUsersAfterASecond() {
        #expect(book.told(playing, by: 1, at: 0).isEmpty)
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
        #expect(book.isPausing(1, at: 2 * second) && !book.isPausing(1, at: 2 * second + 1))
    }

    @Test mutating func interruptedAgainBeforeItReplies_isResumedLater() {
        pausedByUs()
        #expect(book.demand(.resume, of: 1, at: 3 * second) == [.ask(1)])
        #expect(book.demand(.silent(since: 3 * second), of: 1, at: 3 * second).isEmpty)
        #expect(book.answered(1, paused, at: 3 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 4 * second) == [.ask(1)])
        #expect(book.answered(1, paused, at: 4 * second) == [.play(1)])
    }

    @Test mutating func userPausesATogglingPlayerAtTheSameTime_isNotResumed() {
        #expect(book.demand(.silent(since: second), of: 1, at: second) == [.ask(1)])
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.told(paused, by: 1, at: second).isEmpty)
        // The pause toggled the player, which the user had just paused.
        #expect(book.told(playing, by: 1, at: second) == [.ask(1)])
        #expect(book.pauseEnded(1, succeeded: true, at: second).isEmpty)
        #expect(book.answered(1, playing, at: second) == [.pause(1)])
        #expect(book.told(paused, by: 1, at: second).isEmpty)
        #expect(book.pauseEnded(1, succeeded: true, at: second).isEmpty)
        #expect(book.nextDeadline == nil)
        #expect(book.demand(.resume, of: 1, at: 9 * second).isEmpty)
    }

    // MARK: The user's hand

    /// The user plays it 0.2 s after the daemon's pause.
    private mutating func playedAtOnce() {
        pausedByUs()
        #expect(book.isPausing(1, at: second + 200_000))
        #expect(book.told(playing, by: 1, at: second + 200_000) == [.ask(1)])
        #expect(book.answered(1, playing, at: second + 200_000) == [.pause(1)])
    }

    @Test mutating func userPlaysAtOnce_isPausedOnceMore_andResumedLater() {
        playedAtOnce()
        #expect(book.told(paused, by: 1, at: second + 210_000).isEmpty)
        #expect(book.pauseEnded(1, succeeded: true, at: second + 210_000).isEmpty)
        #expect(book.nextDeadline == nil && book.timePassed(at: 9 * second).isEmpty)
        #expect(book.demand(.resume, of: 1, at: 9 * second) == [.ask(1)])
        #expect(book.answered(1, paused, at: 9 * second) == [.play(1)])
    }

    @Test mutating func userPlaysAtOnceForTheSecondTime_isHeard() {
        playedAtOnce()
        #expect(book.told(paused, by: 1, at: second + 210_000).isEmpty)
        #expect(book.told(playing, by: 1, at: second + 220_000) == [.takeBack(1)])
    }

    @Test mutating func userPlaysForTheSecondTimeBeforeTheSecondPause_isHeard() {
        pausedByUs()
        #expect(book.told(playing, by: 1, at: second + 200_000) == [.ask(1)])
        #expect(book.told(paused, by: 1, at: second + 201_000).isEmpty)
        #expect(book.told(playing, by: 1, at: second + 202_000) == [.takeBack(1)])
        // The question was answered meanwhile.
        #expect(book.answered(1, playing, at: second + 203_000).isEmpty)
        #expect(book.nextDeadline == nil)
    }

    @Test mutating func secondPauseIsIgnored_isHeardWithinASecond() {
        playedAtOnce()
        #expect(book.pauseEnded(1, succeeded: true, at: second + 210_000) == [.ask(1)])
        #expect(book.answered(1, playing, at: second + 210_000).isEmpty)
        #expect(book.nextDeadline == second + 1_000_000)
        #expect(book.timePassed(at: second + 999_999).isEmpty)
        #expect(book.timePassed(at: second + 1_000_000) == [.takeBack(1)])
        #expect(book.nextDeadline == nil && book.timePassed(at: 9 * second).isEmpty)
    }

    @Test mutating func secondPauseIsRefused_isHeardAtOnce() {
        playedAtOnce()
        #expect(book.pauseEnded(1, succeeded: false, at: second + 210_000) == [.takeBack(1)])
        #expect(book.nextDeadline == nil)
    }

    @Test mutating func playerThatCannotPauseAnyMore_isHeardAtOnce() {
        pausedByUs()
        #expect(book.told(playing, by: 1, at: second + 200_000) == [.ask(1)])
        let facts = PlayerFacts(.playing, track: playing.track, canPause: false)
        #expect(book.answered(1, facts, at: second + 200_000) == [.takeBack(1)])
    }

    @Test mutating func playerThatDoesNotAnswerBeforeTheSecondPause_isHeardWithinASecond() {
        pausedByUs()
        #expect(book.told(playing, by: 1, at: second + 200_000) == [.ask(1)])
        #expect(book.timePassed(at: second + 1_000_000) == [.takeBack(1)])
        #expect(book.answered(1, playing, at: 3 * second).isEmpty)
    }

    @Test mutating func interruptionEndsBeforeTheSecondPauseIsObeyed_nothingIsDue() {
        playedAtOnce()
        #expect(book.demand(.resume, of: 1, at: second + 300_000).isEmpty)
        #expect(book.nextDeadline == nil)
    }

    /// Nothing is seen of the time between two interruptions.
    @Test mutating func interruptedAgainAtOnceAfterTheUserPlayed_isPausedAgain() {
        pausedByUs()
        #expect(book.told(playing, by: 1, at: 5 * second) == [.takeBack(1)])
        #expect(book.demand(.silent(since: 5 * second), of: 1, at: 5 * second) == [.ask(1)])
        #expect(book.answered(1, playing, at: 5 * second) == [.pause(1)])
        #expect(book.told(paused, by: 1, at: 5 * second).isEmpty)
        // Each interruption may have a second pause.
        #expect(book.told(playing, by: 1, at: 5 * second + 100_000) == [.ask(1)])
    }

    @Test mutating func playerEnds_isForgotten() {
        pausedByUs()
        book.forget(1)
        #expect(book.demand(.resume, of: 1, at: 7 * second).isEmpty)
    }
}
