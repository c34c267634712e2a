import MediaLibrary
import Testing

@testable import ReferenceModel

/// What a scan makes of the disk and the database.
@Suite struct ScanPlanTests {
    typealias Disk = ScanPlan.DiskFile
    typealias Known = ScanPlan.KnownFile

    private func disk(_ name: String, size: UInt64 = 1, modified: Int64 = 1, inode: UInt64 = 1) -> Disk {
        Disk(name: Array(name.utf8), inode: inode, size: size, modified: modified)
    }
    private func known(_ id: Int64, _ name: String, size: UInt64 = 1, modified: Int64 = 1, isGone: Bool = false)
        -> Known
    {
        Known(id: id, name: Array(name.utf8), inode: 1, size: size, modified: modified, isGone: isGone)
    }

    @Test func eachCase_hasItsStep() {
        #expect(ScanPlan.steps(disk: [], known: []) == [])
        #expect(ScanPlan.steps(disk: [disk("a")], known: []) == [.add(disk("a"))])
        #expect(ScanPlan.steps(disk: [disk("a")], known: [known(1, "a")]) == [])
        #expect(ScanPlan.steps(disk: [disk("a", size: 2)], known: [known(1, "a")]) == [.change(1, disk("a", size: 2))])
        #expect(
            ScanPlan.steps(disk: [disk("a", modified: 2)], known: [known(1, "a")]) == [
                .change(1, disk("a", modified: 2))
            ])
        // File systems that number anew at each mount.
        #expect(ScanPlan.steps(disk: [disk("a", inode: 2)], known: [known(1, "a")]) == [])
        #expect(ScanPlan.steps(disk: [], known: [known(1, "a")]) == [.go(1)])
        #expect(ScanPlan.steps(disk: [], known: [known(1, "a", isGone: true)]) == [])
        #expect(ScanPlan.steps(disk: [disk("a")], known: [known(1, "a", isGone: true)]) == [.comeBack(1)])
        #expect(
            ScanPlan.steps(disk: [disk("a", size: 2)], known: [known(1, "a", isGone: true)]) == [
                .change(1, disk("a", size: 2))
            ])
        #expect(ScanPlan.steps(disk: [disk("a")], known: [known(1, "a")], isFull: true) == [.change(1, disk("a"))])
        #expect(
            ScanPlan.steps(disk: [disk("b"), disk("c")], known: [known(1, "a"), known(2, "c"), known(3, "d")])
                == [.go(1), .add(disk("b")), .go(3)])
    }

    @Test(arguments: [
        (false, true, false, false, ScanPlan.Presence.present), (false, true, true, false, .present),
        (true, true, true, false, .present), (true, true, false, false, .unavailable),
        (true, false, false, false, .unavailable), (false, false, false, false, .removed),
        (false, false, false, true, .unavailable), (true, true, false, true, .unavailable),
    ]) func folder_isPresentUnavailableOrRemoved(
        _ wasMount: Bool, _ isThere: Bool, _ isMount: Bool, _ isRoot: Bool, _ presence: ScanPlan.Presence
    ) {
        #expect(ScanPlan.presence(wasMount: wasMount, isThere: isThere, isMount: isMount, isRoot: isRoot) == presence)
    }

    @Test func movedFile_hasTheSameNumbers() {
        let gone = Known(id: 1, name: [], inode: 5, size: 6, modified: 7, isGone: true)
        var new = Known(id: 2, name: [1], inode: 5, size: 6, modified: 7)
        #expect(ScanPlan.isMoved(gone, new))
        new.modified = 8
        #expect(!ScanPlan.isMoved(gone, new))
        #expect(!ScanPlan.isMoved(new, gone))
    }

    /// Dictionaries as a second model: after the steps the database is what the disk is.
    @Test func randomFolders_areTheSameAfterTheSteps() {
        var random = SplitMix64(seed: 11)
        for _ in 0..<3_000 {
            func some() -> [String: UInt64] {
                var files: [String: UInt64] = [:]
                for letter in "abcdefgh" where Bool.random(using: &random) {
                    files[String(letter)] = UInt64.random(in: 1...2, using: &random)
                }
                return files
            }
            let (now, before) = (some(), some())
            var gone = Set(before.keys.filter { _ in Int.random(in: 0..<4, using: &random) == 0 })
            var database = before
            let ids = Dictionary(uniqueKeysWithValues: before.keys.sorted().enumerated().map { ($1, Int64($0 + 1)) })
            let names = Dictionary(uniqueKeysWithValues: ids.map { ($1, $0) })
            let steps = ScanPlan.steps(
                disk: now.keys.sorted().map { disk($0, size: now[$0] ?? 0) },
                known: before.keys.sorted().map {
                    known(ids[$0] ?? 0, $0, size: before[$0] ?? 0, isGone: gone.contains($0))
                })
            for step in steps {
                switch step {
                case .add(let file): database[String(decoding: file.name, as: UTF8.self)] = file.size
                case .change(let id, let file):
                    database[names[id] ?? ""] = file.size
                    gone.remove(names[id] ?? "")
                case .comeBack(let id): gone.remove(names[id] ?? "")
                case .go(let id): #expect(gone.insert(names[id] ?? "").inserted)
                }
            }
            #expect(database.filter { !gone.contains($0.key) } == now)
        }
    }

    @Test func digest_differsForEachProperty() {
        let files = [disk("a"), disk("b", size: 2)]
        let digests = [
            ScanPlan.digest(files, folders: []), ScanPlan.digest([files[0]], folders: []),
            ScanPlan.digest(files, folders: [[1]]), ScanPlan.digest([disk("a"), disk("b", size: 3)], folders: []),
            ScanPlan.digest([disk("a"), disk("b", size: 2, modified: 2)], folders: []),
            ScanPlan.digest([disk("a"), disk("b", size: 2, inode: 2)], folders: []),
            ScanPlan.digest([disk("ab"), disk("", size: 2)], folders: []), ScanPlan.digest([], folders: []),
        ]
        #expect(Set(digests).count == digests.count)
        #expect(!digests.contains(0))
    }

    @Test(arguments: [
        ("song.mp3", true, false), ("Song.FLAC", true, false), ("list.m3u8", false, true), ("list.XSPF", false, true),
        ("film.mp4", false, false), ("cover.jpg", false, false), ("mp3", false, false), (".mp3", false, false),
        ("a.b.opus", true, false),
    ]) func extension_selectsTheFiles(_ name: String, _ isMusic: Bool, _ isList: Bool) {
        #expect(MusicFile.isMusic(Array(name.utf8)) == isMusic)
        #expect(MusicFile.isList(Array(name.utf8)) == isList)
    }
}
