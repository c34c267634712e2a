import DBus
import Foundation
import PluginAPI
import SessionKit
import TestSupport
import Testing

/// `SessionKit.MediaLibrary` and `MediaQuery` as an app uses them, with the real library.
@Suite(.serialized) struct MediaQueryTests {
    /// Files that need not be played.
    private func stage(_ files: [(String, [String: String])]) async throws -> MusicStage {
        let stage = try await MusicStage([])
        for (name, tags) in files {
            try Data(TaggedMP3.bytes(tags)).write(to: URL(fileURLWithPath: stage.music + "/" + name))
        }
        try await stage.library.scan()
        try await stage.waitUntilScanned(files.count)
        return stage
    }

    private static let files: [(String, [String: String])] = [
        ("1.mp3", ["TIT2": "Jóga", "TPE1": "Björk", "TALB": "Homogenic", "TDRC": "1997", "TCON": "Pop", "TRCK": "2"]),
        (
            "2.mp3",
            ["TIT2": "Hunter", "TPE1": "Björk", "TALB": "Homogenic", "TDRC": "1997", "TCON": "Pop", "TRCK": "1"]
        ),
        ("3.mp3", ["TIT2": "Requiem", "TPE1": "Berlin", "TALB": "Sacred", "TCOM": "Mozart", "TCON": "Classical"]),
        ("4.mp3", ["TIT2": "One", "TPE1": "U2; Mary", "TALB": "Mix", "TCMP": "1"]),
        ("5.mp3", ["TIT2": "News", "TALB": "Radio", "TCON": "Podcast", "TDRC": "2025"]),
        ("6.mp3", ["TIT2": "Chapter 1", "TALB": "Ulysses", "TCON": "Audiobook", "TPE1": "Joyce"]),
    ]

    @Test func nineQueries_haveTheirItemsAndCollections() async throws {
        let stage = try await stage(Self.files)
        let library = stage.library
        func items(_ query: MediaQuery) async throws -> [String] { try await library.items(query).all.map(\.title) }
        func groups(_ query: MediaQuery) async throws -> [String] {
            try await library.collections(query).map { "\($0.title) \($0.count)" }
        }
        #expect(try await items(.songs) == ["Hunter", "Jóga", "One", "Requiem"])
        #expect(try await groups(.songs).count == 4)
        #expect(try await Set(groups(.albums)) == ["Homogenic 2", "Sacred 1", "Mix 1"])
        #expect(try await groups(.artists) == ["Berlin 1", "Björk 2", "Mary 1", "U2 1"])
        #expect(try await groups(.compilations) == ["Mix 1"])
        #expect(try await groups(.composers) == ["Mozart 1"])
        #expect(try await groups(.genres) == ["Classical 1", "Pop 2"])
        #expect(try await groups(.podcasts) == ["Radio 1"])
        #expect(try await groups(.audiobooks) == ["Ulysses 1"])
        let all = try await library.items(.albums).all
        let list = try await library.createPlaylist("Road", items: [all[1], all[0]])
        #expect(try await groups(.playlists) == ["Road 2"])
        #expect(try await library.items(list.query).all.map(\.persistentID) == [all[1], all[0]].map(\.persistentID))
        // The items of a collection are those that were counted.
        for query in [MediaQuery.albums, .artists, .genres, .composers, .podcasts, .audiobooks, .playlists, .songs] {
            for collection in try await library.collections(query) {
                #expect(try await collection.items(in: library).count == collection.count, "\(collection.title)")
            }
        }
    }

    @Test func predicatesAndOrders_chooseItems() async throws {
        let stage = try await stage(Self.files)
        let library = stage.library
        func titles(_ query: MediaQuery) async throws -> [String] { try await library.items(query).all.map(\.title) }
        #expect(try await titles(.songs.filter(.artist, is: "bjork")) == ["Hunter", "Jóga"])
        #expect(try await titles(.songs.filter(.artist, is: "mary")) == ["One"])
        #expect(try await titles(.songs.filter(.title, contains: "QUI")) == ["Requiem"])
        #expect(try await titles(.songs.filter(.year, is: 1_997).filter(.albumTrackNumber, is: 2)) == ["Jóga"])
        #expect(try await titles(.songs.filter(.isCompilation, is: true)) == ["One"])
        #expect(try await titles(.songs.sorted(by: .title, descending: true)).first == "Requiem")
        var query = MediaQuery()
        #expect(try await library.count(query) == 6)
        query.mediaTypes = [.podcast, .audiobook]
        #expect(try await titles(query) == ["Chapter 1", "News"])
        query = MediaQuery(filterPredicates: [MediaPropertyPredicate(.genre, "pop")])
        query.text = "joga hom"
        #expect(try await titles(query) == ["Jóga"])
        do {
            _ = try await titles(.songs.filter(.year, contains: "19"))
            Issue.record("a part of a number")
        } catch let error as SessionError {
            #expect(error.code == .badParameter)
        }
        let found = try await library.search("homogenik", kinds: [.album])
        #expect(found.first?.title == "Homogenic")
        #expect(try await titles(try #require(found.first).query) == ["Hunter", "Jóga"])
    }

    @Test func largeLibrary_isReadPageByPage() async throws {
        let files = (0..<1_234).map { ("\($0).mp3", ["TIT2": "Song \($0)", "TPE1": "A", "TALB": "B \($0 % 1_100)"]) }
        let stage = try await stage(files)
        var seen: Set<UInt64> = []
        for try await item in stage.library.items(.songs) { seen.insert(item.persistentID) }
        #expect(seen.count == 1_234)
        #expect(try await stage.library.collections(.albums).count == 1_100)
        var first: [String] = []
        for try await item in stage.library.items(.songs) {
            first.append(item.title)
            if first.count == 2 { break }
        }
        #expect(first == ["Song 0", "Song 1"])
    }

    @Test func playlistsAndRatings_areChanged_andReadersAreNotified() async throws {
        let stage = try await stage(Self.files)
        let library = stage.library
        let changes = try await library.subscribe()
        let item = try #require(try await library.items(.songs).all.first)
        try await library.setRating(4, of: item)
        // The end of the scan may be told together with it: news come at most once a second.
        let news = await firstElement(of: changes) {
            guard case .items(_, let changed, let removed) = $0 else { return false }
            return changed == [item.persistentID] && removed.isEmpty
        }
        #expect(news != nil)
        #expect(try await library.item(item.persistentID)?.rating == 4)
        try await library.setBookmarkTime(61, of: item)
        try await library.setMediaType(.podcast, of: item)
        #expect(try await library.item(item.persistentID)?.bookmarkTime == 61)
        #expect(try await library.items(.podcasts).all.count == 2)
        try await library.setMediaType(nil, of: item)
        let list = try await library.createPlaylist("Road")
        try await library.setItems([item, item], of: list)
        try await library.rename(list, to: "Home")
        #expect(try await library.playlists.map { "\($0.name) \($0.count)" } == ["Home 2"])
        try await library.delete(list)
        #expect(try await library.playlists == [])
        #expect(try await item.artwork(from: library) == nil)
        #expect(try await library.item(999_999) == nil)
        #expect(try await library.folders == [stage.music])
    }

    @Test func libraryEndsAndReturns_readersAreNotified() async throws {
        let stage = try await stage(Array(Self.files.prefix(1)))
        let changes = try await stage.library.subscribe()
        kill(try stage.process(of: .library), SIGKILL)
        #expect(await firstElement(of: changes) { $0 == .unavailable } != nil)
        #expect(await firstElement(of: changes) { $0 == .available } != nil)
        #expect(try await stage.library.count(.songs) == 1)
        let before = try await stage.library.revision
        try await stage.library.removeFolder(stage.music)
        #expect(
            await firstElement(of: changes) {
                if case .changed(let revision) = $0 { revision > before } else { false }
            } != nil)
        #expect(try await stage.library.count(.songs) == 0)
    }
}
