import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The library among programs, folders and files that mean no good.
@Suite(.serialized) struct LibraryStrangerTests {
    private static let nothing = Value.properties([])

    // MARK: Signals

    /// What a player says about itself.
    private static func says(_ uri: String, _ state: String = "playing", on connection: Connection) {
        connection.objects.propertiesChanged(
            path: ObjectPath.player, interface: BusName.player, [("Uri", .string(uri)), ("State", .string(state))])
        connection.flush()
    }

    private static func skips(_ stage: LibraryStage, on connection: Connection? = nil) throws -> UInt32 {
        let answer = try (connection ?? stage.connection).callAndWait(
            stage.place, PluginKind.library.objectPath, PluginKind.library.interface, "Items",
            [nothing, .uint32(0), .uint32(9), .strings(["skip-count"])], timeout: 60)
        let rows = answer[1].arrayValue?.compactMap(\.asProperties) ?? []
        return rows.reduce(0) { $0 + ($1["skip-count"]?.uint32Value ?? 0) }
    }

    @Test func signalsOfOtherPrograms_areIgnoredAndNotStored() throws {
        let stage = try LibraryStage { stage in try stage.song("a.mp3") }
        let uri = try #require(try stage.items([], ["uri"]).first?["uri"]?.stringValue)
        for _ in 0..<5 {
            Self.says(uri, on: stage.connection)
            Self.says("", on: stage.connection)
        }
        // After these signals, on the same connection.
        #expect(try Self.skips(stage) == 0)
        let long = "file:///" + String(repeating: "x", count: 20 << 20)
        let strangers = try (0..<12).map { _ in try Connection(.custom(stage.bus.address), loop: stage.loop) }
        for stranger in strangers {
            Self.says(long, on: stranger)
            _ = try stranger.askBusAndWait("GetId", timeout: 30)
        }
        // The connection of the stage gets all signals; this one none.
        let quiet = try Connection(.custom(stage.bus.address), loop: EventLoop())
        #expect(try Self.skips(stage, on: quiet) == 0)
        #expect(try stage.memory() < 150_000)
        // A player is believed, as soon as it is known.
        let player = try Connection(.custom(stage.bus.address), loop: stage.loop)
        _ = try player.requestName("org.mpris.MediaPlayer2.test.instance1")
        #expect(
            eventually(timeout: 30) {
                Self.says(uri, on: player)
                Self.says("", on: player)
                return (try? Self.skips(stage, on: quiet) > 0) == true
            })
    }

    @Test(.enabled(if: getuid() == 0, "chroot is root's")) func playerInASandbox_isIgnored() throws {
        let stage = try LibraryStage { stage in try stage.song("a.mp3") }
        let uri = try #require(try stage.items([], ["uri"]).first?["uri"]?.stringValue)
        for isSandboxed in [true, false] {
            let root = try PrivateFolder()
            if isSandboxed {
                try root.file(".flatpak-info", "[Application]\nname=org.example.Game\nruntime=runtime/x\n")
            }
            let program = """
                import dbus, dbus.lowlevel, os, sys
                bus = dbus.SessionBus()
                if \(isSandboxed ? "True" : "False"):
                    os.chroot(sys.argv[2])
                name = dbus.service.BusName('org.mpris.MediaPlayer2.sessiond_player.game', bus)
                def says(uri):
                    signal = dbus.lowlevel.SignalMessage('\(ObjectPath.player)', '\(StandardName.properties)', 'PropertiesChanged')
                    signal.append('\(BusName.player)', {'Uri': dbus.String(uri, variant_level=1),
                        'State': dbus.String('playing', variant_level=1)}, dbus.Array([], signature='s'), signature='sa{sv}as')
                    bus.send_message(signal)
                for _ in range(100):
                    says(sys.argv[3])
                    says('')
                    bus.call_blocking(sys.argv[1], '\(PluginKind.library.objectPath)', '\(PluginKind.library.interface)', 'Items',
                        'a{sv}uuas', ({}, 0, 1, []), timeout=10)
                print('said')
                """
            let player = try Child(
                "/usr/bin/python3", ["-c", "import dbus.service\n" + program, stage.place, root.path, uri],
                environment: ["PATH": "/usr/bin:/bin"].merging(stage.bus.environment) { $1 })
            #expect(player.wait(timeout: 60) == .code(0), "\(player.errors)")
            #expect(try (Self.skips(stage) > 0) == !isSandboxed)
        }
    }

    // MARK: Reading

    @Test func excessiveReads_needNoMoreTimeThanOthers() throws {
        let stage = try LibraryStage { stage in for index in 0..<300 { try stage.song("\(index).mp3") } }
        let many = Value.strings([String](repeating: "id", count: 20_000))
        let rows = try stage.call("Items", [Self.nothing, .uint32(0), .uint32(5_000), many])[1].arrayValue ?? []
        #expect(rows.count == 300 && rows.allSatisfy { $0.asProperties?.count == 1 })
        #expect(try stage.memory() < 150_000)
        func query(_ values: [(String, Value)]) -> String {
            stage.refusal("Items", [.properties(values), .uint32(0), .uint32(1), .strings([])])
        }
        func conditions(_ count: Int, _ text: String) -> (String, Value) {
            let row = Value.structure([.string("title"), .string("contains"), .variant(.string(text))])
            return ("where", .array(of: "(ssv)", [Value](repeating: row, count: count)))
        }
        #expect(query([conditions(64, "x")]) == "")
        #expect(query([conditions(65, "x")]) == "BadParameter")
        #expect(query([conditions(1, String(repeating: "x", count: 1_001))]) == "BadParameter")
        #expect(query([("sort", .strings([String](repeating: "title", count: 17)))]) == "BadParameter")
        #expect(query([("media-types", .strings([String](repeating: "music", count: 50_000)))]) == "")
        let long = Value.string(String(repeating: "abcdefg ", count: 130))
        for key in ["artist", "album"] {
            #expect(stage.refusal("Search", [.string("x"), .properties([(key, long)])]) == "BadParameter")
        }
        #expect(stage.refusal("Search", [long, Self.nothing]) == "BadParameter")
        let folders = (0..<1_001).map { "\(stage.music)/\($0)" }
        #expect(stage.refusal("Scan", [.strings(folders), Self.nothing]) == "LimitsExceeded")
        #expect(stage.refusal("Scan", [.strings(Array(folders.prefix(1_000))), Self.nothing]) == "")
        #expect(stage.waitUntilScanned())
        #expect(stage.count == 300)
    }

    // MARK: Covers

    private static func png(_ bytes: Int, _ path: String) throws {
        try Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]).write(to: URL(fileURLWithPath: path))
        #expect(truncate(path, bytes) == 0)
    }

    /// The files of the cache: how many there are, and what they need on the disk.
    private static func cache(_ stage: LibraryStage) throws -> (files: Int, bytes: Int) {
        let folder = stage.home.path + "/cache/sessiond/artwork"
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        var sizes: [UInt64: Int] = [:]
        for name in names {
            var status = stat()
            #expect(stat("\(folder)/\(name)", &status) == 0)
            sizes[UInt64(status.st_ino)] = Int(status.st_size)
        }
        return (names.count, sizes.values.reduce(0, +))
    }

    @Test func coversOfEverySize_areFewFilesAndOneUnscaledFile() throws {
        let stage = try LibraryStage { stage in
            try stage.song("a.mp3")
            try Self.png(3 << 20, stage.music + "/cover.png")
        }
        let id = try stage.id("a.mp3")
        for size in stride(from: 0, through: 3_000, by: 20) {
            _ = try stage.call("Artwork", [.uint64(id), .uint32(UInt32(size))])
        }
        let cache = try Self.cache(stage)
        #expect(cache.files <= 20)
        #expect(cache.bytes == 3 << 20)
    }

    @Test func largeCovers_stayWithinTheLimit() throws {
        let stage = try LibraryStage { stage in
            for index in 0..<12 {
                try stage.song("\(index)/a.mp3")
                try Self.png(15 << 20, "\(stage.music)/\(index)/cover.png")
            }
        }
        for item in try stage.items([], ["id"]) {
            let uri = try stage.call("Artwork", [item["id"] ?? .uint64(0), .uint32(0)])[0].stringValue ?? ""
            #expect(FileManager.default.fileExists(atPath: String(uri.dropFirst(7))))
            #expect(try Self.cache(stage).bytes <= 128 << 20)
        }
    }

    /// A file of 1.6 MB with a picture of 23,000 x 23,000 pixels, which takes seconds and 800 MB to decode.
    @Test func coverWithTooManyPixels_isNoCoverAndCostsNothing() throws {
        let stage = try LibraryStage { stage in
            try stage.song("a.mp3")
            try stage.song("b/b.mp3", ["TIT2": "b.mp3"])
            try Child.run(
                "python3",
                [
                    "-c",
                    """
                    import struct, sys, zlib
                    def chunk(kind, data):
                        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
                    side, part = 23000, 230
                    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
                    # A hundred black rows, as often as the picture has them.
                    piece = packer.compress(bytes((1 + 3 * side) * (side // part))) + packer.flush(zlib.Z_FULL_FLUSH)
                    check = (1 + 3 * side) * side % 65521 << 16 | 1
                    data = b'\\x78\\x01' + piece * part + b'\\x03\\x00' + struct.pack('>I', check)
                    open(sys.argv[1], 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n'
                        + chunk(b'IHDR', struct.pack('>IIBBBBB', side, side, 8, 2, 0, 0, 0)) + chunk(b'IDAT', data)
                        + chunk(b'IEND', b''))
                    """, stage.music + "/cover.png",
                ])
        }
        let id = try stage.id("a.mp3")
        let workers = stage.workers
        let clock = ContinuousClock()
        let begin = clock.now
        for size: UInt32 in [0, 100, 200, 300, 400, 600] {
            #expect(try stage.call("Artwork", [.uint64(id), .uint32(size)]) == [.string("")])
        }
        #expect(clock.now - begin < .seconds(3))
        #expect(stage.workers == workers || workers.isEmpty)
        // A request that is answered from memory needs no worker.
        for worker in stage.workers { kill(worker, SIGSTOP) }
        #expect(try stage.call("Artwork", [.uint64(id), .uint32(800)]) == [.string("")])
        // A cover whose reading takes too long is not read again.
        let other = try stage.id("b.mp3")
        let second = clock.now
        for _ in 0..<2 {
            #expect(stage.refusal("Artwork", [.uint64(other), .uint32(100)]) == "DecodeFailed")
            for worker in stage.workers { kill(worker, SIGSTOP) }
        }
        #expect(clock.now - second < .seconds(9))
    }

    @Test func thousandsOfCovers_areRefusedAtTheLimitAndDelayNoOther() throws {
        let names = (0..<400).map { "\($0).mp3" }
        let stage = try LibraryStage { stage in for name in names + ["other.mp3"] { _ = try stage.song(name) } }
        let ids = try names.map { try stage.id($0) }
        let answers = try Self.covers(of: (0..<2_000).map { ids[$0 % ids.count] }, in: stage)
        #expect(answers.contains { $0.hasSuffix(".LimitsExceeded") })
        #expect(try stage.call("Artwork", [.uint64(stage.id("other.mp3")), .uint32(100)])[0] == .string(""))
    }

    @Test func thousandsOfRequestsForACover_readItOnceAndDelayNoOther() throws {
        let stage = try LibraryStage { stage in try stage.song("a.mp3") }
        let id = try stage.id("a.mp3")
        let answers = try Self.covers(of: Array(repeating: id, count: 2_000), in: stage)
        // The stopped worker has one of them. That the file has no cover is found out once for the others.
        #expect(answers.count { $0.hasSuffix(".DecodeFailed") } <= 1)
        #expect(try stage.call("Artwork", [.uint64(id), .uint32(100)])[0] == .string(""))
    }

    /// Asks for all these covers at once, while the workers that run are stopped; returns the names of the errors, "" for
    /// covers.
    private static func covers(of ids: [UInt64], in stage: LibraryStage) throws -> [String] {
        for worker in stage.workers { kill(worker, SIGSTOP) }
        var answers: [String] = []
        for id in ids {
            stage.connection.call(
                stage.place, PluginKind.library.objectPath, PluginKind.library.interface, "Artwork",
                [.uint64(id), .uint32(100)], timeout: 60
            ) { answer in
                switch answer {
                case .success: answers.append("")
                case .failure(let failure): answers.append(failure.name)
                }
            }
        }
        stage.connection.flush()
        #expect(stage.wait(timeout: 60) { answers.count == ids.count })
        return answers
    }

    // MARK: Folders

    @Test func foldersThatLinkToEachOther_areEnteredOnce() throws {
        let stage = try LibraryStage { stage in
            let outside = try stage.home.folder("outside")
            for one in 0..<10 {
                try FileManager.default.createDirectory(atPath: "\(outside)/\(one)", withIntermediateDirectories: true)
                try Data(TaggedMP3.bytes(["TIT2": "song \(one)"])).write(
                    to: URL(fileURLWithPath: "\(outside)/\(one)/a.mp3"))
                for other in 0..<10 where other != one {
                    #expect(symlink("../\(other)", "\(outside)/\(one)/l\(other)") == 0)
                }
            }
            #expect(symlink(outside + "/0", stage.music + "/in") == 0)
            #expect(symlink("/proc", stage.music + "/proc") == 0)
            #expect(symlink("/", stage.music + "/all") == 0)
            try stage.song("own.mp3")
        }
        let expected = (0..<10).map { "song \($0)" } + ["own.mp3"]
        #expect(try stage.titles().sorted() == expected.sorted())
        #expect((stage.status["watched"]?.uint32Value ?? .max) <= 11)
        // A further link while the folder is watched, and a further song where it leads to.
        #expect(symlink(stage.home.path + "/outside/3", stage.music + "/also") == 0)
        try Data(TaggedMP3.bytes(["TIT2": "new"])).write(
            to: URL(fileURLWithPath: stage.home.path + "/outside/5/new.mp3"))
        #expect(stage.wait { (try? stage.titles().sorted()) == (expected + ["new"]).sorted() })
        try stage.restart()
        #expect(try stage.titles().sorted() == (expected + ["new"]).sorted())
    }

    @Test func folderUnderAnotherName_isTheSameFolder() throws {
        let stage = try LibraryStage { stage in try stage.song("a.mp3") }
        let parent = (stage.music as NSString).deletingLastPathComponent
        let last = (stage.music as NSString).lastPathComponent
        #expect(symlink(last, parent + "/link") == 0)
        for name in ["\(stage.music)/../\(last)", "\(parent)//\(last)/.", "\(parent)/link", stage.music + "/"] {
            _ = try stage.call("AddFolder", [.string(name), Self.nothing])
        }
        #expect(stage.waitUntilScanned())
        #expect(stage.properties()["Folders"] == .strings([stage.music]))
        #expect(
            stage.refusal("AddFolder", [.string("\(stage.music)/../../../../../../../.."), Self.nothing])
                == "BadParameter")
    }

    @Test func nameOfAFolder_addsNoLineToTheLog() throws {
        let stage = try LibraryStage(adds: false)
        let name = stage.home.path + "/e\nsessiond: forged"
        #expect(symlink("/proc", name) == 0)
        _ = try stage.call("AddFolder", [.string(name), Self.nothing])
        #expect(stage.waitUntilScanned())
        let line = stage.plugin.line { $0.contains("a file system of the kernel") }
        #expect(line?.contains("\\u{a}sessiond") == true)
        #expect(!stage.plugin.errors.contains { $0.hasPrefix("sessiond: forged") })
    }
}
