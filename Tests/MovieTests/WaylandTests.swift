import EventLoop
import Foundation
import GStreamerBackend
import PluginAPI
import TestSupport
import Testing
import VideoBackend

/// The engine of the movie player with a window of Wayland: what is seen on a real compositor.
@Suite(.serialized) struct WaylandTests {
    @Test func film_isSeenAndHeard_andItsWindowIsClosed() throws {
        let compositor = try PrivateCompositor()
        let stage = try FilmStage("short-gop.mp4", wayland: compositor)
        #expect(stage.until { stage.film.isReady })
        #expect(stage.film.output == "wayland")
        #expect(stage.film.naturalSize == PictureSize(width: 320, height: 180))
        // In its own size, while it is paused.
        for time in [4.001, 7.481, 0.041] {
            stage.player.seek(to: time)
            #expect(stage.until { compositor.has(Int(time * 25)) }, "\(time)")
        }
        try stage.player.play()
        #expect(stage.until { stage.ear.level(of: 440) > -40 })
        stage.player.seek(to: 11.5)
        #expect(stage.until { stage.finished == 1 })
        #expect(stage.until { compositor.has(299) })
        // Another film, and then none.
        stage.player.load(uri: "file://" + (try TestMedia.named("long-gop.mp4").path()))
        stage.player.seek(to: 2.001)
        #expect(stage.until { compositor.has(50) })
        stage.player.unload()
        stage.film.hide()
        #expect(stage.until { !compositor.has(50) })
        stage.player.load(uri: "file://" + (try TestMedia.named("long-gop.mp4").path()))
        stage.player.seek(to: 3.001)
        #expect(stage.until { compositor.has(75) })
        #expect(stage.failures == [])
    }

    @Test func fullscreen_coversTheScreen_inEachScaling() throws {
        // Without a screen of its own, Weston 14 leaves a window where it was when it becomes full screen.
        let compositor = try PrivateCompositor(on: PrivateScreen())
        let stage = try FilmStage("short-gop.mp4", wayland: compositor)
        #expect(throws: SessionError.self) { try stage.film.setFullscreen(true) }
        #expect(stage.until { stage.film.isReady })
        stage.player.seek(to: 4.001)
        #expect(compositor.number() != 100)
        try stage.film.setFullscreen(true)
        #expect(stage.until { compositor.number() == 100 })
        #expect(stage.until { stage.film.isFullscreen })
        // The whole picture has black above and below.
        #expect(compositor.isBlack(y: 0, height: 58) && compositor.isBlack(y: 422, height: 58))
        stage.film.scaling = .fill
        #expect(stage.until { compositor.number(y: 0, height: 480) == 100 && !compositor.isBlack(y: 0, height: 40) })
        // 853 pixels wide: the first and the last two of its 16 columns are cut off.
        stage.film.scaling = .aspectFill
        #expect(
            stage.until {
                [27, 80, 134, 187, 240, 294].map { compositor.isBright($0) } == [true, false, false, true, true, false]
            })
        stage.film.scaling = .none
        #expect(stage.until { compositor.number(x: 160, y: 150, width: 320, height: 180) == 100 })
        stage.film.scaling = .aspectFit
        #expect(stage.until { compositor.number() == 100 })
        // The next film is there, too.
        stage.player.load(uri: "file://" + (try TestMedia.named("long-gop.mp4").path()))
        stage.player.seek(to: 2.001)
        #expect(stage.until { compositor.number() == 50 })
        try stage.film.setFullscreen(false)
        #expect(stage.until { compositor.has(50) && compositor.number() != 50 })
        #expect(stage.until { stage.fullscreen.count == 4 })
        #expect(stage.fullscreen == [.willEnter, .didEnter, .willExit, .didExit])
        #expect(stage.failures == [])
    }

    @Test func compositorIsKilled_isReportedOnce_andTheProcessGoesOn() throws {
        let compositor = try PrivateCompositor()
        let stage = try FilmStage("short-gop.mp4", wayland: compositor)
        try stage.player.play()
        #expect(stage.until { stage.film.isReady && stage.player.position > 0.3 })
        compositor.kill()
        #expect(stage.until { !stage.failures.isEmpty })
        #expect(stage.player.state == .failed)
        stage.player.unload()
        stage.film.hide()
        // The next film is played without pictures.
        stage.player.load(uri: "file://" + (try TestMedia.named("short-gop.mp4").path()))
        try stage.player.play()
        #expect(stage.until { stage.ear.level(of: 440) > -40 })
        #expect(stage.film.output == "none" && stage.failures.count == 1)
        #expect(stage.failures.first?.contains("the Wayland compositor closed the connection") == true)
    }

    @Test func auto_isX11IfThereIsAServer_elseWayland() throws {
        let (screen, compositor) = (try PrivateScreen(), try PrivateCompositor())
        let stage = try FilmStage("short-gop.mp4", on: screen, wayland: compositor)
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
        #expect(stage.film.output == "x11")
        // The next film is where there is still a screen.
        screen.kill()
        #expect(stage.until { stage.failures.count == 1 })
        stage.player.load(uri: "file://" + (try TestMedia.named("short-gop.mp4").path()))
        stage.player.seek(to: 4.001)
        #expect(stage.until { compositor.has(100) })
        #expect(stage.film.output == "wayland")
    }

    @Test func keysInTheWindow_areCommands_withoutThoseOfTheDesktop() throws {
        let screen = try PrivateScreen()
        let compositor = try PrivateCompositor(on: screen)
        let stage = try FilmStage("short-gop.mp4", wayland: compositor)
        #expect(stage.until { stage.film.isReady })
        let window = try #require(screen.windows.last)
        // The codes of evdev: space, f and Escape. Keys that are pressed before the window has the focus, which Weston gives to a
        // new one, are lost. The screen must not give and take the focus meanwhile: then the window has lost it for ever.
        #expect(
            stage.until {
                if stage.commands.isEmpty { screen.type(65, in: window) }
                return stage.commands.first == .playOrPause
            })
        let count = stage.commands.count
        for code: UInt8 in [41, 9] { screen.type(code, in: window) }
        #expect(stage.until { stage.commands.count == count + 2 })
        #expect(stage.commands.suffix(2) == [.toggleFullscreen, .leaveFullscreen])
    }

    /// The window has its place by chance: it is found by full screen.
    @Test(.enabled(if: PrivateScreen.canPoint, "needs libXtst")) func doubleClick_isFullScreenAndBack() throws {
        let screen = try PrivateScreen()
        let compositor = try PrivateCompositor(on: screen)
        let stage = try FilmStage("short-gop.mp4", wayland: compositor)
        stage.film.onCommand = { command in
            stage.commands.append(command)
            if command == .toggleFullscreen { try? stage.film.setFullscreen(!stage.film.isFullscreen) }
        }
        #expect(stage.until { stage.film.isReady })
        try stage.film.setFullscreen(true)
        #expect(stage.until { stage.film.isFullscreen })
        for count in 1...4 {
            let isFull = stage.film.isFullscreen
            // The window is somewhere: one of these places is in it.
            let places = stride(from: 80, to: 640, by: 160).flatMap { x in
                stride(from: 80, to: 480, by: 90).map { (x, $0) }
            }
            let hit = try places.first { x, y in
                try screen.point(x, y, times: 2)
                return stage.until(0.5) { stage.commands.count == count || !stage.failures.isEmpty }
            }
            #expect(hit != nil && stage.until(5) { stage.film.isFullscreen != isFull }, "\(count)")
        }
        #expect(stage.failures == [])
    }

    @Test func noCompositor_isRefusedWithTheReason() throws {
        let film = FilmScreen(on: EventLoop(), wayland: "/no/such/socket")
        for (output, words) in [("wayland", "WAYLAND_DISPLAY"), ("x11", "DISPLAY")] {
            do {
                try film.choose(output: output)
                Issue.record("\(output) was accepted")
            } catch {
                #expect(error.code == .notSupported && error.message.contains(words), "\(error.message)")
            }
        }
    }
}
