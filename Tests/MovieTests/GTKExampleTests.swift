import Foundation
import TestSupport
import Testing

private enum GTK {
    /// Version 4, and its sink of GStreamer.
    static let isInstalled: Bool = {
        let needed = "import gi; gi.require_version('Gtk', '4.0')"
        return (try? Child.run("/usr/bin/python3", ["-c", needed])) != nil
            && (try? Child.run("gst-inspect-1.0", ["--exists", "gtk4paintablesink"])) != nil
    }()
}

/// `Examples/GTK4/film`: a program with a window of its own for the pictures of a film, with the real daemon and PipeWire.
@Suite(
    .serialized,
    .enabled(if: VirtualCamera.isPossible && GTK.isInstalled && PrivateScreen.canPoint, "needs GTK 4 and its sink"))
struct GTKExampleTests {
    /// Without a window manager, the window is in the corner of the screen, and the film in its upper part.
    private final class Stage {
        let node: NodeStage
        let screen: PrivateScreen
        let program: Child

        /// Starts the example, and waits until the film is seen and heard.
        init(_ film: String = "clicks.mp4") throws {
            node = try NodeStage(hasOwnSound: true, isOpened: true)
            screen = try PrivateScreen()
            let ours = [
                "DISPLAY": screen.display, "GDK_BACKEND": "x11", "LC_ALL": "C.UTF-8", "GTK_A11Y": "none",
                // Without a graphics card, drawing by GL takes seconds to begin.
                "GSK_RENDERER": "cairo", "GDK_DISABLE": "gl,vulkan",
            ]
            program = try Child(
                "/usr/bin/python3",
                [repository.path + "/Examples/GTK4/film", try TestMedia.named(film).path()],
                environment: node.environment.merging(ours) { $1 })
            // A window without a picture is white.
            guard node.ear.waitUntil(440, above: -40, timeout: 60),
                eventually(timeout: 30, { (1..<300).contains(number) })
            else {
                throw SupportError("the film is not seen: \(program.output) \(program.errors)")
            }
        }

        var number: Int { screen.number(width: 640, height: 360) }

        func moves(within seconds: Double) -> Bool {
            let first = number
            return eventually(timeout: seconds) { number != first }
        }
    }

    @Test func keysAndThePointer_pauseAndSeek_andTheFilmEndsWithItsWindow() throws {
        let stage = try Stage()
        #expect(stage.moves(within: 5))
        try stage.screen.point(300, 180, key: "space")
        #expect(stage.node.ear.waitUntil(440, below: -60, timeout: 20))
        #expect(eventually { !stage.moves(within: 0.5) })
        // In the seek bar, three quarters from its beginning: of 300 pictures.
        try stage.screen.point(380, 382)
        #expect(eventually { (200...250).contains(stage.number) }, "\(stage.number)")
        #expect(!stage.moves(within: 0.5))
        try stage.screen.point(300, 180, key: "Left")
        #expect(eventually { (75...125).contains(stage.number) }, "\(stage.number)")
        try stage.screen.point(18, 382)
        #expect(stage.node.ear.waitUntil(440, above: -40, timeout: 20))
        #expect(stage.moves(within: 5))
        stage.program.signal(SIGTERM)
        #expect(stage.program.wait(timeout: 20) == .code(0), "\(stage.program.errors)")
        #expect(stage.node.ear.waitUntil(440, below: -60, timeout: 20))
        #expect(stage.program.errors.isEmpty, "\(stage.program.errors)")
    }

    @Test func call_pausesTheFilm_whichGoesOn() throws {
        let stage = try Stage("short-gop.mp4")
        let call = try stage.node.sessionctl(
            "run", "--name", "Phone", "--category", "play-and-record", "--class", "call", "--", "sh", "-c",
            "echo runs; exec sleep 600")
        #expect(call.line(timeout: 30, where: { $0 == "runs" }) != nil)
        #expect(stage.node.ear.waitUntil(440, below: -60, timeout: 30))
        #expect(eventually { !stage.moves(within: 0.5) })
        // The picture stays, also longer than the two seconds after which the node is connected again.
        let number = stage.number
        var others: [Int] = []
        _ = eventually(timeout: 3) {
            let now = stage.number
            if now != number { others.append(now) }
            return false
        }
        #expect(number > 0 && others.isEmpty, "\(number), then \(others)")
        call.signal(SIGTERM)
        #expect(call.wait(timeout: 30) == .code(143))
        #expect(stage.moves(within: 10))
        #expect(stage.node.ear.waitUntil(440, above: -40, timeout: 20))
    }

    @Test func pipeWireIsStartedAgain_andThePicturesComeBack() throws {
        let stage = try Stage("short-gop.mp4")
        stage.node.server.kill()
        #expect(stage.node.ear.waitUntil(440, above: -40, timeout: 10))
        #expect(eventually(timeout: 10) { !stage.moves(within: 0.5) })
        try stage.node.server.restart()
        let start = monotonicNow()
        #expect(stage.moves(within: 20), "\(stage.program.errors)")
        #expect(monotonicNow() - start < 15)
    }

    @Test func whatIsSeen_isInStepWithWhatIsHeard() throws {
        let stage = try Stage()
        // When the first picture of each second was seen.
        var seen: [(second: Int, time: Double)] = []
        var last = stage.number
        let end = monotonicNow() + 30
        while seen.count < 8, monotonicNow() < end {
            let (number, now) = (stage.number, monotonicNow())
            if number > last, number / 25 > last / 25, number % 25 == 0 { seen.append((number / 25, now)) }
            last = number
            usleep(500)
        }
        #expect(seen.count == 8)
        let trace = stage.node.ear.trace(440, window: 0.002, since: (seen.first?.time ?? 0) - 1)
        let starts = zip(trace, trace.dropFirst()).filter { $0.level < -35 && $1.level >= -35 }.map { $1.time }
        let offsets = seen.compactMap { picture in
            starts.map { (picture.time - $0) * 1_000 }.min { abs($0) < abs($1) }
        }.sorted()
        let median = try #require(offsets.isEmpty ? nil : offsets[offsets.count / 2])
        #expect(abs(median) < 100, "\(offsets)")
    }

    @Test func whatCannotWork_isRefusedWithTheReason() throws {
        let screen = try PrivateScreen()
        let bus = try PrivateBus()
        let environment = bus.environment.merging(["DISPLAY": screen.display, "HOME": bus.folder.path]) { $1 }
        let path = repository.path + "/Examples/GTK4/film"
        let alone = try Child("/usr/bin/python3", [path], environment: environment)
        #expect(alone.wait(timeout: 20) == .code(1))
        #expect(alone.errors.joined().contains("film FILE|URL"), "\(alone.errors)")
        // There is no sessiond.
        let absent = try Child("/usr/bin/python3", [path, "film.mp4"], environment: environment)
        #expect(absent.wait(timeout: 20) == .code(1))
        #expect(absent.errors.last?.contains("org.sessiond1") == true, "\(absent.errors)")
    }
}
