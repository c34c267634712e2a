import TagFormats
import Testing

@testable import MediaLibrary

/// What tags mean.
@Suite struct TrackTests {
    private func track(_ tags: [String: [String]], _ path: String = "/music/file.mp3") -> Track {
        Track(Library.facts(tags), path: Array(path.utf8))
    }

    @Test(arguments: [
        (["A; B"], ["A", "B"]), (["A feat. B"], ["A", "B"]), (["A (feat. B)"], ["A", "B"]),
        (["A ft. B; C"], ["A", "B", "C"]),
        (["AC/DC"], ["AC/DC"]), (["Simon & Garfunkel"], ["Simon & Garfunkel"]), (["A", "B"], ["A", "B"]),
        (["A", "A"], ["A"]),
        (["Earth, Wind & Fire"], ["Earth, Wind & Fire"]), (["Feat"], ["Feat"]), ([";"], []),
    ]) func severalArtists_areSeparated(_ values: [String], _ artists: [String]) {
        #expect(track(["ARTIST": values]).artists == artists)
    }

    @Test func tagWithSeparateArtists_isUsedUnchanged() {
        let track = track(["ARTIST": ["A & B"], "ARTISTS": ["A", "B"]])
        #expect(track.artist == "A & B")
        #expect(track.artists == ["A", "B"])
    }

    @Test func fileWithoutTags_hasItsNameAsTitle() {
        #expect(track([:], "/music/Some song.flac").title == "Some song")
    }

    @Test func album_isIdentifiedByTitleAndArtist() {
        let one = track(["ALBUM": ["Greatest hits"], "ARTIST": ["A"]])
        let other = track(["ALBUM": ["Greatest Hits"], "ARTIST": ["A feat. B"]])
        #expect(one.albumKey == other.albumKey)
        #expect(one.albumKey != track(["ALBUM": ["Greatest hits"], "ARTIST": ["C"]]).albumKey)
        let mixed = ["A", "B"].map { track(["ALBUM": ["Mix"], "ARTIST": [$0], "COMPILATION": ["1"]]) }
        #expect(mixed[0].albumKey == mixed[1].albumKey)
        #expect(mixed[0].isCompilation)
        let numbered = ["A", "B"].map { track(["ALBUM": [$0], "ARTIST": [$0], "MUSICBRAINZ_ALBUMID": ["x"]]) }
        #expect(numbered[0].albumKey == numbered[1].albumKey)
    }

    @Test func releasesOfOneAlbum_areToldApartByTheirTags() {
        func key(_ more: [String: [String]]) -> String {
            track(["ALBUM": ["Album"], "ARTIST": ["A"], "DATE": ["1999"]].merging(more) { $1 }).albumKey
        }
        let plain = key([:])
        let keys = [
            key(["RELEASEDATE": ["1973"]]), key(["RELEASEDATE": ["2003"]]), key(["ALBUMVERSION": ["Deluxe"]]),
            key(["RELEASEDATE": ["1973"], "ALBUMVERSION": ["Deluxe"]]), plain,
        ]
        #expect(Set(keys).count == keys.count)
        // The date of the recording may differ within an album.
        #expect(key(["DATE": ["2001"]]) == plain)
        #expect(key(["ALBUMVERSION": ["DELUXE"]]) == keys[2])
    }

    @Test(arguments: [
        (["STIK": ["2"]], "/m/a.m4a", ItemType.audiobook), (["STIK": ["21"]], "/m/a.m4a", .podcast),
        (["PODCAST": ["1"]], "/m/a.mp3", .podcast), ([:], "/m/a.m4b", .audiobook),
        (["GENRE": ["Podcast"]], "/m/a.mp3", .podcast),
        (["GENRE": ["Audiobook"]], "/m/a.mp3", .audiobook), ([:], "/Podcasts/x/a.mp3", .podcast),
        ([:], "/Audiobooks/x/a.mp3", .audiobook), (["GENRE": ["Rock"]], "/m/a.mp3", .music),
        (["STIK": ["1"]], "/m/a.m4a", .music),
    ]) func type_isFoundByTagsNameAndFolder(_ tags: [String: [String]], _ path: String, _ type: ItemType) {
        #expect(track(tags, path).mediaType == type)
    }

    @Test(arguments: [
        ("1973-10-24", 19_731_024), ("1973", 19_730_000), ("1973-10", 19_731_000), ("24.10.1973", 19_730_000),
        ("2004-02-30T12:00", 20_040_230), ("", 0), ("unknown", 0), ("20040102", 20_040_102), ("1999-99", 19_990_000),
    ]) func date_isReadAsANumber(_ text: String, _ number: Int) { #expect(Track.date(text) == number) }

    @Test(arguments: [
        ("Björk", "bjork"), ("ÀÉÎõü", "aeiou"), ("Straße", "strasse"), ("Łódź", "lodz"), ("don’t", "don't"),
        ("ﬁn", "fin"),
        ("Ёлка", "елка"), ("ΆΛΦΑ", "αλφα"), ("Æther", "aether"), ("e\u{301}te", "ete"),
    ]) func folding_removesCaseAndMarks(_ text: String, _ folded: String) { #expect(Folding.fold(text) == folded) }

    @Test func words_areSeparatedAsSpoken() {
        #expect(Folding.words(Folding.fold("AC/DC: Don’t (Live, 1991)")) == ["ac", "dc", "dont", "live", "1991"])
        #expect(Folding.sortKey("the beatles") == "beatles")
        #expect(Folding.sortKey("the ") == "the ")
        #expect(Folding.sortKey("theory") == "theory")
    }

    @Test func playlistFiles_haveTheirPaths() throws {
        let base = Array("/music/lists/a.m3u8".utf8)
        let m3u = "#EXTM3U\n#EXTINF:1,x\n../song one.mp3\n/other/ä.mp3\nhttp://radio.example/x\n"
        let paths = try #require(ListFile.entries(Array(m3u.utf8), path: base))
        #expect(paths.map { String(decoding: $0, as: UTF8.self) } == ["/music/song one.mp3", "/other/ä.mp3"])
        let xspf = """
            <?xml version="1.0"?><!-- <location>no</location> --><playlist version="1" xmlns="http://xspf.org/ns/0/"><trackList>
            <track><location>file:///music/a%20b.mp3</location></track>
            <track><title>x</title><location> ../c&amp;d&#38;.mp3
            </location></track><track><location>http://x.example/y</location></track></trackList></playlist>
            """
        let found = try #require(ListFile.entries(Array(xspf.utf8), path: Array("/music/lists/a.xspf".utf8)))
        #expect(found.map { String(decoding: $0, as: UTF8.self) } == ["/music/a b.mp3", "/music/c&d&.mp3"])
        let spaces = String(repeating: " ", count: 4_000_000)
        let padded = "<playlist><location>\(spaces)x.mp3</location><location>  /y&amp;z.mp3\n </location></playlist>"
        let rest = try #require(ListFile.entries(Array(padded.utf8), path: Array("/a.xspf".utf8)))
        #expect(rest.map { String(decoding: $0, as: UTF8.self) } == ["/y&z.mp3"])
        #expect(ListFile.entries(Array("<html></html>".utf8), path: Array("/a.xspf".utf8)) == nil)
        #expect(ListFile.entries([0, 1, 2], path: base) == nil)
    }
}
