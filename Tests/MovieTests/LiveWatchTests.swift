import EventLoop
import Foundation
import GStreamerBackend
import LiveBackend
import LiveStreaming
import PluginAPI
import TestSupport
import Testing
import VideoBackend

import class EventLoop.Timer

/// Live streams that are watched: our own push to real servers, and the picture read from the screen.
@Suite(.serialized) struct LiveWatchTests {
    private static let hasServer = RTMPServer.isInstalled

    /// Sends a film whose pictures have numbers, and shows what comes back. Both run on one loop.
    private final class Stage {
        let loop = EventLoop()
        let screen: PrivateScreen
        let pulse: any PrivateServer
        let ear: Ear
        let player: GStreamerPlayer
        let film: FilmScreen
        let folder: PrivateFolder
        var push: LivePush?
        var failures: [String] = []
        var finished = 0
        /// When each number was seen first, by how many had been encoded.
        private(set) var seen: [(number: Int, sent: Int)] = []

        init() throws {
            (screen, folder) = (try PrivateScreen(), try PrivateFolder())
            pulse = try ServerKind.standard.server()
            ear = try Ear(pulse, sink: "speaker")
            (player, film) = FilmPlayer.make(
                on: loop, StreamIdentity(clientName: "test", server: pulse.serverString), display: screen.display)
            player.onFailed = { [unowned self] in failures.append($0) }
            player.onFinished = { [unowned self] _ in finished += 1 }
        }

        /// A minute of pictures with numbers, and a tone.
        func longFilm(seconds: Int = 60) throws -> String {
            let path = folder.path + "/long.mp4"
            let columns = "if(mod(floor(N/pow(2,floor(X/20))),2),235,16)"
            try Child.run(
                "ffmpeg",
                [
                    "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i",
                    "color=s=320x180:r=25:d=\(seconds),geq=lum='\(columns)':cb=128:cr=128", "-f", "lavfi", "-i",
                    "sine=440:d=\(seconds)", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-g",
                    "25", "-c:a", "aac", path,
                ], timeout: 120)
            return path
        }

        func send(_ film: String, to url: String) throws {
            var settings = LiveSettings(.file(film))
            settings.keyFrameInterval = 1
            let made = try LivePush(LiveTarget(url), settings, StreamIdentity(clientName: "push"), on: loop)
            push = made
            var result: Result<Void, SessionError>?
            made.start { result = $0 }
            until { result != nil }
            try #require(result).get()
            guard until(15, { made.state == .live }) else { throw SupportError("not sent: \(made.message)") }
        }

        func watch(_ url: String) throws {
            player.load(uri: url)
            try player.play()
        }

        @discardableResult
        func until(_ timeout: Double = 20, _ condition: () -> Bool) -> Bool {
            var tick: Timer?
            tick = Timer(on: loop) { tick?.arm(after: 0.004) }
            tick?.arm(after: 0.004)
            defer { tick = nil }
            return loop.iterate(timeout: timeout) {
                look()
                return condition()
            }
        }

        func pass(_ seconds: Double) {
            let end = monotonicNow() + seconds
            until(seconds + 5) { monotonicNow() >= end }
        }

        private func look() {
            let number = screen.number()
            if number >= 0, number < 60_000, seen.last?.number != number {
                seen.append((number, Int(push?.pictures ?? 0)))
            }
        }

        var number: Int { seen.last?.number ?? -1 }

        /// How far the pictures that are seen within these seconds are behind those that the encoder gets, in seconds: the
        /// median, as exact as a picture is long.
        func delay(within seconds: Double) -> Double? {
            let from = seen.count
            pass(seconds)
            let delays = seen[from...].map { Double($0.sent - 1 - $0.number) / 25 }.sorted()
            return delays.isEmpty ? nil : delays[delays.count / 2]
        }
    }

    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func rtmp_isShownSoon_andGoesOnAtTheEdgeAfterTheServerWasAway() throws {
        let server = try RTMPServer()
        let stage = try Stage()
        let url = server.url("name")
        try stage.send(stage.longFilm(), to: url)
        try stage.watch(url)
        #expect(stage.until { stage.number > 0 }, "\(stage.failures)")
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 10))
        #expect(stage.player.isLive && stage.player.duration == nil)
        stage.pass(2)
        let delay = try #require(stage.delay(within: 2))
        print("rtmp: \(delay) s from the encoder to the screen, measured \(stage.player.latency ?? -1)")
        #expect(delay < 1, "\(delay)")
        #expect((stage.player.latency ?? 9) < 0.6)

        server.kill()
        let atLoss = stage.number
        #expect(stage.until(10) { stage.player.isStalled })
        stage.pass(5)
        try server.restart()
        #expect(stage.until(15) { stage.number > atLoss + 100 }, "\(stage.number) after \(atLoss)")
        stage.pass(2)
        let again = try #require(stage.delay(within: 2))
        print("rtmp: \(again) s after the server was away")
        #expect(again < delay + 0.5, "\(again) after \(delay)")
        #expect(!stage.player.isStalled && stage.failures.isEmpty, "\(stage.failures)")
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 10))
    }
}
