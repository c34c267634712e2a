import Capturing
import PluginAPI
import Testing

@Suite struct CaptureControlsTests {
    private func code(_ name: String, _ setting: CameraSetting) -> SessionError.Code? {
        var controls = CaptureControls()
        do throws(SessionError) {
            _ = try controls.set(name, setting, of: "Webcam")
            return nil
        } catch {
            return error.code
        }
    }

    @Test func zoom_isSet_andWhatIsNotPossibleIsRefused() throws {
        for factor in [1, 1.5, 8] { #expect(code("zoom", .number(factor)) == nil) }
        for factor in [0.99, 0, -2, 8.01, .infinity, .nan] {
            #expect(code("zoom", .number(factor)) == .badParameter, "\(factor)")
        }
        #expect(code("zoom", .other) == .badParameter)
        #expect(code("zom", .number(2)) == .badParameter)
        // A refusal changes nothing.
        var controls = CaptureControls()
        _ = try controls.set("zoom", .number(3), of: "Webcam")
        #expect(throws: SessionError.self) { try controls.set("zoom", .number(9), of: "Webcam") }
        #expect(controls.zoom == 3)
    }

    @Test func whatTheCameraWouldHaveToDo_isNotSupported_withASentence() {
        for name in CaptureControl.allCases where name != .zoom {
            #expect(code(name.rawValue, .number(1)) == .notSupported, "\(name)")
            #expect(code(name.rawValue, .other) == .notSupported, "\(name)")
        }
        var controls = CaptureControls()
        do throws(SessionError) {
            _ = try controls.set("torch", .number(1), of: "Webcam")
        } catch {
            #expect(error.reason == "the torch of 'Webcam' cannot be set; what can be set: zoom")
        }
    }

    @Test func light_isTheTorch_andMakesFlashPossible() throws {
        var controls = CaptureControls(VideoControls(), CameraLight(name: "white:torch", most: 200, brightness: 100))
        #expect(Set(controls.abilities.keys) == [.zoom, .torch, .flash])
        #expect(controls.values[.torch] == .number(0.5) && controls.values[.flash] == .word("off"))
        #expect(try controls.set("torch", .number(0.001), of: "Back") == .brightness(1))
        #expect(try controls.set("torch", .number(1), of: "Back") == .brightness(200))
        #expect(try controls.set("torch", .number(0), of: "Back") == .brightness(0))
        #expect(try controls.set("flash", .word("on"), of: "Back") == .nothing)
        #expect(controls.hasFlash && controls.values[.flash] == .word("on"))
        for (name, setting) in [
            ("torch", CameraSetting.number(1.01)), ("torch", .word("on")), ("flash", .word("auto")),
            ("flash", .number(1)), ("torch", .number(.nan)),
        ] {
            let error = #expect(throws: SessionError.self) { try controls.set(name, setting, of: "Back") }
            #expect(error?.code == .badParameter, "\(name) \(setting)")
        }
    }

    @Test(arguments: [
        (1.0, 640, 480, 0, 0, 0, 0), (2, 640, 480, 160, 160, 120, 120), (8, 640, 480, 280, 280, 210, 210),
        (3, 320, 240, 106, 108, 80, 80), (8, 2, 2, 0, 0, 0, 0), (8, 8, 8, 2, 4, 2, 4),
    ])
    func crop_isEvenAndInTheMiddle(
        _ zoom: Double, _ width: Int, _ height: Int, _ left: Int, _ right: Int, _ top: Int, _ bottom: Int
    ) throws {
        var controls = CaptureControls()
        _ = try controls.set("zoom", .number(zoom), of: "Webcam")
        let crop = controls.crop(width: width, height: height)
        #expect([crop.left, crop.right, crop.top, crop.bottom] == [left, right, top, bottom])
    }

    @Test func everyZoomOfEverySize_leavesAnEvenPicture() throws {
        for width in stride(from: 2, through: 400, by: 2) {
            for tenths in 10...80 {
                var controls = CaptureControls()
                _ = try controls.set("zoom", .number(Double(tenths) / 10), of: "Webcam")
                let crop = controls.crop(width: width, height: width)
                let kept = width - crop.left - crop.right
                #expect(kept >= 2 && kept % 2 == 0 && crop.left % 2 == 0 && abs(crop.left - crop.right) <= 2)
            }
        }
    }
}
