import EventLoop
import Foundation
import GStreamerBackend
import PluginAPI
import TestSupport
import Testing
import VideoBackend

/// The engine of the movie player: what is seen on a screen of X11, and heard at the monitor of the sound server.
@Suite(.serialized) struct FilmScreenTests {
    @Test func film_isSeenAndHeard_andIsPausedAtItsLastPicture() throws {
        let stage = try FilmStage("short-gop.mp4")
        let screen = try #require(stage.screen)
        // The first picture is there before it plays, and nothing is heard.
        #expect(stage.until { stage.film.isReady && !screen.windows.isEmpty && stage.number == 0 })
        #expect(stage.film.naturalSize == PictureSize(width: 320, height: 180))
        #expect(stage.film.mediaTypes == ["audio", "video"])
        #expect(stage.film.output == "x11")
        let window = try #require(screen.windows.last)
        #expect(screen.text("WM_CLASS", of: window) == "sessiond-movie\0Sessiond-movie\0")
        #expect(screen.text("_NET_WM_NAME", of: window) == "short-gop.mp4")
        try stage.player.play()
        #expect(stage.until { stage.number > 25 })
        #expect(stage.until { stage.ear.level(of: 440) > -40 })
        stage.player.seek(to: 11)
        #expect(stage.until { stage.finished == 1 })
        #expect(stage.player.state == .paused)
        #expect(stage.until { stage.number == 299 })
        // Play begins again.
        try stage.player.play()
        #expect(stage.until { (1..<100).contains(stage.number) })
        #expect(stage.failures == [])
    }

    @Test func pause_keepsThePicture_andBothGoOnInStep() throws {
        let stage = try FilmStage("short-gop.mp4")
        try stage.player.play()
        #expect(stage.until { stage.number > 20 })
        stage.player.pause()
        #expect(stage.until { stage.ear.level(of: 440) < -60 })
        let (number, position) = (stage.number, stage.player.position)
        #expect(abs(Double(number) / 25 - position) < 0.2)
        // While it stands, the picture does.
        let heard = stage.ear.duration
        #expect(stage.until { stage.ear.duration > heard + 0.5 })
        #expect(stage.number == number)
        try stage.player.play()
        #expect(stage.until { stage.number > number + 10 })
        #expect(stage.until { abs(Double(stage.number) / 25 - stage.player.position) < 0.2 })
    }

    @Test func seek_showsTheExactPicture_alsoWhilePaused() throws {
        let stage = try FilmStage("long-gop.mp4")
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        for time in [3.0, 7.48, 0.04, 11.96] {
            stage.player.seek(to: time + 0.001)
            #expect(stage.until { stage.number == Int((time * 25).rounded()) }, "\(time): \(stage.number)")
        }
    }

    @Test func loop_goesFromTheLastToTheFirstPicture_withoutABlackOne() throws {
        let stage = try FilmStage("short-gop.mp4")
        stage.player.loops = -1
        stage.player.seek(to: 11.5)
        #expect(stage.until { stage.film.isReady && stage.number >= 287 })
        try stage.player.play()
        var seen: [Int] = []
        #expect(
            stage.until {
                if stage.number != seen.last { seen.append(stage.number) }
                return seen.last.map { (5..<100).contains($0) } ?? false
            })
        #expect(seen.contains { $0 >= 297 })
        // A black picture would be read as 0 between others.
        let first = seen.firstIndex { $0 < 200 } ?? 0
        #expect(seen[first...] == seen[first...].sorted()[...], "\(seen)")
        #expect(stage.finished == 0)
    }

    /// Its end, and where only one of the sound and the pictures has something left.
    @Test(arguments: ["short-gop.mp4", "matroska.mkv", "sound.m4a"], [99, 11.999])
    func loopThatIsSoughtToItsEnd_beginsAgain(name: String, place: Double) throws {
        let stage = try FilmStage(name)
        stage.player.loops = -1
        try stage.player.play()
        #expect(stage.until { stage.player.position > 0.5 })
        stage.player.seek(to: place)
        #expect(stage.until(5) { (0.01..<5).contains(stage.player.position) }, "\(stage.player.position)")
        // Also if it was paused there.
        stage.player.pause()
        stage.player.seek(to: place)
        #expect(stage.until(5) { stage.player.position > 11 })
        try stage.player.play()
        #expect(stage.until(5) { (0.01..<5).contains(stage.player.position) }, "\(stage.player.position)")
        #expect(stage.finished == 0 && stage.failures == [])
    }

    /// Fails only in a process that has opened no film before: a player of sound loads a few plugins by their files.
    @Test func filmAfterASoundOfAnotherPlayer_isPlayed() throws {
        let loop = EventLoop()
        let player = GStreamerPlayer(loop: loop, identity: StreamIdentity(clientName: "sound", server: "unix:/nowhere"))
        player.load(uri: "file://" + (try TestMedia.named("sound.m4a").path()))
        try? player.play()
        let stage = try FilmStage("short-gop.mp4")
        #expect(stage.until { stage.film.isReady && stage.number == 0 }, "\(stage.failures)")
        withExtendedLifetime(player) {}
    }

    @Test func endThatIsSetBeforeThePlaceOfALoop_isItsEnd() throws {
        let stage = try FilmStage("short-gop.mp4")
        stage.player.loops = -1
        try stage.player.play()
        #expect(stage.until { stage.player.position > 1.5 })
        stage.player.endTime = 1
        #expect(stage.until(5) { stage.player.position < 0.9 }, "\(stage.player.position)")
        #expect(stage.finished == 0 && stage.failures == [])
    }

    @Test func endBeforeItsOwn_isTheEnd_alsoOfEachLoop() throws {
        let stage = try FilmStage("short-gop.mp4")
        stage.player.endTime = 4
        stage.player.seek(to: 3.5)
        #expect(stage.until { stage.film.isReady && stage.number == 87 })
        try stage.player.play()
        #expect(stage.until { stage.finished == 1 })
        #expect(stage.player.state == .paused && stage.player.position == 4)
        #expect(stage.until { stage.number == 99 }, "\(stage.number)")
        // Again from the beginning, without an end of its own now.
        stage.player.endTime = nil
        stage.player.seek(to: 3.801)
        try stage.player.play()
        #expect(stage.until { (105...200).contains(stage.number) })
        stage.player.endTime = 6
        stage.player.loops = -1
        stage.player.seek(to: 5.5)
        #expect(stage.until { (140...149).contains(stage.number) })
        var highest = 0
        #expect(
            stage.until {
                highest = max(highest, stage.number)
                return stage.number < 100
            })
        #expect(highest <= 149 && stage.finished == 1)
        #expect(stage.failures == [])
    }

    @Test func size_ofTheWindow_isThatOfThePictures_alsoWhilePaused() throws {
        let stage = try FilmStage("short-gop.mp4")
        let screen = try #require(stage.screen)
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        stage.player.seek(to: 4.001)
        #expect(stage.until { stage.number == 100 })
        let window = try #require(screen.windows.last)
        screen.resize(window, width: 640, height: 360)
        #expect(stage.until { screen.number(width: 640, height: 360) == 100 })
        // In a square, the whole picture has a black bar above and below.
        screen.resize(window, width: 400, height: 400)
        #expect(stage.until { screen.number(y: 87, width: 400, height: 225) == 100 })
        #expect(stage.until { screen.pixels(width: 400, height: 80).allSatisfy { $0 == 0 } })
        stage.film.scaling = .fill
        #expect(stage.until { screen.number(width: 400, height: 400) == 100 })
    }

    @Test func fullscreen_withoutAWindowManager_coversTheScreen() throws {
        let stage = try FilmStage("short-gop.mp4")
        let screen = try #require(stage.screen)
        #expect(throws: SessionError.self) { try stage.film.setFullscreen(true) }
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        stage.player.seek(to: 4.001)
        #expect(stage.until { stage.number == 100 })
        try stage.film.setFullscreen(true)
        #expect(stage.until { screen.number(y: 60, width: 640, height: 360) == 100 })
        #expect(stage.film.isFullscreen)
        try stage.film.setFullscreen(false)
        #expect(stage.until { stage.number == 100 })
        #expect(stage.fullscreen == [.willEnter, .didEnter, .willExit, .didExit])
    }

    @Test func keysAndTheButtonOfTheWindow_areCommands() throws {
        let stage = try FilmStage("short-gop.mp4")
        let screen = try #require(stage.screen)
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        let window = try #require(screen.windows.last)
        // The codes of evdev: space, f, Escape.
        for code: UInt8 in [65, 41, 9] { screen.press(code, in: window) }
        screen.close(window)
        #expect(stage.until { stage.commands.count == 4 })
        #expect(stage.commands == [.playOrPause, .toggleFullscreen, .leaveFullscreen, .exit])
        stage.film.hide()
        #expect(
            stage.until {
                screen.number() == 0 && stage.screen?.pixels(width: 320, height: 180).contains(235) != true
            })
    }

    @Test func serverIsKilled_isReportedOnce_andTheProcessGoesOn() throws {
        let stage = try FilmStage("short-gop.mp4")
        try stage.player.play()
        #expect(stage.until { stage.number > 5 })
        stage.screen?.kill()
        #expect(stage.until { !stage.failures.isEmpty })
        // The sink meets the end, too.
        let heard = stage.ear.duration
        #expect(stage.until { stage.ear.duration > heard + 0.3 })
        stage.player.unload()
        stage.film.hide()
        // The next film is played without pictures.
        stage.player.load(uri: "file://" + (try TestMedia.named("short-gop.mp4").path()))
        try stage.player.play()
        // What is heard may still be the film before it.
        #expect(stage.until { stage.film.output == "none" && stage.ear.level(of: 440) > -40 })
        #expect(stage.failures.count == 1)
        #expect(stage.failures.first?.contains("the X11 server closed the connection") == true)
    }

    @Test func windowOfAClientIsDestroyed_isAClosedWindow() throws {
        let screen = try PrivateScreen()
        let parent = screen.makeWindow()
        let stage = try FilmStage("short-gop.mp4", output: "x11:\(parent)", on: screen)
        try stage.player.play()
        #expect(stage.until { stage.number > 5 })
        screen.destroy(parent)
        #expect(stage.until { stage.commands.contains(.exit) })
        let heard = stage.ear.duration
        #expect(stage.until { stage.ear.duration > heard + 0.3 })
        stage.player.unload()
        #expect(stage.failures == [])
    }

    @Test(arguments: ["avc1", "mp4a"]) func missingDecoder_isSaidWithThePackages(format: String) throws {
        let folder = try PrivateFolder()
        var film = try Data(contentsOf: URL(fileURLWithPath: try TestMedia.named("short-gop.mp4").path()))
        let place = try #require(film.range(of: Data(format.utf8), options: .backwards))
        film.replaceSubrange(place, with: Data("zzz1".utf8))
        try film.write(to: URL(fileURLWithPath: folder.path + "/odd.mp4"))
        let stage = try FilmStage(folder.path + "/odd.mp4")
        try stage.player.play()
        #expect(stage.until { !stage.failures.isEmpty })
        let message = try #require(stage.failures.first)
        #expect(message.contains("no plugin for") && message.contains("gstreamer1.0-libav"), "\(message)")
        #expect(stage.player.state == .failed)
    }

    @Test func manyStartsAndSeeks_allSucceed() throws {
        let stage = try FilmStage("short-gop.mp4", output: "none")
        for start in 0..<8 {
            if start > 0 { stage.player.load(uri: stage.player.uri ?? "") }
            if start % 2 == 1 { try stage.player.play() }
            #expect(stage.until(30) { stage.film.isReady }, "start \(start)")
            for seek in 0..<5 {
                let target = Double((start * 5 + seek) * 37 % 110) / 10
                var isDone = false
                stage.player.onSeeked = { _ in isDone = true }
                stage.player.seek(to: target)
                #expect(stage.until(30) { isDone }, "start \(start), seek to \(target)")
            }
        }
        #expect(stage.failures == [])
    }

    @Test(arguments: ["silent.mp4", "sound.m4a", "rotated.mp4"]) func oddFilms_play(name: String) throws {
        let stage = try FilmStage(name)
        #expect(stage.until { stage.player.duration != nil })
        try stage.player.play()
        #expect(stage.until { stage.player.position > 0.3 })
        switch name {
        case "silent.mp4": #expect(stage.film.mediaTypes == ["video"])
        case "sound.m4a":
            #expect(stage.film.mediaTypes == ["audio"])
            #expect(stage.screen?.windows.isEmpty == true || stage.film.naturalSize == .unknown)
        default:
            #expect(stage.film.naturalSize == PictureSize(width: 180, height: 320))
            // The window has its shape, and not that of the pictures before they are turned.
            let window = try #require(stage.screen?.windows.last)
            #expect(stage.screen?.size(of: window) == PictureSize(width: 180, height: 320))
        }
        stage.player.seek(to: 11.5)
        #expect(stage.until { stage.finished == 1 })
        #expect(stage.failures == [])
    }

    /// A picture, in formats of libpng, libav and others, and pictures without times.
    @Test(arguments: ["picture.png", "picture.jpg", "pictures.mjpeg", "animation.gif"])
    func picture_isNoFilm_andIsRefusedWithTheReason(name: String) throws {
        let folder = try PrivateFolder()
        let path = folder.path + "/" + name
        let length = name.hasPrefix("picture.") ? ["-frames:v", "1"] : ["-t", "1"]
        try Child.run(
            "ffmpeg", ["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=10"] + length + [path])
        let stage = try FilmStage(path)
        try stage.player.play()
        #expect(stage.until { stage.failures.count + stage.finished > 0 })
        let reason = name == "animation.gif" ? "'sessionctl export' makes a film of it" : "it is a picture, not a film"
        #expect(stage.failures.first?.contains("\(name)' cannot be played: ") == true, "\(stage.failures)")
        #expect(stage.failures.first?.contains(reason) == true, "\(stage.failures)")
        #expect(stage.player.state == .failed && stage.finished == 0)
    }

    @Test func outputNone_playsWithoutAWindow() throws {
        let stage = try FilmStage("short-gop.mp4", output: "none")
        #expect(stage.until { stage.film.isReady })
        try stage.player.play()
        #expect(stage.until { stage.player.position > 0.3 })
        #expect(stage.screen?.windows.isEmpty == true)
        #expect(stage.film.naturalSize == PictureSize(width: 320, height: 180))
        #expect(throws: SessionError.self) { try stage.film.setFullscreen(true) }
    }

    @Test func badOutputs_areRefusedWithTheReason() throws {
        let film = FilmScreen(on: EventLoop(), display: ":9999")
        for (output, name) in [
            ("x12", SessionError.Code.badParameter), ("x11:", .badParameter), ("x11:0xzz", .badParameter),
            ("x11", .notSupported),
        ] {
            do {
                try film.choose(output: output)
                Issue.record("\(output) was accepted")
            } catch {
                #expect(error.code == name, "\(output)")
            }
        }
        try film.choose(output: "none")
        #expect(film.output == "none")
    }
}
