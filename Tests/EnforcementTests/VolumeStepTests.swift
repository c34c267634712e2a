import PluginAPI
import Testing

@testable import Enforcement

@Suite struct VolumeStepTests {
    /// Points as a volume.
    private static func points(_ value: Double) -> UInt32 { UInt32((value * 655.36).rounded()) }

    private static func points(_ values: [Double]) -> [UInt32] { values.map { points($0) } }

    @Test(arguments: [
        (63.1, 73.1, 10), (63.1, 53.1, -10), (31.55, 42, 10), (63.1, 64, 1), (40, 38, -2), (40, 43.4, 3), (40, 35, -5),
        // Whole points counted from whole points, as MPD does.
        (37.86, 27, -10), (37.86, 47, 10), (63.1, 53, -10),
    ]) func usualPoints_areAStep(shown: Double, new: Double, step: Int) {
        let found = VolumeStep(from: [Self.points(shown)], to: [Self.points(new)])
        #expect(found == .points(step, others: .samePoints))
    }

    @Test(arguments: [
        (63.1, 50), (63.1, 80), (63.1, 100), (31.55, 80), (63.1, 70.5), (63.1, 70), (40, 0), (63.1, 63.4),
    ]) func otherVolumes_areNone(shown: Double, new: Double) {
        #expect(VolumeStep(from: [Self.points(shown)], to: [Self.points(new)]) == nil)
    }

    @Test(arguments: [3, 6, -3, -6]) func usualDecibels_areAStep(step: Int) {
        let new = Level.volume([65_536], lowered: 12 - step)
        #expect(VolumeStep(from: Level.volume([65_536], lowered: 12), to: new) == .decibels(step))
        #expect(
            VolumeStep.decibels(step).applied(to: Level.volume([65_536], lowered: 20))
                == Level.volume([65_536], lowered: 20 - step))
    }

    /// The same number may be points and decibels.
    @Test func pointsHavePriority() {
        let shown = Self.points([52.5])
        let new = [UInt32((Double(shown[0]) * 1.039_122_3).rounded())]
        #expect(VolumeStep(from: shown, to: new) == .points(2, others: .samePoints))
    }

    @Test func twoChannels_changeTogether() {
        let shown = Self.points([60, 30])
        let same = VolumeStep(from: shown, to: Self.points([70, 40]))
        #expect(same == .points(10, others: .samePoints))
        #expect(same?.applied(to: Self.points([90, 45])) == Self.points([100, 55]))
        let scaled = VolumeStep(from: shown, to: Self.points([70, 35]))
        #expect(scaled == .points(10, others: .sameProportion))
        #expect(scaled?.applied(to: Self.points([90, 45])) == Self.points([100, 50]))
        // The balance was changed.
        #expect(VolumeStep(from: shown, to: Self.points([70, 70])) == nil)
        #expect(VolumeStep(from: shown, to: Self.points([70])) == nil)
        let ducked = Level.volume([65_536, 32_768], lowered: 12)
        #expect(VolumeStep(from: ducked, to: Level.volume([65_536, 32_768], lowered: 18)) == .decibels(-6))
    }

    @Test func step_endsAtSilence() {
        let softer = VolumeStep.points(-10, others: .samePoints).applied(to: Self.points([5, 15]))
        #expect(Level.isSame(softer, Self.points([0, 5])))
        #expect(VolumeStep.points(-10, others: .sameProportion).applied(to: [0, 0]) == [0, 0])
        #expect(VolumeStep(from: [0], to: [0]) == nil && VolumeStep(from: [], to: []) == nil)
    }
}
