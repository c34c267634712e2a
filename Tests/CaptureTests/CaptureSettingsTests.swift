import DBus
import Foundation
import Glibc
import PluginAPI
import SessionKit
import TestSupport
import Testing

/// Zoom, orientation, encoders and bursts of a camera without hardware.
@Suite(.serialized, .enabled(if: VirtualCamera.isPossible, "needs gstreamer1.0-pipewire"))
struct CaptureSettingsTests {
    /// Whether a sound plays now.
    private func isHeard(_ stage: CaptureStage, within seconds: Double) -> Bool {
        eventually(timeout: seconds) { (try? stage.server.pactl(["list", "short", "sink-inputs"]))?.isEmpty == false }
    }

    @Test func shutterSound_isHeard_butNotWithTheSilentSwitch_andNoPhotoNeedsIt() throws {
        let stage = try CaptureStage()
        func photo(_ name: String) throws {
            let run = try stage.sessionctl("camera", "photo", "--shutter-sound", stage.path(name))
            #expect(run.wait(timeout: 20) == .code(0), "\(run.errors)")
            #expect(access(stage.path(name), F_OK) == 0)
        }
        // There is no theme yet.
        try photo("quiet.jpg")
        #expect(!isHeard(stage, within: 0.3))
        let theme = try stage.folder.folder("data/sounds/freedesktop/stereo")
        try WaveFile.write(WaveFile.sines([(1_000, 3)]), to: theme + "/camera-shutter.wav")
        try photo("loud.jpg")
        #expect(isHeard(stage, within: 10), "\(stage.errors)")
        #expect(
            eventually(timeout: 10) {
                (try? stage.server.pactl(["list", "short", "sink-inputs"]))?.isEmpty == true
            })
        let silent = try stage.sessionctl("silent", "on")
        #expect(silent.wait(timeout: 10) == .code(0), "\(silent.errors)")
        try photo("silent.jpg")
        #expect(!isHeard(stage, within: 0.7))
    }

    private func probe(_ path: String, _ entries: String) throws -> String {
        let text = try Child.run("ffprobe", ["-v", "error", "-show_entries", entries, "-of", "default=nw=1", path])
        return text.split(separator: "\n").joined(separator: "\n")
    }

    // MARK: Controls

    /// The value of the fields in a row of brightness, each `width` wide.
    private func fields(_ frame: CaptureFrame, y: Int, width: Int) -> Int {
        (0..<frame.size.width / width).reduce(0) { value, field in
            value | (frame.bytes[y * frame.size.width + field * width + width / 2] > 128 ? 1 << field : 0)
        }
    }

    @Test(.timeLimit(.minutes(2))) func zoom_enlargesTheMiddle_andWhatIsNotPossibleIsRefused() async throws {
        let stage = try CaptureStage()
        let bus = BusAddress.custom(stage.bus.address)
        let session = CaptureSession(name: "App", on: bus)
        let camera = try #require(try await CaptureDevice.default(for: .video, on: bus))
        try await session.addInput(camera)
        let frames = try await session.frames(.gray8)
        try await session.startRunning()
        var next = frames.makeAsyncIterator()
        let whole = try #require(await next.next())
        #expect(whole.size == PictureSize(width: 640, height: 480) && whole.bytes.count == 640 * 480)
        #expect(fields(whole, y: 120, width: 40) == ~fields(whole, y: 360, width: 40) & 0xffff)

        let unlocked = await #expect(throws: SessionError.self) { try await session.setZoomFactor(2, of: camera) }
        #expect(unlocked?.code == .notReady)
        try await session.lockForConfiguration(camera)
        let other = CaptureSession(name: "Other", on: bus)
        try await other.addInput(camera)
        let busy = await #expect(throws: SessionError.self) { try await other.lockForConfiguration(camera) }
        #expect(busy?.code == .isBusy && busy?.message.contains("App") == true, "\(String(describing: busy))")
        for name in ["torch", "focus", "exposure", "white-balance"] {
            let refused = await #expect(throws: SessionError.self) {
                try await session.set(name, .double(1), of: camera)
            }
            #expect(refused?.code == .notSupported && refused?.message.contains(name) == true)
        }
        let wrong = await #expect(throws: SessionError.self) { try await session.setZoomFactor(9, of: camera) }
        #expect(wrong?.code == .badParameter)
        try await session.setZoomFactor(2, of: camera)
        try await session.unlockForConfiguration(camera)
        // The session that ends gives back its locks, so the other one could have it now.
        try await other.lockForConfiguration(camera)
        await other.close()

        // The eight fields in the middle, twice as wide: the number without its lowest four bits, which rises by one in 16 pictures.
        var seen: [Int] = []
        while seen.count < 80, let frame = await next.next() {
            let (above, below) = (fields(frame, y: 120, width: 80), fields(frame, y: 360, width: 80))
            // The first ones are still whole.
            if above == ~below & 0xff { seen.append(above) } else { #expect(seen.count < 5) }
        }
        let steps = zip(seen.dropFirst(5), seen.dropFirst(6)).map { $1 - $0 }
        #expect(steps.allSatisfy { (0...1).contains($0) } && steps.reduce(0, +) >= 3, "\(seen)")
        await session.close()
    }

    // MARK: Orientation

    @Test func orientation_isInTheFilmAndInThePhoto() throws {
        let stage = try CaptureStage()
        for (ending, degrees, rotation) in [("mp4", "90", "-90"), ("mov", "270", "90"), ("mp4", "180", "-180")] {
            let film = stage.path("film\(degrees).\(ending)")
            let record = try stage.sessionctl(
                "camera", "record", "--no-sound", "--duration", "1", "--orientation", degrees, film)
            #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
            let facts = try probe(film, "stream=width,height:stream_side_data=rotation")
            #expect(facts == "width=640\nheight=480\nrotation=\(rotation)", "\(facts)")
        }
        // A player turns it.
        let picture = stage.path("picture.png")
        try Child.run(
            "ffmpeg", ["-nostdin", "-v", "error", "-i", stage.path("film90.mp4"), "-frames:v", "1", picture])
        #expect(try probe(picture, "stream=width,height") == "width=480\nheight=640")
        // In WebM, the pictures themselves are turned.
        let web = stage.path("film.webm")
        let record = try stage.sessionctl(
            "camera", "record", "--no-sound", "--duration", "1", "--orientation", "270", web)
        #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
        #expect(try probe(web, "stream=width,height") == "width=480\nheight=640")

        let photo = stage.path("photo.jpg")
        let take = try stage.sessionctl("camera", "photo", "--orientation", "90", photo)
        #expect(take.wait(timeout: 20) == .code(0), "\(take.errors)")
        let tags = try Child.run(
            "gst-launch-1.0", ["-t", "filesrc", "location=\(photo)", "!", "jpegparse", "!", "fakesink"],
            environment: stage.environment)
        #expect(tags.contains("image orientation: rotate-90"), "\(tags)")
        #expect(try probe(photo, "stream=width,height") == "width=640\nheight=480")
        for (words, text) in [
            (["photo", "--orientation", "90", stage.path("photo.png")], "use jpeg"),
            (["photo", "--orientation", "45", photo], "0, 90, 180 or 270"),
            (["record", "--orientation", "1", stage.path("x.mp4")], "0, 90, 180 or 270"),
        ] {
            let refused = try Child(
                try builtProduct(named: "sessionctl"), ["camera"] + words, environment: stage.environment)
            #expect(
                refused.wait(timeout: 20) == .code(1) && refused.errors.joined().contains(text), "\(refused.errors)")
        }
    }

    @Test func filmOfAKilledPlugin_keepsItsOrientation() throws {
        let stage = try CaptureStage()
        let film = stage.path("film.mp4")
        let record = try stage.sessionctl("camera", "record", "--orientation", "180", film)
        #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors)")
        #expect(eventually(timeout: 20) { (try? stage.recorded()) ?? 0 > 2.5 })
        kill(try stage.plugin(), SIGKILL)
        #expect(record.wait() == .code(1))
        #expect(eventually(timeout: 20) { stage.errors.contains("it is an ordinary film now") }, "\(stage.errors)")
        #expect(try probe(film, "stream_side_data=rotation").contains("180"))
    }

    // MARK: Encoders

    @Test(arguments: [
        ("mp4", "openh264", "h264"), ("mov", "x264", "h264"), ("mkv", "vp8", "vp8"), ("webm", "vp8", "vp8"),
    ])
    func codec_isTheOneThatWasChosen(_ ending: String, _ codec: String, _ name: String) throws {
        let stage = try CaptureStage()
        let film = stage.path("film." + ending)
        let record = try stage.sessionctl("camera", "record", "--codec", codec, "--duration", "1", film)
        #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
        #expect(try probe(film, "stream=codec_name").hasPrefix("codec_name=\(name)"))
        let read = try ReadFilm(film)
        #expect(read.pictures.count == 30 && read.isInOrder, "\(read.pictures)")
    }

    @Test func codecThatAFormatCannotHold_isRefusedWithThoseThatItCan() throws {
        let stage = try CaptureStage()
        for (file, codec, text) in [
            ("x.mp4", "vp8", "use h264, x264, openh264"), ("x.webm", "h264", "use vp8"),
            ("x.mp4", "h266", "h264, x264, openh264, vp8"),
        ] {
            let record = try stage.sessionctl("camera", "record", "--codec", codec, stage.path(file))
            #expect(record.wait(timeout: 20) == .code(1) && record.errors.joined().contains(text), "\(record.errors)")
            #expect(access(stage.path(file), F_OK) != 0)
        }
    }

    // MARK: Bursts

    @Test func burst_isThePicturesThatFollowEachOther() throws {
        let stage = try CaptureStage()
        let photo = try stage.sessionctl("camera", "photo", "--burst", "12", stage.path("door.jpg"))
        #expect(photo.wait(timeout: 30) == .code(0), "\(photo.errors)")
        let paths = (1...12).map { stage.path("door-\($0 < 10 ? "0" : "")\($0).jpg") }
        #expect(photo.output == paths)
        let numbers = try paths.map { try #require(try ReadFilm($0).pictures.first) }
        let steps = zip(numbers, numbers.dropFirst()).map { $1 - $0 }
        #expect(!numbers.contains(-1) && steps.allSatisfy { (0...3).contains($0) }, "\(numbers)")
        #expect((11...16).contains(steps.reduce(0, +)), "\(numbers)")
        let many = try stage.sessionctl("camera", "photo", "--burst", "21", stage.path("many.jpg"))
        #expect(many.wait(timeout: 20) == .code(1) && many.errors.joined().contains("from 1 to 20"), "\(many.errors)")
    }

    // MARK: Sleep

    @Test func filmThatGrows_keepsTheMachineAwake() throws {
        let stage = try CaptureStage(hasMachine: true)
        let machine = try #require(stage.machine)
        let record = try stage.sessionctl("camera", "record", stage.path("film.mp4"))
        #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors)")
        // The daemon has a lock of its own while a session is active.
        func taken() -> Int { machine.locks.filter { $0 == "lock sleep:idle sessiond block" }.count }
        func released() -> Int { machine.locks.filter { $0 == "unlock" }.count }
        #expect(eventually { taken() == 1 && released() == 0 }, "\(machine.locks)")
        // While it waits for the end of a call, the machine may sleep.
        let call = try stage.call()
        try call.begin()
        #expect(eventually { released() >= 1 }, "\(machine.locks)")
        try call.end()
        #expect(record.line { $0 == "resumed" } != nil)
        #expect(eventually(timeout: 20) { (try? stage.recorded()) ?? 0 > 0.5 })
        #expect(eventually { taken() == 2 }, "\(machine.locks)")
        record.signal(SIGINT)
        #expect(record.wait(timeout: 20) == .code(0))
        #expect(eventually { machine.locks.filter { $0 != "unlock" }.count == released() }, "\(machine.locks)")
        #expect(taken() == 2)
    }
}
