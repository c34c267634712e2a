import DBus
import EventLoop
import Foundation
import PluginAPI
import PluginKit
import PluginKitTesting
import SessionBus
import TestSupport
import Testing

/// What the real player plays of the library: counts, and the place of an audiobook.
@Suite(.serialized) struct LibraryPlayerTests {
    private final class Stage {
        let sound: PlayerStage
        let library: Child
        let music: String
        private var place = ""

        init() throws {
            sound = try PlayerStage()
            music = try sound.media.folder("songs")
            let home = ["HOME": sound.media.path, "XDG_DATA_HOME": sound.media.path + "/data", "PATH": "/usr/bin:/bin"]
            library = try Child(
                try builtProduct(named: "sessiond-library"), [],
                environment: sound.daemon.bus.environment.merging(home) { $1 })
            try Child.run("ffmpeg", Self.silence(11 * 60, music + "/book.m4b", "libmp3lame"))
            try Child.run("ffmpeg", Self.silence(2, music + "/song.flac", "flac"))
            place = "\(PluginKind.library.busName).instance\(library.processID)"
            guard eventually(timeout: 30, { (try? call("AddFolder", [.string(music), .properties([])])) != nil }) else {
                throw SupportError("sessiond-library does not serve: \(library.errors)")
            }
            _ = eventually(timeout: 60) { (try? rows().count) == 2 }
        }

        /// To encode as long a sine takes several seconds of a processor.
        static func silence(_ seconds: Int, _ path: String, _ codec: String) -> [String] {
            [
                "-nostdin", "-v", "error", "-f", "lavfi", "-i", "anullsrc=d=\(seconds):r=8000:cl=mono", "-c:a",
                codec == "flac" ? "flac" : "aac", "-f", codec == "flac" ? "flac" : "mp4", path,
            ]
        }

        func call(_ member: String, _ arguments: [Value]) throws(Failure) -> [Value] {
            try sound.daemon.observer.callAndWait(
                place, PluginKind.library.objectPath, PluginKind.library.interface, member, arguments, timeout: 30)
        }

        func rows() throws -> [[String: Value]] {
            try call(
                "Items",
                [
                    .properties([]), .uint32(0), .uint32(9),
                    .strings(["title", "play-count", "skip-count", "bookmark", "last-played", "media-type"]),
                ])[1].arrayValue?.compactMap(\.asProperties) ?? []
        }

        func row(_ title: String) -> [String: Value] {
            ((try? rows()) ?? []).first { $0["title"] == .string(title) } ?? [:]
        }
    }

    @Test func playedItem_isCountedAndItsBookmarkSaved() throws {
        let stage = try Stage()
        #expect(stage.row("book")["media-type"] == .string("audiobook"))
        let player = try stage.sound.player()
        #expect(player.call("Load", [.string("file://\(stage.music)/song.flac")]) == nil)
        #expect(player.call("Play") == nil)
        #expect(eventually(timeout: 30) { stage.row("song")["play-count"] == .uint32(1) })
        #expect((stage.row("song")["last-played"]?.uint64Value ?? 0) > 1_700_000_000)
        #expect(player.call("Load", [.string("file://\(stage.music)/book.m4b")]) == nil)
        #expect(player.call("Play") == nil)
        #expect(eventually(timeout: 30) { (try? player.get("ItemStatus")) == .string("ready") })
        #expect(player.call("SeekTo", [.double(300)]) == nil)
        #expect(eventually(timeout: 30) { player.position > 300.2 })
        #expect(player.call("Pause") == nil)
        #expect(eventually(timeout: 30) { (stage.row("book")["bookmark"]?.doubleValue ?? 0) > 300 })
        let kept = stage.row("book")["bookmark"]
        // A stopped player is at the beginning, but the place stays.
        #expect(player.call("Stop") == nil)
        player.child.signal(SIGTERM)
        #expect(player.child.wait() == .code(0))
        #expect(stage.row("book")["bookmark"] == kept)
        #expect(stage.row("book")["play-count"] == .uint32(0))
        // A song that is left at once was skipped.
        let other = try stage.sound.player()
        #expect(other.call("Load", [.string("file://\(stage.music)/song.flac")]) == nil)
        #expect(other.call("Play") == nil)
        #expect(eventually(timeout: 30) { other.position > 0.1 })
        #expect(other.call("Load", [.string("file://\(stage.music)/book.m4b")]) == nil)
        #expect(eventually(timeout: 30) { stage.row("song")["skip-count"] == .uint32(1) })
        #expect(stage.row("song")["play-count"] == .uint32(1))
    }

    /// A player without sound at a path of its own.
    private final class Player {
        let engine = FakePlayer()
        let plugin: PlayerPlugin

        init(_ name: String, at path: String?, on bus: PrivateBus, _ loop: EventLoop) throws {
            let connection = try Connection(.custom(bus.address), loop: loop)
            let description = AudioSessionClient.Description(
                name: name, category: .playback, options: [.mixWithOthers])
            plugin = PlayerPlugin(engine, description, at: path, on: connection, loop)
            plugin.serve()
            guard try connection.requestName("org.mpris.MediaPlayer2.\(name)") == .owner else {
                throw SupportError("the name is taken")
            }
        }

        func play(_ path: String) throws {
            try plugin.load(uri: "file://" + path)
            plugin.play { _ in }
        }
    }

    @Test func twoPlayersInOneProcess_areBothCountedAndTheirBookmarksSaved() throws {
        let stage = try Stage()
        let loop = EventLoop()
        func comes(_ condition: () -> Bool) -> Bool {
            eventually(timeout: 30) {
                loop.iterate(timeout: 0.05) { false }
                return condition()
            }
        }
        let bus = stage.sound.daemon.bus
        let first = try Player("first", at: nil, on: bus, loop)
        let second = try Player("second", at: "/org/example/second", on: bus, loop)
        try first.play(stage.music + "/song.flac")
        try second.play(stage.music + "/book.m4b")
        #expect(comes { first.engine.state == .playing && second.engine.state == .playing })
        second.engine.position = 400
        second.plugin.pause()
        #expect(comes { stage.row("book")["bookmark"] == .double(400) })
        // And the other way round. A song that is left at once was skipped.
        try first.play(stage.music + "/book.m4b")
        #expect(comes { stage.row("song")["skip-count"] == .uint32(1) })
        try second.play(stage.music + "/song.flac")
        #expect(comes { first.engine.state == .playing && second.engine.state == .playing })
        first.engine.position = 500
        first.plugin.pause()
        #expect(comes { stage.row("book")["bookmark"] == .double(500) })
        // It counts when it was heard for its two seconds.
        let end = MonotonicClock.seconds + 2.5
        #expect(comes { MonotonicClock.seconds > end })
        second.engine.finish()
        #expect(comes { stage.row("song")["play-count"] == .uint32(1) })
        #expect(stage.row("song")["skip-count"] == .uint32(1) && stage.row("book")["play-count"] == .uint32(0))
    }

    @Test func libraryStartsWhileAPlayerAtAnotherPathPlays_savesItsBookmark() throws {
        let stage = try LibraryStage { stage in
            try Child.run("ffmpeg", Stage.silence(11 * 60, stage.music + "/book.m4b", "libmp3lame"))
        }
        let daemon = try FakeDaemon(on: .custom(stage.bus.address))
        let player = try Player("other", at: "/org/example/other", on: stage.bus, daemon.loop)
        try player.play(stage.music + "/book.m4b")
        #expect(daemon.comes { player.engine.state == .playing })
        try stage.restart()
        player.engine.position = 300
        // The library asks the player while the loop runs; then it hears of the pause.
        daemon.pass(1)
        player.plugin.pause()
        #expect(
            eventually(timeout: 30) {
                daemon.pass(0.05)
                return (try? stage.items([], ["bookmark"]).first?["bookmark"]) == .double(300)
            })
    }
}
