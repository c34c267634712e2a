import DBus
import EventLoop
import PluginAPI
import SessionBus
import TestSupport
import Testing

@testable import MediaShare

/// The tree that Rygel and Grilo read, with a library that answers as the test says.
@Suite struct MediaServerTests {
    private static let root = "/org/gnome/UPnP/MediaServer2/test"

    private final class Stage {
        let bus: PrivateBus
        let loop = EventLoop()
        let library: Connection
        let client: Connection
        let server: MediaServer
        private let shared: Connection
        /// The calls to the library: the member and the arguments.
        private(set) var asked: [(member: String, arguments: [Value])] = []
        var collections: [[(String, Value)]] = []
        var items: [[(String, Value)]] = []
        var artwork = ""
        /// The refusal of all calls; nil: they are answered.
        var refusal: Failure?

        init() throws {
            bus = try PrivateBus()
            library = try Connection(.custom(bus.address), loop: loop)
            client = try Connection(.custom(bus.address), loop: loop)
            shared = try Connection(.custom(bus.address), loop: loop)
            server = try MediaServer(library.uniqueName, on: shared, name: "Ada's music", suffix: "test")
            library.objects.relay(below: "/") { [unowned self] in handle($0) }
        }

        private func handle(_ call: Invocation) {
            asked.append((call.member, call.arguments))
            if let refusal { return call.fail(refusal) }
            func page(_ rows: [[(String, Value)]], _ offset: Value, _ max: Value) {
                let shown = rows.dropFirst(Int(offset.uint32Value ?? 0)).prefix(Int(max.uint32Value ?? 0))
                call.reply([
                    .uint32(UInt32(rows.count)), .array(of: "a{sv}", shown.map { .properties($0) }),
                ])
            }
            switch call.member {
            case "Items": page(items, call.arguments[1], call.arguments[2])
            case "Collections": page(collections, call.arguments[2], call.arguments[3])
            case "Artwork": call.reply([.string(artwork)])
            default: call.fail(.unknownMethod(call.member))
            }
        }

        func call(
            _ path: String, _ interface: String, _ member: String, _ arguments: [Value]
        ) throws -> Result<[Value], Failure> {
            var answer: Result<[Value], Failure>?
            client.call(
                "org.gnome.UPnP.MediaServer2.test", MediaServerTests.root + path, interface, member, arguments
            ) { answer = $0 }
            let isAnswered = loop.iterate(timeout: 20) { answer != nil }
            try #require(isAnswered)
            return try #require(answer)
        }

        func list(
            _ path: String, _ member: String = "ListChildren", _ offset: UInt32 = 0, _ max: UInt32 = 0,
            _ filter: [String] = ["*"]
        ) throws -> [[String: Value]] {
            let answer = try call(
                path, "org.gnome.UPnP.MediaContainer2", member, [.uint32(offset), .uint32(max), .strings(filter)])
            return (try answer.get().first?.arrayValue ?? []).compactMap(\.asProperties)
        }

        func all(_ path: String, _ interface: String = "") throws -> [String: Value] {
            let answer = try call(path, StandardName.properties, "GetAll", [.string(interface)])
            return try answer.get().first?.asProperties ?? [:]
        }

        func refusal(_ path: String, _ interface: String, _ member: String, _ arguments: [Value]) throws -> String {
            guard case .failure(let failure) = try call(path, interface, member, arguments) else { return "none" }
            return failure.name
        }
    }

    private static let song: [(String, Value)] = [
        ("id", .uint64(7)), ("uri", .string("file:///none/jóga.mp3")), ("title", .string("Jóga")),
        ("artist", .string("Björk")), ("album", .string("Homogenic")), ("genre", .string("")),
        ("year", .uint32(1997)), ("number", .uint32(2)), ("duration", .double(305.4)), ("artwork", .bool(true)),
    ]

    @Test func root_hasTheQueries_withoutAskingForTheirRows() throws {
        let stage = try Stage()
        let root = try stage.all("")
        #expect(root["DisplayName"] == .string("Ada's music") && root["ChildCount"] == .uint32(9))
        #expect(root["Searchable"] == .bool(false) && root["Parent"] == .objectPath(Self.root))
        #expect(stage.asked.isEmpty)
        let names = try stage.list("").compactMap { $0["DisplayName"]?.stringValue }
        #expect(names.first == "Albums" && names.count == 9)
        #expect(stage.asked.allSatisfy { $0.arguments.last == .uint32(0) || $0.arguments.last == .strings([]) })
    }

    @Test func rootsPart_isWhatWasAskedFor() throws {
        let stage = try Stage()
        #expect(try stage.list("", "ListItems").isEmpty)
        #expect(try stage.list("", "ListContainers", 2, 3).count == 3)
        #expect(try stage.list("", "ListContainers", 8, 0).count == 1)
        #expect(try stage.list("", "ListContainers", 9, 0).isEmpty)
    }

    @Test func item_hasWhatTelevisionsShow() throws {
        let stage = try Stage()
        stage.items = [Self.song]
        let item = try #require(try stage.list("/songs").first)
        #expect(item["Path"] == .objectPath(Self.root + "/songs/i7") && item["Type"] == .string("music"))
        #expect(item["Artist"] == .string("Björk") && item["Date"] == .string("1997-01-01"))
        #expect(item["Duration"] == .int32(305) && item["TrackNumber"] == .int32(2))
        #expect(item["MIMEType"] == .string("audio/mpeg") && item["URLs"] == .strings(["file:///none/jóga.mp3"]))
        #expect(item["AlbumArt"] == .objectPath(Self.root + "/covers/i7"))
        // An unknown genre, and the size of a file that is not there.
        #expect(item["Genre"] == nil && item["Size"] == nil)
    }

    @Test func filter_leavesOutTheOtherProperties() throws {
        let stage = try Stage()
        stage.items = [Self.song]
        #expect(try stage.list("/songs", "ListItems", 0, 0, ["Path", "Artist"]).first?.count == 2)
        #expect(try stage.list("/songs", "ListItems", 0, 0, []).first?.count ?? 0 > 8)
    }

    @Test func collection_asksForItsOwnItems() throws {
        let stage = try Stage()
        stage.collections = [[("id", .uint64(3)), ("title", .string("Homogenic")), ("count", .uint32(10))]]
        let album = try #require(try stage.list("/albums").first)
        #expect(album["Path"] == .objectPath(Self.root + "/albums/c3") && album["ChildCount"] == .uint32(10))
        stage.items = [Self.song]
        let song = try #require(try stage.list("/albums/c3").first)
        #expect(song["Parent"] == .objectPath(Self.root + "/albums/c3"))
        let query = try #require(stage.asked.last?.arguments.first?.asProperties)
        #expect(query["preset"] == .string("albums"))
        #expect(
            query["where"]
                == .array(of: "(ssv)", [.structure([.string("album-id"), .string("is"), .variant(.uint64(3))])]))
    }

    @Test(arguments: [("artists", "artist-id"), ("genres", "genre-id"), ("composers", "composer-id")])
    func collectionOfEachGrouping_isFoundByItsId(_ word: String, _ property: String) throws {
        let stage = try Stage()
        _ = try stage.list("/\(word)/c3")
        let query = stage.asked.last?.arguments.first?.asProperties
        let fields = query?["where"]?.arrayValue?.first?.structureValue
        #expect(fields?.first == .string(property))
    }

    @Test func playlist_keepsItsOrder() throws {
        let stage = try Stage()
        _ = try stage.list("/playlists/c3")
        #expect(stage.asked.last?.arguments.first?.asProperties?["playlist"] == .uint64(3))
    }

    @Test func longList_isReadInPages() throws {
        let stage = try Stage()
        stage.items = (0..<5_001).map { number in [("id", .uint64(UInt64(number))), ("title", .string("\(number)"))] }
        #expect(try stage.list("/songs").count == 5_001)
        #expect(stage.asked.map { $0.arguments[1] } == [.uint32(0), .uint32(5_000)])
        #expect(try stage.list("/songs", "ListItems", 5_000, 10).count == 1)
    }

    @Test func cover_isAnImage() throws {
        let stage = try Stage()
        stage.artwork = "file:///none/k.png"
        let cover = try stage.all("/covers/i7")
        #expect(cover["MIMEType"] == .string("image/png") && cover["Parent"] == .objectPath(Self.root))
        stage.artwork = ""
        #expect(
            try stage.refusal("/covers/i7", StandardName.properties, "GetAll", [.string("")])
                == Failure.Name.unknownObject)
    }

    @Test(arguments: [
        "/none", "/songs/x7", "/songs/i", "/songs/i07", "/albums/c3/x", "/covers", "/songs/i7/i8", "/albums/i3/i4/i5",
    ]) func pathOfNothing_isNoObject(_ path: String) throws {
        let stage = try Stage()
        #expect(
            try stage.refusal(path, StandardName.properties, "GetAll", [.string("")]) == Failure.Name.unknownObject)
    }

    @Test func removedItem_isNoObject() throws {
        let stage = try Stage()
        #expect(
            try stage.refusal("/songs/i9", StandardName.properties, "GetAll", [.string("")])
                == Failure.Name.unknownObject)
    }

    @Test func properties_areOfTheAskedInterface() throws {
        let stage = try Stage()
        stage.items = [Self.song]
        let object = try stage.all("/songs/i7", "org.gnome.UPnP.MediaObject2")
        #expect(Set(object.keys) == ["Parent", "Type", "Path", "DisplayName"])
        let item = try stage.all("/songs/i7", "org.gnome.UPnP.MediaItem2")
        #expect(item["DisplayName"] == nil && item["Artist"] == .string("Björk"))
        let unknown = try stage.refusal(
            "/songs/i7", StandardName.properties, "Get", [.string(""), .string("Colour")])
        #expect(unknown == Failure.Name.unknownProperty)
    }

    @Test func libraryThatRefuses_isTheReasonOfTheList() throws {
        let stage = try Stage()
        stage.refusal = .limitsExceeded("too much")
        let failure = try stage.refusal(
            "/songs", "org.gnome.UPnP.MediaContainer2", "ListItems", [.uint32(0), .uint32(0), .strings([])])
        #expect(failure == Failure.Name.limitsExceeded)
    }

    @Test func search_isRefused_asTheTreeSays() throws {
        let stage = try Stage()
        let arguments: [Value] = [.string("*"), .uint32(0), .uint32(0), .strings([])]
        let search = try stage.refusal("", "org.gnome.UPnP.MediaContainer2", "SearchObjects", arguments)
        #expect(search.hasSuffix("NotSupported"))
        #expect(
            try stage.refusal("", "org.gnome.UPnP.MediaContainer2", "Delete", [])
                == Failure.Name.unknownMethod)
    }

    @Test func changedContent_isToldForEachQuery() throws {
        let stage = try Stage()
        var updated: Set<String> = []
        let subscription = stage.client.subscribe(interface: "org.gnome.UPnP.MediaContainer2", member: "Updated") {
            updated.insert($0.path ?? "")
        }
        // The subscription is there when a call after it is answered.
        _ = try stage.all("")
        func change(_ property: String) {
            stage.library.objects.propertiesChanged(
                path: PluginKind.library.objectPath, interface: PluginKind.library.interface, [(property, .uint64(2))])
        }
        change("Count")
        change("ContentRevision")
        let isTold = stage.loop.iterate(timeout: 20) { updated.count == 10 }
        #expect(isTold && updated.contains(Self.root) && updated.contains(Self.root + "/songs"))
        withExtendedLifetime(subscription) {}
    }

    @Test func nameThatAnotherProgramOwns_isRefused() throws {
        let stage = try Stage()
        let second = try Connection(.custom(stage.bus.address), loop: stage.loop)
        let error = #expect(throws: Failure.self) {
            try MediaServer(stage.library.uniqueName, on: second, name: "B", suffix: "test")
        }
        #expect(error?.message.contains("already shared") == true)
    }

    @Test func introspection_namesTheInterfacesOfTheNode() throws {
        let stage = try Stage()
        func text(_ path: String) throws -> String {
            try stage.call(path, StandardName.introspectable, "Introspect", []).get().first?.stringValue ?? ""
        }
        #expect(try text("").contains("MediaContainer2") && !text("").contains("MediaItem2"))
        #expect(try text("/songs/i7").contains("MediaItem2") && !text("/songs/i7").contains("MediaContainer2"))
    }
}
