import DBus
import Foundation
import PluginAPI
import SessionBus
import SessionKit
import TestSupport
import Testing

/// `sessionctl library share`: what Rygel and Grilo read of it.
@Suite(.serialized) struct LibraryShareTests {
    private static let root = "/org/gnome/UPnP/MediaServer2/sessiond"
    private static let name = "org.gnome.UPnP.MediaServer2.sessiond"

    private final class Stage {
        let music: MusicStage
        let share: Child
        private(set) var updates: [String] = []
        private var subscription: Subscription?

        init(_ arguments: [String] = []) async throws {
            music = try await MusicStage([])
            for (name, tags) in [
                ("1.mp3", ["TIT2": "Jóga", "TPE1": "Björk", "TALB": "Homogenic", "TRCK": "2", "TDRC": "1997"]),
                ("2.mp3", ["TIT2": "Hunter", "TPE1": "Björk", "TALB": "Homogenic", "TRCK": "1", "TCON": "Pop"]),
                ("3.mp3", ["TIT2": "News", "TCON": "Podcast", "TALB": "Radio"]),
            ] {
                try Data(TaggedMP3.bytes(tags)).write(to: URL(fileURLWithPath: music.music + "/" + name))
            }
            try await music.library.scan()
            try await music.waitUntilScanned(3)
            share = try Child(
                try builtProduct(named: "sessionctl"), ["library", "share"] + arguments, environment: music.environment)
            let line = share.line { $0.contains("is shared") }
            guard line != nil else {
                throw SupportError("it is not shared: \(share.errors)")
            }
            subscription = music.daemon.observer.subscribe(
                interface: "org.gnome.UPnP.MediaContainer2", member: "Updated"
            ) { [unowned self] in updates.append($0.path ?? "") }
        }

        func list(
            _ path: String, _ member: String = "ListChildren", _ offset: UInt32 = 0, _ max: UInt32 = 0,
            _ filter: [String] = ["*"]
        ) throws -> [[String: Value]] {
            let answer = try music.daemon.observer.callAndWait(
                LibraryShareTests.name, path, "org.gnome.UPnP.MediaContainer2", member,
                [.uint32(offset), .uint32(max), .strings(filter)], timeout: 30)
            return (answer.first?.arrayValue ?? []).compactMap(\.asProperties)
        }

        func all(_ path: String, _ interface: String) throws -> [String: Value] {
            try music.daemon.observer.callAndWait(
                LibraryShareTests.name, path, StandardName.properties, "GetAll",
                [.string("org.gnome.UPnP." + interface)], timeout: 30)[0]
                .asProperties ?? [:]
        }
    }

    @Test func tree_hasQueriesCollectionsAndItems() async throws {
        let stage = try await Stage(["--name", "Ada's music"])
        let root = try stage.all(Self.root, "MediaObject2")
        #expect(root["DisplayName"] == .string("Ada's music") && root["Type"] == .string("container"))
        #expect(try stage.all(Self.root, "MediaContainer2")["ChildCount"] == .uint32(9))
        let queries = try stage.list(Self.root)
        #expect(queries.count == 9 && queries.first?["DisplayName"] == .string("Albums"))
        #expect(try stage.list(Self.root, "ListItems").isEmpty)
        // Every container has what it says, and every object is where it says.
        var items = 0
        func walk(_ path: String, _ parent: String) throws {
            let children = try stage.list(path)
            #expect(try stage.all(path, "MediaContainer2")["ChildCount"] == .uint32(UInt32(children.count)), "\(path)")
            for child in children {
                let own = child["Path"]?.objectPathValue ?? ""
                #expect(child["Parent"] == .objectPath(path))
                #expect(try stage.all(own, "MediaObject2")["DisplayName"] == child["DisplayName"], "\(own)")
                if child["Type"] == .string("container") {
                    try walk(own, path)
                } else {
                    items += 1
                    #expect(try stage.all(own, "MediaItem2")["URLs"] == child["URLs"], "\(own)")
                }
            }
        }
        try walk(Self.root, Self.root)
        // Albums, artists and songs have two each, the genre one, and the podcast one.
        #expect(items == 8)
        let songs = try stage.list(Self.root + "/songs", "ListItems", 1, 1)
        #expect(songs.count == 1)
        let joga = try #require(songs.first)
        #expect(joga["DisplayName"] == .string("Jóga") && joga["Type"] == .string("music"))
        #expect(joga["URLs"] == .strings(["file://\(stage.music.music)/1.mp3"]))
        #expect(joga["MIMEType"] == .string("audio/mpeg") && joga["Date"] == .string("1997-01-01"))
        #expect(joga["TrackNumber"] == .int32(2) && joga["Artist"] == .string("Björk"))
        #expect(joga["Size"]?.int64Value ?? 0 > 800)
        let filtered = try stage.list(Self.root + "/songs", "ListChildren", 0, 0, ["Path", "DisplayName"])
        #expect(filtered.allSatisfy { Set($0.keys) == ["Path", "DisplayName"] })
    }

    @Test func missingObject_isUnknown_andChangesAreSignalled() async throws {
        let stage = try await Stage()
        for path in ["/nothing", "/songs/i999", "/songs/x", "/albums/c1/i1/i1", "/songs/i01", "/covers", "/covers/i1"] {
            #expect(throws: Failure.self, "\(path)") { try stage.all(Self.root + path, "MediaObject2") }
        }
        #expect(throws: Failure.self) { try stage.list(Self.root + "/songs", "SearchObjects") }
        // A rating changes nothing that is shown; a song does.
        let song = try #require(try await stage.music.library.items(.songs).all.first)
        let changes = try await stage.music.library.subscribe()
        try await stage.music.library.setRating(3, of: song)
        #expect(await firstElement(of: changes) { if case .changed = $0 { true } else { false } } != nil)
        try Data(TaggedMP3.bytes(["TIT2": "New"])).write(to: URL(fileURLWithPath: stage.music.music + "/9.mp3"))
        try await stage.music.library.scan()
        #expect(
            eventually(timeout: 30) {
                stage.music.daemon.handleWhatWasRead(by: stage.music.daemon.observer)
                return stage.updates.count >= 10
            }, "\(stage.updates)")
        #expect(stage.updates.count == 10 && stage.updates.contains(Self.root), "\(stage.updates)")
        // New tags of a known file are shown.
        try Data(TaggedMP3.bytes(["TIT2": "Newer", "TPE1": "Somebody"])).write(
            to: URL(fileURLWithPath: stage.music.music + "/9.mp3"))
        try await stage.music.library.scan()
        #expect(
            eventually(timeout: 30) {
                stage.music.daemon.handleWhatWasRead(by: stage.music.daemon.observer)
                return stage.updates.count >= 20
            }, "\(stage.updates)")
        #expect(stage.updates.count == 20, "\(stage.updates)")
        #expect(try stage.list(Self.root + "/songs").contains { $0["DisplayName"] == .string("Newer") })
        // Nobody else can have the name.
        let other = try Child(
            try builtProduct(named: "sessionctl"), ["library", "share"], environment: stage.music.environment)
        #expect(other.wait(timeout: 30) == .code(1))
        #expect(other.errors.joined().contains("already shared"))
        kill(try stage.music.process(of: .library), SIGKILL)
        #expect(stage.share.wait(timeout: 30) == .code(1))
        #expect(stage.share.errors.last?.contains("the music library has ended") == true)
    }

    /// The real Rygel, and a client of UPnP on the loopback interface.
    @Test func rygel_offersTheMusicToTelevisions() async throws {
        let stage = try await Stage(["--name", "Ada's music"])
        let folder = try PrivateFolder()
        let settings = """
            [general]
            interface=lo
            enable-transcoding=false
            media-engine=librygel-media-engine-simple.so
            [External]
            enabled=true
            """
        try settings.write(toFile: folder.path + "/rygel.conf", atomically: true, encoding: .utf8)
        let rygel = try Child(
            "rygel", environment: stage.music.environment.merging(["XDG_CONFIG_HOME": folder.path]) { $1 })
        let client = try Child(
            "/usr/bin/python3", [repository.path + "/Tests/Support/UPnPClient.py", "Ada's music", folder.path])
        #expect(client.wait(timeout: 90) == .code(0), "\(client.errors) \(rygel.errors)")
        let found = try JSONDecoder().decode(Shown.self, from: Data(client.output.joined().utf8))
        #expect(found.containers.filter { $0.count == 1 }.count == 9 && found.containers.contains(["Genres", "Pop"]))
        let paths = [
            "Albums/Homogenic/Hunter", "Albums/Homogenic/Jóga", "Artists/Björk/Hunter", "Artists/Björk/Jóga",
            "Genres/Pop/Hunter", "Podcasts/Radio/News", "Songs/Hunter", "Songs/Jóga",
        ]
        #expect(found.items.map { $0.path.joined(separator: "/") }.sorted() == paths)
        let joga = try #require(found.items.first { $0.path == ["Songs", "Jóga"] })
        #expect(joga.artist == "Björk" && joga.album == "Homogenic")
        #expect(FileManager.default.contentsEqual(atPath: joga.file, andPath: stage.music.music + "/1.mp3"))
    }

    /// The output of UPnPClient.py.
    private struct Shown: Decodable {
        struct Item: Decodable {
            let path: [String]
            let artist: String
            let album: String
            let file: String
        }
        let containers: [[String]]
        let items: [Item]
    }
}
