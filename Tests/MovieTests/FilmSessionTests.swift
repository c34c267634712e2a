import EventLoop
import Foundation
import TestSupport
import Testing

/// `sessionctl watch` with the real daemon: what a user sees and hears of a film while other programs want to be heard.
@Suite(.serialized) struct FilmSessionTests {
    private final class Stage {
        let pulse: any PrivateServer
        let ear: Ear
        let screen: PrivateScreen
        let bus: PrivateBus
        private let daemon: Child
        private var environment: [String: String]

        /// - Parameter keepsWeb: whether films of the web are kept by the cache.
        init(keepsWeb: Bool = false) throws {
            pulse = try ServerKind.standard.server()
            ear = try Ear(pulse, sink: "speaker")
            screen = try PrivateScreen()
            bus = try PrivateBus()
            environment = ["XDG_RUNTIME_DIR": bus.folder.path].merging(pulse.environment) { $1 }
                .merging(bus.environment) { $1 }
            environment["HOME"] = bus.folder.path
            environment["XDG_CACHE_HOME"] = bus.folder.path + "/cache"
            environment["GST_REGISTRY"] = TestMedia.registry
            environment["DISPLAY"] = screen.display
            if keepsWeb {
                let plugins = try bus.folder.folder(".local/share/sessiond/plugins")
                try FileManager.default.copyItem(
                    atPath: repository.path + "/data/plugins/cache.plugin", toPath: plugins + "/cache.plugin")
                environment["XDG_CONFIG_HOME"] = try bus.folder.folder("config")
                try Data("[player]\ncache = all\n".utf8).write(
                    to: URL(fileURLWithPath: try bus.folder.folder("config/sessiond") + "/sessiond.conf"))
            }
            daemon = try Child(try builtProduct(named: "sessiond"), environment: environment)
            guard eventually(timeout: 30, { list().contains("\"ServerConnected\":true") }) else {
                throw SupportError("sessiond does not find the sound server: \(daemon.errors)")
            }
        }

        func sessionctl(_ arguments: [String], more: [String: String] = [:]) throws -> Child {
            try Child(
                try builtProduct(named: "sessionctl"), arguments, environment: environment.merging(more) { $1 })
        }

        func program(_ name: String, _ arguments: [String]) throws -> Child {
            try Child(name, arguments, environment: environment)
        }

        func terminal(_ arguments: [String]) throws -> PseudoTerminal {
            var variables = environment
            for name in ["PATH"] { variables[name] = ProcessInfo.processInfo.environment[name] }
            variables["TERM"] = "xterm"
            variables["LC_ALL"] = "C.UTF-8"
            return try PseudoTerminal(try builtProduct(named: "sessionctl"), arguments, environment: variables)
        }

        private func list() -> String {
            guard let child = try? sessionctl(["status", "--json"]), child.wait(timeout: 20) == .code(0) else {
                return ""
            }
            return child.text
        }

        /// The files of the cache.
        var kept: [String] {
            let folder = bus.folder.path + "/cache/sessiond/media"
            return (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        }

        /// Starts the film, and waits until it is seen and heard.
        func watch(_ film: String? = nil) throws -> Child {
            let film = try film ?? TestMedia.named("short-gop.mp4").path()
            let watch = try sessionctl(["watch", "--name", "Film", "--loop", film])
            guard eventually(timeout: 60, { screen.number() > 10 || !watch.isRunning }), watch.isRunning,
                ear.waitUntil(440, above: -40, timeout: 30)
            else { throw SupportError("the film is not shown: \(watch.output) \(watch.errors)") }
            return watch
        }

        /// Starts a command in a session, and waits until it runs.
        func session(_ name: String, _ options: [String]) throws -> Child {
            let child = try sessionctl(
                ["run", "--name", name] + options + ["--", "sh", "-c", "echo runs; exec sleep 600"])
            guard child.line(timeout: 30, where: { $0 == "runs" }) != nil else {
                throw SupportError("\(name) does not run: \(child.errors)")
            }
            return child
        }

        /// Ends what ``session(_:_:)`` started.
        func end(_ child: Child) {
            child.signal(SIGTERM)
            #expect(child.wait(timeout: 30) == .code(143))
        }

        /// Whether the picture is another one after that many seconds of sound were recorded.
        func moves(within seconds: Double) -> Bool {
            let (number, heard) = (screen.number(), ear.duration)
            var hasMoved = false
            _ = eventually(timeout: 30) {
                if screen.number() != number { hasMoved = true }
                return hasMoved || ear.duration > heard + seconds
            }
            return hasMoved
        }
    }

    /// Eleven minutes: each picture has the number of its second.
    private static func longFilm(in folder: PrivateFolder) throws -> String {
        let path = folder.path + "/long film.mp4"
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i",
                TestMedia.numberedPictures(seconds: 660, rate: 1), "-f", "lavfi", "-i", "sine=440:d=660",
                "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-g", "10", "-c:a", "aac", path,
            ], timeout: 120)
        return path
    }

    @Test func longFilm_goesOnWhereItWasLeft() throws {
        let stage = try Stage()
        let folder = try PrivateFolder()
        let film = try Self.longFilm(in: folder)
        /// Shows it until the second is among those, and ends it.
        func watch(_ words: [String], until seconds: Range<Int>, with signal: Int32) throws {
            let watch = try stage.sessionctl(["watch", "--name", "Film"] + words + [film])
            #expect(
                eventually(timeout: 60) { seconds.contains(stage.screen.number()) || !watch.isRunning },
                "\(stage.screen.number())")
            #expect(watch.isRunning, "\(watch.errors)")
            watch.signal(signal)
            #expect(watch.wait(timeout: 30) != nil)
            // The window is gone.
            #expect(eventually { !seconds.contains(stage.screen.number()) })
        }
        try watch(["--from", "5:00"], until: 302..<315, with: SIGINT)
        try watch([], until: 302..<330, with: SIGTERM)
        // The beginning is no place to keep.
        try watch(["--from", "0"], until: 1..<20, with: SIGINT)
        try watch([], until: 1..<20, with: SIGINT)
    }

    @Test func call_stopsPictureAndSound_andBothGoOn() throws {
        let stage = try Stage()
        let watch = try stage.watch()
        let call = try stage.session("Phone", ["--category", "play-and-record", "--class", "call"])
        #expect(stage.ear.waitUntil(440, below: -60, timeout: 30))
        #expect(eventually(timeout: 30) { !stage.moves(within: 0.2) })
        let number = stage.screen.number()
        #expect(number > 0 && !stage.moves(within: 0.7))
        stage.end(call)
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 30))
        // From where it was, not from the beginning.
        #expect(eventually(timeout: 30) { stage.screen.number() > number })
        #expect(watch.isRunning, "\(watch.errors)")
        watch.signal(SIGINT)
        #expect(watch.wait(timeout: 30) == .code(130))
        #expect(eventually(timeout: 30) { stage.screen.windows.isEmpty })
    }

    /// As a media key does it, and not its own key.
    @Test func stopByMPRIS_endsWatch_andALongFilmGoesOnThere() throws {
        let stage = try Stage()
        let folder = try PrivateFolder()
        let film = try Self.longFilm(in: folder)
        let watch = try stage.sessionctl(["watch", "--name", "Film", "--from", "5:00", film])
        #expect(eventually(timeout: 60) { (302..<315).contains(stage.screen.number()) }, "\(watch.errors)")
        let key = try stage.program(
            "dbus-send",
            [
                "--print-reply", "--dest=org.mpris.MediaPlayer2.sessiond", "/org/mpris/MediaPlayer2",
                "org.mpris.MediaPlayer2.Player.Stop",
            ])
        #expect(key.wait(timeout: 20) == .code(0), "\(key.errors)")
        #expect(watch.wait(timeout: 20) == .code(0), "\(watch.errors)")
        #expect(eventually { stage.screen.windows.isEmpty })
        let again = try stage.sessionctl(["watch", "--name", "Film", film])
        #expect(eventually(timeout: 60) { (302..<330).contains(stage.screen.number()) }, "\(again.errors)")
        #expect(again.isRunning)
    }

    /// A list of files, and a folder: films of two seconds, whose first numbers are 0 and 150.
    @Test(arguments: ["list.m3u8", ""]) func filmsOfAListAndOfAFolder_areShownOneAfterTheOther(name: String) throws {
        let stage = try Stage()
        let folder = try PrivateFolder()
        let names = ["Alien: Part #1 50%.mp4", "Bär?.wmv.mp4"]
        for (number, name) in names.enumerated() {
            try Child.run(
                "ffmpeg",
                [
                    "-nostdin", "-v", "error", "-y", "-ss", "\(number * 6)", "-t", "2", "-i",
                    try TestMedia.named("short-gop.mp4").path(), "-c", "copy", folder.path + "/" + name,
                ], timeout: 60)
        }
        if !name.isEmpty { _ = try folder.file(name, "#EXTM3U\n" + names.joined(separator: "\n") + "\n") }
        let watch = try stage.sessionctl(["watch", folder.path + "/" + name])
        for numbers in [1...49, 151...199] {
            #expect(
                eventually(timeout: 40) { numbers.contains(stage.screen.number()) || !watch.isRunning },
                "\(stage.screen.number())")
        }
        #expect(watch.wait(timeout: 30) == .code(0), "\(watch.errors)")
        let played = watch.output.filter { $0.hasPrefix("playing ") }
        #expect(zip(played, names).allSatisfy { $0.contains($1) } && played.count == 2, "\(watch.output)")
    }

    @Test func prompt_makesTheFilmQuiet_andItGoesOn() throws {
        let stage = try Stage()
        let watch = try stage.watch()
        let before = stage.ear.steadyLevel(of: 440)
        let prompt = try stage.session("Voice", ["--category", "ambient", "--option", "duck-others"])
        #expect(stage.ear.waitUntil(440, above: -60, below: before - 6, window: 0.1, timeout: 30))
        #expect(stage.moves(within: 5))
        stage.end(prompt)
        #expect(stage.ear.waitUntil(440, above: before - 1, window: 0.1, timeout: 30))
        #expect(watch.isRunning)
    }

    @Test func filmOfTheWeb_isKept_andShownAgainWithoutTheServer() throws {
        let origin = try OriginServer()
        let path = origin.folder.path + "/film.mp4"
        try FileManager.default.copyItem(atPath: try TestMedia.named("short-gop.mp4").path(), toPath: path)
        let size = (try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber)?.uint64Value ?? 0
        let stage = try Stage(keepsWeb: true)
        let watch = try stage.watch(origin.url("film.mp4"))
        #expect(eventually(timeout: 30) { stage.kept.contains { $0.hasSuffix(".media") } }, "\(stage.kept)")
        // What was on its way at a seek was sent in vain: less than 128 kB each.
        #expect(origin.sent >= size && origin.sent < size + 2 * 131_072, "\(origin.sent) of \(size)")
        watch.signal(SIGINT)
        #expect(watch.wait(timeout: 30) == .code(130))
        try origin.tell("status 500")
        let (sent, requests) = (origin.sent, origin.requests.count)
        _ = try stage.watch(origin.url("film.mp4"))
        #expect(origin.sent == sent && origin.requests.count == requests)
    }

    @Test(.enabled(if: RTMPServer.isInstalled, "nginx has no module for RTMP here"))
    func liveStream_saysHowLateItIs_andThatItsServerIsAway() throws {
        let server = try RTMPServer()
        let stage = try Stage()
        let url = server.url("name")
        let film = try TestMedia.named("short-gop.mp4").path()
        let sender = try Child(
            "ffmpeg",
            ["-nostdin", "-v", "error", "-re", "-stream_loop", "-1", "-i", film, "-c", "copy", "-f", "flv", url])
        #expect(eventually { server.taken.count == 1 })
        let terminal = try stage.terminal(["live", "watch", "--name", "Show", "--latency", "0.4", url])
        #expect(terminal.shows { $0.contains("playing") && $0.contains(" s behind") }, "\(terminal.text)")
        #expect(eventually(timeout: 30) { stage.screen.number() > 10 })
        #expect(terminal.text.contains("e edge"))
        terminal.type("e")
        #expect(terminal.shows("at the edge"))
        server.kill()
        #expect(terminal.shows("waiting for the network"), "\(terminal.line)")
        terminal.type("q")
        #expect(terminal.wait() == .code(0))
        withExtendedLifetime(sender) {}
        let refused = try stage.sessionctl(["live", "watch", "--latency", "0", url])
        #expect(refused.wait(timeout: 30) == .code(64))
        #expect(refused.errors.contains { $0.contains("0.05 to 60 seconds") }, "\(refused.errors)")
    }

    @Test func windowIsClosed_watchEnds() throws {
        let stage = try Stage()
        let watch = try stage.watch()
        stage.screen.close(try #require(stage.screen.windows.last))
        #expect(watch.wait(timeout: 30) == .code(0), "\(watch.errors)")
        #expect(stage.ear.waitUntil(440, below: -60, timeout: 30))
    }

    @Test func screenIsKilled_theReasonIsSaid() throws {
        let stage = try Stage()
        let watch = try stage.watch()
        stage.screen.kill()
        #expect(watch.wait(timeout: 30) == .code(1))
        #expect(watch.errors.contains { $0.contains("the X11 server closed the connection") }, "\(watch.errors)")
    }

    @Test func compositorIsKilled_theReasonIsSaid_andTheSessionIsGone() throws {
        let stage = try Stage()
        let compositor = try PrivateCompositor()
        let film = try TestMedia.named("short-gop.mp4").path()
        let watch = try stage.sessionctl(
            ["watch", "--name", "Film", film], more: ["DISPLAY": ":9999", "WAYLAND_DISPLAY": compositor.socket])
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 60), "\(watch.errors)")
        #expect(eventually(timeout: 30) { compositor.has(1...299) })
        compositor.kill()
        #expect(watch.wait(timeout: 30) == .code(1))
        #expect(
            watch.errors.contains { $0.contains("the Wayland compositor closed the connection") }, "\(watch.errors)")
        #expect(stage.ear.waitUntil(440, below: -60, timeout: 30))
        let status = try stage.sessionctl(["status"])
        #expect(status.wait(timeout: 20) == .code(0) && !status.text.contains("Film"), "\(status.text)")
    }

    @Test func alert_interruptsTheFilm_andTheSilentSwitchDoesNot() throws {
        let stage = try Stage()
        let watch = try stage.watch()
        let silent = try stage.sessionctl(["silent", "on"])
        #expect(silent.wait(timeout: 20) == .code(0), "\(silent.errors)")
        #expect(stage.moves(within: 5))
        #expect(stage.ear.level(of: 440) > -40)
        let alarm = try stage.session("Alarm", ["--class", "alert"])
        #expect(stage.ear.waitUntil(440, below: -60, timeout: 30))
        #expect(eventually(timeout: 30) { !stage.moves(within: 0.3) })
        stage.end(alarm)
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 30))
        #expect(stage.moves(within: 5) && watch.isRunning, "\(watch.errors)")
    }

    @Test func noScreen_theSoundIsPlayed_andItIsSaid() throws {
        let stage = try Stage()
        let film = try TestMedia.named("short-gop.mp4").path()
        let watch = try stage.sessionctl(["watch", film], more: ["DISPLAY": ":9999"])
        #expect(stage.ear.waitUntil(440, above: -40, timeout: 60), "\(watch.errors)")
        #expect(eventually { watch.isRunning && watch.errors.contains { $0.contains("only the sound is played") } })
        let refused = try stage.sessionctl(["watch", "--output", "x11", film], more: ["DISPLAY": ":9999"])
        #expect(refused.wait(timeout: 60) == .code(1))
        #expect(refused.errors.contains { $0.contains("set DISPLAY") }, "\(refused.errors)")
    }

    /// Runs the command line of the unit with another folder.
    @Test func kiosk_showsTheFilmsOfAFolderAgainAndAgain_fullScreen() throws {
        let stage = try Stage()
        let unit = try String(contentsOfFile: repository.path + "/Examples/systemd/kiosk.service", encoding: .utf8)
        let line = try #require(unit.split(separator: "\n").first { $0.hasPrefix("ExecStart=sessionctl ") })
        let words = line.split(separator: " ").dropFirst().dropLast().map(String.init)
        let folder = try PrivateFolder()
        for name in ["a.mp4", "b.mp4"] {
            let film = try TestMedia.named("short-gop.mp4").path()
            let words = ["-nostdin", "-v", "error", "-i", film, "-t", "1", "-c", "copy", folder.path + "/" + name]
            try Child.run("ffmpeg", words, timeout: 60)
        }
        let kiosk = try stage.sessionctl(words + [folder.path])
        // The pictures of both films have the numbers from 0 to 24: each time it begins again, the number falls.
        var (last, beginnings) = (-1, 0)
        let isDone = eventually(timeout: 60) {
            let number = stage.screen.number(y: 60, width: 640, height: 360)
            if number < last { beginnings += 1 }
            last = number
            return beginnings >= 4 || !kiosk.isRunning
        }
        #expect(isDone && kiosk.isRunning, "\(beginnings) \(kiosk.errors)")
        kiosk.signal(SIGTERM)
        #expect(kiosk.wait(timeout: 30) == .code(143))
    }

    @Test func playOfAFilm_showsIt() throws {
        let stage = try Stage()
        let film = try TestMedia.named("short-gop.mp4").path()
        let play = try stage.sessionctl(["play", film])
        #expect(eventually(timeout: 60) { stage.screen.number() > 10 }, "\(play.errors)")
        play.signal(SIGINT)
        #expect(play.wait(timeout: 30) == .code(130))
    }

    @Test func soundAndSubtitles_areThoseOfTheCommandLine() throws {
        let stage = try Stage()
        let film = try TestMedia.named("tracks.mkv").path()
        let folder = try PrivateFolder()
        let words = try folder.file("words.srt", "1\n00:00:00,000 --> 00:00:10,000\nSUBTITLE\n")
        let watch = try stage.sessionctl(["watch", "--audio", "2", "--subtitles", words, film])
        #expect(stage.ear.waitUntil(880, above: -40, timeout: 60), "\(watch.errors)")
        // The level is that of the last moment, which may hold the beginning of the sound.
        #expect(stage.ear.waitUntil(440, below: -60))
        #expect(
            eventually(timeout: 30) {
                stage.screen.number() < 128
                    && stage.screen.pixels(x: 160, y: 100, width: 100, height: 75).contains { $0 > 150 }
            })
        watch.signal(SIGINT)
        #expect(watch.wait(timeout: 30) == .code(130))
        for (arguments, reason) in [
            (["--audio", "3"], "there is no sound track 3"), (["--subtitles", film], "no subtitles that can be read"),
        ] {
            let refused = try stage.sessionctl(["watch", film] + arguments)
            #expect(refused.wait(timeout: 60) == .code(1))
            #expect(refused.errors.contains { $0.contains(reason) }, "\(refused.errors)")
        }
    }

    @Test func outputIsUnplugged_filmIsPaused_untilItIsThereAgain() throws {
        let stage = try Stage()
        let module = try stage.pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        try stage.pulse.control.setDefaultSink("phones")
        let film = try TestMedia.named("short-gop.mp4").path()
        let watch = try stage.sessionctl(["watch", "--loop", film])
        let phones = try Ear(stage.pulse, sink: "phones")
        #expect(phones.waitUntil(440, above: -40, timeout: 60), "\(watch.errors)")
        #expect(eventually(timeout: 30) { stage.screen.number() > 10 })
        try stage.pulse.unloadModule(module)
        #expect(eventually(timeout: 30) { !stage.moves(within: 0.7) })
        #expect(stage.ear.waitUntil(440, below: -60, window: 0.3, timeout: 30))
        _ = try stage.pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        try stage.pulse.control.setDefaultSink("phones")
        #expect(eventually(timeout: 30) { stage.moves(within: 0.7) })
        #expect(watch.isRunning, "\(watch.errors)")
    }
}
