import Testing

@testable import MediaLibrary

/// What somebody types or says, and what is meant.
@Suite struct SearchTests {
    private static let songs = [
        ("Thunderstruck", "AC/DC", "The Razors Edge"), ("Back in Black", "AC/DC", "Back in Black"),
        ("Black Dog", "Led Zeppelin", "Led Zeppelin IV"), ("Rock and Roll", "Led Zeppelin", "Led Zeppelin IV"),
        ("Help!", "The Beatles", "Help!"), ("Yesterday", "The Beatles", "Help!"), ("Help", "Bananarama", "Hits"),
        ("Yellow", "Coldplay", "Parachutes"), ("Hyperballad", "Björk", "Post"),
        ("Stand by Me", "Ben E. King", "Stand by Me"),
        ("Jóga", "Björk", "Homogenic"), ("Für Elise", "Ludwig van Beethoven", "Bagatellen"),
        ("99 Luftballons", "Nena", "Nena"),
        ("Don't Stop Me Now", "Queen", "Jazz"), ("Bohemian Rhapsody", "Queen", "A Night at the Opera"),
    ]

    private func library() throws -> Library {
        let library = try Library()
        for (index, song) in Self.songs.enumerated() {
            try library.add(
                "/m/\(index).mp3", ["TITLE": [song.0], "ARTIST": [song.1], "ALBUM": [song.2], "GENRE": ["Rock"]])
        }
        _ = try library.store.addList("Road trip", [1])
        return library
    }

    private static let table: [(heard: String, kind: Store.Finding.Kind, title: String, artist: String)] = [
        ("ac dc", .artist, "AC/DC", ""), ("acdc", .artist, "AC/DC", ""), ("AC/DC", .artist, "AC/DC", ""),
        ("led zeppelin four", .album, "Led Zeppelin IV", "Led Zeppelin"),
        ("led zeppelin 4", .album, "Led Zeppelin IV", "Led Zeppelin"), ("the beatles", .artist, "The Beatles", ""),
        ("beatles", .artist, "The Beatles", ""), ("help by the beatles", .album, "Help!", "The Beatles"),
        ("help by bananarama", .song, "Help", "Bananarama"), ("stand by me", .album, "Stand by Me", "Ben E. King"),
        ("stand by me by ben e king", .album, "Stand by Me", "Ben E. King"), ("bjork", .artist, "Björk", ""),
        ("joga", .song, "Jóga", "Björk"), ("cold play", .artist, "Coldplay", ""),
        ("fur elise", .song, "Für Elise", "Ludwig van Beethoven"),
        ("ludwig van beethofen", .artist, "Ludwig van Beethoven", ""),
        ("bohemian rapsody", .song, "Bohemian Rhapsody", "Queen"),
        ("dont stop me now", .song, "Don't Stop Me Now", "Queen"),
        ("bohemian rhap", .song, "Bohemian Rhapsody", "Queen"),
        ("led zepelin", .artist, "Led Zeppelin", ""), ("road trip", .playlist, "Road trip", ""),
        ("rock", .genre, "Rock", ""),
        ("yellow coldplay", .song, "Yellow", "Coldplay"), ("99 luftballons", .song, "99 Luftballons", "Nena"),
    ]

    @Test func heardWords_findTheRightItem() throws {
        let store = try library().store
        for row in Self.table {
            let findings = try store.search(row.heard)
            let first = try #require(findings.first, "\(row.heard)")
            #expect(
                first.kind == row.kind && first.title == row.title && first.artist == row.artist,
                "\(row.heard): \(findings.prefix(3))")
            #expect(findings.allSatisfy { (0...1).contains($0.score) })
            #expect(findings.map(\.score) == findings.map(\.score).sorted(by: >))
        }
    }

    @Test func searchIndex_isMergedAfterManyChanges_andTheAnswersStay() throws {
        let library = try Library()
        for index in 0..<WordsMerge.threshold {
            try library.add("/m/\(index).mp3", ["TITLE": ["Old song \(index)"], "ARTIST": ["Somebody"]])
        }
        func pieces() throws -> Int64 {
            try library.store.db.number("SELECT count(DISTINCT segid) FROM words_idx") ?? 0
        }
        let questions = ["song 77", "old", "somebody", "odl song"]
        let before = try questions.map { try library.store.search($0) }
        #expect(try pieces() > 1)
        var steps = 0
        while try library.store.mergeWords() { steps += 1 }
        #expect(try steps > 0 && pieces() == 1)
        #expect(try questions.map { try library.store.search($0) } == before)
        // A few more changes are not worth it.
        try library.add("/m/new.mp3", ["TITLE": ["New song"]])
        #expect(try !library.store.mergeWords())
    }

    @Test func exactName_hasTheScoreOne() throws {
        let store = try library().store
        #expect(try store.search("Thunderstruck").first?.score == 1)
        #expect(try store.search("ac dc").first?.score == 1)
        let misheard = try #require(try store.search("thunderstuck").first)
        #expect(misheard.title == "Thunderstruck" && misheard.score < 0.95 && misheard.score > 0.5)
    }

    @Test func kinds_areTheRequestedOnes() throws {
        let store = try library().store
        #expect(try store.search("help", kinds: [.song]).map(\.title).sorted() == ["Help", "Help!"])
        #expect(try store.search("help", kinds: [.album]).map(\.title) == ["Help!"])
        #expect(try store.search("help", kinds: [.song], artist: "bananarama").map(\.artist) == ["Bananarama"])
        #expect(try store.search("black dog", kinds: [.song], album: "led zeppelin four").map(\.title) == ["Black Dog"])
        #expect(try store.search("help", max: 1).count == 1)
    }

    @Test(arguments: ["", "?", "\"", "xyzzyqw", "'; DROP TABLE track; --", "* OR NEAR(", "\0"])
    func nonsense_findsNothing(_ text: String) throws {
        let store = try library().store
        #expect(try store.search(text).filter { $0.score > 0.6 }.isEmpty)
    }

    @Test func longTitle_isFoundByItsFirstWords() throws {
        let library = try Library()
        let words = (0..<40).map { "word\($0)" }
        try library.add("/m/1.mp3", ["TITLE": [words.prefix(20).joined(separator: " ")]])
        let finding = try #require(try library.store.search(words.prefix(20).joined(separator: " ")).first)
        #expect(finding.score > 0.85)
        #expect(Words.said(words.joined(separator: " ")) == Array(words.prefix(16)))
        var query = Query()
        query.text = words.prefix(20).joined(separator: " ")
        #expect(try library.store.count(query) == 1)
    }

    @Test func distance_countsWrongLetters() {
        func distance(_ one: String, _ other: String) -> Int {
            Words.distance(Array(one.unicodeScalars), Array(other.unicodeScalars))
        }
        #expect(distance("", "abc") == 3)
        #expect(distance("abc", "abc") == 0)
        #expect(distance("abcd", "acbd") == 1)
        #expect(distance("zepelin", "zeppelin") == 1)
        #expect(distance("kitten", "sitting") == 3)
        #expect(Words.likeness("four", "iv") == 1)
        #expect(Words.likeness("cat", "car") == 0)
    }
}
