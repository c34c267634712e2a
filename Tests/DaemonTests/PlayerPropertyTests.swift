import DBus
import Foundation
import SessionBus
import TestSupport
import Testing

@Suite(.serialized) struct PlayerPropertyTests {
    @Test func mprisProperties_describeThePlayingItem() throws {
        let stage = try PlayerStage()
        let music = try stage.player(["--name", "music"])
        #expect(try music.get("CanPlay", mpris: true) == .bool(false))
        let uri = try stage.sine(440, seconds: 30)
        #expect(music.call("OpenUri", [.string(uri)], mpris: true) == nil)
        #expect(eventually { (try? music.get("CanSeek", mpris: true)) == .bool(true) })
        #expect(try music.get("PlaybackStatus", mpris: true) == .string("Playing"))
        #expect(try music.get("CanPlay", mpris: true) == .bool(true))
        #expect(try music.get("CanGoNext", mpris: true) == .bool(false))
        let metadata = try #require(try music.get("Metadata", mpris: true).asProperties)
        #expect(metadata["mpris:length"] == .int64(30_000_000))
        #expect(metadata["xesam:url"] == .string(uri))
        #expect(metadata["xesam:title"] == .string("440-30.0.wav"))
        #expect(try music.get("Duration") == .double(30))
        #expect(try music.get("Channels") == .uint32(1))
        #expect(music.changes(of: "Duration").last == .double(30))
        #expect(music.changes(of: "Channels").last == .uint32(1))
        #expect(music.changes(of: "Uri") == [.string(uri)])

        let before = monotonicNow()
        let time = try music.get("DeviceTime").doubleValue ?? 0
        #expect(before - 1e-3 <= time && time <= monotonicNow())

        #expect(music.call("PlayPause", mpris: true) == nil)
        #expect(try music.get("PlaybackStatus", mpris: true) == .string("Paused"))
        #expect(music.call("PlayPause", mpris: true) == nil)
        #expect(try music.get("PlaybackStatus", mpris: true) == .string("Playing"))
        #expect(
            music.changes(of: "PlaybackStatus") == [.string("Playing"), .string("Paused"), .string("Playing")])

        let track = try #require(metadata["mpris:trackid"])
        #expect(music.call("SetPosition", [track, .int64(20_000_000)], mpris: true) == nil)
        #expect(eventually { music.position >= 20 && music.position < 25 })
        #expect(music.call("SetPosition", [.objectPath("/other"), .int64(1)], mpris: true) == nil)
        #expect(music.call("Seek", [.int64(-10_000_000)], mpris: true) == nil)
        #expect(eventually { music.position >= 10 && music.position < 15 })
        #expect(music.call("Seek", [.int64(.min)], mpris: true) == nil)
        #expect(eventually { music.position < 5 })

        #expect(music.set("Volume", .double(7), mpris: true) == nil)
        #expect(music.set("Volume", .double(-1), mpris: true) == nil)
        #expect(try music.get("Volume") == .double(0))
        #expect(music.set("LoopStatus", .string("Track"), mpris: true) == nil)
        #expect(try music.get("Loops") == .int32(-1))
        #expect(music.changes(of: "LoopStatus") == [.string("Track")])
        #expect(music.changes(of: "Loops") == [.int32(-1)])
        #expect(music.set("LoopStatus", .string("Never"), mpris: true) == "org.sessiond1.Error.BadParameter")
        #expect(music.call("Stop", mpris: true) == nil)
        #expect(try music.get("PlaybackStatus", mpris: true) == .string("Stopped"))
        #expect(try stage.sessionState(of: music) == "inactive")
    }

    @Test func valueOutsideItsRange_isRefusedAndChangesNothing() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        let bad = "org.sessiond1.Error.BadParameter"
        for value in [Double.nan, .infinity, -.infinity, -0.1, 1.1, 1e300] {
            #expect(music.set("Volume", .double(value)) == bad)
        }
        for value in [Double.nan, 0, 0.4, 2.1, -1] { #expect(music.set("Rate", .double(value)) == bad) }
        for value in [Double.nan, -1.1, 1.1] { #expect(music.set("Pan", .double(value)) == bad) }
        for value in [Double.nan, .infinity, -1] {
            #expect(music.call("SeekTo", [.double(value)]) == bad)
            #expect(music.call("PlayAt", [.double(value)]) == bad)
        }
        #expect(music.call("Load", [.string("file:///" + String(repeating: "x", count: 1_000_000))]) == bad)
        #expect(music.set("Volume", .string("loud")) == "org.freedesktop.DBus.Error.InvalidArgs")
        #expect(music.set("State", .string("playing")) == "org.freedesktop.DBus.Error.PropertyReadOnly")
        #expect(try music.get("Volume") == .double(1))
        #expect(try music.get("Rate") == .double(1))
        for loops in [Int32.min, -1, 0, .max] {
            #expect(music.set("Loops", .int32(loops)) == nil)
            #expect(try music.get("Loops") == .int32(loops))
        }
        #expect(music.set("Pan", .double(-1)) == nil)
        #expect(music.changes(of: "Pan") == [.double(-1)])
    }

    @Test(arguments: ServerKind.allCases) func playAt_startsNotBeforeThatTime(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        // What the server renders is recorded at once, and played after the length of a piece.
        let ear = try Ear(stage.pulse, sink: "speaker", fragment: 0.002)
        let music = try stage.player()
        music.call("Load", [.string(try stage.sine(440, seconds: 60))])
        let start = monotonicNow() + 1
        #expect(music.call("PlayAt", [.double(start)]) == nil)
        #expect(try stage.sessionState(of: music) == "active")
        #expect(ear.waitUntil(440, above: -25, window: 0.1))
        let first = ear.trace(440, window: 0.01).first { $0.level > -25 }
        #expect(try #require(first).time >= start)
    }

    /// The delay does not depend on how long the item was loaded, or the player silent, before.
    @Test(arguments: ServerKind.allCases) func playAfterAWait_isHeardAtOnce(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try stage.player()
        music.call("Load", [.string(try stage.sine(440, seconds: 60))])
        func heard(after begin: Double) throws -> Double {
            #expect(stage.ear.waitUntil(440, above: -25, window: 0.1))
            let first = stage.ear.trace(440, window: 0.01, since: begin).first { $0.level > -40 }
            return try #require(first).time - begin
        }
        eventually(timeout: 2) { false }
        var begin = monotonicNow()
        #expect(music.call("Play") == nil)
        #expect(try heard(after: begin) < 1)
        music.call("Stop")
        #expect(stage.ear.waitUntil(440, below: -60, window: 0.1))
        begin = monotonicNow() + 1
        #expect(music.call("PlayAt", [.double(begin)]) == nil)
        #expect(try heard(after: begin) < 0.7)
    }

    @Test(arguments: ServerKind.allCases)
    func silentSwitchOnBeforeThePlayerStarts_playerIsMuted(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        try stage.daemon.manager("SetSilentMode", [.bool(true)])
        let music = try stage.player(["--category", "solo-ambient"])
        music.call("Load", [.string(try stage.sine(440, seconds: 60))])
        #expect(music.call("Play") == nil)
        #expect(eventually { music.position > 0.3 })
        #expect(stage.ear.trace(440, window: 0.02).allSatisfy { $0.level < -60 })
        try stage.daemon.manager("SetSilentMode", [.bool(false)])
        #expect(stage.ear.waitUntil(440, above: -25))
    }
}
