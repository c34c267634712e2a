import CameraBackend
import DBus
import EventLoop
import Foundation
import Glibc
import PluginAPI
import SessionBus
import TestSupport
import Testing

@testable import Capture

/// Cameras through the real xdg-desktop-portal, its permission store, PipeWire and WirePlumber; only its dialog is ours.
@Suite(
    .serialized,
    .enabled(
        if: VirtualCamera.isPossible && FakeDesktop.isPossible, "needs gstreamer1.0-pipewire and xdg-desktop-portal"))
struct CapturePortalTests {
    /// The cameras that `Devices` lists, and how long that took, in seconds.
    private func cameras(_ stage: CaptureStage) throws -> (ids: [String], seconds: Double) {
        let place = try stage.place()
        let start = Date()
        let answer = try stage.connection.callAndWait(
            place, "/org/sessiond1/capture", "org.sessiond1.Capture", "Devices",
            [.properties([("media", .string("video"))])], timeout: 20)
        let ids = (answer.first?.arrayValue ?? []).compactMap { $0.asProperties?["id"]?.stringValue }
        return (ids, Date().timeIntervalSince(start))
    }

    private func list(_ stage: CaptureStage) throws -> String {
        let list = try stage.sessionctl("camera", "list")
        #expect(list.wait(timeout: 30) == .code(0), "\(list.errors) \(stage.errors)")
        return list.text
    }

    private func photo(_ stage: CaptureStage, _ name: String = "photo.jpg") throws -> (
        exit: Child.Exit?, errors: String
    ) {
        let photo = try stage.sessionctl("camera", "photo", stage.path(name))
        let exit = photo.wait(timeout: 40)
        return (exit, photo.errors.joined(separator: "\n"))
    }

    @Test func userWhoAgrees_isAskedOnce_andOnlyWhenACameraIsUsed() throws {
        let stage = try CaptureStage(portal: "always")
        let desktop = try #require(stage.desktop)
        try desktop.answer("yes")
        // Before the answer, one camera stands for all.
        let before = try list(stage)
        #expect(before.contains("portal") && !before.contains("front"), "\(before)")
        #expect(try cameras(stage).ids == ["portal"])
        #expect(desktop.questions.isEmpty)
        let first = try photo(stage)
        #expect(first.exit == .code(0), "\(first.errors) \(stage.errors)")
        #expect(desktop.questions == ["-"])
        let after = try list(stage)
        #expect(after.contains("front") && !after.contains("portal"), "\(after)")
        let second = try photo(stage, "second.jpg")
        #expect(second.exit == .code(0), "\(second.errors) \(stage.errors)")
        let film = try stage.sessionctl("camera", "record", "--duration", "1", stage.path("film.mp4"))
        #expect(film.wait(timeout: 30) == .code(0), "\(film.errors) \(stage.errors)")
        #expect(try ReadFilm(stage.path("film.mp4")).pictures.count == 30)
        #expect(desktop.questions == ["-"])
    }

    /// With and without a portal.
    @Test(arguments: ["always", "never"]) func uses_leaveNothingOpen(portal: String) throws {
        let stage = try CaptureStage(portal: portal)
        let desktop = try #require(stage.desktop)
        try desktop.permit("", "yes")
        func descriptors() throws -> [String] {
            let folder = "/proc/\(try stage.plugin())/fd"
            return try FileManager.default.contentsOfDirectory(atPath: folder).compactMap {
                try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + $0)
            }
        }
        // With PipeWire 1.4, a camera without hardware leaves with its last reader, and comes back.
        func use() throws {
            #expect(eventually(timeout: 10) { (try? cameras(stage).ids) == ["front"] }, "\(stage.errors)")
            _ = try photo(stage)
        }
        // It starts the plugin.
        _ = try list(stage)
        for _ in 0..<2 { try use() }
        let before = try descriptors()
        let uses = 6
        for _ in 0..<uses { try use() }
        var after: [String] = []
        let isAsBefore = eventually(timeout: 5) {
            after = (try? descriptors()) ?? []
            return after.count < before.count + uses
        }
        #expect(isAsBefore, "\(before.sorted()) \(after.sorted())")
        #expect(desktop.questions.isEmpty)
    }

    @Test func userWhoRefuses_isAnErrorThatSaysWhatToDo() throws {
        let stage = try CaptureStage(portal: "always")
        let desktop = try #require(stage.desktop)
        try desktop.answer("no")
        for _ in 0..<2 {
            let photo = try photo(stage)
            #expect(photo.exit == .code(1) && photo.errors.contains("privacy settings"), "\(photo.errors)")
        }
        // The portal remembers it.
        #expect(desktop.questions == ["-"])
        #expect(try cameras(stage).ids == ["portal"])
        // The user has changed it there.
        try desktop.permit("", "yes")
        let photo = try photo(stage)
        #expect(photo.exit == .code(0), "\(photo.errors) \(stage.errors)")
    }

    @Test func questionThatNobodyAnswers_keepsNobodyWaiting_andItsAnswerCountsLater() throws {
        let stage = try CaptureStage(portal: "always")
        let desktop = try #require(stage.desktop)
        try desktop.answer("wait")
        let photo = try stage.sessionctl("camera", "photo", stage.path("photo.jpg"))
        #expect(eventually(timeout: 20) { desktop.questions == ["-"] }, "\(photo.errors) \(stage.errors)")
        for _ in 0..<5 {
            let (ids, seconds) = try cameras(stage)
            #expect(ids == ["portal"] && seconds < 1, "\(ids) \(seconds)")
        }
        // Who asked has gone. The question stays: portals take a dialog that is closed for a no.
        photo.signal(SIGINT)
        #expect(photo.wait(timeout: 10) != nil)
        #expect(try cameras(stage).ids == ["portal"])
        #expect(desktop.closed == 0)
        try desktop.answer("yes")
        #expect(eventually(timeout: 20) { (try? cameras(stage).ids) == ["front"] }, "\(stage.errors)")
        let next = try self.photo(stage)
        #expect(next.exit == .code(0), "\(next.errors) \(stage.errors)")
        #expect(desktop.questions == ["-"])
    }

    /// The limit of a minute, made shorter.
    @Test func whoHasWaitedLongEnough_getsAnError_andTheNextOneWaitsForTheSameQuestion() throws {
        let stage = try CaptureStage(portal: "always")
        let desktop = try #require(stage.desktop)
        let loop = EventLoop()
        let connection = try Connection(.custom(stage.bus.address), loop: loop)
        let monitor = CameraMonitor(on: loop, isOfPortal: true)
        let portal = CameraPortal(monitor, on: connection, patience: 0.5)
        func want() -> SessionError? {
            var answer: SessionError??
            let wait = portal.want { answer = .some($0) }
            _ = withExtendedLifetime(wait) { loop.iterate(timeout: 10) { answer != nil } }
            return answer ?? SessionError(.notReady, "no answer")
        }
        #expect(want()?.code == .timedOut)
        #expect(want()?.code == .timedOut)
        #expect(desktop.questions == ["-"] && desktop.closed == 0 && portal.isAsking)
        // Two wait for one question, and one of them leaves.
        var isTold = false
        _ = portal.want { _ in isTold = true }
        try desktop.answer("no")
        #expect(loop.iterate(timeout: 10) { !portal.isAsking } && !isTold)
        #expect(want()?.code == .missingEntitlement)
    }

    @Test func portalThatEndsDuringTheQuestion_isAnError_andTheNextPortalIsAsked() throws {
        let stage = try CaptureStage(portal: "always")
        let desktop = try #require(stage.desktop)
        let photo = try stage.sessionctl("camera", "photo", stage.path("photo.jpg"))
        #expect(eventually(timeout: 20) { desktop.questions.count == 1 }, "\(photo.errors) \(stage.errors)")
        desktop.endPortal()
        #expect(photo.wait(timeout: 20) == .code(1) && photo.errors.joined().contains("portal"), "\(photo.errors)")
        // There is none.
        let without = try self.photo(stage)
        #expect(without.exit == .code(1), "\(without.errors)")
        #expect(try list(stage).contains("No cameras"))
        try desktop.start(stage.server)
        try desktop.answer("yes")
        let next = try self.photo(stage)
        #expect(next.exit == .code(0), "\(next.errors) \(stage.errors)")
    }

    /// The connection is dead; the portal gives another one.
    @Test func pipeWireThatIsRestarted_isFoundAgain_withoutAQuestion() throws {
        let stage = try CaptureStage(portal: "always")
        let desktop = try #require(stage.desktop)
        try desktop.permit("", "yes")
        let first = try photo(stage)
        #expect(first.exit == .code(0), "\(first.errors) \(stage.errors)")
        let plugin = try stage.plugin()
        stage.server.kill()
        #expect(eventually(timeout: 10) { (try? cameras(stage).ids.contains("front")) == false })
        try stage.server.restart()
        stage.camera.remove()
        let camera = try VirtualCamera(stage.server, name: "again")
        #expect(eventually(timeout: 30) { (try? cameras(stage).ids) == ["again"] }, "\(stage.errors)")
        let next = try photo(stage, "next.jpg")
        #expect(next.exit == .code(0), "\(next.errors) \(stage.errors)")
        #expect(try stage.plugin() == plugin && desktop.questions.isEmpty)
        camera.remove()
    }

    @Test func film_survivesTheEndOfThePortal() throws {
        let stage = try CaptureStage(portal: "always")
        let desktop = try #require(stage.desktop)
        try desktop.permit("", "yes")
        let run = try stage.sessionctl("camera", "record", stage.path("film.mp4"))
        #expect(run.line(timeout: 30) { $0.hasPrefix("recording") } != nil, "\(run.errors) \(stage.errors)")
        desktop.endPortal()
        let before = try stage.recorded()
        #expect(eventually(timeout: 20) { (try? stage.recorded()) ?? 0 > before + 1 })
        run.signal(SIGINT)
        #expect(run.wait(timeout: 20) == .code(0), "\(run.errors)")
        #expect(try ReadFilm(stage.path("film.mp4")).isInOrder)
    }

    /// The application of the sandbox is what the user is asked about, and the session manager shows its cameras by that name.
    @Test func sandbox_isAskedByItself_andAPermissionThatIsTakenBackCountsFromTheNextUse() throws {
        let stage = try CaptureStage(portal: "auto", sandbox: "org.example.Booth")
        let desktop = try #require(stage.desktop)
        try desktop.answer("yes")
        let run = try stage.sessionctl("camera", "record", stage.path("film.mp4"))
        #expect(run.line(timeout: 30) { $0.hasPrefix("recording") } != nil, "\(run.errors) \(stage.errors)")
        #expect(desktop.questions == ["org.example.Booth"])
        #expect(eventually(timeout: 20) { (try? stage.recorded()) ?? 0 > 1 })
        try desktop.permit("org.example.Booth", "no")
        let photo = try photo(stage)
        #expect(photo.exit == .code(1) && photo.errors.contains("privacy settings"), "\(photo.errors)")
        // The connection is closed then, and with it the camera of the film.
        #expect(run.wait(timeout: 30) == .code(1), "\(run.output) \(run.errors) \(stage.errors)")
        let film = try ReadFilm(stage.path("film.mp4"))
        #expect(film.isInOrder && film.pictures.count >= 30)
        try desktop.permit("org.example.Booth", "yes")
        let next = try self.photo(stage)
        #expect(next.exit == .code(0), "\(next.errors) \(stage.errors)")
        #expect(desktop.questions == ["org.example.Booth"])
    }

    @Test func outsideOfASandbox_nobodyIsAsked() throws {
        let stage = try CaptureStage(portal: "auto")
        let photo = try photo(stage)
        #expect(photo.exit == .code(0), "\(photo.errors) \(stage.errors)")
        #expect(stage.desktop?.questions.isEmpty == true)
        #expect(try cameras(stage).ids == ["front"])
    }
}
