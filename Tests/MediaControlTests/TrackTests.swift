import MediaControl
import Testing

@Suite struct TrackTests {
    @Test(arguments: [
        (Track(), Track(id: "/1", url: "file:///a", title: "A"), true),
        (Track(id: "/1"), Track(id: "/2"), false),
        (Track(id: "/1", url: "file:///a"), Track(id: "/1", url: "file:///b"), false),
        // A title that became known late, or the title of a radio.
        (Track(id: "/1", url: "file:///a", title: "a.mp3"), Track(id: "/1", url: "file:///a", title: "A Song"), true),
        // A browser that gives every track one id and no URL.
        (Track(id: "/browser", title: "One film"), Track(id: "/browser", title: "Another"), false),
        (Track(id: "/browser", title: ""), Track(id: "/browser", title: "One film"), true),
    ]) func twoTracks_differIfAPropertyShowsIt(_ one: Track, _ two: Track, _ same: Bool) {
        #expect(one.mayBe(two) == same)
        #expect(two.mayBe(one) == same)
    }
}

/// Tracks with hostile texts.
@Suite struct StrangerTrackTests {
    @Test func longTexts_areShortenedAndStayDifferent() {
        let long = String(repeating: "ä", count: 6 << 20)
        let track = Track(id: long, url: long + "1", title: "e" + String(repeating: "\u{301}", count: 1 << 20))
        for text in [track.id, track.url, track.title] { #expect(text.utf8.count <= Track.longestText) }
        #expect(track.id != track.url)
        #expect(Track(title: long + "a") != Track(title: long + "b"))
        #expect(Track(title: long) == Track(title: long))
        #expect(Track(title: "Ärger").title == "Ärger")
    }
}
