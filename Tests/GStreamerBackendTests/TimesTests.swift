import GStreamerBase
import Testing

/// Tests the conversion between seconds and GStreamer's nanoseconds.
@Suite struct TimesTests {
    @Test func secondsWithoutABinaryForm_areRoundedAndNotTruncated() {
        #expect(Times.nanoseconds(4.1) == 4_100_000_000)
        #expect(Times.nanoseconds(0.000_000_001_6) == 2)
        for index in 0..<10_000 { #expect(Times.nanoseconds(Double(index) / 25) == UInt(index) * 40_000_000) }
    }

    @Test func impossibleSeconds_areZeroOrACentury() {
        for seconds in [-1, -.infinity, .nan, 0] as [Double] { #expect(Times.nanoseconds(seconds) == 0) }
        for seconds in [.infinity, 1e300] as [Double] {
            #expect(Times.nanoseconds(seconds) == 3_150_000_000_000_000_000)
        }
    }

    @Test func nanoseconds_areTheSameSecondsAgain() {
        for seconds in [0, 4.1, 0.04, 7_200.5] { #expect(Times.seconds(Times.nanoseconds(seconds)) == seconds) }
    }
}
