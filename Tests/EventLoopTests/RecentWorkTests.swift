import Testing

@testable import EventLoop

/// What a loop did in the last minute. Times are seconds.
@Suite struct RecentWorkTests {
    private static let second: UInt64 = 1_000_000

    /// Wakes up ten times a second between the two times; each wake-up uses 10 ms of the processor.
    private func work(_ work: inout RecentWork, _ processor: inout UInt64, from begin: UInt64, to end: UInt64) {
        for tenth in begin * 10..<end * 10 {
            work.wokeUp(at: tenth * 100_000) { processor }
            processor += 10_000
        }
    }

    @Test func nothing_isNothing() {
        #expect(RecentWork().used(until: Self.second, processor: 5) == (0, 0))
    }

    @Test func oneMinute_isCounted_theTimeBeforeIsNot() {
        var recent = RecentWork()
        var processor: UInt64 = 77
        work(&recent, &processor, from: 10, to: 40)
        #expect(recent.used(until: 40 * Self.second, processor: processor) == (300, 3_000_000))
        // The first five seconds are a minute ago.
        #expect(recent.used(until: 75 * Self.second, processor: processor) == (250, 2_500_000))
        #expect(recent.used(until: 101 * Self.second, processor: processor) == (0, 0))
        work(&recent, &processor, from: 200, to: 500)
        #expect(recent.used(until: 500 * Self.second, processor: processor) == (600, 6_000_000))
    }

    /// One long turn after hours of rest.
    @Test func wakeUpThatWorksLong_isCounted() {
        var recent = RecentWork()
        recent.wokeUp(at: 0) { 0 }
        recent.wokeUp(at: 9_000 * Self.second) { 1_000 }
        #expect(recent.used(until: 9_004 * Self.second, processor: 4_001_000) == (1, 4_000_000))
    }

    /// The processor time is a call to the kernel.
    @Test func processorTime_isReadOnceInFiveSeconds() {
        var recent = RecentWork()
        var reads = 0
        for tenth in 0..<UInt64(1_000) {
            recent.wokeUp(at: tenth * 100_000) {
                reads += 1
                return 0
            }
        }
        #expect(reads == 20)
    }
}
