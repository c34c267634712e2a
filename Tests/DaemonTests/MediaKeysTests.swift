import DBus
import EventLoop
import SessionBus
import TestSupport
import Testing

/// `org.mpris.MediaPlayer2.sessiond`: one name, behind it whoever is in front.
@Suite struct MediaKeysTests {
    private static let name = "org.mpris.MediaPlayer2.sessiond"
    private static let path = "/org/mpris/MediaPlayer2"
    private static let player = "org.mpris.MediaPlayer2.Player"

    let stage: DaemonStage
    init() throws { stage = try DaemonStage() }

    private func isOwned(_ stage: DaemonStage? = nil) -> Bool {
        let answer = try? (stage ?? self.stage).observer.callAndWait(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameHasOwner",
            [.string(Self.name)])
        return answer?.first?.boolValue == true
    }

    @discardableResult
    private func playerctl(_ words: String...) throws -> String {
        try Child.run("playerctl", ["-p", "sessiond"] + words, environment: stage.bus.environment)
    }

    private func title() -> String { (try? playerctl("metadata", "xesam:title")) ?? "" }

    private func get(_ property: String) throws -> Value? {
        try stage.observer.callAndWait(
            Self.name, Self.path, StandardName.properties, "Get", [.string(Self.player), .string(property)]
        ).first?.unwrapped
    }

    @Test func aPlayer_isReachedThroughTheNameAndNoPlayerHasNone() throws {
        #expect(!isOwned())
        do {
            let player = try ForeignPlayer("music", on: stage)
            #expect(eventually { isOwned() })
            #expect(try playerctl("status") == "Playing")
            #expect(try playerctl("metadata", "xesam:title") == "music 1")
            try playerctl("pause")
            #expect(try playerctl("status") == "Paused")
            try playerctl("play-pause")
            try playerctl("next")
            #expect(try playerctl("metadata", "xesam:title") == "music 2")
            #expect(player.calls == ["Pause", "PlayPause", "Next"])
            // What is not told of is asked of the player itself.
            #expect(try get("Position") == .int64(5_000_000))
            try playerctl("position", "3+")
            #expect(try get("Position") == .int64(8_000_000))
            try playerctl("volume", "0.5")
            #expect(player.calls.last == "Set Volume 0.5")
        }
        #expect(eventually { !isOwned() })
    }

    @Test func severalPlayers_theLatestToPlayIsReached() throws {
        let one = try ForeignPlayer("one", on: stage)
        let two = try ForeignPlayer("two", status: "Stopped", on: stage)
        #expect(eventually { title() == "one 1" })
        two.person("Playing")
        #expect(eventually { title() == "two 1" })
        two.person("Paused")
        #expect(eventually { title() == "one 1" })
        try playerctl("pause")
        #expect(one.calls == ["Pause"] && two.calls.isEmpty)
        two.process.kill()
        one.process.kill()
        #expect(eventually { !isOwned() })
    }

    @Test func theNowPlayingSession_isInFrontOfWhoeverPlays() throws {
        let music = try ForeignPlayer("music", on: stage)
        let client = try stage.client()
        let session = try client.session("Music", more: [("pid", .uint32(music.processID))])
        client.activate(session)
        #expect(eventually { title() == "music 1" })
        let video = try ForeignPlayer("video", on: stage)
        music.person("Paused")
        // The name's own answer comes after what it heard before.
        #expect(eventually { (try? get("PlaybackStatus")) == .string("Paused") })
        #expect(title() == "music 1")
        client.call(session, "Close")
        #expect(eventually { title() == "video 1" })
        withExtendedLifetime(video) {}
    }

    @Test func whatChanges_isToldUnderTheNameAndNotTwice() throws {
        let one = try ForeignPlayer("one", on: stage)
        #expect(eventually { isOwned() })
        var told: [String] = []
        let subscription = stage.observer.subscribe(path: Self.path, sender: Self.name) { message in
            guard let values = try? message.arguments() else { return }
            switch message.member {
            case "PropertiesChanged":
                guard values[0] == .string(Self.player), let status = values[1].asProperties?["PlaybackStatus"] else {
                    return
                }
                told.append(status.stringValue ?? "")
            default: told.append("\(message.member ?? "") \(values.first?.int64Value ?? 0)")
            }
        }
        _ = try get("PlaybackStatus")
        one.person("Paused")
        try playerctl("position", "1+")
        one.person("Playing")
        #expect(stage.loop.iterate(timeout: 5) { told.count >= 3 })
        // Another one in front: everything is told anew, once.
        let two = try ForeignPlayer("two", status: "Paused", on: stage)
        two.person("Playing")
        #expect(stage.loop.iterate(timeout: 5) { told.count >= 4 })
        two.person("Stopped")
        two.process.kill()
        // And the one before; the stop of the other may have been told first.
        #expect(stage.loop.iterate(timeout: 5) { told.count >= 5 && told.last == "Playing" })
        #expect(Array(told.prefix(4)) == ["Paused", "Seeked 6000000", "Playing", "Playing"])
        #expect(told.dropFirst(4) == ["Playing"] || told.dropFirst(4) == ["Stopped", "Playing"])
        withExtendedLifetime((subscription, one)) {}
    }

    @Test func ourOwnPlayersName_isNotTakenForTheNameOfWhoeverIsInFront() throws {
        // playerctl takes instances of a name for the name.
        let player = try ForeignPlayer("sessiond_player.instance7", on: stage)
        #expect(eventually { isOwned() })
        let listed = try Child.run("playerctl", ["-l"], environment: stage.bus.environment).split(separator: "\n")
        #expect(Set(listed) == ["sessiond", "sessiond_player.instance7"])
        try playerctl("pause")
        #expect(player.calls == ["Pause"])
    }

    @Test func aStoppedPlayer_delaysNobody() throws {
        let player = try ForeignPlayer("music", on: stage)
        #expect(eventually { isOwned() })
        player.process.suspend()
        let hanging = try Child("playerctl", ["-p", "sessiond", "pause"], environment: stage.bus.environment)
        let client = try stage.client()
        let path = try client.session("Other")
        #expect(client.activate(path) == nil)
        let other = try ForeignPlayer("other", on: stage)
        // What it asked of the one that stands still, the one in front now has answered.
        #expect(hanging.wait() == .code(0))
        #expect(other.calls == ["Pause"])
        player.process.resume()
        #expect(eventually { title() == "music 1" })
        #expect(player.calls.isEmpty)
    }

    @Test func switchedOff_thereIsNoName() throws {
        let quiet = try DaemonStage(settings: "[mpris]\nmedia-keys = off\n")
        let player = try ForeignPlayer("music", on: quiet)
        let client = try quiet.client()
        let path = try client.session("Music", more: [("pid", .uint32(player.processID))])
        #expect(client.activate(path) == nil)
        #expect(!isOwned(quiet))
    }
}
