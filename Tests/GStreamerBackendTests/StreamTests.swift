import EventLoop
import Foundation
import GStreamerBackend
import PluginAPI
import TestSupport
import Testing

/// Good and bad web servers (faults.md, E2).
@Suite(.serialized) struct StreamTests {
    let folder: PrivateFolder
    let stage: Stage
    let server: WebServer
    var player: GStreamerPlayer { stage.player }

    init() throws {
        folder = try PrivateFolder()
        stage = try Stage()
        server = try WebServer(folder: folder.path)
        try Media.wave(folder.path + "/tone.wav", [(440, 60)])
    }

    private func write(_ name: String, _ text: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder.path + "/" + name))
    }

    private func start(_ path: String) throws {
        player.load(uri: server.uri(path))
        try player.play()
    }

    @Test func fileFromTheNetwork_canSeekAndReportsItsLoadedParts() throws {
        try start("tone.wav")
        #expect(stage.hears(440, above: -8))
        #expect(abs((player.duration ?? 0) - 60) < 0.1)
        let loaded = try #require(player.loadedRanges.first)
        #expect(loaded.lowerBound <= player.position + 0.1 && loaded.upperBound > loaded.lowerBound)
        #expect(loaded.upperBound <= 60.1)
        player.seek(to: 50)
        #expect(stage.until { player.position > 50.1 })
        #expect(stage.hears(440, above: -8))
        #expect(stage.failures == [])
    }

    /// HLS looks like a playlist, but is a stream (RFC 8216).
    @Test func hls_isPlayedToItsEnd() throws {
        try Media.wave(folder.path + "/short.wav", [(440, 4)])
        try Child.run(
            "ffmpeg",
            ["-nostdin", "-v", "error", "-i", folder.path + "/short.wav", "-c:a", "aac", "-f", "hls", "-hls_time", "1"]
                + ["-hls_list_size", "0", folder.path + "/live.m3u8"])
        var lists = 0
        player.onPlaylist = { _ in lists += 1 }
        // If data arrives slowly, the player waits for more right after the beginning. This is a race, so try it four
        // times.
        let slow = Array(repeating: server.uri("drops/live.m3u8"), count: 4)
        for uri in [server.uri("live.m3u8"), Media.uri(folder.path + "/live.m3u8")] + slow {
            stage.finished = []
            let begin = monotonicNow()
            player.load(uri: uri)
            try player.play()
            #expect(stage.until(30) { !stage.finished.isEmpty || !stage.failures.isEmpty })
            #expect(stage.finished == [true] && stage.failures == [], "\(stage.failures)")
            #expect(stage.isHeardToItsEnd(440))
            let heard = stage.ear.trace(440, window: 0.01, since: begin).filter { $0.level > -12 }.count
            #expect(heard > 360 && heard < 420, "\(heard) of \(uri)")
        }
        #expect(lists == 0)
    }

    /// Tags that would not reach the parser of a local file (faults.md, E1).
    @Test(arguments: ["tags", "blocks"]) func tagsOf200MB_areRefused_andNeverInMemory(path: String) throws {
        let before = Media.peakMemory
        try start(path)
        #expect(stage.until(15) { !stage.failures.isEmpty })
        #expect(stage.failures.first?.contains("32 MB come before any sound") == true, "\(stage.failures)")
        #expect(Media.peakMemory - before < 64 << 20)
    }

    @Test func webServersThatRefuse_areReportedWithTheirReason() throws {
        for (path, reason) in [("404", "does not exist"), ("500", "Internal Server Error"), ("loop", "in a loop")] {
            stage.failures = []
            try start(path)
            #expect(stage.until(5) { !stage.failures.isEmpty }, "\(path)")
            #expect(stage.failures.first?.contains(reason) == true, "\(stage.failures)")
            #expect(player.state == .failed)
        }
    }

    /// All at once, because each takes some time.
    @Test func webServersThatStopSending_areReportedInTime_andPauseStillWorks() throws {
        let loop = stage.loop
        var failures: [String: (message: String, after: Double)] = [:]
        let begin = monotonicNow()
        let players = ["mute", "stall", "slow", "zeros", "cut"].map { path in
            let player = GStreamerPlayer(
                loop: loop, identity: StreamIdentity(clientName: path, server: stage.pulse.serverString))
            player.onFailed = { failures[path] = ($0, monotonicNow() - begin) }
            player.load(uri: server.uri(path))
            try? player.play()
            return player
        }
        stage.pass(1)
        // The calls must not block while the player waits for data.
        for player in players where player.state == .playing {
            let before = monotonicNow()
            player.pause()
            #expect(monotonicNow() - before < 0.2)
            try player.play()
        }
        #expect(stage.until(40) { failures.count == 5 }, "\(failures)")
        // 16 s after the last data; a stalled stream plays its two seconds first.
        for (path, limit) in [("mute", 17.0), ("slow", 17), ("zeros", 17), ("stall", 20), ("cut", 6)] {
            #expect(failures[path].map { $0.after < limit } == true, "\(path): \(failures)")
        }
        #expect(players.allSatisfy { $0.state == .failed })
    }

    @Test func radio_isHeardWithItsNameAndTitles() throws {
        try Media.wave(folder.path + "/short.wav", [(440, 4)])
        try Media.encode(
            folder.path + "/short.wav", "lamemp3enc target=bitrate cbr=true bitrate=128", to: folder.path + "/tone.mp3")
        try start("radio")
        #expect(stage.hears(440, above: -12))
        #expect(stage.until { stage.tags?.title == "First Song" }, "\(String(describing: stage.tags))")
        #expect(stage.tags?.organization == "Test Radio")
        #expect(stage.until(30) { stage.tags?.title == "Second Song" }, "\(String(describing: stage.tags))")
        #expect(player.duration == nil || player.duration ?? 0 > 0)
        player.pause()
        #expect(stage.hears(440, below: -60))
        try player.play()
        #expect(stage.hears(440, above: -12))
        #expect(stage.failures == [])
    }

    /// The station plays another tone from its tenth second on.
    @Test func liveRadio_continuesAtTheLiveEdge_afterAPause() throws {
        for (tone, name) in [(440.0, "tone"), (880, "high")] {
            try Media.wave(folder.path + "/short.wav", [(tone, 4)])
            try Media.encode(
                folder.path + "/short.wav", "lamemp3enc target=bitrate cbr=true bitrate=128",
                to: folder.path + "/\(name).mp3")
        }
        let begun = monotonicNow()
        try start("live")
        #expect(stage.hears(440, above: -12))
        #expect(player.duration == nil)
        player.pause()
        #expect(player.state == .paused && player.position > 0)
        #expect(stage.hears(440, below: -60))
        #expect(stage.until(30) { monotonicNow() - begun > 16 })
        let again = monotonicNow()
        try player.play()
        #expect(stage.hears(880, above: -12))
        #expect(stage.ear.trace(440, window: 0.02, since: again).allSatisfy { $0.level < -30 })
        // Stopped and played, and paused twice.
        player.pause()
        player.stop()
        #expect(player.state == .stopped && player.position == 0)
        try player.play()
        #expect(stage.hears(880, above: -12))
        #expect(player.isLive)
        // It is opened again: its position begins anew.
        #expect(stage.until { player.position > 1 })
        player.goToLive()
        #expect(stage.until { player.position < 0.5 })
        #expect(stage.hears(880, above: -12) && player.state == .playing && player.isLive)
        #expect(stage.failures == [])
    }

    @Test func playlists_giveTheirEntries() throws {
        var lists: [[PlaylistEntry]] = []
        player.onPlaylist = { lists.append($0) }
        func list(_ uri: String) throws -> [PlaylistEntry] {
            (lists, stage.failures) = ([], [])
            player.load(uri: uri)
            try player.play()
            #expect(stage.until { !lists.isEmpty || !stage.failures.isEmpty })
            return lists.first ?? []
        }
        let m3u =
            "\u{FEFF}#EXTM3U\r\n#EXTINF:60,A – B\r\ntone.wav\r\n\r\n# remark\r\nsub/ä b?.wav\n/x.wav\nhttp://h/a%20b\n"
        try write("list.m3u", m3u)
        let local = try list(Media.uri(folder.path + "/list.m3u"))
        let base = "file://" + folder.path
        #expect(
            local == [
                PlaylistEntry(uri: "\(base)/tone.wav", title: "A – B", duration: 60),
                PlaylistEntry(uri: "\(base)/sub/%C3%A4%20b%3F.wav"), PlaylistEntry(uri: "file:///x.wav"),
                PlaylistEntry(uri: "http://h/a%20b"),
            ])
        #expect(player.uri == nil && player.state == .stopped)
        // An entry from the network must not name a file of this machine.
        try write("list.m3u", m3u + "file:///etc/passwd\n")
        #expect(
            try list(server.uri("list.m3u")).map(\.uri) == [
                server.uri("tone.wav"), server.uri("sub/%C3%A4%20b?.wav"), server.uri("x.wav"), "http://h/a%20b",
            ])
        // A playlist whose name does not show it.
        try write("listen", "[Playlist]\nNumberOfEntries=2\nFile2=b.wav\nFile1 = tone.wav\nTitle1=One\nLength1=-1\n")
        #expect(
            try list(server.uri("listen")) == [
                PlaylistEntry(uri: server.uri("tone.wav"), title: "One"), PlaylistEntry(uri: server.uri("b.wav")),
            ])
        try write("empty.m3u", "#EXTM3U\n")
        #expect(try list(Media.uri(folder.path + "/empty.m3u")).isEmpty)
        #expect(stage.failures.first?.contains("without any item to play") == true)
        // The largest playlist that is allowed.
        try write("large.m3u", "#EXTM3U\n" + String(repeating: "tone.wav\n", count: 1_000_000))
        #expect(try list(Media.uri(folder.path + "/large.m3u")).count == 10_000)
        #expect(try list(server.uri("large.m3u")).count == 10_000)
        try write("binary.m3u", String(repeating: "\0\u{1}", count: 1_000))
        #expect(try list(server.uri("binary.m3u")).isEmpty)
        #expect(stage.failures.count == 1)
    }
}
