import MediaControl
import Testing

@Suite struct FrontPlayerTests {
    typealias Candidate = FrontPlayer<String>.Candidate

    @Test(
        arguments: [
            ([], nil),
            ([Candidate("a", .stopped, isNowPlaying: false, order: 1)], "a"),
            // The now-playing session's, even while it is interrupted.
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
            // Who plays now before who started it last; of several the latest.
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
    func severalPlayers_theOneInFrontIsChosen(_ candidates: [Candidate], _ expected: String?) {
        #expect(FrontPlayer.choose(candidates) == expected)
        #expect(FrontPlayer.choose(candidates.reversed()) == expected)
    }
}
