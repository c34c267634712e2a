import Foundation
import GStreamerBackend
import PluginAPI
import TestSupport
import Testing

/// Items of the web whose bytes are read elsewhere (`MediaLocator`).
@Suite(.serialized) struct LocatorTests {
    /// Answers when the test says so.
    private final class Locator: MediaLocator {
        var asked: [(uri: String, answer: (String) -> Void)] = []
        var lost: [(place: String, hasPlayed: Bool, answer: (String?) -> Void)] = []
        var kept: Set<String> = []

        func locate(_ uri: String, _ answer: @escaping (String) -> Void) { asked.append((uri, answer)) }

        func relocate(
            _ uri: String, from place: String, hasPlayed: Bool, because reason: String,
            _ answer: @escaping (String?) -> Void
        ) { lost.append((place, hasPlayed, answer)) }

        func release(except uris: Set<String>) { kept = uris }
    }

    private let folder: PrivateFolder
    private let stage: Stage
    private let locator = Locator()
    private var player: GStreamerPlayer { stage.player }

    init() throws {
        folder = try PrivateFolder()
        stage = try Stage()
        player.locator = locator
    }

    private func tone(_ hertz: Double, _ seconds: Double) throws -> String {
        let path = folder.path + "/\(Int(hertz)).wav"
        try Media.wave(path, [(hertz, seconds)])
        return Media.uri(path)
    }

    @Test func requestsBeforeThePlaceIsKnown_countWhenItIs() throws {
        let film = try tone(440, 10)
        player.load(uri: "http://example.org/film.wav")
        try player.play()
        player.seek(to: 8)
        #expect(player.state == .playing && player.position == 8 && player.uri == "http://example.org/film.wav")
        #expect(locator.asked.map(\.uri) == ["http://example.org/film.wav"])
        #expect(locator.kept == ["http://example.org/film.wav"])
        locator.asked[0].answer(film)
        #expect(stage.hears(440, above: -8))
        #expect(player.position >= 8 && player.uri == "http://example.org/film.wav")
        #expect(stage.until { !stage.finished.isEmpty })
        #expect(stage.finished == [true] && stage.failures == [] && stage.seeks.first == 8)
    }

    @Test func pausedOrReplacedBeforeThePlaceIsKnown_isSilent() throws {
        let film = try tone(440, 10)
        player.load(uri: "http://example.org/1")
        try player.play()
        player.pause()
        locator.asked[0].answer(film)
        #expect(stage.until { player.channels > 0 })
        #expect(player.state == .paused)
        player.load(uri: "http://example.org/2")
        try player.play()
        player.load(uri: try tone(880, 2))
        try player.play()
        // Too late.
        locator.asked[1].answer(film)
        #expect(stage.hears(880, above: -8))
        #expect(stage.until { !stage.finished.isEmpty })
        // Heard, it is louder than -8 dB. The abrupt end of the other tone has a little of every frequency.
        #expect(stage.ear.level(of: 440) < -30)
        player.unload()
        #expect(locator.kept.isEmpty)
    }

    @Test func localFilesAndPlaylists_areNotAskedFor() throws {
        player.load(uri: try tone(440, 1))
        player.load(uri: "http://127.0.0.1:1/list.m3u")
        player.load(uri: "http://127.0.0.1:1/live.m3u8")
        #expect(locator.asked.isEmpty)
    }

    @Test func placeThatIsLost_isReplacedWhereItWas() throws {
        let server = try WebServer(folder: folder.path)
        let film = try tone(440, 60)
        let address = "http://example.org/film.wav"
        player.load(uri: address)
        try player.play()
        // It sends 400 kB, and then nothing.
        try Media.wave(folder.path + "/tone.wav", [(440, 60)])
        locator.asked[0].answer(server.uri("stall"))
        #expect(stage.hears(440, above: -8))
        #expect(stage.until(20) { player.position > 1 })
        server.kill()
        #expect(stage.until(20) { !locator.lost.isEmpty })
        let place = player.position
        #expect(locator.lost[0].hasPlayed && locator.lost[0].place == server.uri("stall"))
        #expect(player.state == .playing && place > 1)
        locator.lost[0].answer(film)
        #expect(stage.until { player.channels > 0 && player.position > place + 0.2 })
        #expect(stage.hears(440, above: -8))
        #expect(stage.failures == [] && player.uri == address)
    }

    @Test func placeThatCannotBeOpened_failsWithItsReasonIfThereIsNoOther() throws {
        player.load(uri: "http://example.org/film.wav")
        try player.play()
        locator.asked[0].answer("http://127.0.0.1:1/film.wav")
        #expect(stage.until(20) { !locator.lost.isEmpty })
        #expect(!locator.lost[0].hasPlayed)
        locator.lost[0].answer(nil)
        #expect(stage.until { !stage.failures.isEmpty })
        #expect(player.state == .failed && stage.failures[0].contains("http://example.org/film.wav"))
    }

    /// A whole file follows without a gap.
    @Test func nextItem_isLocatedBeforeTheEnd() throws {
        let (first, second) = (try tone(440, 7), try tone(880, 2))
        player.load(uri: first)
        player.following = "http://example.org/next.wav"
        var advanced = 0
        player.onAdvanced = { advanced += 1 }
        try player.play()
        #expect(stage.until { !locator.asked.isEmpty })
        #expect(player.position > 0.5)
        locator.asked[0].answer(second)
        #expect(stage.until(15) { advanced == 1 })
        #expect(player.uri == "http://example.org/next.wav")
        #expect(locator.kept == ["http://example.org/next.wav"])
        #expect(stage.until { !stage.finished.isEmpty })
        #expect(stage.isHeardToItsEnd(880))
    }
}
