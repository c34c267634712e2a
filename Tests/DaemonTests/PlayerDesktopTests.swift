import DBus
import Foundation
import SessionBus
import TestSupport
import Testing

/// The player as desktops and `playerctl` see it: MPRIS 2.2.
@Suite(.serialized) struct PlayerDesktopTests {
    private static let path = "/org/mpris/MediaPlayer2"
    private static let trackList = "org.mpris.MediaPlayer2.TrackList"

    @Test func playerctl_controlsThePlayer() throws {
        let stage = try PlayerStage()
        let music = try stage.player(["--name", "music"])
        let uris = [try stage.sine(440, seconds: 60), try stage.sine(660, seconds: 60)]
        func playerctl(_ arguments: String...) throws -> String {
            try Child.run(
                "playerctl", ["-p", "sessiond_player"] + arguments, environment: stage.daemon.bus.environment)
        }
        #expect(music.call("LoadList", [.strings(uris), .uint32(0)]) == nil)
        #expect(try playerctl("status") == "Stopped")
        _ = try playerctl("play")
        #expect(stage.ear.waitUntil(440, above: -25))
        #expect(try playerctl("status") == "Playing")
        #expect(try playerctl("metadata", "xesam:url") == uris[0])
        #expect(try playerctl("metadata", "mpris:length") == "60000000")
        _ = try playerctl("next")
        #expect(stage.ear.waitUntil(660, above: -25))
        #expect(try playerctl("metadata", "title") == "660-60.0.wav")
        _ = try playerctl("position", "20")
        #expect(eventually { music.position > 20 && music.position < 40 })
        _ = try playerctl("position", "5-")
        #expect(eventually { music.position > 15 && music.position < 20 })
        _ = try playerctl("volume", "0.25")
        #expect(try playerctl("volume") == "0.250000")
        _ = try playerctl("loop", "Playlist")
        #expect(try playerctl("loop") == "Playlist")
        #expect(try music.get("RepeatMode") == .string("all"))
        _ = try playerctl("loop", "Track")
        #expect(try music.get("RepeatMode") == .string("one"))
        _ = try playerctl("loop", "None")
        _ = try playerctl("shuffle", "On")
        #expect(try playerctl("shuffle") == "On")
        _ = try playerctl("shuffle", "Off")
        _ = try playerctl("previous")
        #expect(stage.ear.waitUntil(440, above: -40))
        _ = try playerctl("pause")
        #expect(try playerctl("status") == "Paused")
        _ = try playerctl("play-pause")
        #expect(try playerctl("status") == "Playing")
        _ = try playerctl("open", uris[1])
        #expect(stage.ear.waitUntil(660, above: -40))
        _ = try playerctl("stop")
        #expect(try playerctl("status") == "Stopped")
    }

    @Test func tagsAndCover_areInTheMetadata_andTheCoverIsAFile() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        let wave = String(try stage.sine(440, seconds: 3).dropFirst(7))
        let tagged = stage.media.path + "/tagged.mp3"
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-loglevel", "error", "-i", wave, "-f", "lavfi", "-t", "0.04", "-i", "color=red:s=32x32",
                "-map", "0",
                "-map", "1", "-c:v", "png", "-disposition:v", "attached_pic", "-id3v2_version", "3",
                "-metadata", "title=A Title", "-metadata", "artist=An Artist", "-metadata", "album=An Album",
                "-metadata", "genre=Noise", "-metadata", "track=7", "-metadata", "composer=A Composer",
                "-metadata", "disc=2", "-metadata", "date=1999", tagged,
            ])
        #expect(music.call("Load", [.string("file://" + tagged)]) == nil)
        #expect(try music.answer("Prepare") == [.bool(true)])
        let metadata = try #require(try music.get("Metadata", mpris: true).asProperties)
        #expect(metadata["xesam:title"] == .string("A Title"))
        #expect(metadata["xesam:artist"] == .strings(["An Artist"]))
        #expect(metadata["xesam:album"] == .string("An Album"))
        #expect(metadata["xesam:genre"] == .strings(["Noise"]))
        #expect(metadata["xesam:trackNumber"] == .int32(7))
        #expect(metadata["xesam:composer"] == .strings(["A Composer"]))
        #expect(metadata["xesam:discNumber"] == .int32(2))
        #expect(metadata["xesam:contentCreated"]?.stringValue?.hasPrefix("1999") == true)
        let cover = try #require(metadata["mpris:artUrl"]?.stringValue)
        let bytes = try Data(contentsOf: try #require(URL(string: cover)))
        #expect(bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]))
        // The next item has no cover. The list keeps the title of the first item.
        let id = try #require(try music.get("CurrentItem").objectPathValue)
        #expect(music.call("Append", [.strings(["file://" + wave])]) == nil)
        #expect(music.call("Next") == nil)
        #expect(try music.get("Metadata", mpris: true).asProperties?["mpris:artUrl"] == nil)
        let told = try trackMetadata(music, [id])
        #expect(told.first?["xesam:title"] == .string("A Title"))
    }

    @Test func trackList_isReadEditedAndAnnounced() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        let (a, b) = (try stage.sine(440, seconds: 60), try stage.sine(660, seconds: 60))
        let none = Value.objectPath("/org/mpris/MediaPlayer2/TrackList/NoTrack")
        #expect(try root(music, "HasTrackList") == .bool(true))
        #expect(try root(music, "Identity") == .string("sessiond-player"))
        #expect(try root(music, "DesktopEntry") == .string("sessiond-player"))
        try edit(music, "AddTrack", [.string(a), none, .bool(true)])
        let first = try #require(try tracks(music).first)
        try edit(music, "AddTrack", [.string(b), .objectPath(first), .bool(false)])
        try edit(music, "AddTrack", [.string(b), none, .bool(false)])
        #expect(try tracks(music).count == 3 && tracks(music)[1] == first)
        #expect(try music.get("CurrentItem") == .objectPath(first))
        #expect(
            try trackMetadata(music, tracks(music)).map { $0["xesam:url"] } == [.string(b), .string(a), .string(b)])
        #expect(music.call("Play", mpris: true) == nil)
        #expect(stage.ear.waitUntil(440, above: -25))
        try edit(music, "GoTo", [.objectPath(try tracks(music)[2])])
        #expect(stage.ear.waitUntil(660, above: -25))
        try edit(music, "RemoveTrack", [.objectPath(first)])
        try edit(music, "RemoveTrack", [.objectPath("/nothing")])
        #expect(try tracks(music).count == 2)
        let told = music.trackListSignals
        #expect(
            told.filter { $0 != "TrackMetadataChanged" } == [
                "TrackListReplaced", "TrackAdded", "TrackAdded", "TrackRemoved",
            ])
        // Each change is announced without the new value of the list.
        #expect(music.invalidated == ["Tracks", "Tracks", "Tracks", "Tracks"])
        #expect(music.changes(of: "Tracks") == [])
    }

    @Test func seekBeyondTheEnd_continuesWithTheNextItem() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        let uris = [try stage.sine(440, seconds: 30), try stage.sine(660, seconds: 30)]
        #expect(music.call("LoadList", [.strings(uris), .uint32(0)]) == nil)
        #expect(music.call("Play") == nil)
        #expect(stage.ear.waitUntil(440, above: -25))
        // A position of another item, or beyond the end, is ignored.
        #expect(music.call("SetPosition", [.objectPath("/nothing"), .int64(20_000_000)], mpris: true) == nil)
        let track = try music.get("CurrentItem")
        #expect(music.call("SetPosition", [track, .int64(31_000_000)], mpris: true) == nil)
        #expect(music.position < 20)
        #expect(music.call("SetPosition", [track, .int64(20_000_000)], mpris: true) == nil)
        #expect(eventually { music.position > 20 })
        #expect(music.call("Seek", [.int64(20_000_000)], mpris: true) == nil)
        #expect(stage.ear.waitUntil(660, above: -25))
        #expect(try music.get("Uri") == .string(uris[1]))
        #expect(music.call("Seek", [.int64(-60_000_000)], mpris: true) == nil)
        #expect(try music.get("Uri") == .string(uris[1]))
        // There is no next item after the last one, so it ends.
        #expect(music.call("Seek", [.int64(60_000_000)], mpris: true) == nil)
        #expect(eventually { music.signals.contains("Finished true") })
    }

    private func ask(_ player: PluginProgram, _ interface: String, _ member: String, _ arguments: [Value]) throws
        -> [Value]
    {
        try player.ask(Self.path, interface, member, arguments)
    }

    private func root(_ player: PluginProgram, _ name: String) throws -> Value? {
        try ask(
            player, StandardName.properties, "Get", [.string("org.mpris.MediaPlayer2"), .string(name)]
        ).first?.unwrapped
    }

    private func edit(_ player: PluginProgram, _ member: String, _ arguments: [Value]) throws {
        _ = try ask(player, Self.trackList, member, arguments)
    }

    private func tracks(_ player: PluginProgram) throws -> [String] {
        try ask(player, StandardName.properties, "Get", [.string(Self.trackList), .string("Tracks")])
            .first?.unwrapped.objectPathsValue ?? []
    }

    private func trackMetadata(_ player: PluginProgram, _ ids: [String]) throws -> [[String: Value]] {
        (try ask(player, Self.trackList, "GetTracksMetadata", [.objectPaths(ids)]).first?.arrayValue ?? [])
            .compactMap(\.asProperties)
    }
}
