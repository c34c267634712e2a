import MediaControl
import Testing

@Suite struct FrontPlayerTests {
    typealias Candidate = FrontPlayer<String>.Candidate

    @Test(
        arguments: [
            ([], nil),
            ([Candidate("a", .stopped, isNowPlaying: false, order: 1)], "a"),
            // The player of the now-playing session, even while it is interrupted.
            (
                [
                    Candidate("music", .paused, isNowPlaying: true, order: 1),
                    Candidate("video", .playing, isNowPlaying: false, order: 2),
                ], "music"
            ),
            (
                [
                    Candidate("paused", .paused, isNowPlaying: false, order: 3),
                    Candidate("playing", .playing, isNowPlaying: false, order: 1),
                ], "playing"
            ),
            // A player that plays is preferred to a stopped one; among several that play, the one that started last.
            (
                [
                    Candidate("first", .playing, isNowPlaying: false, order: 1),
                    Candidate("second", .playing, isNowPlaying: false, order: 2),
                    Candidate("third", .stopped, isNowPlaying: false, order: 3),
                ], "second"
            ),
            // A browser and its desktop integration are two players of one session.
            (
                [
                    Candidate("tab", .playing, isNowPlaying: true, order: 1),
                    Candidate("mirror", .paused, isNowPlaying: true, order: 2),
                ], "tab"
            ),
        ] as [([Candidate], String?)])
    func severalPlayers_frontPlayerIsChosen(_ candidates: [Candidate], _ expected: String?) {
        #expect(FrontPlayer.choose(candidates) == expected)
        #expect(FrontPlayer.choose(candidates.reversed()) == expected)
    }
}
