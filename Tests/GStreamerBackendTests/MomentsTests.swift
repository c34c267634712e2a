import CGStreamer
import CStreaming
import Testing

@testable import ReferenceModel

private let buffer = 480
private let millisecond = 1_000_000

/// When the sound of a microphone was there, from the times at which it was read.
@Suite struct MomentsTests {
    /// A microphone of 48,000 samples in a second that begins 100 ms after the pipeline.
    private final class Stage {
        let moments = shim_moments_new(48_000)
        private var number = 0
        /// Nanoseconds that all sound is later, because the server has lost some.
        var lost = 0
        /// Of what was passed on: when each sample really was there, and its time.
        private(set) var passed: [(real: Int, time: Int, count: Int, followsGap: Bool)] = []

        deinit { shim_moments_free(UnsafeMutableRawPointer(moments)) }

        /// - Parameter delay: nanoseconds from the last sample of a buffer to its reading.
        func read(_ buffers: Int, waiting: Int = 0, delay: (Int) -> Int) {
            for place in 0..<buffers {
                let begin = 100 * millisecond + number * 1_000_000 / 48 + lost
                let now = begin + (buffer + waiting) * 1_000_000 / 48 + delay(place)
                let placed = shim_moments_place(
                    moments, guint64(number), guint64(buffer), guint64(waiting), guint64(now))
                number += buffer
                guard placed.is_known != 0 else { continue }
                let skip = Int(placed.skip)
                passed.append(
                    (
                        begin + skip * 1_000_000 / 48, Int(placed.start), buffer - skip, placed.follows_gap != 0
                    ))
            }
        }

        /// Nanoseconds that the times are late.
        var errors: [Int] { passed.map { $0.time - $0.real } }
        /// Whether each buffer follows the one before it.
        var isWhole: Bool {
            zip(passed, passed.dropFirst()).allSatisfy {
                abs($0.time + $0.count * 1_000_000 / 48 - $1.time) <= 2 && !$1.followsGap
            }
        }
    }

    /// A server gives blocks of 256 samples, which are read in buffers of 480.
    private func inBlocks(_ place: Int) -> Int {
        let end = (place + 1) * buffer
        return ((end + 255) / 256 * 256 - end) * 1_000_000 / 48
    }

    @Test func timesOfReading_areNotThoseOfTheSound() {
        let stage = Stage()
        stage.read(400) { self.inBlocks($0) }
        #expect(stage.passed.count == 389 && stage.passed[0].followsGap && stage.isWhole)
        #expect(stage.errors.allSatisfy { (0..<millisecond).contains($0) }, "\(stage.errors.prefix(3))")
    }

    /// Threads run late by up to 60 ms, and nothing is lost.
    @Test func busyMachine_keepsTheTimes() {
        for seed in 0..<50 {
            var random = SplitMix64(seed: UInt64(seed))
            let stage = Stage()
            stage.read(2_000) { place in
                self.inBlocks(place) + (random.next() % 3 == 0 ? Int(random.next() % 60) * millisecond : 0)
            }
            #expect(stage.errors.allSatisfy { (0..<10 * millisecond).contains($0) }, "seed \(seed)")
            #expect(stage.isWhole, "seed \(seed)")
        }
    }

    /// What waits in GStreamer came earlier than it is read.
    @Test func readerThatIsBehind_doesNotMakeTheSoundLater() {
        let stage = Stage()
        stage.read(12) { _ in 0 }
        stage.read(300, waiting: 9_600) { _ in 0 }
        #expect(stage.isWhole && stage.errors.allSatisfy { abs($0) <= 2 })
    }

    @Test func serverThatLosesSound_leavesAGap_andTheRestIsAtItsTime() throws {
        let stage = Stage()
        stage.read(300) { self.inBlocks($0) }
        stage.lost = 50 * millisecond
        stage.read(500) { self.inBlocks($0) }
        let gap = try #require(stage.passed.dropFirst().firstIndex { $0.followsGap })
        // Within three seconds.
        #expect(gap - 289 <= 301, "\(gap)")
        #expect(stage.passed.filter(\.followsGap).count == 2)
        #expect(stage.errors[gap...].allSatisfy { (0..<millisecond).contains($0) })
    }

    /// The machine was busy when the microphone was opened.
    @Test func firstSoundThatCameLate_isCorrectedBySkipping() throws {
        let stage = Stage()
        stage.read(12) { _ in 80 * millisecond }
        stage.read(300) { _ in 0 }
        #expect(stage.errors[0] == 80 * millisecond)
        let mended = stage.passed.dropFirst()
        #expect(mended.allSatisfy { abs($0.time - $0.real) < 20_000 && !$0.followsGap })
        // No two samples have one time.
        #expect(
            zip(stage.passed, mended).allSatisfy { $0.time + $0.count * 1_000_000 / 48 <= $1.time + 20_000 })
    }

    /// A sound card whose clock is 50 millionths slow, for ten minutes.
    @Test func cardWithAnotherClock_staysInStep() {
        let stage = Stage()
        for _ in 0..<600 {
            stage.read(100) { self.inBlocks($0) }
            stage.lost += 50_000
        }
        #expect(stage.errors.allSatisfy { abs($0) < 12 * millisecond }, "\(stage.errors.min()!) \(stage.errors.max()!)")
        #expect(stage.passed.filter(\.followsGap).count <= 4)
    }
}
