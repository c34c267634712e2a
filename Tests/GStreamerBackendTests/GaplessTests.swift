import Foundation
import GStreamerBackend
import PluginAPI
import TestSupport
import Testing

/// Plays one item after the other on the same stream.
@Suite(.serialized) struct GaplessTests {
    let folder: PrivateFolder
    let stage: Stage
    var player: GStreamerPlayer { stage.player }

    init() throws {
        folder = try PrivateFolder()
        stage = try Stage()
    }

    private func file(
        _ hertz: Double, _ seconds: Double, kind: String = "wav", encoder: String = "", rate: Int = 44_100
    )
        throws -> String
    {
        let wave = folder.path + "/\(hertz)-\(seconds)-\(rate).wav"
        try Media.wave(wave, [(hertz, seconds)], rate: rate)
        guard !encoder.isEmpty else { return Media.uri(wave) }
        let path = folder.path + "/\(hertz)-\(seconds).\(kind)"
        if FileManager.default.fileExists(atPath: path) { return Media.uri(path) }
        try Media.encode(wave, encoder, to: path)
        return Media.uri(path)
    }

    /// How much silence was within the sound, in seconds.
    private func silence(_ hertz: [Double], since: Double) -> Double {
        let traces = hertz.map { stage.ear.trace($0, window: 0.005, since: since) }
        let heard = traces[0].indices.map { place in
            traces.contains { $0.indices.contains(place) && $0[place].level > -20 }
        }
        guard let first = heard.firstIndex(of: true), let last = heard.lastIndex(of: true) else { return .infinity }
        return Double(heard[first...last].filter { !$0 }.count) * 0.005
    }

    /// The silence between the end of the first tone and the beginning of the second one, in seconds.
    private func gap(_ first: Double, _ second: Double, since: Double) -> Double {
        let last = stage.ear.trace(first, window: 0.005, since: since).lastIndex { $0.level > -20 }
        let next = stage.ear.trace(second, window: 0.005, since: since).firstIndex { $0.level > -20 }
        guard let last, let next else { return .infinity }
        return Double(next - last - 1) * 0.005
    }

    @Test(arguments: [
        ("wav", ""), ("flac", "flacenc"), ("ogg", "vorbisenc ! oggmux"), ("mp3", "ffmpeg libmp3lame"),
    ])
    func nextItem_isHeardWithoutAGap(kind: String, encoder: String) throws {
        // Whole periods, so that the wave continues without a jump.
        let first = try file(440, 1.5, kind: kind, encoder: encoder)
        let second = try file(880, 1.5, kind: kind, encoder: encoder)
        var gap = Double.infinity
        // On a busy machine, the server may run out of data between the two sometimes. A gap that the player makes
        // would occur each time.
        for _ in 0..<5 where gap > 0.006 {
            stage.finished = []
            var advances: [(uri: String?, position: Double, duration: Double?)] = []
            player.onAdvanced = { advances.append((player.uri, player.position, player.duration)) }
            let begin = monotonicNow()
            player.load(uri: first)
            player.following = second
            try player.play()
            #expect(stage.until { player.position > 1.2 })
            #expect(player.uri == first)
            #expect(stage.until { !advances.isEmpty })
            #expect(advances.first?.uri == second)
            #expect(abs((advances.first?.duration ?? 0) - 1.5) < 0.1)
            #expect(player.following == nil)
            #expect(stage.finished == [])
            #expect(stage.until { !stage.finished.isEmpty })
            stage.pass(0.3)
            #expect(advances.count == 1 && stage.finished == [true])
            gap = self.gap(440, 880, since: begin)
            // If the server ran out of data, the end of the first tone is still known.
            if gap <= 0.006 { #expect((advances.first?.position ?? 9) < 0.1) }
        }
        #expect(gap <= 0.006, "silent for \(gap) s")
    }

    @Test func nextItemOfAnotherFormat_isLeftToTheCaller() throws {
        var advances = 0
        player.onAdvanced = { advances += 1 }
        player.load(uri: try file(440, 0.6))
        player.following = try file(880, 0.6, rate: 48_000)
        try player.play()
        #expect(stage.until { !stage.finished.isEmpty })
        #expect(advances == 0 && stage.finished == [true])
        // The same applies to something that is not audio, not a file, or removed.
        for following in ["file:///nowhere.wav", "http://127.0.0.1:1/x", Media.uri(folder.path), "nonsense"] {
            stage.finished = []
            player.following = following
            try player.play()
            #expect(stage.until { !stage.finished.isEmpty }, "\(following)")
        }
        #expect(advances == 0 && stage.failures == [])
    }

    @Test func nextItemRemovedOrSeekAwayFromTheEnd_doesNotFollow() throws {
        var advances = 0
        player.onAdvanced = { advances += 1 }
        player.load(uri: try file(440, 2))
        player.following = try file(880, 1)
        try player.play()
        #expect(stage.until { player.position > 0.5 })
        player.following = nil
        #expect(stage.until { !stage.finished.isEmpty })
        #expect(advances == 0)
        // The next item is changed several times: the last one counts.
        stage.finished = []
        player.following = try file(880, 1)
        try player.play()
        #expect(stage.until { player.position > 0.3 })
        player.seek(to: 1.5)
        player.seek(to: 0.2)
        player.pause()
        player.following = try file(660, 1)
        try player.play()
        #expect(stage.hears(660, above: -10))
        #expect(stage.until { !stage.finished.isEmpty })
        #expect(advances == 1 && stage.finished == [true])
        #expect(stage.ear.trace(880, window: 0.02).allSatisfy { $0.level < -20 })
    }

    @Test func playerPausedOrStoppedBetweenTwoItems_resumesOrStartsAgain() throws {
        var advances = 0
        player.onAdvanced = { advances += 1 }
        let second = try file(880, 30)
        player.load(uri: try file(440, 1))
        player.following = second
        try player.play()
        // The next item flows already, but is not heard yet.
        #expect(stage.until { player.position > 0.9 })
        player.pause()
        let place = player.position
        stage.pass(0.3)
        #expect(player.position == place || player.uri == second)
        try player.play()
        #expect(stage.hears(880, above: -10))
        #expect(advances == 1 && player.uri == second)
        player.stop()
        #expect(player.position == 0 && player.uri == second)
        try player.play()
        #expect(stage.hears(880, above: -10))
        #expect(stage.finished == [])
    }

    @Test func rampDuringTheChangeOfItems_continues() throws {
        player.load(uri: try file(440, 1))
        player.following = try file(440, 30)
        try player.play()
        #expect(stage.until { player.position > 0.7 })
        player.duck(to: -20, over: 0.6)
        #expect(stage.until { player.uri?.contains("30") == true })
        #expect(stage.hears(440, above: -27, window: 0.1))
        #expect(stage.hears(440, below: -25, window: 0.1))
        player.duck(to: 0, over: 0.1)
        #expect(stage.hears(440, above: -7, window: 0.1))
    }

    /// An MP3 file is longer than its sound; a loop plays only the sound.
    @Test func mp3_beginsAndEndsWithItsSound() throws {
        var silent = Double.infinity
        // On a busy machine, the server may run out of data sometimes.
        for _ in 0..<5 where silent > 0.006 {
            stage.finished = []
            let begin = monotonicNow()
            player.loops = 2
            player.load(uri: try file(440, 1, kind: "mp3", encoder: "ffmpeg libmp3lame"))
            try player.play()
            #expect(stage.until { player.duration != nil })
            #expect(abs((player.duration ?? 0) - 1) < 0.001)
            #expect(stage.until { !stage.finished.isEmpty })
            stage.pass(0.3)
            #expect(stage.finished == [true])
            #expect(stage.isHeardToItsEnd(440))
            let trace = stage.ear.trace(440, window: 0.01, since: begin).filter { $0.level > -12 }
            silent = silence([440], since: begin)
            if silent <= 0.006 { #expect(abs(Double(trace.count) * 0.01 - 3) < 0.04, "\(trace.count)") }
        }
        #expect(silent <= 0.006, "silent for \(silent) s")
        // A position refers to the sound.
        player.loops = 0
        player.load(uri: try file(440, 1, kind: "mp3", encoder: "ffmpeg libmp3lame"))
        player.seek(to: 0.5)
        let begin = monotonicNow()
        stage.finished = []
        try player.play()
        #expect(stage.until { !stage.finished.isEmpty })
        #expect(stage.isHeardToItsEnd(440))
        let heard = stage.ear.trace(440, window: 0.01, since: begin).filter { $0.level > -12 }.count
        #expect(abs(Double(heard) * 0.01 - 0.5) < 0.05, "\(heard)")
    }
}
