import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

@testable import ReferenceModel

/// Folders, files and databases that are not as they should be.
@Suite(.serialized) struct LibraryFaultTests {
    @Test func strangeFiles_areLeftOutWithTheirReasons() throws {
        let stage = try LibraryStage { stage in
            try stage.song("good.mp3")
            let music = stage.music
            #expect(mkfifo(music + "/fifo.mp3", 0o600) == 0)
            #expect(symlink("/dev/zero", music + "/zero.mp3") == 0)
            #expect(symlink(music, music + "/loop") == 0)
            try FileManager.default.createDirectory(atPath: music + "/deep/er", withIntermediateDirectories: true)
            #expect(symlink("../..", music + "/deep/er/up") == 0)
            try stage.song("deep/er/below.mp3")
            #expect(symlink("nowhere", music + "/dangling.mp3") == 0)
            let outside = try stage.home.folder("outside")
            try Data(TaggedMP3.bytes(["TIT2": "outside"])).write(to: URL(fileURLWithPath: outside + "/o.mp3"))
            #expect(symlink(outside, music + "/link") == 0)
            #expect(symlink(music, outside + "/back") == 0)
            let socket = try Child(
                "/usr/bin/python3",
                ["-c", "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", music + "/socket.mp3"])
            #expect(socket.wait() == .code(0))
            try Data().write(to: URL(fileURLWithPath: music + "/empty.mp3"))
            try Data("This is no music.".utf8).write(to: URL(fileURLWithPath: music + "/text.flac"))
            // A name that is no UTF-8.
            let name =
                Array((music + "/").utf8CString.dropLast()) + [
                    CChar(bitPattern: 0xE9), 0x20, 0x2E, 0x6D, 0x70, 0x33, 0,
                ]
            let file = open(name, O_WRONLY | O_CREAT, 0o600)
            let bytes = TaggedMP3.bytes(["TIT2": "latin"])
            #expect(write(file, bytes, bytes.count) == bytes.count)
            close(file)
        }
        #expect(try stage.titles().sorted() == ["deep/er/below.mp3", "good.mp3", "latin", "outside"])
        #expect(
            try stage.items([("text", .string("latin"))], ["uri"]).first?["uri"]
                == .string("file://\(stage.music)/%E9%20.mp3"))
        #expect(
            try stage.failures() == [
                "fifo.mp3": "it is not a regular file", "zero.mp3": "it is not a regular file",
                "socket.mp3": "it is not a regular file",
                "empty.mp3": "it is empty", "text.flac": "it has no format that is known here",
            ])
        #expect(stage.status["failed"] == .uint32(5))
        // A file that is repaired is read.
        try stage.song("empty.mp3", ["TIT2": "not empty"])
        #expect(stage.wait { stage.status["failed"] == .uint32(4) && stage.count == 5 })
    }

    /// Fault G1.
    @Test func manyChangingFiles_doNotStopTheScan() throws {
        let stage = try LibraryStage()
        let folder = stage.music + "/many"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for part in 0..<100 {
            let path = "\(folder)/\(part)"
            mkdir(path, 0o700)
            for index in 0..<1_000 { close(open("\(path)/\(index).mp3", O_WRONLY | O_CREAT, 0o600)) }
            for index in 0..<10 { try stage.song("many/\(part)/good \(index).mp3") }
        }
        let job = try stage.scan()
        #expect(stage.wait(timeout: 120) { (stage.job(job)["Done"]?.uint64Value ?? 0) > 5_000 })
        for part in 0..<50 { try FileManager.default.removeItem(atPath: "\(folder)/\(part)") }
        #expect(stage.wait(timeout: 300) { stage.job(job)["State"] == .string("finished") })
        _ = try stage.scan()
        #expect(stage.wait(timeout: 120) { stage.properties()["Scanning"] == .bool(false) && stage.count == 500 })
        #expect(stage.status["failed"] == .uint32(50_000))
        #expect(try stage.memory() < 100_000)
        stage.stop()
    }

    /// Fault G2.
    @Test(arguments: [SIGSTOP, SIGKILL]) func workerThatHangsOrCrashes_losesOneFile(_ signal: Int32) throws {
        // Nobody watches the folder: a scan of what was noticed lists folders while others are read, and the signal would
        // meet a worker that lists.
        let stage = try LibraryStage(adds: false)
        _ = try stage.call("AddFolder", [.string(stage.music), .properties([("watch", .bool(false))])])
        #expect(stage.waitUntilScanned())
        for index in 0..<3_000 { try stage.song("\(index % 20)/\(index).mp3") }
        let job = try stage.scan()
        #expect(stage.wait { (stage.job(job)["Done"]?.uint64Value ?? 0) > 100 })
        let workers = stage.workers
        #expect(!workers.isEmpty)
        for worker in workers { kill(worker, signal) }
        #expect(stage.wait(timeout: 120) { stage.job(job)["State"] == .string("finished") })
        let failures = try stage.failures()
        #expect((1...workers.count).contains(failures.count))
        let reason = signal == SIGSTOP ? "its worker sent nothing for 5 s" : "its worker ended unexpectedly"
        #expect(failures.values.allSatisfy { $0 == reason })
        #expect(stage.count == 3_000 - failures.count)
        // It is not tried again at the next start, but when it has changed.
        try stage.restart()
        #expect(try stage.failures() == failures)
        let name = try #require(failures.keys.first)
        try stage.song("\((Int(name.dropLast(4)) ?? 0) % 20)/\(name)", ["TIT2": "changed"])
        _ = try stage.scan()
        #expect(stage.wait { (try? stage.failures().count) == failures.count - 1 })
    }

    /// Fault G3.
    @Test func damagedDatabase_isCreatedAgainAndReported() throws {
        let stage = try LibraryStage { stage in for index in 0..<200 { try stage.song("\(index).mp3") } }
        let id = try stage.id("7.mp3")
        _ = try stage.call(
            "SetItem", [.uint64(id), .properties([("bookmark", .double(7)), ("play-count", .uint32(3))])])
        let list = try stage.call("CreatePlaylist", [.string("Mine"), .array(of: "t", [.uint64(id)])])[0]
        stage.stop()
        truncate(stage.home.path + "/data/sessiond/library.db", 20_000)
        try stage.begin()
        #expect(stage.waitUntilScanned())
        #expect(stage.count == 200)
        #expect(stage.status["message"]?.stringValue?.contains("the music is scanned again") == true)
        #expect(stage.plugin.line { $0.contains("the music is scanned again") } != nil)
        #expect(stage.plugin.errors.count == 1)
        let row = try stage.items([("playlist", list)], ["id", "bookmark", "play-count"])
        #expect(row == [["id": .uint64(id), "bookmark": .double(7), "play-count": .uint32(3)]])
        #expect(FileManager.default.fileExists(atPath: stage.home.path + "/data/sessiond/library.db.damaged-1"))
        try stage.restart()
        #expect(stage.status["message"] == .string(""))
    }

    /// Fault G4: a folder that exists and cannot be reached. Root must lose the right to reach it anyway.
    @Test(arguments: [0, 0o400] as [mode_t]) func folderThatCannotBeReached_isUnavailableUntilItCan(
        _ mode: mode_t
    ) throws {
        let within = ["/usr/bin/setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
        let stage = try LibraryStage(within: getuid() == 0 ? within : []) { stage in
            try stage.song("outer/1.mp3")
            try stage.song("outer/inner/2.mp3")
        }
        let outer = stage.music + "/outer"
        let (one, two) = (try stage.id("outer/1.mp3"), try stage.id("outer/inner/2.mp3"))
        _ = try stage.call("SetItem", [.uint64(two), .properties([("rating", .uint32(4))])])
        chmod(outer, mode)
        defer { chmod(outer, 0o700) }
        for _ in 0..<2 {
            let job = try stage.scan([outer + "/inner"])
            #expect(stage.wait { stage.job(job)["State"] == .string("finished") })
            #expect(stage.wait { stage.properties()["Scanning"] == .bool(false) })
        }
        // The disk may have failed, or the files may only be closed to this user. They are not removed.
        #expect(try stage.items([], ["id"]) == [["id": .uint64(one)]])
        chmod(outer, 0o700)
        #expect(stage.wait { stage.count == 2 })
        #expect(try stage.items([], ["id", "rating"]).contains(["id": .uint64(two), "rating": .uint32(4)]))
    }

    /// What cannot be read is named by the scan, and read as soon as it can be, although it has not changed.
    @Test func whatCannotBeRead_isNamed_andReadLater() throws {
        let within = ["/usr/bin/setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
        let stage = try LibraryStage(within: getuid() == 0 ? within : []) { stage in
            try stage.song("1.mp3")
            try stage.song("closed/2.mp3")
        }
        let (file, folder) = (stage.music + "/3.mp3", stage.music + "/closed")
        try FileManager.default.copyItem(atPath: stage.music + "/1.mp3", toPath: file)
        chmod(file, 0)
        chmod(folder, 0)
        defer { chmod(folder, 0o700) }
        func leftOut() throws -> [String] {
            let job = try stage.scan([stage.music])
            #expect(stage.wait { stage.job(job)["State"] == .string("finished") })
            return stage.job(job)["LeftOut"]?.stringsValue ?? []
        }
        let left = try leftOut()
        #expect(left.contains { $0.hasSuffix("closed (Permission denied)") }, "\(left)")
        #expect(left.contains { $0.hasPrefix("1 file that cannot be read") }, "\(left)")
        chmod(file, 0o600)
        chmod(folder, 0o700)
        #expect(try leftOut() == [])
        #expect(stage.wait { stage.count == 3 })
    }

    @Test func itemsThatVanish_areReported() throws {
        let stage = try LibraryStage { stage in
            for name in ["text", "fifo", "over", "moved", "same"] { try stage.song(name + ".mp3") }
            try "same.mp3\n".write(toFile: stage.music + "/list.m3u", atomically: true, encoding: .utf8)
        }
        func lists() throws -> Value {
            try stage.call("Collections", [.string("playlist"), .properties([]), .uint32(0), .uint32(9)])[0]
        }
        #expect(try lists() == .uint32(1))
        let ids = try ["text", "fifo", "over"].map { try stage.id($0 + ".mp3") }
        let moved = try stage.id("moved.mp3")
        try Data("This is no music.".utf8).write(to: URL(fileURLWithPath: stage.music + "/text.mp3"))
        try Data([0, 1]).write(to: URL(fileURLWithPath: stage.music + "/list.m3u"))
        unlink(stage.music + "/fifo.mp3")
        #expect(mkfifo(stage.music + "/fifo.mp3", 0o600) == 0)
        #expect(rename(stage.music + "/moved.mp3", stage.music + "/over.mp3") == 0)
        #expect(stage.wait { stage.count == 2 })
        func told(_ index: Int) -> Set<UInt64> {
            Set(
                stage.told.filter { $0.member == "ItemsChanged" }
                    .flatMap { $0.values[index].arrayValue?.compactMap(\.uint64Value) ?? [] })
        }
        #expect(stage.wait { told(2) == Set(ids) && told(1).contains(moved) }, "\(ids) \(told(2))")
        #expect(try stage.failures().keys.sorted() == ["fifo.mp3", "list.m3u", "text.mp3"])
        #expect(try lists() == .uint32(0))
        #expect(try stage.titles().sorted() == ["moved.mp3", "same.mp3"])
    }

    /// Fault G3: the plugin is killed while it saves the content of a damaged file.
    @Test func killedWhileItSavesADamagedFile_continues() throws {
        let stage = try LibraryStage { stage in for index in 0..<600 { try stage.song("\(index).mp3") } }
        for row in try stage.items([], ["id"]) {
            guard let id = row["id"] else { continue }
            _ = try stage.call("SetItem", [id, .properties([("rating", .uint32(4))])])
        }
        stage.stop()
        let path = stage.home.path + "/data/sessiond/library-kept.db"
        func renamed() -> Int {
            (1...20).filter { access("\(path).damaged-\($0)", F_OK) == 0 }.count
        }
        for round in 0..<8 {
            // A file of a later version: all of it can be read.
            let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
            try file.seek(toOffset: 60)
            try file.write(contentsOf: Data([0, 0, 0, 99]))
            try file.close()
            let before = renamed()
            try stage.launch()
            _ = eventually(timeout: 10) {
                renamed() > before || access(path + ".saved", F_OK) == 0
            }
            usleep(useconds_t(round * 3_000))
            stage.stop(SIGKILL)
        }
        try stage.begin()
        #expect(stage.waitUntilScanned())
        #expect(stage.wait { stage.count == 600 })
        #expect(try stage.items([], ["rating"]).allSatisfy { $0 == ["rating": .uint32(4)] })
        stage.stop()
    }

    @Test func databaseDamagedWhileItRuns_isCreatedAgain() throws {
        let stage = try LibraryStage { stage in for index in 0..<200 { try stage.song("\(index).mp3") } }
        let id = try stage.id("7.mp3")
        _ = try stage.call("SetItem", [.uint64(id), .properties([("bookmark", .double(7))])])
        stage.stop()
        try stage.begin()
        #expect(stage.waitUntilScanned())
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: stage.home.path + "/data/sessiond/library.db"))
        let size = try file.seekToEnd()
        try file.seek(toOffset: 4_096)
        try file.write(contentsOf: Data(randomBytes(Int(size) - 4_096, seed: 3)))
        try file.close()
        // Whatever is asked, the answer is an error or the truth, and then it is whole again.
        _ = eventually(timeout: 60) {
            _ = try? stage.scan(full: true)
            _ = try? stage.titles([("sort", .strings(["-title"]))])
            return FileManager.default.fileExists(atPath: stage.home.path + "/data/sessiond/library.db.damaged-1")
        }
        #expect(stage.wait(timeout: 60) { stage.count == 200 && stage.properties()["Scanning"] == .bool(false) })
        #expect(
            try stage.items([("text", .string("7"))], ["id", "bookmark"]).contains {
                $0 == ["id": .uint64(id), "bookmark": .double(7)]
            })
    }

    /// Fault G3: the place where the database is.
    @Test func unwritableFolder_isReportedAtTheStart() throws {
        let bus = try PrivateBus()
        let folder = try PrivateFolder()
        try folder.file("data", "no folder")
        let plugin = try Child(
            try builtProduct(named: "sessiond-library"), [],
            environment: ["PATH": "/usr/bin:/bin", "HOME": folder.path, "XDG_DATA_HOME": folder.path + "/data"].merging(
                bus.environment
            ) { $1 })
        #expect(plugin.wait(timeout: 30) == .code(1))
        #expect(plugin.errors.first?.contains("the library in \(folder.path)/data/sessiond cannot be opened") == true)
    }

    @Test func killedAtAnyStep_continues() throws {
        var random = SplitMix64(seed: 3)
        let stage = try LibraryStage { stage in try stage.song("first.mp3") }
        let id = try stage.id("first.mp3")
        _ = try stage.call("SetItem", [.uint64(id), .properties([("bookmark", .double(1.5))])])
        var expected = 1
        for round in 0..<8 {
            for index in 0..<400 { try stage.song("\(round)/\(index).mp3") }
            expected += 400
            _ = try? stage.scan()
            let goal = Int.random(in: 0..<400, using: &random)
            _ = stage.wait(timeout: 10) {
                stage.count >= expected - 400 + goal || stage.properties()["Scanning"] == .bool(false)
            }
            stage.stop(SIGKILL)
            try stage.begin()
            #expect(stage.status["message"] == .string(""))
            #expect(
                try stage.items([("text", .string("first"))], ["id", "bookmark"]) == [
                    ["id": .uint64(id), "bookmark": .double(1.5)]
                ])
        }
        #expect(stage.wait(timeout: 120) { stage.count == expected && stage.properties()["Scanning"] == .bool(false) })
        #expect(try Set(stage.titles()).count == expected)
    }
}
