import Capturing
import PluginAPI
import Testing

/// What the controls of a driver are in the words of AVCaptureDevice, and back.
@Suite struct VideoControlsTests {
    private typealias ID = VideoControls.ID

    private struct Row: Sendable {
        let control: CaptureControl
        let setting: CameraSetting
        let writes: [VideoWrite]

        init(_ control: CaptureControl, _ setting: CameraSetting, _ writes: [VideoWrite]) {
            (self.control, self.setting, self.writes) = (control, setting, writes)
        }
    }

    private static func integer(
        _ id: UInt32, _ range: ClosedRange<Int64>, _ value: Int64, step: Int64 = 1
    ) -> VideoControl {
        VideoControl(id: id, kind: .integer, range: range, step: step, value: value)
    }

    private static func boolean(_ id: UInt32, _ value: Int64) -> VideoControl {
        VideoControl(id: id, kind: .boolean, range: 0...1, step: 1, value: value)
    }

    private static func button(_ id: UInt32) -> VideoControl {
        VideoControl(id: id, kind: .button, range: 0...0, step: 0, value: 0)
    }

    private static func menu(_ id: UInt32, _ places: Set<Int64>, _ value: Int64) -> VideoControl {
        VideoControl(id: id, kind: .menu(places), range: 0...3, step: 1, value: value)
    }

    /// A webcam of the USB class.
    private static let webcam = VideoControls([
        boolean(ID.focusAuto, 1), integer(ID.focusAbsolute, 0...250, 30, step: 5), menu(ID.exposureAuto, [1, 3], 3),
        integer(ID.exposureAbsolute, 3...2_047, 250), boolean(ID.autoWhiteBalance, 1),
        integer(ID.whiteBalanceTemperature, 2_000...6_500, 4_000),
    ])

    /// A module in a telephone.
    private static let module = VideoControls([
        boolean(ID.focusAuto, 0), button(ID.autoFocusStart), menu(ID.exposureAuto, [0, 1], 0),
        VideoControl(
            id: ID.autoExposureBias, kind: .integerMenu([0: -2_000, 1: -1_000, 2: 0, 3: 1_000, 4: 2_000]), range: 0...4,
            step: 1, value: 2), boolean(ID.imageStabilization, 0), button(ID.doWhiteBalance),
        boolean(ID.autoWhiteBalance, 0), menu(ID.flashMode, [0, 1, 2], 0), integer(ID.torchIntensity, 1...100, 50),
    ])

    @Test func webcam_hasWhatItsDriverHas() {
        #expect(
            Self.webcam.abilities == [
                .focus: .words(["locked", "continuous"]), .lensPosition: .range(0...1),
                .exposure: .words(["locked", "continuous"]), .exposureDuration: .range(0.0003...0.2047),
                .whiteBalance: .words(["locked", "continuous"]), .temperature: .range(2_000...6_500),
            ])
        #expect(
            Self.webcam.values == [
                .focus: .word("continuous"), .lensPosition: .number(0.88), .exposure: .word("continuous"),
                .exposureDuration: .number(0.025), .whiteBalance: .word("continuous"), .temperature: .number(4_000),
            ])
    }

    @Test func module_hasWhatItsDriverHas() {
        #expect(
            Self.module.abilities == [
                .focus: .words(["locked", "auto", "continuous"]), .exposure: .words(["locked", "continuous"]),
                .exposureBias: .range(-2...2), .stabilization: .words(["off", "standard"]),
                .whiteBalance: .words(["locked", "auto", "continuous"]), .torch: .range(0...1),
            ])
        #expect(
            Self.module.values == [
                .focus: .word("locked"), .exposure: .word("continuous"), .exposureBias: .number(0),
                .stabilization: .word("off"), .whiteBalance: .word("locked"), .torch: .number(0),
            ])
    }

    @Test func cameraWithoutControls_hasNone() {
        for controls in [
            VideoControls(), VideoControls([Self.menu(ID.exposureAuto, [], 0)]),
            VideoControls([Self.integer(ID.focusAbsolute, 5...5, 5)]),
            VideoControls([Self.menu(ID.flashMode, [0, 1], 0), Self.integer(ID.torchIntensity, 0...9, 0)]),
            // A wrong type of a driver.
            VideoControls([Self.integer(ID.autoFocusStart, 0...1, 0)]),
        ] {
            #expect(controls.abilities.isEmpty && controls.values.isEmpty, "\(controls)")
        }
    }

    private static let webcamRows: [Row] = [
        Row(.focus, .word("locked"), [VideoWrite(ID.focusAuto, 0), VideoWrite(ID.focusAbsolute, 30)]),
        Row(.focus, .word("continuous"), [VideoWrite(ID.focusAuto, 1)]),
        Row(.focus, .word("auto"), []),
        Row(.lensPosition, .number(1), [VideoWrite(ID.focusAuto, 0), VideoWrite(ID.focusAbsolute, 0)]),
        Row(.lensPosition, .number(0), [VideoWrite(ID.focusAuto, 0), VideoWrite(ID.focusAbsolute, 250)]),
        Row(.lensPosition, .number(0.503), [VideoWrite(ID.focusAuto, 0), VideoWrite(ID.focusAbsolute, 125)]),
        Row(.exposure, .word("locked"), [VideoWrite(ID.exposureAuto, 1), VideoWrite(ID.exposureAbsolute, 250)]),
        Row(.exposure, .word("continuous"), [VideoWrite(ID.exposureAuto, 3)]),
        Row(.exposureDuration, .number(0.01), [VideoWrite(ID.exposureAuto, 1), VideoWrite(ID.exposureAbsolute, 100)]),
        Row(
            .whiteBalance, .word("locked"),
            [VideoWrite(ID.autoWhiteBalance, 0), VideoWrite(ID.whiteBalanceTemperature, 4_000)]),
        Row(
            .temperature, .number(5_600.4),
            [VideoWrite(ID.autoWhiteBalance, 0), VideoWrite(ID.whiteBalanceTemperature, 5_600)]),
        Row(.torch, .number(1), []),
        Row(.exposureBias, .number(1), []),
        Row(.stabilization, .word("off"), []),
    ]

    @Test(arguments: webcamRows.indices)
    func webcam_getsWhatTheWordMeans(_ place: Int) {
        let row = Self.webcamRows[place]
        #expect(Self.webcam.writes(row.control, row.setting) == row.writes, "\(row)")
    }

    private static let moduleRows: [Row] = [
        Row(.focus, .word("auto"), [VideoWrite(ID.autoFocusStart, 1)]),
        Row(.focus, .word("locked"), [VideoWrite(ID.focusAuto, 0)]),
        Row(.exposure, .word("continuous"), [VideoWrite(ID.exposureAuto, 0)]),
        Row(.exposureBias, .number(-1.4), [VideoWrite(ID.autoExposureBias, 1)]),
        Row(.exposureBias, .number(2), [VideoWrite(ID.autoExposureBias, 4)]),
        Row(.whiteBalance, .word("auto"), [VideoWrite(ID.doWhiteBalance, 1)]),
        Row(.stabilization, .word("standard"), [VideoWrite(ID.imageStabilization, 1)]),
        Row(.torch, .number(0), [VideoWrite(ID.flashMode, 0)]),
        Row(.torch, .number(1), [VideoWrite(ID.torchIntensity, 100), VideoWrite(ID.flashMode, 2)]),
        Row(.torch, .number(0.5), [VideoWrite(ID.torchIntensity, 50), VideoWrite(ID.flashMode, 2)]),
        Row(.torch, .number(0.0001), [VideoWrite(ID.torchIntensity, 1), VideoWrite(ID.flashMode, 2)]),
    ]

    @Test(arguments: moduleRows.indices)
    func module_getsWhatTheWordMeans(_ place: Int) {
        let row = Self.moduleRows[place]
        #expect(Self.module.writes(row.control, row.setting) == row.writes, "\(row)")
    }

    /// Every value that an ability allows is written within the limits of the driver, on its steps.
    @Test func everyNumber_isWithinTheLimitsOfTheDriver() throws {
        for (low, high, step) in [(0, 250, 5), (3, 2_047, 1), (-17, 40, 7), (0, 1, 1), (2, 9, 100)]
            as [(Int64, Int64, Int64)]
        {
            let controls = VideoControls([Self.integer(ID.focusAbsolute, low...high, low, step: step)])
            for thousandths in 0...1_000 {
                let writes = controls.writes(.lensPosition, .number(Double(thousandths) / 1_000))
                let value = try #require(writes.last?.value)
                #expect(writes.count == 1 && (low...high).contains(value) && (value - low) % step == 0)
            }
        }
    }

    @Test(
        arguments: [
            (["white:torch", "white:flash"], "white:torch"), (["input3::capslock", "yellow:flash"], "yellow:flash"),
            (["input3::capslock", "torches"], nil), ([], nil), (["b:torch-1", "a:torch-0"], "a:torch-0"),
            (["mmc0::", ":", "torch"], "torch"),
        ] as [([String], String?)])
    func light_isTheLEDWithThatFunction(_ names: [String], _ chosen: String?) {
        #expect(CameraLight.choose(names) == chosen)
    }

    @Test func light_isThatOfTheBack_orOfTheOnlyCamera() {
        func camera(_ position: CapturePosition) -> CaptureSource {
            CaptureSource(id: position.rawValue, name: "", media: .video, position: position)
        }
        let two = [camera(.front), camera(.unspecified)]
        #expect(CameraLight.belongs(to: camera(.back), among: two))
        #expect(!CameraLight.belongs(to: two[0], among: [two[0]]) && !CameraLight.belongs(to: two[1], among: two))
        #expect(
            CameraLight.belongs(to: two[1], among: [two[1]]) && !CameraLight.belongs(to: camera(.external), among: []))
    }
}
