import DBus
import Foundation
import Glibc
import PluginAPI
import SessionKit
import TestSupport
import Testing

/// What the driver of a camera does, and the light beside it: no hardware, but the real plugin, and the calls of the kernel.
@Suite(.serialized, .enabled(if: VirtualCamera.isPossible, "needs gstreamer1.0-pipewire"))
struct CameraControlTests {
    /// A camera at the back with a driver, and a telephone's light.
    private struct Bench {
        let video: FakeVideo
        let leds: PrivateFolder
        let stage: CaptureStage

        init(_ controls: String = FakeVideo.webcam, hasLight: Bool = true) throws {
            video = try FakeVideo(controls)
            leds = try PrivateFolder()
            if hasLight {
                let light = try leds.folder("white:torch")
                try Data("255\n".utf8).write(to: URL(fileURLWithPath: light + "/max_brightness"))
                try Data("0\n".utf8).write(to: URL(fileURLWithPath: light + "/brightness"))
            }
            _ = try leds.folder("input3::capslock")
            stage = try CaptureStage(
                position: "back", more: video.environment.merging(["SESSIOND_LEDS": leds.path]) { $1 },
                properties: "api.v4l2.path=" + FakeVideo.device)
        }

        var brightness: Int {
            get throws {
                let text = try String(contentsOfFile: leds.path + "/white:torch/brightness", encoding: .utf8)
                return Int(text.prefix { $0.isNumber }) ?? -1
            }
        }

        var bus: BusAddress { .custom(stage.bus.address) }

        func camera() async throws -> CaptureDevice {
            try #require(try await CaptureDevice.default(for: .video, on: bus))
        }
    }

    @Test(.timeLimit(.minutes(2))) func whatTheDriverHas_isListed_andSet() async throws {
        let bench = try Bench()
        let camera = try await bench.camera()
        #expect(camera.controls[.focus] == .words(["locked", "continuous"]), "\(bench.stage.errors)")
        #expect(camera.controls[.exposureDuration] == .range(0.0003...0.2047))
        #expect(camera.controls[.torch] == .range(0...1) && camera.controls[.flash] == .words(["off", "on"]))
        #expect(camera.controls[.stabilization] == nil && camera.controls[.zoom] == .range(1...8))
        #expect(camera.controlValues[.whiteBalance] == .word("continuous"))
        #expect(camera.controlValues[.lensPosition] == .number(0.88))

        let session = CaptureSession(name: "App", on: bench.bus)
        try await session.addInput(camera)
        let unlocked = await #expect(throws: SessionError.self) {
            try await session.set(.focus, to: .word("locked"), of: camera)
        }
        #expect(unlocked?.code == .notReady)
        try await session.lockForConfiguration(camera)
        #expect(try bench.video.settings() == [])
        try await session.set(.focus, to: .word("locked"), of: camera)
        // What the camera had found stays.
        #expect(try bench.video.settings() == ["focus_auto=0", "focus_absolute=30"])
        try await session.set(.lensPosition, to: .number(0), of: camera)
        try await session.set(.exposureDuration, to: .number(0.02), of: camera)
        try await session.set(.temperature, to: .number(5_000), of: camera)
        #expect(
            try bench.video.settings() == [
                "focus_auto=0", "focus_absolute=250", "auto_exposure=1", "exposure_time_absolute=200",
                "white_balance_automatic=0", "white_balance_temperature=5000",
            ])
        for (control, setting) in [
            (CaptureControl.focus, CaptureDevice.Setting.word("auto")), (.exposureDuration, .number(1)),
            (.lensPosition, .number(-0.1)), (.torch, .word("on")), (.temperature, .word("warm")),
        ] {
            let refused = await #expect(throws: SessionError.self) {
                try await session.set(control, to: setting, of: camera)
            }
            #expect(refused?.code == .badParameter, "\(control)")
        }
        for control in [CaptureControl.stabilization, .focusPoint, .exposurePoint, .exposureBias] {
            let refused = await #expect(throws: SessionError.self) {
                try await session.set(control, to: .number(0), of: camera)
            }
            #expect(refused?.code == .notSupported, "\(control)")
        }
        #expect(try bench.video.settings() == [])
        let now = try await bench.camera()
        #expect(now.controlValues[.exposure] == .word("locked") && now.controlValues[.lensPosition] == .number(0))
        let told = try bench.stage.property("Controls").asProperties
        #expect(told?["focus"] == .string("locked") && told?["exposure-duration"] == .double(0.02))
    }

    @Test(.timeLimit(.minutes(2))) func driverThatRefusesOrHangs_isToldAndNobodyWaits() async throws {
        let bench = try Bench()
        let camera = try await bench.camera()
        let session = CaptureSession(name: "App", on: bench.bus)
        try await session.addInput(camera)
        try await session.addOutput(.photo)
        try await session.lockForConfiguration(camera)
        try bench.video.set(busy: true)
        let refused = await #expect(throws: SessionError.self) {
            try await session.set(.focus, to: .word("locked"), of: camera)
        }
        #expect(
            refused?.code == .resourceNotAvailable && refused?.message.contains("busy") == true, "\(refused as Any)")

        try bench.video.set(hangs: true)
        let silent = await #expect(throws: SessionError.self) {
            try await session.set(.focus, to: .word("locked"), of: camera)
        }
        #expect(silent?.code == .timedOut, "\(silent as Any)")
        // The list of cameras and the pictures do not need the driver.
        #expect(try await bench.camera().id == camera.id)
        try await session.startRunning()
        #expect(access(try await session.capturePhoto(to: bench.stage.path("photo.jpg")), F_OK) == 0)
        try await session.stopRunning()

        try bench.video.set()
        try await session.set(.focus, to: .word("continuous"), of: camera)
        // What was given up is not done later.
        #expect(try bench.video.settings().last == "focus_auto=1")
    }

    @Test(.timeLimit(.minutes(2))) func light_isOnForAFlash_andGoesOutWithTheSession() async throws {
        let bench = try Bench()
        let camera = try await bench.camera()
        let session = CaptureSession(name: "App", on: bench.bus)
        try await session.addInput(camera)
        try await session.addOutput(.photo)
        try await session.startRunning()
        #expect(try bench.brightness == 0)
        let paths = ["lit.jpg", "second.jpg", "third.jpg"].map { bench.stage.path($0) }
        async let photo = session.capturePhoto(to: paths[0], flash: true)
        #expect(try eventually { try bench.brightness == 255 })
        #expect(access(try await photo, F_OK) == 0)
        #expect(try eventually { try bench.brightness == 0 })
        // The session says it once for all photos.
        try await session.lockForConfiguration(camera)
        try await session.set(.flash, to: .word("on"), of: camera)
        try await session.set(.torch, to: .number(0.2), of: camera)
        #expect(try bench.brightness == 51)
        async let second = session.capturePhoto(to: paths[1])
        async let third = session.capturePhoto(to: paths[2])
        #expect(try eventually { try bench.brightness == 255 })
        _ = try await (second, third)
        #expect(try eventually { try bench.brightness == 51 })
        try await session.stopRunning()
        #expect(try eventually { try bench.brightness == 0 })

        try await session.startRunning()
        try await session.set(.torch, to: .number(1), of: camera)
        #expect(try bench.brightness == 255)
        // Its program ends.
        kill(try bench.stage.plugin(), SIGTERM)
        #expect(try eventually(timeout: 10) { try bench.brightness == 0 })
    }

    @Test(.timeLimit(.minutes(2))) func light_goesOutWhenAnotherCameraIsShown() async throws {
        let bench = try Bench()
        let other = try VirtualCamera(bench.stage.server, name: "Self", position: "front")
        let back = try #require(try await CaptureDevice.default(for: .video, position: .back, on: bench.bus))
        let session = CaptureSession(name: "App", on: bench.bus)
        try await session.addInput(back)
        try await session.addOutput(.photo)
        try await session.startRunning()
        try await session.lockForConfiguration(back)
        try await session.set(.torch, to: .number(1), of: back)
        #expect(try bench.brightness == 255)
        // That one has no light.
        try await session.switchCamera(to: .front)
        #expect(try eventually { try bench.brightness == 0 })
        #expect(try eventually { try bench.stage.property("Controls").asProperties?["torch"] == nil })
        let path = bench.stage.path("dark.jpg")
        let refused = await #expect(throws: SessionError.self) { try await session.capturePhoto(to: path, flash: true) }
        #expect(refused?.code == .notSupported)
        try await session.switchCamera(to: .back)
        #expect(try eventually { try bench.stage.property("Controls").asProperties?["torch"] == .double(0) })
        try await session.stopRunning()
        other.remove()
    }

    @Test(.timeLimit(.minutes(2))) func cameraWithoutLight_refusesAFlash_andTakesNoPhoto() async throws {
        let bench = try Bench("", hasLight: false)
        let camera = try await bench.camera()
        #expect(Set(camera.controls.keys) == [.zoom], "\(camera.controls)")
        let session = CaptureSession(name: "App", on: bench.bus)
        try await session.addInput(camera)
        try await session.addOutput(.photo)
        try await session.startRunning()
        let path = bench.stage.path("dark.jpg")
        let refused = await #expect(throws: SessionError.self) { try await session.capturePhoto(to: path, flash: true) }
        #expect(refused?.code == .notSupported && access(path, F_OK) != 0)
    }

    @Test func commands_listAndSet_andTheLightIsOnUntilCtrlC() throws {
        let bench = try Bench()
        let list = try bench.stage.sessionctl("camera", "controls")
        #expect(list.wait(timeout: 20) == .code(0), "\(list.errors)")
        let words = list.output.map { $0.split(separator: " ").joined(separator: " ") }
        #expect(words.contains("focus continuous locked, continuous"), "\(list.output)")
        #expect(words.contains("exposure-duration 0.025 0.0003 to 0.2047") && words.contains("zoom 1 1 to 8"))
        func set(_ control: String, _ value: String) throws -> Child {
            let command = try bench.stage.sessionctl("camera", "set", control, value, "--device", "back")
            _ = command.wait(timeout: 20)
            return command
        }
        let focus = try set("focus", "locked")
        #expect(focus.wait(timeout: 1) == .code(0) && focus.output == ["focus locked"], "\(focus.errors)")
        #expect(try bench.video.settings() == ["focus_auto=0", "focus_absolute=30"])
        let wrong = try set("focus", "far")
        #expect(
            wrong.wait(timeout: 1) == .code(1) && wrong.errors.joined().contains("locked, continuous"),
            "\(wrong.errors)")
        let unknown = try set("colour", "1")
        #expect(unknown.wait(timeout: 1) == .code(1) && unknown.errors.joined().contains("white-balance"))
        let light = try bench.stage.sessionctl("camera", "set", "torch", "1")
        #expect(light.line { $0 == "torch 1" } != nil, "\(light.errors)")
        #expect(try bench.brightness == 255)
        light.signal(SIGINT)
        #expect(light.wait(timeout: 10) == .code(0))
        #expect(try eventually { try bench.brightness == 0 })
    }
}
