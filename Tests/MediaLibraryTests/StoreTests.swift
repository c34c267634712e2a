import Foundation
import TestSupport
import Testing

@testable import MediaLibrary
@testable import ReferenceModel

/// The database: what is kept over changes, ends and damage.
@Suite struct StoreTests {
    private let song = ["TITLE": ["Song"], "ARTIST": ["Somebody"], "ALBUM": ["Album"]]

    /// A library with bookmarks and playlists.
    private func filled(_ count: Int = 300) throws -> (Library, [Int64], list: Int64) {
        let library = try Library()
        var ids: [Int64] = []
        for index in 0..<count {
            ids.append(
                try library.add(
                    "/m/\(index % 7)/\(index).mp3",
                    ["TITLE": ["Song \(index)"], "ARTIST": ["A \(index % 9)"], "ALBUM": ["B"]]))
        }
        for (index, id) in ids.enumerated() where index % 3 == 0 {
            #expect(try library.store.set(id, [.bookmark(Double(index) + 0.5), .rating(index % 6), .plays(index)]))
        }
        let list = try #require(try library.store.addList("Mine", [ids[5], ids[3], ids[5], ids[100]]))
        return (library, ids, list)
    }

    private func kept(_ library: Library, _ ids: [Int64], _ list: Int64) throws {
        for (index, id) in ids.enumerated() where index % 3 == 0 {
            let kept = try library.store.db.first(
                "SELECT bookmark, rating, plays FROM kept.item WHERE id = ?", [.whole(id)]
            ) {
                [$0.number(0), $0.number(1), $0.number(2)]
            }
            #expect(kept == [Double(index) + 0.5, Double(index % 6), Double(index)])
        }
        #expect(try library.store.list(list)?.name == "Mine")
        let items = try library.store.db.all(
            "SELECT item FROM kept.playlist_item WHERE playlist = ? ORDER BY position", [.whole(list)]
        ) { $0.whole(0) }
        #expect(items == [ids[5], ids[3], ids[5], ids[100]])
    }

    @Test func reopenedStore_hasEverything() throws {
        let (library, ids, list) = try filled()
        let revision = library.store.revision
        for clean in [true, false] {
            try library.reopen(clean: clean)
            #expect(library.store.findings.isEmpty)
            #expect(library.store.revision == revision)
            #expect(try library.store.itemCount() == 300)
            try kept(library, ids, list)
        }
    }

    @Test func movedFile_keepsItsNumberAndBookmark() throws {
        let library = try Library()
        let id = try library.add("/m/a/1.mp3", song, sound: 99)
        #expect(try library.store.set(id, [.bookmark(12), .plays(3)]))
        let store = library.store
        // By `rename`: the same file.
        let directory = try #require(try store.directory(Array("/m/a".utf8)))
        let other = try store.saw(Array("/m/b".utf8), parent: 0, isMount: false, isWatchable: true, digest: 0)
        let known = try #require(try store.files(in: directory.id, after: nil, to: nil).first)
        try store.carry(out: .go(id), in: directory.id, directory.path)
        let file = ScanPlan.DiskFile(
            name: Array("x.mp3".utf8), inode: known.inode, size: known.size, modified: known.modified)
        try store.carry(out: .add(file), in: other, Array("/m/b".utf8))
        #expect(try store.findMoved().count == 1)
        #expect(try store.finish() == [])
        #expect(try store.item(id)?.path == Array("/m/b/x.mp3".utf8))
        #expect(try store.item(id)?.kept.bookmark == 12)
        // What depends on its path is read again.
        #expect(try store.pending(after: 0, max: 10).map(\.path) == [Array("/m/b/x.mp3".utf8)])
        let again = try store.store(
            Track(Library.facts(song), path: Array("/m/b/x.mp3".utf8)), for: id, sound: 99, now: 1)
        #expect(again.id == id && !again.isNew)
        #expect(try store.pendingCount() == 0)
        // By copying and removing: another file with the same content.
        try store.carry(out: .go(id), in: other, Array("/m/b".utf8))
        let copy = ScanPlan.DiskFile(name: Array("y.mp3".utf8), inode: 777, size: known.size, modified: 5)
        try store.carry(out: .add(copy), in: directory.id, directory.path)
        #expect(try store.findMoved().count == 0)
        let pending = try #require(try store.pending(after: 0, max: 10).first)
        let stored = try store.store(
            Track(Library.facts(song), path: pending.path), for: pending.id, sound: 99, now: 1)
        #expect(stored.id == id && !stored.isNew)
        #expect(try store.finish() == [])
        #expect(try store.item(id)?.path == Array("/m/a/y.mp3".utf8))
        #expect(try store.item(id)?.kept.plays == 3)
    }

    @Test func newFolder_hasNoFilesOfARemovedOne() throws {
        let library = try Library()
        let store = library.store
        var old: [Int64] = []
        for path in ["/m/one", "/m/two", "/m/three"] {
            let id = try library.add(path + "/01.mp3", song)
            #expect(try !old.contains(id) && store.item(id)?.kept.rating == 0)
            #expect(try store.set(id, [.rating(5)]))
            old.append(id)
            // The scan that would remove them was cancelled.
            try store.goes(Array(path.utf8))
        }
        let new = try store.saw(Array("/m/new".utf8), parent: 0, isMount: false, isWatchable: true, digest: 0)
        #expect(try store.files(in: new, after: nil, to: nil) == [])
        let id = try library.add("/m/new/01.mp3", song)
        #expect(try store.finish().sorted() == old)
        #expect(try store.item(id)?.kept.rating == 0)
    }

    @Test func fileThatComesBack_isTheSameItem() throws {
        for isElsewhere in [false, true] {
            let library = try Library()
            let id = try library.add("/m/1.mp3", song, sound: 99)
            _ = try library.add("/m/2.mp3", song, sound: 98)
            #expect(try library.store.set(id, [.bookmark(12)]))
            let directory = try #require(try library.store.directory(Array("/m".utf8)))
            try library.store.carry(out: .go(id), in: directory.id, directory.path)
            #expect(try library.store.finish() == [id])
            #expect(try library.store.item(id) == nil)
            if isElsewhere {
                // Known again by its content, and by the size that was kept with it.
                let size = try #require(
                    try library.store.db.number("SELECT size FROM kept.item WHERE id = ?", [.whole(id)]))
                let file = ScanPlan.DiskFile(name: Array("9.mp3".utf8), inode: 9, size: UInt64(size), modified: 9)
                try library.store.carry(out: .add(file), in: directory.id, directory.path)
                let pending = try #require(try library.store.pending(after: 0, max: 1).first)
                let track = Track(Library.facts(song), path: pending.path)
                #expect(try library.store.store(track, for: pending.id, sound: 99, now: 1).id == id)
            } else {
                #expect(try library.add("/m/1.mp3", song) == id)
            }
            #expect(try library.store.item(id)?.kept.bookmark == 12)
        }
    }

    @Test func unmountedFolder_isNotRemoved() throws {
        let library = try Library()
        let id = try library.add("/m/stick/1.mp3", song)
        try library.store.setUnavailable(below: Array("/m/stick".utf8))
        #expect(try library.store.itemCount() == 0)
        #expect(try library.store.finish() == [])
        #expect(try library.store.item(id)?.isAvailable == false)
        var query = Query()
        query.includesUnavailable = true
        #expect(try library.store.ids(query) == [id])
        try library.store.beginBatch()
        _ = try library.store.saw(Array("/m/stick".utf8), parent: 0, isMount: true, isWatchable: true, digest: 1)
        try library.store.commitBatch()
        #expect(try library.store.itemCount() == 1)
    }

    @Test func removedFolder_leavesItemsOfOtherFolders() throws {
        let library = try Library()
        let (one, two) = (try library.add("/m/a/1.mp3", song), try library.add("/m/b/2.mp3", song))
        let three = try library.add("/m0/3.mp3", song)
        for path in ["/m", "/m/b", "/m0"] { try library.store.add(folder: Array(path.utf8), nil, isWatched: true) }
        #expect(try library.store.remove(folder: Array("/m".utf8)) == [one])
        #expect(try library.store.item(two) != nil && library.store.item(three) != nil)
        #expect(try library.store.remove(folder: Array("/nothing".utf8)) == nil)
        #expect(try library.store.remove(folder: Array("/m/b".utf8)) == [two])
        // Words and collections of what is gone are gone.
        #expect(try library.store.remove(folder: Array("/m0".utf8)) == [three])
        #expect(try library.store.search("somebody").isEmpty)
        #expect(try library.store.collections(.album, Query(), offset: 0, max: 9).count == 0)
        #expect(try library.store.db.number("SELECT count(*) FROM vocabulary") == 0)
    }

    @Test func changedTags_removeTheOldWords() throws {
        let library = try Library()
        let id = try library.add("/m/1.mp3", song)
        let track = Track(
            Library.facts(["TITLE": ["Other"], "ARTIST": ["Nobody"], "ALBUM": ["Elsewhere"]]),
            path: Array("/m/1.mp3".utf8))
        _ = try library.store.store(track, for: id, sound: 5, now: 9)
        _ = try library.store.finish()
        #expect(try library.store.search("somebody").isEmpty && library.store.search("song").isEmpty)
        #expect(try library.store.search("nobody").first?.kind == .artist)
        try library.store.failed(id, "damaged")
        _ = try library.store.finish()
        #expect(try library.store.itemCount() == 0)
        #expect(try library.store.failures(max: 5).map(\.reason) == ["damaged"])
        #expect(try library.store.db.number("SELECT count(*) FROM vocabulary") == 0)
    }

    @Test func typeSetByTheUser_wins() throws {
        let library = try Library()
        let id = try library.add("/m/1.mp3", song)
        #expect(try library.store.set(id, [.mediaType(.podcast)]))
        #expect(try library.titles(Query(.podcasts)) == ["Song"])
        _ = try library.store.store(
            Track(Library.facts(song), path: Array("/m/1.mp3".utf8)), for: id, sound: 5, now: 9)
        #expect(try library.titles(Query(.podcasts)) == ["Song"])
        #expect(try library.store.set(id, [.mediaType(nil)]))
        #expect(try library.titles(Query(.songs)) == ["Song"])
        #expect(try !library.store.set(99, [.rating(1)]))
    }

    @Test func playlists_areChangedCompletelyOrNotAtAll() throws {
        let (library, ids, list) = try filled(120)
        let store = library.store
        #expect(try !store.setList(list, [ids[1], 9_999]))
        var query = Query()
        query.playlist = list
        #expect(try store.ids(query) == [ids[5], ids[3], ids[5], ids[100]])
        #expect(try store.setList(list, [ids[1]]))
        #expect(try store.ids(query) == [ids[1]])
        try store.renameList(list, "Yours")
        #expect(try store.search("mine").filter { $0.kind == .playlist }.isEmpty)
        #expect(try store.search("yours").first?.id == list)
        try store.removeList(own: list)
        #expect(try store.list(list) == nil)
        #expect(try store.addList("Bad", [9_999]) == nil)
        #expect(try store.collections(.playlist, Query(), offset: 0, max: 9).count == 0)
    }

    @Test func playlistFile_hasTheItemsOfTheLibrary() throws {
        let library = try Library()
        let one = try library.add("/m/1.mp3", song)
        let directory = try #require(try library.store.directory(Array("/m".utf8)))
        let file = ScanPlan.DiskFile(name: Array("list.m3u".utf8), inode: 5, size: 5, modified: 5)
        try library.store.carry(out: .add(file), in: directory.id, directory.path)
        let id = try #require(try library.store.pending(after: 0, max: 1).first?.id)
        try library.store.store(
            list: id, name: "From a file", ["/m/2.mp3", "/m/1.mp3", "/x/y.mp3"].map { Array($0.utf8) }, content: 1)
        let found = try library.store.collections(.playlist, Query(), offset: 0, max: 9).collections
        #expect(found.map(\.title) == ["From a file"] && found.map(\.count) == [1])
        var query = Query()
        query.playlist = found[0].id
        // What comes later is in it then.
        let two = try library.add("/m/2.mp3", song)
        #expect(try library.store.ids(query) == [two, one])
        #expect(try library.store.list(found[0].id)?.isOwn == false)
        #expect(try library.store.search("from a file").first?.id == found[0].id)
    }

    // MARK: Damage

    @Test func truncatedIndex_isRenamedAndCreatedAgain() throws {
        var random = SplitMix64(seed: 5)
        for _ in 0..<12 {
            let (library, ids, list) = try filled()
            try library.reopen()
            library.store.close()
            let path = library.folder.path + "/library.db"
            let size = try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
            let rest = Int.random(in: 1..<size, using: &random)
            truncate(path, rest)
            try library.reopen(clean: false)
            let finding = try #require(library.store.findings.first, "cut to \(rest) of \(size)")
            #expect(finding.hasPrefix(path))
            #expect(FileManager.default.fileExists(atPath: path + ".damaged-1"))
            #expect(try library.store.itemCount() == 0)
            try kept(library, ids, list)
            // Read again, all has its number.
            for (index, id) in ids.enumerated() where index % 3 == 0 {
                #expect(try library.add("/m/\(index % 7)/\(index).mp3", song) == id)
            }
            #expect(try library.store.search("mine").first?.kind == .playlist)
            // New ones take no number that is known.
            let kept = ids.enumerated().filter { $0.offset % 3 == 0 }.map(\.element)
            #expect(try !kept.contains(library.add("/m/new.mp3", song)))
        }
    }

    @Test func damagedKeptFile_keepsItsReadableContent() throws {
        var random = SplitMix64(seed: 6)
        var saved = 0
        for _ in 0..<6 {
            let (library, _, _) = try filled(1_500)
            library.store.close()
            try library.reopen()
            library.store.close()
            let path = library.folder.path + "/library-kept.db"
            let size = try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
            if Bool.random(using: &random) {
                truncate(path, Int.random(in: size / 2..<size - 5_000, using: &random))
            } else {
                let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
                try file.seek(toOffset: UInt64(Int.random(in: 2...8, using: &random) * 4_096))
                try file.write(contentsOf: Data(randomBytes(4_096, seed: 1)))
                try file.close()
            }
            try library.reopen(clean: false)
            #expect(try library.store.itemCount() == 1_500)
            if library.store.findings.isEmpty { continue }
            #expect(FileManager.default.fileExists(atPath: path + ".damaged-1"))
            saved += Int(try library.store.db.number("SELECT count(*) FROM kept.item WHERE bookmark > 0") ?? 0)
            #expect(try library.store.set(1, [.bookmark(1)]))
        }
        #expect(saved > 300)
    }

    // MARK: Versions

    @Test func filesOfTheVersionBefore_keepTheirContent() throws {
        let (library, ids, list) = try filled()
        let path = library.folder.path
        library.store.close()
        do {
            let main = try SQLite(path + "/library.db")
            try main.script(
                """
                DROP INDEX file_gone_sound; DROP INDEX file_changed_sound; ALTER TABLE file DROP COLUMN sound;
                DROP INDEX track_songs; CREATE INDEX track_songs ON track(is_available, media_type, title_sort, id);
                PRAGMA user_version = 2
                """)
            let kept = try SQLite(path + "/library-kept.db")
            try kept.script("DROP INDEX item_sound; ALTER TABLE item DROP COLUMN sound")
            try kept.script("UPDATE item SET fingerprint = 7000 + id; PRAGMA user_version = 1")
        }
        try library.reopen(clean: false)
        #expect(library.store.findings.isEmpty)
        #expect(try library.store.itemCount() == 300)
        try kept(library, ids, list)
        try expectTitlesAreInAnIndex(library.store)
        // All files are read again at their places; what was removed is known by its former fingerprint.
        #expect(try library.store.pendingCount() == 300)
        #expect(try library.store.hasFormerFingerprints())
        try library.store.beginBatch()
        for pending in try library.store.pending(after: 0, max: 300) {
            let track = Track(Library.facts(song), path: pending.path)
            let sound = UInt64(9_000 + pending.id)
            let stored = try library.store.store(track, for: pending.id, sound: sound, former: 1, now: 1)
            #expect(stored.id == pending.id && !stored.isNew)
        }
        try library.store.commitBatch()
        #expect(try !library.store.hasFormerFingerprints())
        try kept(library, ids, list)
    }

    /// A part of a title is looked for in one index, which is a fraction of the table.
    private func expectTitlesAreInAnIndex(_ store: Store) throws {
        var query = Query()
        query.predicates = [Query.Predicate(.title, .contains, .text("x"))]
        let source = query.source
        let plan = try store.db.all(
            "EXPLAIN QUERY PLAN SELECT t.id\(source.sql) ORDER BY \(query.orderSQL)", source.values
        ) { $0.text(3) }
        #expect(plan.contains { $0.hasPrefix("SEARCH t USING COVERING INDEX track_songs") }, "\(plan)")
    }

    @Test func partOfATitle_isFoundInAnIndex() throws { try expectTitlesAreInAnIndex(filled().0.store) }

    // MARK: Sound

    @Test func fileThatIsRetaggedAndMoved_isTheSameItem() throws {
        let (library, ids, list) = try filled()
        let store = library.store
        let directory = try #require(try store.directory(Array("/m/3".utf8)))
        try store.beginBatch()
        try store.carry(out: .go(ids[3]), in: directory.id, directory.path)
        try store.commitBatch()
        // Another inode, size and name.
        let id = try library.add("/m/new/Other.mp3", ["TITLE": ["Other"]], sound: 4)
        #expect(id == ids[3])
        #expect(try store.finish() == [])
        #expect(try store.item(id)?.path == Array("/m/new/Other.mp3".utf8))
        try kept(library, ids, list)
        try library.reopen()
        try kept(library, ids, list)
    }

    /// Of several missing items with the same sound, such as silence, the one is taken that has most in common with the
    /// new file: first its inode, then its size, its name, its folder, and last the oldest.
    @Test(
        arguments: [
            (inode: 12, size: 900, path: "/m/c/9.mp3", expected: 1),
            (inode: 13, size: 1_001, path: "/m/a/9.mp3", expected: 2),
            (inode: 99, size: 1_001, path: "/m/b/9.mp3", expected: 0),
            (inode: 99, size: 900, path: "/m/c/3.mp3", expected: 2),
            (inode: 99, size: 900, path: "/m/a/3.mp3", expected: 2),
            (inode: 99, size: 900, path: "/m/b/9.mp3", expected: 1),
            (inode: 99, size: 900, path: "/m/c/9.mp3", expected: 0),
        ] as [(inode: UInt64, size: UInt64, path: String, expected: Int)])
    func fileLikeSeveralMissingItems_isTheOneThatHasMostInCommon(
        _ given: (inode: UInt64, size: UInt64, path: String, expected: Int)
    ) throws {
        let library = try Library()
        let places = ["/m/a/1.mp3", "/m/b/2.mp3", "/m/b/3.mp3"]
        var ids: [Int64] = []
        for (index, place) in places.enumerated() {
            ids.append(
                try library.add(place, song, sound: 7, inode: 11 + UInt64(index), size: 1_001 + UInt64(index)))
        }
        for (id, place) in zip(ids, places) { try library.lose(id, place) }
        #expect(
            try library.add(given.path, song, sound: 7, inode: given.inode, size: given.size) == ids[given.expected])
        // A file with another sound is a new item.
        #expect(try !ids.contains(library.add("/m/d/1.mp3", song, sound: 8, inode: 12, size: 1_001)))
    }

    /// Of several removed items with the same sound, of which something is kept, the one of the same size, and then the
    /// oldest.
    @Test(
        arguments: [(size: 1_002, expected: 1), (size: 1_001, expected: 0), (size: 5, expected: 0)] as [(UInt64, Int)])
    func fileLikeSeveralRemovedItems_isTheOneOfItsSize(_ given: (size: UInt64, expected: Int)) throws {
        let library = try Library()
        var ids: [Int64] = []
        for index in 0..<2 as Range<UInt64> {
            let id = try library.add("/m/\(index).mp3", song, sound: 7, size: 1_001 + index)
            #expect(try library.store.set(id, [.rating(Int(index) + 1)]))
            ids.append(id)
        }
        for (index, id) in ids.enumerated() { try library.lose(id, "/m/\(index).mp3") }
        _ = try library.store.finish()
        #expect(try library.store.itemCount() == 0)
        #expect(try library.add("/m/new.mp3", song, sound: 7, size: given.size) == ids[given.expected])
        #expect(
            try library.store.db.number("SELECT rating FROM kept.item WHERE id = ?", [.whole(ids[given.expected])])
                == Int64(given.expected) + 1)
    }

    /// Otherwise each of thousands of files with one sound is compared with all others.
    @Test func filesWithOneSound_areFoundByAnIndexOfTheMissingAndTheChangedOnes() throws {
        let library = try Library()
        for (query, index) in [
            (Store.goneWithSound, "file_gone_sound"), (Store.changedWithSound, "file_changed_sound"),
        ] {
            let plan = try library.store.db.all("EXPLAIN QUERY PLAN \(query)", [.whole(7), .whole(1)]) { $0.text(3) }
            #expect(plan.contains { $0.contains("SEARCH f USING INDEX \(index) (sound=?)") }, "\(plan)")
        }
    }

    @Test func filesThatExchangeTheirNames_areTheSameItems() throws {
        let library = try Library()
        let store = library.store
        let one = try library.add("/m/1.mp3", song, sound: 1)
        let two = try library.add("/m/2.mp3", song, sound: 2)
        #expect(try store.set(one, [.rating(1)]))
        #expect(try store.set(two, [.rating(2)]))
        let directory = try #require(try store.directory(Array("/m".utf8)))
        try store.beginBatch()
        for (id, name, size) in [(one, "1.mp3", 70), (two, "2.mp3", 80)] as [(Int64, String, UInt64)] {
            let file = ScanPlan.DiskFile(name: Array(name.utf8), inode: size, size: size, modified: 99)
            try store.carry(out: .change(id, file), in: directory.id, directory.path)
        }
        // Each name has the sound of the other one.
        for _ in 0..<4 {
            guard let file = try store.pending(after: 0, max: 1).first else { break }
            let sound: UInt64 = file.path == Array("/m/1.mp3".utf8) ? 2 : 1
            _ = try store.store(Track(Library.facts(song), path: file.path), for: file.id, sound: sound, now: 1)
        }
        try store.commitBatch()
        #expect(try store.pendingCount() == 0)
        #expect(try store.item(one)?.path == Array("/m/2.mp3".utf8))
        #expect(try store.item(two)?.path == Array("/m/1.mp3".utf8))
        let ratings = try store.db.all("SELECT rating FROM kept.item ORDER BY id") { $0.whole(0) }
        #expect(ratings == [1, 2])
    }

    /// The process ended between its last two steps.
    @Test func savedContentOfADamagedFile_isUsedByTheNextStart() throws {
        let (library, ids, list) = try filled()
        library.store.close()
        let path = library.folder.path + "/library-kept.db"
        try library.reopen()
        library.store.close()
        #expect(rename(path, path + ".saved") == 0)
        for part in ["-wal", "-shm"] { unlink(path + part) }
        try library.reopen(clean: false)
        try kept(library, ids, list)
        #expect(library.store.findings == ["\(path) was damaged: its readable content was restored"])
        try library.reopen()
        try kept(library, ids, list)
        #expect(library.store.findings.isEmpty)
    }

    /// The process ended while it copied: nothing is known of how much is in the copy.
    @Test func halfOfTheSavedContent_isNotUsed() throws {
        let (library, ids, list) = try filled()
        library.store.close()
        let path = library.folder.path + "/library-kept.db"
        do {
            let half = try SQLite(path + ".saved")
            try half.script("CREATE TABLE meta(key); PRAGMA user_version = 1")
        }
        try library.reopen(clean: false)
        try kept(library, ids, list)
        #expect(library.store.findings.isEmpty)
        do { try SQLite(path).script("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)") }
        do { try SQLite(path + ".saved").script("CREATE TABLE other(key)") }
        try library.reopen(clean: false)
        #expect(library.store.findings.count == 2)
        try kept(library, ids, list)
        #expect(!FileManager.default.fileExists(atPath: path + ".saved"))
    }

    @Test(arguments: ["library.db", "library-kept.db"]) func fileOfAnotherVersion_isRenamed(_ name: String) throws {
        let (library, ids, list) = try filled()
        library.store.close()
        let path = library.folder.path + "/" + name
        do { try SQLite(path).script("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)") }
        try library.reopen(clean: false)
        let own = name == "library.db" ? Schema.version : Schema.keptVersion
        #expect(library.store.findings.first?.contains("has version 99, not \(own)") == true)
        try kept(library, ids, list)
    }

    @Test(arguments: ["library.db", "library-kept.db"]) func fileWithOtherTables_isRenamed(_ name: String) throws {
        let folder = try PrivateFolder()
        let version = name == "library.db" ? Schema.version : Schema.keptVersion
        do {
            try SQLite(folder.path + "/" + name).script(
                "CREATE TABLE track(a); CREATE TABLE meta(key, value); PRAGMA user_version = \(version)")
        }
        let store = try Store(folder.path)
        #expect(store.findings.first?.contains("has other tables") == true)
        #expect(FileManager.default.fileExists(atPath: "\(folder.path)/\(name).damaged-1"))
        #expect(try store.itemCount() == 0)
        #expect(try store.addList("Mine", []) != nil)
    }

    @Test func failedCommit_leavesTheRevision() throws {
        let library = try Library()
        let id = try library.add("/m/1.mp3", song)
        let store = library.store
        let (revision, contents) = (store.revision, store.contents)
        // A commit that fails, without a full disk.
        try store.db.script(
            """
            PRAGMA foreign_keys = ON; CREATE TABLE one(id INTEGER PRIMARY KEY);
            CREATE TABLE two(one INTEGER REFERENCES one(id) DEFERRABLE INITIALLY DEFERRED)
            """)
        try store.beginBatch()
        try store.failed(id, "damaged")
        try store.db.run("INSERT INTO two VALUES(5)")
        // An answer from the middle of the batch is not true after it.
        #expect(try store.itemCount() == 0)
        #expect(throws: SQLError.self) { try store.commitBatch() }
        #expect(throws: SQLError.self) {
            try store.change { () throws(SQLError) in try store.db.run("INSERT INTO two VALUES(5)") }
        }
        #expect(store.revision == revision && store.contents == contents)
        #expect(try store.itemCount() == 1)
    }

    @Test func slowRead_isEndedAndTheNextIsAnswered() throws {
        let (library, _, _) = try filled()
        let store = library.store
        for seconds in [0, 0.05] {
            do throws(SQLError) {
                try store.within(seconds) { () throws(SQLError) in
                    // It would never end.
                    _ = try store.db.number(
                        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n")
                }
                Issue.record("it has an answer")
            } catch {
                #expect(error.isTooLong)
            }
        }
        // What is done with each row counts, too.
        #expect(throws: SQLError.self) {
            try store.within(0.02) { () throws(SQLError) in
                while true { _ = try store.names(of: 1, role: 0) }
            }
        }
        #expect(
            try store.within(60) { () throws(SQLError) in try store.items(Query(), offset: 0, max: 9).count } == 300)
        #expect(try store.itemCount() == 300)
    }

    @Test(arguments: ["library.db", "library-kept.db"]) func otherFile_isRenamed(_ name: String) throws {
        let folder = try PrivateFolder()
        try folder.file(name, String(repeating: "This is a text and no database. ", count: 500))
        let store = try Store(folder.path)
        #expect(store.findings.first?.contains("is damaged") == true)
        #expect(
            try String(contentsOfFile: "\(folder.path)/\(name).damaged-1", encoding: .utf8).hasPrefix("This is a text"))
    }

    @Test func fullDisk_changesNothing() throws {
        let library = try Library()
        try library.add("/m/0.mp3", song)
        let pages = try #require(try library.store.db.number("PRAGMA page_count"))
        try library.store.db.run("PRAGMA max_page_count = \(pages + 4)")
        var stored = 1
        var failure: SQLError?
        for index in 1..<500 where failure == nil {
            do {
                try library.add("/m/\(index).mp3", ["TITLE": [String(repeating: "x \(index)", count: 50)]])
                stored += 1
            } catch let error as SQLError {
                failure = error
                library.store.cancelBatch()
            }
        }
        #expect(failure?.isFull == true)
        #expect(try library.store.itemCount() == stored)
        #expect(try library.store.db.first("PRAGMA integrity_check") { $0.text(0) } == "ok")
        // With room it goes on.
        try library.store.db.run("PRAGMA max_page_count = 1000000")
        try library.add("/m/last.mp3", song)
        #expect(try library.store.itemCount() == stored + 1)
    }

    @Test func unwritableFolder_isReported() throws {
        let folder = try PrivateFolder()
        try folder.file("file", "")
        do {
            _ = try Store(folder.path + "/file/library")
            Issue.record("opened")
        } catch {
            #expect(error.isReadOnly)
            #expect(error.message.contains(folder.path))
        }
    }
}
