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
        /// Where the pictures are on the screen.
        var area = (x: 0, y: 0, width: 320, height: 180)
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
            try Child.run(
                "ffmpeg",
                [
                    "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i",
                    TestMedia.numberedPictures(seconds: seconds), "-f", "lavfi", "-i",
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
            loop.iterate(timeout: timeout, askingEvery: 0.004) {
                look()
                return condition()
            }
        }

        func pass(_ seconds: Double) {
            let end = monotonicNow() + seconds
            until(seconds + 5) { monotonicNow() >= end }
        }

        private func look() {
            let number = screen.number(x: area.x, y: area.y, width: area.width, height: area.height)
            if number >= 0, number < 60_000, seen.last?.number != number {
                seen.append((number, Int(push?.pictures ?? 0)))
            }
        }

        var number: Int { seen.last?.number ?? -1 }
        var state: String {
            "\(failures) \(player.state) at \(player.position), \(film.mediaTypes), \(film.naturalSize), \(player.latency ?? -1) s"
        }

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
        #expect(stage.until { stage.number > 0 }, "\(stage.state)")
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 10))
        #expect(stage.player.isLive && stage.player.duration == nil)
        stage.pass(2)
        let delay = try #require(stage.delay(within: 2))
        print("rtmp: \(delay) s from the encoder to the screen, measured \(stage.player.latency ?? -1)")
        #expect(delay < 2, "\(delay)")
        #expect((stage.player.latency ?? 9) < 2)

        server.kill()
        let atLoss = stage.number
        #expect(stage.until(10) { stage.player.isStalled })
        stage.pass(5)
        try server.restart()
        #expect(stage.until(15) { stage.number > atLoss + 100 }, "\(stage.number) after \(atLoss)")
        stage.pass(2)
        let again = try #require(stage.delay(within: 2))
        print("rtmp: \(again) s after the server was away")
        #expect(again < delay + 1.5, "\(again) after \(delay)")
        #expect(!stage.player.isStalled && stage.failures.isEmpty, "\(stage.failures)")
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 10))
    }

    @Test(.enabled(if: Child.isInstalled("srt-live-transmit"), "srt-tools is not installed"))
    func srt_isShownSoon() throws {
        let (sending, watching) = (try LoopbackPort.free(), try LoopbackPort.free())
        let relay = try Child(
            "srt-live-transmit",
            [
                "-q", "srt://127.0.0.1:\(sending)?mode=listener&latency=120",
                "srt://127.0.0.1:\(watching)?mode=listener&latency=120",
            ])
        let stage = try Stage()
        try stage.send(stage.longFilm(), to: "srt://127.0.0.1:\(sending)")
        try stage.watch("srt://127.0.0.1:\(watching)?latency=120")
        #expect(stage.until { stage.number > 0 }, "\(stage.state)")
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 10))
        stage.pass(2)
        let delay = try #require(stage.delay(within: 2))
        print("srt: \(delay) s from the encoder to the screen, measured \(stage.player.latency ?? -1)")
        // SRT keeps the stream for its latency twice, once on each way.
        #expect(delay < 2, "\(delay)")
        #expect(relay.isRunning && stage.failures.isEmpty)
    }

    /// A server that sends pictures from the next key frame on: eight seconds after the one before it. The sound comes at once.
    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func picturesThatComeLate_areShown() throws {
        let server = try RTMPServer()
        let stage = try Stage()
        let film = try stage.longFilm()
        let url = server.url("name", application: "keys")
        let sender = try Child(
            "ffmpeg",
            [
                "-nostdin", "-loglevel", "info", "-stats_period", "0.1", "-progress", "pipe:1", "-re", "-i", film,
                "-c:v",
                "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "200", "-sc_threshold", "0", "-c:a",
                "aac",
                "-f", "flv", url,
            ])
        // The first key frame has gone.
        #expect(sender.line(timeout: 20) { $0.hasPrefix("out_time_us=1") || $0.hasPrefix("out_time_us=2") } != nil)
        try stage.watch(url)
        #expect(stage.until { stage.ear.level(of: 440) > -40 }, "\(stage.state)")
        #expect(stage.film.mediaTypes == ["audio"], "\(stage.state)")
        #expect(stage.until(20) { stage.number > 0 }, "\(stage.state)")
        // The picture is on the screen before its size is told.
        #expect(stage.until(5) { stage.film.mediaTypes == ["audio", "video"] } && stage.failures.isEmpty)
    }

    @Test(.enabled(if: Child.hasNginx, "nginx is not installed"))
    func hls_beginsNearItsEnd_andEndsWithIt() throws {
        let web = try Nginx()
        let stage = try Stage()
        try stage.send(stage.longFilm(seconds: 40), to: web.folder.path + "/files/live")
        // Ten seconds are there.
        stage.until(30) { (stage.push?.pictures ?? 0) > 330 }
        try stage.watch(web.url("live/stream.m3u8"))
        #expect(stage.until { stage.number > 0 }, "\(stage.state)")
        #expect(stage.player.isLive && stage.player.duration == nil)
        stage.pass(2)
        let delay = try #require(stage.delay(within: 3))
        print("hls: \(delay) s from the encoder to the screen, measured \(stage.player.latency ?? -1)")
        #expect(delay < 8, "\(delay)")
        #expect(!stage.player.isStalled)
        #expect(stage.until(40) { stage.finished == 1 }, "\(stage.failures)")
        // GStreamer 1.22 leaves out the last segments if they come together with the end of the list.
        print("hls: the last picture is \(stage.number)")
        #expect(stage.number >= 850, "\(stage.number)")
        #expect(stage.failures.isEmpty)
    }

    /// Chromium plays HLS itself since version 142.
    private static let playsLists: Bool = {
        let words = (try? Child.run("chromium", ["--version"]))?.split(separator: " ") ?? []
        return words.compactMap { $0.split(separator: ".").first.flatMap { Int($0) } }.contains { $0 >= 142 }
    }()

    /// The page of Examples in a browser: it shows the stream, and goes on when the stream was away.
    @Test(.enabled(if: Child.hasNginx && playsLists, "nginx or chromium is not installed"))
    func page_isPlayedByABrowser() throws {
        let web = try Nginx()
        let stage = try Stage()
        let files = web.folder.path + "/files"
        try FileManager.default.copyItem(
            atPath: repository.appendingPathComponent("Examples/LivePage/index.html").path,
            toPath: files + "/index.html")
        try stage.send(stage.longFilm(seconds: 120), to: files + "/live")
        #expect(stage.until(20) { FileManager.default.fileExists(atPath: files + "/live/stream.m3u8") })
        let browser = try Child(
            "chromium",
            [
                "--kiosk", "--no-sandbox", "--disable-gpu", "--no-first-run", "--window-position=0,0",
                "--window-size=640,480", "--user-data-dir=\(stage.folder.path)/profile",
                "--autoplay-policy=no-user-gesture-required", "--app=" + web.url("index.html"),
            ],
            environment: ProcessInfo.processInfo.environment.merging(
                ["DISPLAY": stage.screen.display, "HOME": stage.folder.path]) { $1 })
        stage.area = (0, 60, 640, 360)
        #expect(stage.until(30) { stage.number > 25 }, "\(browser.errors.suffix(5))")
        stage.pass(6)
        let delay = try #require(stage.delay(within: 3))
        print("hls: \(delay) s from the encoder to the page in chromium")
        // Chromium begins three segments before the end of the list.
        #expect(delay < 10, "\(delay)")
        // The stream ends, and begins anew after the page has noticed it.
        stage.push?.stop()
        #expect(stage.until { stage.push?.state == .idle })
        stage.pass(10)
        let last = stage.number
        try stage.send(stage.longFilm(seconds: 120), to: files + "/live")
        #expect(stage.until(40) { stage.number > 25 && stage.number < last - 100 }, "\(stage.number) after \(last)")
    }

    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func pause_leavesTheStream_andItGoesOnAtTheEdge() throws {
        let server = try RTMPServer()
        let stage = try Stage()
        try stage.send(stage.longFilm(), to: server.url("name"))
        try stage.watch(server.url("name"))
        #expect(stage.until { stage.number > 0 }, "\(stage.state)")
        stage.pass(1)
        stage.player.pause()
        stage.pass(0.5)
        let number = stage.number
        stage.pass(4)
        // The last picture stays.
        #expect(stage.number == number && stage.screen.number() == number)
        #expect(stage.player.isLive && stage.player.state == .paused)
        try stage.player.play()
        #expect(stage.until { stage.number > number + 90 }, "\(stage.number) after \(number)")
        stage.pass(1.5)
        let delay = try #require(stage.delay(within: 2))
        #expect(delay < 2, "\(delay)")
        // A wish for more is followed at once.
        stage.player.targetLatency = 1.5
        stage.pass(1)
        stage.player.goToLive()
        #expect(stage.failures.isEmpty)
    }

    @Test(.enabled(if: RTSPServer.isInstalled, "the library of a server of RTSP is not installed"))
    func rtsp_isShown() throws {
        let stage = try Stage()
        let path = stage.folder.path + "/camera.mp4"
        let words = ["-nostdin", "-v", "error", "-y", "-i", try stage.longFilm(seconds: 20), "-c:v", "libx264"]
        try Child.run(
            "ffmpeg", words + ["-tune", "zerolatency", "-g", "25", "-bf", "0", "-c:a", "copy", path], timeout: 60)
        let server = try RTSPServer(path)
        let begin = monotonicNow()
        try stage.watch(server.url)
        #expect(stage.until { stage.number > 25 }, "\(stage.state)")
        // It is not shown faster than it is sent.
        #expect(monotonicNow() - begin > 0.9)
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 10))
        let number = stage.number
        stage.pass(2)
        #expect((30...70).contains(stage.number - number), "\(stage.number - number) pictures in 2 s")
        #expect((stage.player.latency ?? 9) < 2, "\(stage.state)")
    }

    @Test(arguments: [
        ("rtmp://127.0.0.1:1/live/name", "cannot be reached"), ("srt://127.0.0.1:1", "cannot be"),
        ("rtmp://nowhere.invalid/live/name", "cannot be reached"), ("gopher://host/x", "can be watched"),
    ])
    func addressWithoutAServer_failsAtOnce(_ url: String, _ reason: String) throws {
        let stage = try Stage()
        let begin = monotonicNow()
        try stage.watch(url)
        #expect(stage.until(10) { !stage.failures.isEmpty })
        #expect(stage.failures.first?.contains(reason) == true, "\(stage.failures)")
        #expect(monotonicNow() - begin < 8)
        #expect(stage.player.state == .failed)
    }
}
