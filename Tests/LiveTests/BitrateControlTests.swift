import LiveStreaming
import Testing

@Suite struct BitrateControlTests {
    private static let second: UInt64 = 1_000_000

    @Test func longQueue_lowersItOnceASecond() {
        var control = BitrateControl(1_000_000)
        var rates: [Int] = []
        for half in 0..<6 {
            if let rate = control.observe(queued: 1.5, at: UInt64(half) * Self.second / 2) { rates.append(rate) }
        }
        #expect(rates == [800_000, 640_000, 512_000])
    }

    @Test func itStops_atAnEighth() {
        var control = BitrateControl(1_000_000)
        for time in 0..<60 { _ = control.observe(queued: 2, at: UInt64(time) * Self.second) }
        #expect(control.current == 125_000)
        #expect(control.observe(queued: 2, at: 100 * Self.second) == nil)
    }

    @Test func cleanTime_raisesItByATwentieth() {
        var control = BitrateControl(1_000_000)
        _ = control.observe(queued: 1.1, at: 0)
        var changes: [UInt64: Int] = [:]
        for time in 1...60 as ClosedRange<UInt64> {
            if let rate = control.observe(queued: 1, at: time * Self.second) { changes[time] = rate }
        }
        #expect(changes == [5: 850_000, 10: 900_000, 15: 950_000, 20: 1_000_000])
    }

    @Test func fixedRate_stays() {
        var control = BitrateControl(1_000_000, isAdaptive: false)
        #expect(control.observe(queued: 9, at: 0) == nil)
        #expect(control.current == 1_000_000)
    }

    @Test func newWish_appliesAtOnce() {
        var control = BitrateControl(1_000_000)
        _ = control.observe(queued: 2, at: 0)
        control.want(500_000)
        #expect(control.current == 500_000)
        #expect(control.observe(queued: 2, at: 1) == 400_000)
        control.want(1)
        #expect(control.current == BitrateControl.least)
    }
}
