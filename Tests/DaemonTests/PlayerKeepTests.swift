import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

/// Queues that outlive the player, items of the library, and winding.
@Suite(.serialized) struct PlayerKeepTests {
    private func items(_ uris: [String], bookmark: Double = 0) -> [Value] {
        [
            .array(
                of: "a{sv}",
                uris.enumerated().map { index, uri in
                    .properties([
                        ("uri", .string(uri)), ("title", .string("Title \(index)")), ("artist", .string("Artist")),
                        ("album", .string("Album")), ("id", .uint64(UInt64(index + 1))),
                        ("bookmark", .double(index == 0 ? bookmark : 0)), ("media-type", .string("music")),
                    ])
                }), .uint32(0),
        ]
    }

    private func player(_ stage: PlayerStage, isService: Bool) throws -> PluginProgram {
        try stage.player(
            isService ? ["--id", "org.sessiond1.player"] : [],
            environment: ["XDG_STATE_HOME": stage.media.path + "/state"])
    }

    @Test func queue_isThereAgainAndPausedWhereItWas() throws {
        let stage = try PlayerStage()
        let uris = try [440.0, 550, 660].map { try stage.sine($0, seconds: 20) }
        let first = try player(stage, isService: true)
        #expect(first.call("LoadItems", items(uris)) == nil)
        #expect(first.set("RepeatMode", .string("all")) == nil)
        #expect(first.set("ShuffleMode", .string("albums")) == nil)
        #expect(first.call("Next") == nil)
        #expect(first.call("Play") == nil)
        #expect(eventually { first.position > 0.2 })
        #expect(first.call("SeekTo", [.double(7)]) == nil)
        #expect(first.call("Pause") == nil)
        #expect(first.comes(to: "paused"))
        let file = stage.media.path + "/state/sessiond/queue"
        #expect(eventually { ((try? String(contentsOfFile: file, encoding: .utf8)) ?? "").contains("\nposition 7") })
        let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        first.child.kill()
        let second = try player(stage, isService: true)
        #expect(second.comes(to: "paused"))
        #expect(eventually { second.position >= 7 && second.position < 8 })
        #expect(try second.get("Uri") == .string(uris[1]))
        #expect(try second.get("IndexOfCurrentItem") == .uint32(1))
        #expect(try second.get("RepeatMode") == .string("all"))
        #expect(try second.get("ShuffleMode") == .string("albums"))
        let rows = try second.answer("Items")[0].arrayValue?.compactMap(\.asProperties) ?? []
        #expect(rows.map { $0["uri"] } == uris.map { .string($0) })
        #expect(rows.map { $0["title"] } == (0..<3).map { .string("Title \($0)") })
        #expect(rows.map { $0["item"] } == (1...3).map { .uint64($0) })
        // Nothing has begun by itself, and it goes on there.
        #expect(try second.get("CurrentRate") == .double(0))
        #expect(second.call("Play") == nil)
        #expect(eventually { second.position > 7.3 && second.position < 12 })
        #expect(try second.get("CurrentRate") == .double(1))
    }

    @Test func queueOfAnApp_endsWithIt() throws {
        let stage = try PlayerStage()
        let own = try player(stage, isService: false)
        #expect(own.call("LoadItems", items([try stage.sine(440, seconds: 5)])) == nil)
        own.child.signal(SIGTERM)
        #expect(own.child.wait() == .code(0))
        #expect(!FileManager.default.fileExists(atPath: stage.media.path + "/state/sessiond/queue"))
    }

    @Test(arguments: ["", "sessiond queue 1\ncurrent 0\n", "\u{0}\u{1}\u{2}"]) func damagedQueue_isEmptyAndSaid(
        _ text: String
    ) throws {
        let stage = try PlayerStage()
        let folder = try stage.media.folder("state/sessiond")
        try text.write(toFile: folder + "/queue", atomically: true, encoding: .utf8)
        let player = try player(stage, isService: true)
        #expect(try player.answer("Items")[0].arrayValue?.isEmpty == true)
        #expect(player.state == "stopped")
        #expect(player.child.errors.first?.contains("is damaged: the queue is empty") == true)
    }

    @Test func bookmark_isWhereItBegins() throws {
        let stage = try PlayerStage()
        let player = try stage.player()
        #expect(player.call("LoadItems", items([try stage.sine(440, seconds: 20)], bookmark: 12)) == nil)
        #expect(player.comes(to: "paused"))
        #expect(player.call("Play") == nil)
        #expect(eventually { player.position > 12.1 && player.position < 16 })
        #expect(
            player.call("LoadItems", [.array(of: "a{sv}", [.properties([])]), .uint32(0)])?.hasSuffix("BadParameter")
                == true)
        #expect(player.call("LoadItems", [.array(of: "a{sv}", []), .uint32(0)]) == nil)
        #expect(try player.get("IndexOfCurrentItem") == .uint32(.max))
    }

    @Test func winding_goesForwardAndBackwardInSilence() throws {
        let stage = try PlayerStage()
        let player = try stage.player()
        #expect(player.call("BeginSeeking", [.string("forward")])?.hasSuffix("CannotStartPlaying") == true)
        #expect(player.call("Load", [.string(try stage.sine(440, seconds: 120))]) == nil)
        #expect(player.call("Play") == nil)
        #expect(eventually { player.position > 0.2 })
        #expect(player.call("BeginSeeking", [.string("sideways")])?.hasSuffix("BadParameter") == true)
        #expect(player.call("BeginSeeking", [.string("forward")]) == nil)
        #expect(player.state == "seeking-forward")
        #expect(try player.get("CurrentRate") == .double(8))
        #expect(try player.get("PlaybackStatus", mpris: true) == .string("Playing"))
        #expect(eventually { player.position > 16 })
        #expect(player.call("EndSeeking") == nil)
        #expect(player.state == "playing")
        let far = player.position
        #expect(far > 16 && far < 119)
        #expect(player.call("BeginSeeking", [.string("backward")]) == nil)
        #expect(player.state == "seeking-backward")
        #expect(try player.get("CurrentRate") == .double(-8))
        // At the beginning it plays on by itself.
        #expect(eventually(timeout: 30) { player.state == "playing" })
        #expect(player.position < 8)
        // Any other request ends it.
        for (member, state) in [("Pause", "paused"), ("Stop", "stopped")] {
            #expect(player.call("Play") == nil)
            #expect(eventually { player.state == "playing" })
            #expect(player.call("BeginSeeking", [.string("forward")]) == nil)
            #expect(player.call(member) == nil)
            #expect(player.state == state)
        }
    }
}
