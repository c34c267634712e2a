import Capturing
import PluginAPI
import Testing

@Suite struct CapturePresetTests {
    private static func format(_ width: Int, _ height: Int, _ rate: Int, _ pixels: String = "YUY2") -> CaptureFormat {
        CaptureFormat(width: width, height: height, rate: CaptureRate(rate), pixels: pixels)
    }

    /// As a usual webcam: raw pictures in small sizes, JPEG in large ones.
    private static let webcam = [
        format(640, 480, 30), format(640, 480, 15), format(1280, 720, 10), format(1920, 1080, 5),
        format(1280, 720, 30, "JPEG"), format(1920, 1080, 30, "JPEG"), format(640, 480, 30, "JPEG"),
    ]

    @Test(arguments: [
        // Preset, the format of the camera, and the size and the rate of the film.
        (CapturePreset.low, format(640, 480, 30), 320, 240, 30),
        (.medium, format(640, 480, 30), 640, 480, 30), (.vga640x480, format(640, 480, 30), 640, 480, 30),
        // A camera that sends ten raw pictures in a second sends thirty as JPEG.
        (.hd1280x720, format(1280, 720, 30, "JPEG"), 1280, 720, 30),
        // It is made smaller.
        (.qHD960x540, format(1280, 720, 30, "JPEG"), 960, 540, 30),
        (.hd1920x1080, format(1920, 1080, 30, "JPEG"), 1920, 1080, 30),
        (.high, format(1920, 1080, 30, "JPEG"), 1920, 1080, 30),
        (.photo, format(1920, 1080, 30, "JPEG"), 1920, 1080, 30),
        (.inputPriority, format(640, 480, 30), 640, 480, 30),
    ]) func presetsOfAWebcam(
        preset: CapturePreset, format: CaptureFormat, width: Int, height: Int, rate: Int
    ) throws {
        let choice = try #require(preset.choice(from: Self.webcam))
        #expect(choice.format == format)
        #expect((choice.width, choice.height) == (width, height) && choice.rate == CaptureRate(rate))
    }

    @Test func presetThatIsLargerThanTheCamera_isNotPossible() {
        #expect(CapturePreset.hd4K3840x2160.choice(from: Self.webcam) == nil)
        let small = [Self.format(321, 241, 15)]
        let possible = CapturePreset.allCases.filter { $0.choice(from: small) != nil }
        #expect(possible == [.low, .medium, .high, .photo, .inputPriority])
        // Odd sizes lose a row: the colours of a film have half of the size.
        #expect(CapturePreset.high.choice(from: small).map { [$0.width, $0.height] } == [320, 240])
    }

    @Test func cameraWithoutUsableFormats_hasNoPresets() {
        let odd = [Self.format(0, 0, 30), CaptureFormat(width: 640, height: 480, rate: CaptureRate(0), pixels: "YUY2")]
        #expect(CaptureSource(id: "a", name: "A", media: .video, formats: odd).presets.isEmpty)
        #expect(CaptureSource(id: "a", name: "A", media: .video).presets.isEmpty)
        #expect(CaptureSource(id: "m", name: "M", media: .audio, formats: Self.webcam).presets.isEmpty)
    }

    @Test func slowCamera_isUsedIfThereIsNoOther() {
        #expect(CapturePreset.vga640x480.choice(from: [Self.format(640, 480, 5)])?.rate == CaptureRate(5))
        // More than sixty pictures in a second are not encoded.
        #expect(CapturePreset.vga640x480.choice(from: [Self.format(640, 480, 120)])?.rate == CaptureRate(60))
    }

    @Test(arguments: [
        (5.0, CaptureRate(30), 150), (10.0, CaptureRate(25), 250), (0.001, CaptureRate(30), 1),
        (1.0, CaptureRate(30_000, 1_001), 30),
        (60.0, CaptureRate(30_000, 1_001), 1_798), (1.0 / 3, CaptureRate(30), 10),
    ]) func limitInSeconds_isCountedInPictures(seconds: Double, rate: CaptureRate, pictures: UInt64) {
        #expect(rate.pictures(in: seconds) == pictures)
        #expect(abs(rate.seconds(of: pictures) - seconds) <= 1 / rate.perSecond)
    }
}
