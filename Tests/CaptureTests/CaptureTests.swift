import DBus
import Foundation
import Glibc
import SessionBus
import TestSupport
import Testing

/// Films and photos of a camera without hardware, with `sessionctl camera`.
@Suite(.serialized, .enabled(if: VirtualCamera.isPossible, "needs gstreamer1.0-pipewire"))
struct CaptureTests {
    private func isSame(_ left: Double, _ right: Double) -> Bool { abs(left - right) < 0.001 }

    @Test func durationOfFiveSeconds_is150PicturesAnd240000Samples() throws {
        let stage = try CaptureStage()
        let film = stage.path("film.mp4")
        let record = try stage.sessionctl("camera", "record", "--duration", "5", film)
        #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
        #expect(record.text.contains("film.mp4  5 s"))
        let read = try ReadFilm(film)
        #expect(read.pictures.count == 150 && read.isInOrder, "\(read.pictures)")
        // By the index, which leaves out what the encoder put before the sound.
        #expect(isSame(read.videoLength, 5) && isSame(read.audioLength ?? 0, 5))
        #expect(!read.isFragmented)
    }

    /// The camera is still being opened when it is left.
    @Test func recordingThatIsStoppedAtItsStart_leavesNothing_andTheNextOneWorks() throws {
        let stage = try CaptureStage()
        #expect(try stage.sessionctl("camera", "list").wait(timeout: 20) == .code(0))
        for number in 0..<8 {
            let record = try stage.sessionctl("camera", "record", stage.path("film.mp4"))
            // At some moment between its start and its first pictures.
            usleep(UInt32(number) * 60_000)
            record.signal(number % 2 == 0 ? SIGINT : SIGTERM)
            let code = record.wait(timeout: 20)
            // Before its first picture, without one, or with a short film: whatever it is, the plugin goes on.
            #expect(code != nil && !record.errors.joined().contains("ended unexpectedly"), "\(record.errors)")
            unlink(stage.path("film.mp4"))
        }
        let record = try stage.sessionctl("camera", "record", "--duration", "0.5", stage.path("last.mp4"))
        #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
        #expect(try ReadFilm(stage.path("last.mp4")).pictures.count == 15)
    }

    /// With PipeWire 1.4, a camera without hardware is another one after its last reader has left.
    @Test func cameraWhoseLastReaderHasJustLeft_isListedAndOpened() throws {
        let stage = try CaptureStage()
        for number in 0..<4 {
            let photo = try stage.sessionctl("camera", "photo", stage.path("\(number).jpg"))
            #expect(photo.wait(timeout: 20) == .code(0), "\(photo.errors) \(stage.errors)")
            let list = try stage.sessionctl("camera", "list")
            #expect(list.wait(timeout: 20) == .code(0) && list.text.contains("front"), "\(list.text)")
        }
    }

    @Test func callInAFilm_isOneFileWithBothParts() throws {
        let stage = try CaptureStage()
        let film = stage.path("film.mp4")
        let record = try stage.sessionctl("camera", "record", film)
        #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors) \(stage.errors)")
        let call = try stage.call()
        try wait(1)
        try call.begin()
        #expect(record.line { $0 == "interrupted" } != nil)
        try wait(1)
        // A film with sound must wait for the end of the call; the pictures alone need no microphone.
        let other = try stage.sessionctl("camera", "record", stage.path("other.mp4"))
        #expect(other.wait() == .code(1) && other.errors.joined().contains("has priority"), "\(other.errors)")
        let silent = try stage.sessionctl(
            "camera", "record", "--no-sound", "--duration", "0.5", stage.path("silent.mp4"))
        #expect(silent.wait(timeout: 20) == .code(0), "\(silent.errors)")
        let alone = try ReadFilm(stage.path("silent.mp4"))
        #expect(isSame(alone.videoLength, 0.5) && alone.audioLength == nil, "\(alone.videoLength) s")
        try call.end()
        #expect(record.line { $0 == "resumed" } != nil)
        try wait(1)
        record.signal(SIGINT)
        #expect(record.wait(timeout: 20) == .code(0), "\(record.errors)")
        let read = try ReadFilm(film)
        #expect(read.isInOrder)
        // The call is the one large step, and nothing else is missing.
        #expect(read.steps.filter { $0 > 20 }.count == 1, "\(read.steps)")
        let length = Double(read.pictures.count) / 30
        #expect(isSame(read.videoLength, length), "\(length) s")
        #expect(isSame(read.audioLength ?? 0, length), "\(length) s")
    }

    @Test func pluginThatIsKilled_leavesAFilmThatTheNextStartCompletes() throws {
        let stage = try CaptureStage()
        let film = stage.path("film.mp4")
        let record = try stage.sessionctl("camera", "record", film)
        #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors)")
        try wait(2.7)
        kill(try stage.plugin(), SIGKILL)
        #expect(record.wait() == .code(1))
        // The daemon starts the plugin again, and its start completes the film.
        #expect(eventually(timeout: 20) { stage.errors.contains("was not completed; it is an ordinary film now") })
        let read = try ReadFilm(film)
        // At most the last fragment is missing, and what was on its way through the encoder.
        #expect(!read.isFragmented && read.pictures.count > 50 && read.isInOrder, "\(read.pictures.count)")
        #expect(isSame(read.videoLength, Double(read.pictures.count) / 30))
        let list = try stage.sessionctl("camera", "list")
        #expect(list.wait(timeout: 20) == .code(0) && list.text.contains("front"))
        // And the next film works.
        let next = try stage.sessionctl("camera", "record", "--duration", "1", stage.path("next.mp4"))
        #expect(next.wait(timeout: 20) == .code(0), "\(next.errors)")
    }

    @Test func photoAndStatus_whileAFilmIsRecorded() throws {
        let stage = try CaptureStage()
        let record = try stage.sessionctl("camera", "record", "--duration", "4", stage.path("film.mp4"))
        #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors)")
        let photo = try stage.sessionctl("camera", "photo", stage.path("photo.jpg"))
        #expect(photo.wait(timeout: 20) == .code(0), "\(photo.errors)")
        let size = try Child.run(
            "ffprobe",
            ["-v", "error", "-show_entries", "stream=width,height", "-of", "csv=p=0", stage.path("photo.jpg")])
        #expect(size.contains("640,480"))
        let status = try stage.sessionctl("status")
        #expect(status.wait() == .code(0))
        #expect(
            status.output.contains { $0.contains("front, by sessionctl camera, since") && $0.contains("recording") })
        #expect(record.wait(timeout: 20) == .code(0), "\(record.errors)")
        #expect(try ReadFilm(stage.path("film.mp4")).pictures.count == 120)
    }

    @Test func cameraThatIsUnplugged_leavesACompleteFilm() throws {
        let stage = try CaptureStage()
        let film = stage.path("film.mp4")
        let record = try stage.sessionctl("camera", "record", film)
        #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors)")
        // On a busy machine, a film gets its first pictures late.
        #expect(eventually(timeout: 20) { (try? stage.recorded()) ?? 0 > 1.2 })
        stage.camera.remove()
        #expect(record.wait(timeout: 30) == .code(1))
        #expect(record.errors.joined().contains("did not come back"), "\(record.errors) \(stage.errors)")
        #expect(access(film, F_OK) == 0, "\(record.output) \(record.errors) \(stage.errors)")
        let read = try ReadFilm(film)
        #expect(!read.isFragmented && read.pictures.count > 30, "\(read.pictures.count)")
    }

    @Test(arguments: ["mov", "mkv", "webm"]) func otherFormats_areCompleteToo(ending: String) throws {
        let stage = try CaptureStage(rate: 25)
        let film = stage.path("film." + ending)
        let record = try stage.sessionctl("camera", "record", "--duration", "2", film)
        #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
        let read = try ReadFilm(film)
        #expect(read.pictures.count == 50 && read.isInOrder)
    }

    @Test func wrongWishes_areRefusedWithAWayOut() throws {
        let stage = try CaptureStage()
        for (words, text) in [
            (["--device", "side", "x.mp4"], "camera list"), (["x.avi"], ".mp4, .mov, .mkv or .webm"),
            (["--preset", "3840x2160", "x.mp4"], "it has low, medium, high"), (["/nowhere/x.mp4"], "no such folder"),
        ] {
            let record = try Child(
                try builtProduct(named: "sessionctl"), ["camera", "record"] + words, environment: stage.environment,
                folder: stage.folder.path)
            #expect(record.wait(timeout: 20) == .code(1), "\(words)")
            #expect(record.errors.joined().contains(text), "\(words): \(record.errors)")
        }
        try "here".write(toFile: stage.path("x.mp4"), atomically: true, encoding: .utf8)
        let record = try stage.sessionctl("camera", "record", stage.path("x.mp4"))
        #expect(record.wait(timeout: 20) == .code(1) && record.errors.joined().contains("exists already"))
        #expect(try String(contentsOfFile: stage.path("x.mp4"), encoding: .utf8) == "here")
    }

    /// Each of these calls looks for cameras. With PipeWire 0.3, the end of a search may crash the process.
    @Test func machineWithoutACamera_isAskedOftenByOneProcess_andFindsTheNextCamera() throws {
        let stage = try CaptureStage()
        #expect(try stage.sessionctl("camera", "list").wait(timeout: 20) == .code(0))
        let (plugin, place) = (try stage.plugin(), try stage.place())
        stage.camera.remove()
        for _ in 0..<60 {
            let answer = try stage.connection.callAndWait(
                place, "/org/sessiond1/capture", "org.sessiond1.Capture", "Devices", [.properties([])], timeout: 10)
            #expect(answer.count == 1)
        }
        #expect(try stage.plugin() == plugin, "\(stage.errors)")
        let camera = try VirtualCamera(stage.server, name: "Kitchen")
        #expect(
            eventually(timeout: 20) {
                (try? stage.sessionctl("camera", "list"))
                    .map { $0.wait(timeout: 10) == .code(0) && $0.text.contains("Kitchen") } == true
            })
        camera.remove()
    }

    @Test func diskWithoutAnySpace_isTold_andNoEmptyFileStays() throws {
        let stage = try CaptureStage()
        let disk = stage.path("disk")
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: false)
        // A container may not mount.
        guard (try? Child.run("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", disk])) != nil else { return }
        defer { _ = try? Child.run("umount", ["-l", disk]) }
        _ = FileManager.default.createFile(atPath: disk + "/fill", contents: nil)
        let fill = try #require(FileHandle(forWritingAtPath: disk + "/fill"))
        while (try? fill.write(contentsOf: Data(count: 4_096))) != nil {}
        try fill.close()
        let record = try stage.sessionctl("camera", "record", disk + "/film.mp4")
        #expect(record.wait(timeout: 30) == .code(1))
        #expect(record.errors.joined().contains("0 MiB are left on the disk"), "\(record.errors)")
        #expect(access(disk + "/film.mp4", F_OK) != 0)
        // What a film would replace is kept if it cannot be replaced.
        try FileManager.default.moveItem(atPath: disk + "/fill", toPath: disk + "/fill.mp4")
        let replacing = try stage.sessionctl("camera", "record", "--overwrite", disk + "/fill.mp4")
        #expect(replacing.wait(timeout: 30) == .code(1))
        #expect(access(disk + "/fill.mp4", F_OK) == 0)
    }

    @Test func photoThatExists_isReplacedOnlyWithOverwrite() throws {
        let stage = try CaptureStage()
        for name in ["x.jpg", "y-2.jpg"] {
            try "here".write(toFile: stage.path(name), atomically: true, encoding: .utf8)
        }
        for words in [[stage.path("x.jpg")], ["--burst", "3", stage.path("y.jpg")]] {
            let photo = try Child(
                try builtProduct(named: "sessionctl"), ["camera", "photo"] + words, environment: stage.environment)
            #expect(photo.wait(timeout: 20) == .code(1))
            #expect(photo.errors.joined().contains("--overwrite"), "\(photo.errors)")
        }
        #expect(try String(contentsOfFile: stage.path("x.jpg"), encoding: .utf8) == "here")
        #expect(access(stage.path("y-1.jpg"), F_OK) != 0)
        let photo = try stage.sessionctl("camera", "photo", "--overwrite", stage.path("x.jpg"))
        #expect(photo.wait(timeout: 20) == .code(0), "\(photo.errors)")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: stage.path("x.jpg")))
        #expect(bytes.starts(with: [0xFF, 0xD8]))
        let zoomed = try stage.sessionctl("camera", "photo", "--zoom", "9", stage.path("z.jpg"))
        #expect(zoomed.wait(timeout: 20) == .code(64))
        #expect(zoomed.errors.joined().contains("--zoom needs a number from 1 to 8"), "\(zoomed.errors)")
    }

    /// The length of a part of a film: what is recorded meanwhile is the point.
    private func wait(_ seconds: Double) throws {
        let end = Date(timeIntervalSinceNow: seconds)
        _ = eventually(timeout: seconds + 1) { Date() >= end }
    }
}
