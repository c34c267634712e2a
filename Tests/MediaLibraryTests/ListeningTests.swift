import MediaLibrary
import Testing

/// What playing an item says about it.
@Suite struct ListeningTests {
    private func heard(_ seconds: Double, of duration: Double, _ type: ItemType = .music) -> Listening {
        var listening = Listening(duration: duration, type: type)
        listening.plays(true, at: 100)
        listening.plays(false, at: 100 + seconds)
        return listening
    }

    @Test(arguments: [
        (180.0, 200.0, [Listening.Note.played]), (179, 200, []), (240, 3_000, [.played]), (239, 3_000, []),
        (19, 200, [.skipped]),
        (20, 200, []), (0, 200, []), (19, 0, [.skipped]), (20, 0, [.played]), (9.1, 10, [.played]),
    ]) func song_countsAsPlayedOrSkippedByTheTimeHeard(_ seconds: Double, _ duration: Double, _ notes: [Listening.Note])
    {
        var left = heard(seconds, of: duration)
        #expect(left.left(at: 5_000) == notes)
        #expect(left.left(at: 6_000) == [])
        #expect(left.isAt(5) == [])
    }

    @Test func seekToTheEnd_doesNotCountAsPlayed() {
        var jumped = heard(30, of: 300)
        #expect(jumped.finished(at: 200) == [])
        var whole = heard(295, of: 300)
        #expect(whole.finished(at: 500) == [.played])
        #expect(whole.left(at: 501) == [])
    }

    @Test func pauses_doNotCountAsHeard() {
        var listening = Listening(duration: 100, type: .music)
        for start in [0.0, 1_000, 2_000] {
            listening.plays(true, at: start)
            listening.plays(true, at: start + 20)
            listening.plays(false, at: start + 29)
        }
        #expect(listening.left(at: 9_000) == [])
        var more = listening
        more = Listening(duration: 100, type: .music)
        for start in [0.0, 1_000, 2_000] {
            more.plays(true, at: start)
            more.plays(false, at: start + 31)
        }
        #expect(more.left(at: 9_000) == [.played])
    }

    @Test func bookmarkOfAPodcast_staysUntilItsEnd() {
        var podcast = heard(30, of: 3_600, .podcast)
        #expect(podcast.isAt(1_234) == [.bookmark(1_234)])
        #expect(podcast.isAt(0) == [])
        #expect(podcast.left(at: 999) == [])
        var ended = heard(30, of: 3_600, .audiobook)
        #expect(ended.finished(at: 200) == [.played])
        #expect(ended.isAt(3_599) == [])
        // A short one is heard at once.
        #expect(heard(30, of: 300, .podcast).isAt(100) == [])
        var playing = Listening(duration: 3_600, type: .podcast)
        #expect(!playing.wantsPosition)
        playing.plays(true, at: 1)
        #expect(playing.wantsPosition)
        #expect(!heard(1, of: 3_600, .music).wantsPosition)
    }
}
