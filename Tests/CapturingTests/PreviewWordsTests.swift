import Capturing
import PluginAPI
import Testing

@Suite struct PreviewWordsTests {
    @Test(
        arguments: [
            (0.0, false, false, nil, "0:00"), (61.9, true, false, nil, "● 1:01"),
            (3_725, true, true, nil, "▮▮ 1:02:05"),
            (5, false, false, -160.0, "0:05  ▯▯▯▯▯▯▯▯▯▯"), (5, false, false, 0.0, "0:05  ▮▮▮▮▮▮▮▮▮▮"),
            (5, true, false, -30.0, "● 0:05  ▮▮▮▮▮▯▯▯▯▯"), (.nan, false, false, .infinity, "0:00  ▯▯▯▯▯▯▯▯▯▯"),
            (-1, false, true, 20.0, "▮▮ 0:00  ▮▮▮▮▮▮▮▮▮▮"),
        ] as [(Double, Bool, Bool, Double?, String)])
    func line_isTheTimeAndTheLevel(_ seconds: Double, _ records: Bool, _ pauses: Bool, _ level: Double?, _ text: String)
    {
        let words = PreviewWords(seconds: seconds, isRecording: records, isPaused: pauses, level: level)
        #expect(words.text == text)
    }

    @Test(arguments: [
        (CapturePixels.i420, 640, 480, 460_800), (.i420, 642, 482, 642 * 482 * 3 / 2), (.rgb, 642, 480, 3 * 642 * 480),
        (.bgrx, 640, 480, 4 * 640 * 480), (.gray8, 642, 480, 642 * 480),
    ])
    func pictures_haveNoGapsBetweenTheirRows(_ pixels: CapturePixels, _ width: Int, _ height: Int, _ size: Int) {
        #expect(pixels.size(width: width, height: height) == size)
        // In memory, rows begin at a multiple of 4.
        #expect(pixels.planes(width: width, height: height).allSatisfy { $0.stride % 4 == 0 && $0.stride >= $0.bytes })
    }
}
