import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The music library as the real plugin serves it.
@Suite(.serialized) struct LibraryTests {
    private func fill(_ stage: LibraryStage) throws {
        try stage.song("a/1.mp3", ["TIT2": "Jóga", "TPE1": "Björk", "TALB": "Homogenic", "TRCK": "2", "TDRC": "1997"])
        try stage.song(
            "a/2.mp3", ["TIT2": "Hunter", "TPE1": "Björk", "TALB": "Homogenic", "TRCK": "1", "TDRC": "1997"])
        try stage.song(
            "b/3.mp3", ["TIT2": "Thunderstruck", "TPE1": "AC/DC", "TALB": "The Razors Edge", "TCON": "Rock"])
        try stage.song("Podcasts/4.mp3", ["TIT2": "Episode", "TALB": "A podcast"])
    }

    @Test func scanThatChangesNothing_changesNoRevision() throws {
        let stage = try LibraryStage { stage in for index in 0..<20 { try stage.song("\(index % 4)/\(index).mp3") } }
        for isFull in [false, true] {
            let before = stage.properties()
            let job = try stage.scan(full: isFull)
            // Answers in the middle of the scan change nothing, either.
            while stage.job(job)["State"] == .string("running") { _ = try stage.titles() }
            #expect(stage.waitUntilScanned())
            let after = stage.properties()
            guard !isFull else { continue }
            for name in ["Revision", "ContentRevision"] { #expect(after[name] == before[name], "\(name)") }
        }
        let before = stage.properties()
        try stage.song("new.mp3")
        _ = try stage.scan()
        #expect(stage.waitUntilScanned())
        #expect(stage.properties()["ContentRevision"] != before["ContentRevision"])
    }

    @Test func hardLinksThatAreMovedTogether_staySeparateItems() throws {
        let stage = try LibraryStage { stage in
            let song = try stage.song("x/a.mp3")
            #expect(link(song, stage.music + "/x/b.mp3") == 0)
        }
        func ids() throws -> Set<UInt64> { Set(try stage.items([], ["id"]).compactMap { $0["id"]?.uint64Value }) }
        let before = try ids()
        #expect(before.count == 2)
        #expect(rename(stage.music + "/x", stage.music + "/y") == 0)
        _ = try stage.scan()
        #expect(stage.waitUntilScanned())
        #expect(try ids() == before)
    }

    @Test func folder_isScannedAndSignalled() throws {
        let stage = try LibraryStage(fill)
        #expect(stage.count == 4)
        #expect(stage.properties()["Folders"] == .strings([stage.music]))
        #expect(try stage.titles([("preset", .string("albums"))]) == ["Thunderstruck", "Hunter", "Jóga"])
        #expect(try stage.titles([("preset", .string("podcasts"))]) == ["Episode"])
        let query: [(String, Value)] = [
            (
                "where",
                .array(of: "(ssv)", [.structure([.string("artist"), .string("is"), .variant(.string("BJORK"))])])
            ),
            ("sort", .strings(["-title"])),
        ]
        #expect(try stage.titles(query) == ["Jóga", "Hunter"])
        let row = try #require(
            try stage.items([("text", .string("jog"))], ["uri", "artists", "year", "number", "duration"]).first)
        #expect(row["uri"] == .string("file://\(stage.music)/a/1.mp3"))
        #expect(row["artists"] == .strings(["Björk"]))
        #expect(row["year"] == .uint32(1997) && row["number"] == .uint32(2))
        #expect(try stage.items().first?.keys.sorted() == ["album", "artist", "duration", "id", "title", "uri"])
        let albums = try stage.call(
            "Collections", [.string(""), .properties([("preset", .string("albums"))]), .uint32(0), .uint32(10)])
        #expect(albums[0] == .uint32(2))
        #expect(albums[1].arrayValue?.first?.asProperties?["title"] == .string("The Razors Edge"))
        let found = try stage.call("Search", [.string("ac dc"), .properties([])]).first?.arrayValue?.first?.asProperties
        #expect(
            found?["kind"] == .string("artist") && found?["title"] == .string("AC/DC") && found?["score"] == .double(1))
        let uris = try stage.call("Uris", [.properties([("preset", .string("artists"))]), .uint32(0)]).first?.arrayValue
        #expect(uris?.compactMap { $0.asProperties?["title"]?.stringValue } == ["Thunderstruck", "Hunter", "Jóga"])
        #expect(
            stage.wait { stage.told.contains { $0.member == "ItemsChanged" && $0.values[0].arrayValue?.count == 4 } })
        #expect(stage.wait { stage.told.contains { $0.member == "Changed" } })
    }

    @Test func changes_areNoticedWhileItRuns() throws {
        let stage = try LibraryStage(fill)
        try stage.song("b/3.mp3", ["TIT2": "Other title", "TPE1": "Somebody else"])
        try stage.song("c/d/5.mp3", ["TIT2": "In a new folder"])
        #expect(
            stage.wait {
                (try? stage.titles())?.sorted() == ["Episode", "Hunter", "In a new folder", "Jóga", "Other title"]
            })
        try FileManager.default.removeItem(atPath: stage.music + "/a")
        #expect(stage.wait { stage.count == 3 })
        // Also in the folder that was new.
        try stage.song("c/d/6.mp3", ["TIT2": "Another"])
        #expect(stage.wait { stage.count == 4 })
        #expect(stage.status["watched"]?.uint32Value == 5)
    }

    @Test(arguments: [true, false]) func movedFile_isTheSameItem(_ isRunning: Bool) throws {
        let stage = try LibraryStage(fill)
        let id = try stage.id("Jóga")
        _ = try stage.call("SetItem", [.uint64(id), .properties([("bookmark", .double(42)), ("rating", .uint32(5))])])
        let list = try stage.call("CreatePlaylist", [.string("Mine"), .array(of: "t", [.uint64(id)])])[0]
        if !isRunning { stage.stop() }
        try FileManager.default.moveItem(atPath: stage.music + "/a", toPath: stage.music + "/renamed")
        try FileManager.default.moveItem(atPath: stage.music + "/renamed/1.mp3", toPath: stage.music + "/b/x.mp3")
        if !isRunning { try stage.begin() }
        let fields = ["id", "uri", "bookmark", "rating"]
        func row() -> [String: Value]? { (try? stage.items([("text", .string("joga"))], fields))?.first }
        #expect(stage.wait { row()?["uri"] == .string("file://\(stage.music)/b/x.mp3") })
        #expect(row()?["id"] == .uint64(id))
        #expect(row()?["bookmark"] == .double(42) && row()?["rating"] == .uint32(5))
        #expect(try stage.titles([("playlist", list)]) == ["Jóga"])
        #expect(stage.count == 4)
    }

    @Test func missingFolder_isNotForgotten() throws {
        let stage = try LibraryStage(fill)
        let id = try stage.id("Hunter")
        try FileManager.default.moveItem(atPath: stage.music, toPath: stage.music + ".away")
        _ = try stage.scan()
        #expect(stage.wait { stage.count == 0 })
        #expect(try stage.titles([("unavailable", .bool(true))]).count == 4)
        try stage.restart()
        #expect(stage.count == 0)
        try FileManager.default.moveItem(atPath: stage.music + ".away", toPath: stage.music)
        _ = try stage.scan()
        #expect(stage.wait { stage.count == 4 })
        #expect(try stage.id("Hunter") == id)
    }

    @Test func removedFolder_isGoneAndItsBookmarksComeBackWithIt() throws {
        let stage = try LibraryStage(fill)
        let id = try stage.id("Episode")
        _ = try stage.call("SetItem", [.uint64(id), .properties([("bookmark", .double(9))])])
        _ = try stage.call("RemoveFolder", [.string(stage.music)])
        #expect(stage.count == 0)
        #expect(stage.refusal("RemoveFolder", [.string(stage.music)]) == "NotFound")
        _ = try stage.call(
            "AddFolder", [.string(stage.music + "/"), .properties([("media-type", .string("audiobook"))])])
        #expect(stage.wait { stage.count == 4 })
        #expect(try stage.id("Episode") == id)
        #expect(try stage.titles([("preset", .string("audiobooks"))]).count == 4)
        #expect(try stage.items([("text", .string("episode"))], ["bookmark"]).first?["bookmark"] == .double(9))
    }

    @Test func movedFiles_areReadAgainAtTheirNewPlace() throws {
        let stage = try LibraryStage { stage in
            try stage.song("a/1.mp3", ["TIT2": "One"])
            try stage.song("a/untitled.mp3", ["TIT2": ""])
            try stage.song("a/talk.mp3", ["TIT2": "Talk"])
            try "1.mp3\n".write(toFile: stage.music + "/a/list.m3u8", atomically: true, encoding: .utf8)
            mkdir(stage.music + "/Podcasts", 0o700)
        }
        func list() throws -> Value? {
            try stage.call("Collections", [.string("playlist"), .properties([]), .uint32(0), .uint32(9)])[1]
                .arrayValue?.first?.asProperties?["count"]
        }
        let ids = Set(try stage.items([], ["id"]).compactMap { $0["id"]?.uint64Value })
        #expect(try list() == .uint32(1))
        stage.forget()
        try FileManager.default.moveItem(atPath: stage.music + "/a", toPath: stage.music + "/b")
        try FileManager.default.moveItem(
            atPath: stage.music + "/b/untitled.mp3", toPath: stage.music + "/b/renamed.mp3")
        try FileManager.default.moveItem(
            atPath: stage.music + "/b/talk.mp3", toPath: stage.music + "/Podcasts/talk.mp3")
        #expect(stage.wait { (try? stage.titles([("preset", .string("podcasts"))])) == ["Talk"] })
        #expect(stage.wait { stage.properties()["Scanning"] == .bool(false) })
        #expect(try stage.titles().sorted() == ["One", "Talk", "renamed"])
        #expect(try list() == .uint32(1))
        #expect(Set(try stage.items([], ["id"]).compactMap { $0["id"]?.uint64Value }) == ids)
        #expect(
            stage.wait {
                let told = stage.told.filter { $0.member == "ItemsChanged" }
                let changed = told.flatMap { $0.values[1].arrayValue?.compactMap(\.uint64Value) ?? [] }
                return Set(changed) == ids && told.allSatisfy { $0.values[2].arrayValue == [] }
            })
    }

    @Test func wrongFolder_isNotRemovedAndTheScanContinues() throws {
        let stage = try LibraryStage { stage in for index in 0..<400 { try stage.song("\(index % 10)/\(index).mp3") } }
        let job = try stage.scan(full: true)
        #expect(stage.refusal("RemoveFolder", [.string(stage.music + "/3")]) == "NotFound")
        #expect(stage.wait { stage.properties()["Scanning"] == .bool(false) })
        #expect(stage.job(job)["State"] == .string("finished"))
    }

    @Test func removedFolderInAFolder_isAFolderLikeOthers() throws {
        let stage = try LibraryStage(adds: false)
        try stage.song("1.mp3")
        try stage.song("talks/2.mp3")
        let talks = stage.music + "/talks"
        _ = try stage.call("AddFolder", [.string(talks), .properties([("media-type", .string("audiobook"))])])
        #expect(stage.waitUntilScanned())
        _ = try stage.call("AddFolder", [.string(stage.music), .properties([])])
        #expect(stage.wait { stage.count == 2 && stage.properties()["Scanning"] == .bool(false) })
        #expect(try stage.titles([("preset", .string("audiobooks"))]) == ["talks/2.mp3"])
        _ = try stage.call("RemoveFolder", [.string(talks)])
        #expect(stage.wait { stage.properties()["Scanning"] == .bool(false) })
        #expect(try stage.titles([("preset", .string("audiobooks"))]) == [])
        #expect(try stage.titles([("preset", .string("songs"))]).count == 2)
        stage.stop()
        try FileManager.default.removeItem(atPath: talks)
        try stage.begin()
        #expect(stage.wait { stage.count == 1 && stage.properties()["Scanning"] == .bool(false) })
        #expect(try stage.titles([("unavailable", .bool(true))]) == ["1.mp3"])
    }

    /// Earlier versions left such rows.
    @Test func folderWithoutItsParent_getsItBack() throws {
        let stage = try LibraryStage(fill)
        stage.stop()
        let code =
            "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute('UPDATE directory SET parent = 0'); d.commit()"
        try Child.run("/usr/bin/python3", ["-c", code, stage.home.path + "/data/sessiond/library.db"])
        try stage.begin()
        #expect(stage.waitUntilScanned())
        stage.stop()
        try FileManager.default.removeItem(atPath: stage.music + "/a")
        try stage.begin()
        #expect(stage.wait { stage.count == 2 && stage.properties()["Scanning"] == .bool(false) })
    }

    @Test func musicFolderOfTheUser_isInTheLibraryUntilItIsRemoved() throws {
        let stage = try LibraryStage(adds: false)
        stage.stop()
        _ = try stage.home.folder("Musik")
        _ = try stage.home.folder(".config")
        try stage.home.file(".config/user-dirs.dirs", "# a comment\nXDG_MUSIC_DIR=\"$HOME/Musik\"\n")
        try stage.begin()
        let folder = stage.home.path + "/Musik"
        #expect(stage.properties()["Folders"] == .strings([folder]))
        _ = try stage.call("RemoveFolder", [.string(folder)])
        stage.stop()
        try stage.begin()
        #expect(stage.properties()["Folders"] == .strings([]))
    }

    @Test func job_countsFilesAndIsCancelled() throws {
        let stage = try LibraryStage { stage in for index in 0..<400 { try stage.song("\(index % 10)/\(index).mp3") } }
        #expect(stage.count == 400)
        let job = try stage.scan(full: true)
        #expect(try stage.scan() == job)
        #expect(job.hasPrefix("/org/sessiond1/library/job/"))
        #expect(stage.wait { (stage.job(job)["Done"]?.uint64Value ?? 0) > 0 })
        _ = try stage.connection.callAndWait(stage.place, job, BusName.job, "Cancel", [], timeout: 20)
        #expect(stage.job(job)["State"] == .string("cancelled"))
        #expect(stage.count == 400)
        let next = try stage.scan(full: true)
        #expect(next != job)
        #expect(stage.wait { stage.job(next)["State"] == .string("finished") })
        let facts = stage.job(next)
        #expect(
            facts["Kind"] == .string("scan") && facts["Unit"] == .string("files") && facts["Progress"] == .double(1))
        #expect(facts["Detached"] == .bool(true))
    }

    @Test func playlists_areCreatedAndPlaylistFilesAreRead() throws {
        let stage = try LibraryStage { stage in
            try fill(stage)
            try "#EXTM3U\na/2.mp3\nmissing.mp3\nb/3.mp3\n".write(
                toFile: stage.music + "/Mix.m3u8", atomically: true, encoding: .utf8)
        }
        func lists() throws -> [[String: Value]] {
            try stage.call("Collections", [.string("playlist"), .properties([]), .uint32(0), .uint32(10)])[1]
                .arrayValue?
                .compactMap(\.asProperties) ?? []
        }
        let file = try #require(try lists().first)
        #expect(file["title"] == .string("Mix") && file["count"] == .uint32(2))
        #expect(try stage.titles([("playlist", file["id"] ?? .uint64(0))]) == ["Hunter", "Thunderstruck"])
        #expect(stage.refusal("DeletePlaylist", [file["id"] ?? .uint64(0)]) == "NotSupported")
        let (one, two) = (try stage.id("Jóga"), try stage.id("Episode"))
        let list = try stage.call("CreatePlaylist", [.string("Mine"), .array(of: "t", [.uint64(two), .uint64(one)])])[0]
        #expect(try stage.titles([("playlist", list)]) == ["Episode", "Jóga"])
        _ = try stage.call("SetPlaylist", [list, .array(of: "t", [.uint64(one), .uint64(one)])])
        _ = try stage.call("RenamePlaylist", [list, .string("Yours")])
        #expect(try lists().map { $0["title"] } == [.string("Mix"), .string("Yours")])
        #expect(try stage.titles([("playlist", list)]) == ["Jóga", "Jóga"])
        _ = try stage.call("DeletePlaylist", [list])
        #expect(try lists().count == 1)
        #expect(stage.refusal("SetPlaylist", [list, .array(of: "t", [])]) == "NotFound")
        #expect(stage.refusal("CreatePlaylist", [.string("x"), .array(of: "t", [.uint64(99_999)])]) == "NotFound")
        #expect(stage.refusal("CreatePlaylist", [.string(""), .array(of: "t", [])]) == "BadParameter")
    }

    @Test func wrongRequests_areRefusedWithTheirError() throws {
        let stage = try LibraryStage(fill)
        let nothing: Value = .properties([])
        func items(_ query: [(String, Value)]) -> String {
            stage.refusal("Items", [.properties(query), .uint32(0), .uint32(1), .strings([])])
        }
        #expect(items([("preset", .string("tapes"))]) == "BadParameter")
        #expect(items([("sort", .strings(["colour"]))]) == "BadParameter")
        #expect(items([("unknown", .bool(true))]) == "BadParameter")
        #expect(items([("media-types", .strings(["film"]))]) == "BadParameter")
        #expect(items([("where", .string("x"))]) == "InvalidArgs")
        for (property, comparison, value) in [
            ("colour", "is", Value.string("red")), ("title", "near", .string("x")), ("title", "is", .uint32(1)),
            ("year", "is", .string("1997")), ("year", "contains", .uint32(19)),
        ] {
            let predicate = Value.structure([.string(property), .string(comparison), .variant(value)])
            #expect(items([("where", .array(of: "(ssv)", [predicate]))]) == "BadParameter", "\(property)")
        }
        #expect(stage.refusal("Items", [nothing, .uint32(0), .uint32(1), .strings(["colour"])]) == "BadParameter")
        #expect(stage.refusal("Collections", [.string("colour"), nothing, .uint32(0), .uint32(1)]) == "BadParameter")
        #expect(
            stage.refusal("Search", [.string("x"), .properties([("kinds", .strings(["film"]))])]) == "BadParameter")
        #expect(stage.refusal("SetItem", [.uint64(1), .properties([("rating", .uint32(6))])]) == "BadParameter")
        #expect(stage.refusal("SetItem", [.uint64(1), .properties([("bookmark", .double(-1))])]) == "BadParameter")
        #expect(stage.refusal("SetItem", [.uint64(9_999), .properties([("rating", .uint32(1))])]) == "NotFound")
        #expect(stage.refusal("Artwork", [.uint64(9_999), .uint32(0)]) == "NotFound")
        #expect(stage.refusal("AddFolder", [.string("relative"), nothing]) == "BadParameter")
        #expect(stage.refusal("AddFolder", [.string("/"), nothing]) == "BadParameter")
        #expect(stage.refusal("AddFolder", [.string("/does/not/exist"), nothing]) == "NotFound")
        #expect(stage.refusal("Scan", [.strings(["/usr"]), nothing]) == "NotFound")
    }

    @Test func cover_isThatOfTheFolderInTheRequestedSize() throws {
        let stage = try LibraryStage { stage in
            try fill(stage)
            try Child.run(
                "ffmpeg",
                [
                    "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=400x300:d=1", "-frames:v", "1",
                    stage.music + "/a/cover.jpg",
                ])
        }
        let id = try stage.id("Jóga")
        for (size, expected) in [(100, "100x75"), (0, "400x300"), (2_000, "400x300")] {
            let uri = try stage.call("Artwork", [.uint64(id), .uint32(UInt32(size))])[0].stringValue ?? ""
            #expect(uri.hasPrefix("file://\(stage.home.path)/cache/sessiond/artwork/"))
            let probe = try Child(
                "ffprobe",
                ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0:s=x", String(uri.dropFirst(7))])
            #expect(probe.wait(timeout: 30) == .code(0))
            #expect(probe.output == [expected])
            #expect(try stage.call("Artwork", [.uint64(id), .uint32(UInt32(size))])[0].stringValue == uri)
        }
        #expect(try stage.call("Artwork", [.uint64(stage.id("Episode")), .uint32(100)])[0] == .string(""))
    }

    @Test func coverThatIsReplaced_isTheNewOne() throws {
        let stage = try LibraryStage(fill)
        let id = try stage.id("Jóga")
        func write(_ size: String, _ name: String) throws {
            try Child.run(
                "ffmpeg",
                [
                    "-nostdin", "-y", "-v", "error", "-f", "lavfi", "-i", "testsrc=s=\(size):d=1", "-frames:v", "1",
                    stage.music + "/a/" + name,
                ])
        }
        func size() throws -> [String] {
            let uri = try stage.call("Artwork", [.uint64(id), .uint32(0)])[0].stringValue ?? ""
            guard uri.hasPrefix("file://") else { return [uri] }
            let probe = try Child(
                "ffprobe",
                ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0:s=x", String(uri.dropFirst(7))])
            #expect(probe.wait(timeout: 30) == .code(0))
            return probe.output
        }
        #expect(try size() == [""])
        // An image that is new, one with a better name, one that is written again, one that takes the place of another.
        try write("20x10", "folder.jpg")
        #expect(try size() == ["20x10"])
        try write("40x20", "cover.jpg")
        #expect(try size() == ["40x20"])
        try write("60x30", "cover.jpg")
        #expect(try size() == ["60x30"])
        try write("80x40", "other.jpg")
        #expect(rename(stage.music + "/a/other.jpg", stage.music + "/a/cover.jpg") == 0)
        #expect(try size() == ["80x40"])
        unlink(stage.music + "/a/cover.jpg")
        #expect(try size() == ["20x10"])
    }
}
