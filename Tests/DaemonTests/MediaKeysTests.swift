import DBus
import EventLoop
import SessionBus
import TestSupport
import Testing

/// `org.mpris.MediaPlayer2.sessiond`: one name that forwards to the player that media keys apply to.
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

    @Test func playerRuns_isReachedThroughTheName_whichExistsOnlyWithAPlayer() throws {
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
            // The daemon asks the player for properties that the player does not announce.
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

    /// Without a sound server, a player that says that it plays counts as heard.
    @Test func nowPlayingSession_isPreferredToOtherPlayersWhileItIsHeard() throws {
        let music = try ForeignPlayer("music", on: stage)
        let client = try stage.client()
        let session = try client.session("Music", more: [("pid", .uint32(music.processID))])
        client.activate(session)
        #expect(eventually { title() == "music 1" })
        let video = try ForeignPlayer("video", status: "Paused", on: stage)
        video.person("Playing")
        music.person("Paused")
        // When this value has changed, the daemon has handled the players' signals.
        #expect(eventually { (try? get("PlaybackStatus")) == .string("Paused") })
        #expect(title() == "music 1")
        #expect(eventually { title() == "video 1" })
        music.person("Playing")
        #expect(eventually { title() == "music 1" })
        client.call(session, "Close")
        withExtendedLifetime(video) {}
    }

    /// GNOME Shell shows a card for each player that can play, so the player in front would have two.
    @Test func gnomeShell_isToldThatTheNameCannotPlay_andNobodyElse() throws {
        let player = try ForeignPlayer("music", on: stage)
        #expect(eventually { isOwned() })
        let shell = try Connection(.custom(stage.bus.address), loop: stage.loop)
        func canPlay(_ asker: Connection) -> [Value?] {
            let all = try? asker.callAndWait(
                Self.name, Self.path, StandardName.properties, "GetAll", [.string(Self.player)])
            let one = try? asker.callAndWait(
                Self.name, Self.path, StandardName.properties, "Get", [.string(Self.player), .string("CanPlay")])
            return [all?.first?.asProperties?["CanPlay"], one?.first?.unwrapped]
        }
        #expect(canPlay(shell) == [.bool(true), .bool(true)])
        // It starts while the name exists.
        _ = try shell.requestName("org.gnome.Shell")
        #expect(eventually { canPlay(shell) == [.bool(false), .bool(false)] })
        #expect(canPlay(stage.observer) == [.bool(true), .bool(true)])
        var told: Set<String> = []
        let subscription = shell.subscribe(path: Self.path, sender: Self.name) { message in
            guard let values = try? message.arguments(), values.first == .string(Self.player) else { return }
            told.formUnion(values[1].asProperties.map { Array($0.keys) } ?? [])
        }
        _ = try get("PlaybackStatus")
        // All properties are announced, because another player comes to the front.
        let other = try ForeignPlayer("other", status: "Paused", on: stage)
        other.person("Playing")
        #expect(stage.loop.iterate(timeout: 5) { told.contains("Metadata") && told.contains("PlaybackStatus") })
        #expect(!told.contains("CanPlay"))
        // The keys reach it as before.
        try playerctl("pause")
        try playerctl("play")
        #expect(other.calls == ["Pause", "Play"])
        withExtendedLifetime((subscription, player)) {}
    }

    /// It was there before the name.
    @Test func gnomeShellBeforeThePlayer_isToldThatTheNameCannotPlay() throws {
        let shell = try Connection(.custom(stage.bus.address), loop: stage.loop)
        _ = try shell.requestName("org.gnome.Shell")
        let player = try ForeignPlayer("music", on: stage)
        #expect(eventually { isOwned() })
        let all = try shell.callAndWait(
            Self.name, Self.path, StandardName.properties, "GetAll", [.string(Self.player)])
        #expect(all.first?.asProperties?["CanPlay"] == .bool(false))
        withExtendedLifetime(player) {}
    }

    @Test func changes_areAnnouncedOnceUnderTheName() throws {
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
        // Another player is in front now: all properties are announced once.
        let two = try ForeignPlayer("two", status: "Paused", on: stage)
        two.person("Playing")
        #expect(stage.loop.iterate(timeout: 5) { told.count >= 4 })
        two.person("Stopped")
        two.process.kill()
        // The first player is in front again. The stop of the second one may have been announced before.
        #expect(stage.loop.iterate(timeout: 5) { told.count >= 5 && told.last == "Playing" })
        #expect(Array(told.prefix(4)) == ["Paused", "Seeked 6000000", "Playing", "Playing"])
        #expect(told.dropFirst(4) == ["Playing"] || told.dropFirst(4) == ["Stopped", "Playing"])
        withExtendedLifetime((subscription, one)) {}
    }

    @Test func nameOfSessiondPlayer_isNotTakenForTheMediaKeysName() throws {
        // playerctl takes a name with `.instance` for the name before it.
        let player = try ForeignPlayer("sessiond_player.instance7", on: stage)
        #expect(eventually { isOwned() })
        let listed = try Child.run("playerctl", ["-l"], environment: stage.bus.environment).split(separator: "\n")
        #expect(Set(listed) == ["sessiond", "sessiond_player.instance7"])
        try playerctl("pause")
        #expect(player.calls == ["Pause"])
    }

    @Test func stoppedPlayer_delaysNoOther() throws {
        let player = try ForeignPlayer("music", on: stage)
        #expect(eventually { isOwned() })
        player.process.suspend()
        let hanging = try Child("playerctl", ["-p", "sessiond", "pause"], environment: stage.bus.environment)
        let client = try stage.client()
        let path = try client.session("Other")
        #expect(client.activate(path) == nil)
        let other = try ForeignPlayer("other", on: stage)
        // The request waited for the stopped player. The player that is now in front has answered it.
        #expect(hanging.wait() == .code(0))
        #expect(other.calls == ["Pause"])
        player.process.resume()
        #expect(eventually { title() == "music 1" })
        #expect(player.calls.isEmpty)
    }

    @Test func mediaKeysOff_thereIsNoName() throws {
        let quiet = try DaemonStage(settings: "[mpris]\nmedia-keys = off\n")
        let player = try ForeignPlayer("music", on: quiet)
        let client = try quiet.client()
        let path = try client.session("Music", more: [("pid", .uint32(player.processID))])
        #expect(client.activate(path) == nil)
        #expect(!isOwned(quiet))
    }
}
