import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import SessionKit
import TestSupport
import Testing

/// `org.mpris.MediaPlayer2.Playlists` of the real player: the playlists of the real library.
@Suite(.serialized) struct PlaylistTests {
    private static let (path, interface) = ("/org/mpris/MediaPlayer2", "org.mpris.MediaPlayer2.Playlists")

    /// The player of the service, as a desktop finds it.
    private final class Desktop {
        let stage: MusicStage
        let player: MusicPlayer
        let name: String
        private var subscriptions: [Subscription] = []
        private(set) var told: [String] = []

        init() async throws {
            stage = try await MusicStage()
            player = stage.player(.system)
            _ = try await player.playbackState
            let names = try stage.daemon.observer.askBusAndWait("ListNames", timeout: 5).first?.stringsValue ?? []
            name = names.first { $0.hasPrefix(PluginKind.player.busName) } ?? ""
            subscriptions = [
                stage.daemon.observer.subscribe(
                    path: PlaylistTests.path, interface: PlaylistTests.interface, sender: name
                ) { [unowned self] in
                    told.append($0.member ?? "")
                },
                stage.daemon.observer.subscribe(
                    path: PlaylistTests.path, interface: StandardName.properties, member: "PropertiesChanged",
                    sender: name,
                    arg0: PlaylistTests.interface
                ) { [unowned self] message in
                    let changed = ((try? message.arguments()) ?? []).dropFirst().first?.asProperties ?? [:]
                    told += changed.keys
                },
            ]
        }

        func call(_ member: String, _ arguments: [Value]) throws -> [Value] {
            try stage.daemon.observer.callAndWait(
                name, PlaylistTests.path, PlaylistTests.interface, member, arguments, timeout: 30)
        }

        func get(_ property: String) throws -> Value {
            try stage.daemon.observer.callAndWait(
                name, PlaylistTests.path, StandardName.properties, "Get",
                [.string(PlaylistTests.interface), .string(property)], timeout: 30)[0]
                .unwrapped
        }

        func names(_ index: UInt32 = 0, _ max: UInt32 = 100, reverse: Bool = false) throws -> [String] {
            let lists = try call(
                "GetPlaylists", [.uint32(index), .uint32(max), .string("Alphabetical"), .bool(reverse)])
            return (lists[0].arrayValue ?? []).compactMap { $0.structureValue?[1].stringValue }
        }

        func hears(_ what: String) -> Bool {
            eventually(timeout: 20) {
                stage.daemon.loop.iterate(timeout: 0.05) { false }
                return told.contains(what)
            }
        }
    }

    @Test func playlists_areListedAndActivated_andChangesAreTold() async throws {
        let desktop = try await Desktop()
        let library = desktop.stage.library
        let songs = try await library.items(.songs).all
        let road = try await library.createPlaylist("Road trip", items: [songs[2], songs[0]])
        _ = try await library.createPlaylist("Evening", items: [songs[1]])
        #expect(try desktop.names() == ["Evening", "Road trip"])
        #expect(try desktop.names(reverse: true) == ["Road trip", "Evening"])
        #expect(try desktop.names(1, 1) == ["Road trip"])
        #expect(try desktop.get("PlaylistCount") == .uint32(2))
        #expect(try desktop.get("Orderings") == .strings(["Alphabetical"]))
        #expect(try desktop.get("ActivePlaylist").structureValue?.first == .bool(false))
        let lists = try desktop.call("GetPlaylists", [.uint32(1), .uint32(1), .string("x"), .bool(false)])
        let id = try #require(lists[0].arrayValue?.first?.structureValue?.first)
        _ = try desktop.call("ActivatePlaylist", [id])
        #expect(try await desktop.player.nowPlayingItem == songs[2])
        #expect(try await desktop.player.playbackState == .playing)
        let active = try desktop.get("ActivePlaylist").structureValue
        #expect(active?.first == .bool(true) && active?.last?.structureValue?[1] == .string("Road trip"))
        #expect(desktop.hears("ActivePlaylist"))
        try await library.rename(road, to: "Home")
        #expect(desktop.hears("PlaylistChanged"))
        #expect(try desktop.get("ActivePlaylist").structureValue?.last?.structureValue?[1] == .string("Home"))
        _ = try await library.createPlaylist("Third")
        #expect(desktop.hears("PlaylistCount"))
        #expect(try eventually(timeout: 20) { try desktop.get("PlaylistCount") == .uint32(3) })
        // Another queue is no playlist.
        try await desktop.player.setQueue(with: MediaQuery.songs)
        #expect(try desktop.get("ActivePlaylist").structureValue?.first == .bool(false))
        for wrong in ["/", "/org/sessiond1/player/playlist/999", "/org/sessiond1/player/playlist/01"] {
            #expect(throws: Failure.self) { try desktop.call("ActivatePlaylist", [.objectPath(wrong)]) }
        }
    }

    @Test func libraryThatHasEnded_isStartedByTheQuestion() async throws {
        let desktop = try await Desktop()
        kill(try desktop.stage.process(of: .library), SIGTERM)
        #expect(try eventually(timeout: 20) { try desktop.stage.process(of: .library) == 0 })
        #expect(try desktop.names() == [])
        // Asking has started it again.
        let songs = try await desktop.stage.library.items(.songs).all
        #expect(songs.count == 4)
    }

    @Test func introspection_isThatOfTheFile() async throws {
        let desktop = try await Desktop()
        let text =
            try desktop.stage.daemon.observer.callAndWait(
                desktop.name, Self.path, StandardName.introspectable, "Introspect", [])[0].stringValue ?? ""
        for member in [
            "ActivatePlaylist", "GetPlaylists", "PlaylistChanged", "PlaylistCount", "Orderings", "ActivePlaylist",
        ] { #expect(text.contains("name=\"\(member)\""), "\(member)") }
    }
}
