import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

private let loud = -25.0

/// Several items: the queue, lists, repeat and shuffle, used over D-Bus.
@Suite(.serialized) struct PlayerQueueTests {
    private func items(_ player: PluginProgram) throws -> [[String: Value]] {
        (try player.answer("Items").first?.arrayValue ?? []).compactMap(\.asProperties)
    }

    private func uris(_ player: PluginProgram) throws -> [String] {
        try items(player).compactMap { $0["uri"]?.stringValue }
    }

    private func load(_ player: PluginProgram, _ uris: [String], start: UInt32 = 0) -> String? {
        player.call("LoadList", [.strings(uris), .uint32(start)])
    }

    @Test(arguments: ServerKind.allCases)
    func nothingCanBePlayed_callsAreAnsweredBeforeAllItemsWereTried(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try stage.player()
        let uris = (0..<2_000).map { "file:///nowhere/\($0).wav" }
        #expect(load(music, uris) == nil)
        _ = try music.get("State")
        #expect(music.signals.count { $0.hasPrefix("ItemFailed ") } < uris.count / 2)
        #expect(music.comes(to: "failed"))
    }

    @Test(arguments: ServerKind.allCases)
    func itemsFollowEachOther_eachIsReported_andOthersResumeOnlyAfterTheLast(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let client = try stage.daemon.client()
        let other = try client.session("other")
        client.activate(other)
        let music = try stage.player()
        let uris = [try stage.sine(440, seconds: 1), try stage.sine(660, seconds: 1), try stage.sine(880, seconds: 1)]
        #expect(load(music, uris) == nil)
        let ids = try items(music).compactMap { $0["id"]?.objectPathValue }
        #expect(try self.uris(music) == uris)
        #expect(music.call("Play") == nil)
        for hertz in [440.0, 660, 880] { #expect(stage.ear.waitUntil(hertz, above: loud)) }
        #expect(eventually { music.signals.contains("Finished true") })
        #expect(
            music.allSignals == ["QueueChanged "] + ids.map { "ItemFinished \($0)" } + ["Finished true"])
        // The player is at the beginning of the list again, and stopped.
        #expect(music.state == "stopped")
        #expect(music.changes(of: "CurrentItem").compactMap(\.objectPathValue) == ids + [ids[0]])
        #expect(music.changes(of: "State").compactMap(\.stringValue) == ["playing", "stopped"])
        var heard: [String] = []
        #expect(
            eventually {
                heard += (try? client.heard()) ?? []
                return heard.contains("other ended resume")
            })
        #expect(heard.filter { $0.contains("ended") } == ["other ended resume"])
        // On a busy machine PipeWire drops sound that comes late.
        guard kind == .pulseAudio else { return }
        // The files have 48 kHz and whole periods, so there is no silent window between the first and the last sound.
        let traces = [440.0, 660, 880].map { stage.ear.trace($0, window: 0.01) }
        let sounds = traces[0].indices.map { place in
            traces.contains { $0.indices.contains(place) && $0[place].level > -30 }
        }
        let first = try #require(sounds.firstIndex(of: true)), last = try #require(sounds.lastIndex(of: true))
        #expect(sounds[first...last].filter { !$0 }.count <= 1)
    }

    @Test(arguments: ServerKind.allCases)
    func nextPreviousAndGoTo_playOnlyIfThePlayerPlays(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try stage.player()
        let uris = [
            try stage.sine(440, seconds: 60), try stage.sine(660, seconds: 60), try stage.sine(880, seconds: 60),
        ]
        #expect(load(music, uris, start: 1) == nil)
        #expect(try music.get("Uri") == .string(uris[1]))
        #expect(music.call("Next") == nil)
        #expect(try music.get("Uri") == .string(uris[2]))
        #expect(music.state == "stopped")
        #expect(music.call("Play") == nil)
        #expect(stage.ear.waitUntil(880, above: loud))
        #expect(try music.get("CanGoNext", mpris: true) == .bool(false))
        #expect(music.call("Next", mpris: true) == nil)
        #expect(music.state == "playing")
        #expect(music.call("Previous", mpris: true) == nil)
        #expect(stage.ear.waitUntil(660, above: loud))
        #expect(music.set("RepeatMode", .string("all")) == nil)
        #expect(try music.get("LoopStatus", mpris: true) == .string("Playlist"))
        #expect(music.call("Next") == nil)
        #expect(music.call("Next") == nil)
        #expect(stage.ear.waitUntil(440, above: loud))
        let ids = try items(music).compactMap { $0["id"]?.objectPathValue }
        #expect(music.call("GoTo", [.objectPath(ids[2])]) == nil)
        #expect(stage.ear.waitUntil(880, above: loud))
        #expect(
            music.call("GoTo", [.objectPath("/org/sessiond1/player/track/99")]) == "org.sessiond1.Error.BadParameter")
        #expect(eventually { music.position > 0.5 })
        #expect(music.call("SkipToBeginning") == nil)
        #expect(eventually { music.position < 0.4 })
        // During an interruption another item is selected. It plays when the interruption ends.
        let client = try stage.daemon.client()
        let call = try client.beginCall("call")
        #expect(music.comes(to: "interrupted"))
        #expect(music.call("Previous") == nil)
        #expect(music.state == "interrupted")
        client.deactivate(call)
        #expect(stage.ear.waitUntil(660, above: loud))
        #expect(music.state == "playing")
        #expect(music.signals.filter { $0.hasPrefix("Failed") || $0.hasPrefix("Finished") } == [])
    }

    @Test func itemsAreAddedRemovedAndReplaced_whilePlaying() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        let (a, b, c) = (
            try stage.sine(440, seconds: 60), try stage.sine(660, seconds: 60), try stage.sine(880, seconds: 60)
        )
        #expect(music.call("Append", [.strings([a])]) == nil)
        #expect(music.call("Play") == nil)
        let first = try #require(try items(music)[0]["id"])
        let added = try #require(try music.answer("Append", [.strings([b, c])]).first?.objectPathsValue)
        #expect(music.call("Insert", [.strings([c]), .objectPath("/")]) == nil)
        #expect(try uris(music) == [c, a, b, c])
        #expect(stage.ear.waitUntil(440, above: loud))
        let new = try #require(try music.answer("Replace", [first, .string(c)]).first?.objectPathValue)
        #expect(stage.ear.waitUntil(880, above: loud))
        #expect(try music.get("CurrentItem") == .objectPath(new))
        #expect(music.call("Remove", [.objectPath(new)]) == nil)
        #expect(stage.ear.waitUntil(660, above: loud))
        #expect(music.call("Remove", [.objectPath(added[1])]) == nil)
        #expect(music.call("Remove", [.objectPath(added[1])]) == "org.sessiond1.Error.BadParameter")
        #expect(music.call("Remove", [.objectPath(added[0])]) == nil)
        #expect(try uris(music) == [c])
        #expect(stage.ear.waitUntil(880, above: loud))
        #expect(music.call("Remove", [try #require(try items(music)[0]["id"])]) == nil)
        #expect(music.state == "stopped")
        #expect(try music.get("CurrentItem") == .objectPath("/"))
        #expect(eventually { (try? stage.sessionState(of: music)) == "inactive" })
        #expect(music.call("Play") == "org.sessiond1.Error.CannotStartPlaying")
        let many = Value.strings(Array(repeating: a, count: 10_001))
        #expect(music.call("Append", [many]) == "org.sessiond1.Error.ResourceNotAvailable")
        // 8 MiB of texts fit into a queue.
        let long = Value.strings(Array(repeating: "file:///" + String(repeating: "x", count: 16_000), count: 200))
        #expect(load(music, [a]) == nil)
        for _ in 0..<2 { #expect(music.call("Append", [long]) == nil) }
        #expect(music.call("Append", [long]) == "org.sessiond1.Error.ResourceNotAvailable")
        #expect(load(music, [a]) == nil)
        #expect(load(music, [a], start: 1) == "org.sessiond1.Error.BadParameter")
    }

    @Test func unplayableItem_isSkipped_andOnlyTheLastOneFails() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        let uris = ["file:///nowhere.wav", try stage.sine(440, seconds: 0.3), "file:///nowhere/else.wav"]
        #expect(load(music, uris) == nil)
        let ids = try items(music).compactMap { $0["id"]?.objectPathValue }
        #expect(music.call("Play") == nil)
        #expect(eventually { music.signals.contains { $0.hasPrefix("Failed ") } })
        #expect(music.allSignals.dropFirst().prefix(2) == ["ItemFailed \(ids[0])", "ItemFinished \(ids[1])"])
        #expect(music.state == "failed")
        #expect(try music.get("ItemStatus") == .string("failed"))
        #expect(try stage.sessionState(of: music) == "inactive")
    }

    @Test func firstItemIsUnplayable_isReportedOnceAndSkippedLater() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        #expect(load(music, ["file:///nowhere.wav", try stage.sine(440, seconds: 0.3)]) == nil)
        let ids = try items(music).compactMap { $0["id"]?.objectPathValue }
        #expect(music.call("Play") == nil)
        #expect(eventually { music.signals.contains("Finished true") })
        #expect(try music.get("CurrentItem") == .objectPath(ids[1]))
        #expect(try music.get("ItemStatus") != .string("failed"))
        #expect(music.call("Play") == nil)
        #expect(eventually { music.allSignals.filter { $0 == "Finished true" }.count == 2 })
        #expect(
            music.allSignals == [
                "QueueChanged ", "ItemFailed \(ids[0])", "ItemFinished \(ids[1])", "Finished true",
                "ItemFinished \(ids[1])", "Finished true",
            ])
        // GoTo tries the failed item again.
        #expect(music.call("GoTo", [.objectPath(ids[0])]) == nil)
        #expect(eventually { music.allSignals.filter { $0.hasPrefix("ItemFailed") }.count == 2 })
    }

    /// The name and password in an address are secret.
    @Test func addressWithSecrets_isPublishedWithoutThem() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        let heard = try stage.daemon.client().connection
        var said = ""
        let subscription = heard.subscribe(sender: music.busName) { said += "\((try? $0.arguments()) ?? [])" }
        #expect(
            load(music, ["http://user:secret@127.0.0.1:1/a.ogg?token=secret#secret", try stage.sine(440, seconds: 1)])
                == nil)
        #expect(try uris(music).first == "http://127.0.0.1:1/a.ogg")
        #expect(music.call("Play") == nil)
        #expect(eventually { music.signals.contains("Finished true") })
        stage.daemon.handleWhatWasRead(by: heard)
        #expect(said.contains("127.0.0.1") && !said.contains("secret"), "\(said)")
        withExtendedLifetime(subscription) {}
    }

    @Test func playlistIsLoaded_itsItemsReplaceIt_andARecursiveOneFails() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        let (a, b) = (try stage.sine(440, seconds: 0.5), try stage.sine(660, seconds: 0.5))
        func write(_ name: String, _ text: String) throws -> String {
            let path = stage.media.path + "/" + name
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            return "file://" + path
        }
        let inner = try write("inner.pls", "[playlist]\nFile1=\(b)\nTitle1=Inner\n")
        let outer = try write("outer.m3u", "#EXTM3U\n#EXTINF:1,Outer\n\(a.dropFirst(7))\n\(inner)\n")
        #expect(music.call("Load", [.string(outer)]) == nil)
        #expect(music.call("Play") == nil)
        #expect(eventually { music.signals.contains("Finished true") })
        #expect(try uris(music) == [a, b])
        #expect(try items(music).compactMap { $0["title"]?.stringValue } == ["Outer", "Inner"])
        #expect(stage.ear.trace(440, window: 0.02).contains { $0.level > loud })
        #expect(stage.ear.trace(660, window: 0.02).contains { $0.level > loud })
        let snake = try write("snake.m3u", "#EXTM3U\nsnake.m3u\n")
        #expect(music.call("Load", [.string(snake)]) == nil)
        #expect(music.comes(to: "failed"))
        #expect(music.call("Play") == "org.sessiond1.Error.CannotStartPlaying")
        #expect(music.signals.last?.contains("too deep") == true)
    }

    @Test func bytesAreLoaded_soundIsHeard() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        let path = String(try stage.sine(440, seconds: 2).dropFirst(7))
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        #expect(music.call("LoadData", [.array(of: "y", bytes.map(Value.byte))]) == nil)
        #expect(try music.get("Uri") == .string("data:"))
        #expect(music.call("Play") == nil)
        #expect(stage.ear.waitUntil(440, above: loud))
        #expect(music.call("LoadData", [.array(of: "y", [])]) == "org.sessiond1.Error.BadParameter")
        #expect(music.call("LoadData", [.array(of: "y", [.byte(1), .byte(2)])]) == nil)
        #expect(music.comes(to: "failed"))
    }

    @Test(arguments: Category.allCases) func prepareAndPlay_answerByCategory(category: PluginAPI.Category) throws {
        let stage = try PlayerStage()
        let uri = try stage.sine(440, seconds: 5)
        let player = try stage.player(["--category", category.rawValue])
        #expect(try player.answer("Prepare") == [.bool(false)], "no item is loaded")
        #expect((player.call("Load", [.string(uri)]) == nil) == category.playerMay.prepare)
        #expect(try player.answer("Prepare") == [.bool(category.playerMay.prepare)])
        #expect((player.call("Play") == nil) == category.playerMay.play)
        #expect((player.state == "playing") == category.playerMay.play)
        #expect(try player.get("CanPlay", mpris: true) == .bool(category.playerMay.play))
        if category.playerMay.prepare {
            #expect(try player.get("ItemStatus") == .string("ready"))
            #expect(
                try player.get("LoadedRanges").arrayValue == [.structure([.double(0), .double(5)])])
            player.call("Load", [.string("file:///nowhere.wav")])
            #expect(try player.answer("Prepare") == [.bool(false)])
        }
    }

    @Test func position_isReportedAtItsIntervalWhilePlaying() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        music.call("Load", [.string(try stage.sine(440, seconds: 60))])
        for wrong in [Double.nan, -1, 0.001, 1e9] {
            #expect(music.set("PositionInterval", .double(wrong)) == "org.sessiond1.Error.BadParameter")
        }
        #expect(music.set("PositionInterval", .double(0.1)) == nil)
        #expect(music.call("Play") == nil)
        #expect(eventually { music.positions.count > 5 })
        let places = music.positions
        #expect(zip(places, places.dropFirst()).allSatisfy { $0 < $1 })
        #expect(music.call("Pause") == nil)
        let count = music.positions.count
        _ = music.signals
        #expect(music.positions.count == count)
    }
}
