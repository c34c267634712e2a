import PluginAPI

/// A step louder or softer, as mixers and players set it: a volume that differs from the shown one by a usual amount.
///
/// Points are hundredths of `PA_VOLUME_NORM` on the server's cubic scale. Mixers show the volume of the loudest channel;
/// the other channels change by the same points (`pactl`) or keep their proportion to it (`pa_cvolume_inc`).
enum VolumeStep: Sendable, Hashable {
    case points(Int, others: Others)
    /// Decibels (`pa_sw_volume_to_dB`), in all channels.
    case decibels(Int)

    enum Others: Sendable, Hashable {
        case samePoints, sameProportion
    }

    private static let usualPoints = [1, -1, 2, -2, 3, -3, 5, -5, 10, -10]
    private static let usualDecibels = [1, -1, 2, -2, 3, -3, 6, -6]
    private static let point = Double(AudioStream.fullVolume) / 100
    /// How much a step may differ from a usual one: 0.6 points, because players round the volumes that they show, or
    /// 0.1 dB, as a factor on the cubic scale.
    private static let tolerance = (points: 0.6 * point, factor: 1.003_845)
    /// 10^(1/60).
    private static let decibel = 1.039_122_3
    /// Servers store whole numbers, or floating-point ones.
    private static let rounding = 2.0

    /// The step from one volume to another; nil: it is none. Points have priority.
    init?(from shown: [UInt32], to new: [UInt32]) {
        guard shown.count == new.count, let loudest = shown.indices.max(by: { shown[$0] < shown[$1] }),
            let step = VolumeStep.points(from: shown, to: new, loudest)
                ?? VolumeStep.decibels(from: shown, to: new, loudest)
        else { return nil }
        self = step
    }

    private static func points(from shown: [UInt32], to new: [UInt32], _ loudest: Int) -> VolumeStep? {
        let change = Double(new[loudest]) - Double(shown[loudest])
        // Some players show whole points only, rounded down (MPD), and count from there.
        let counted = wholePoints(new[loudest]).map { $0 - (Double(shown[loudest]) / point).rounded(.down) }
        guard
            let points = usualPoints.first(where: { abs(change - Double($0) * point) <= tolerance.points })
                ?? usualPoints.first(where: { Double($0) == counted })
        else { return nil }
        if zip(shown, new).allSatisfy({ isNear($1, added(change, to: $0)) }) {
            return .points(points, others: .samePoints)
        }
        let proportion = Double(new[loudest]) / max(1, Double(shown[loudest]))
        let isScaled = zip(shown, new).allSatisfy { isNear($1, Double($0) * proportion) }
        return isScaled ? .points(points, others: .sameProportion) : nil
    }

    private static func decibels(from shown: [UInt32], to new: [UInt32], _ loudest: Int) -> VolumeStep? {
        // Whole points were set as such: 50 % is 6.06 dB below 100 % that are ducked by 12 dB.
        guard shown[loudest] > 0, new[loudest] > 0, wholePoints(new[loudest]) == nil else { return nil }
        let decibels = usualDecibels.first { decibels in
            let (least, most) = (factor(decibels) / tolerance.factor, factor(decibels) * tolerance.factor)
            return zip(shown, new).allSatisfy { shown, new in
                Double(new) >= Double(shown) * least - rounding && Double(new) <= Double(shown) * most + rounding
            }
        }
        return decibels.map { .decibels($0) }
    }

    /// The volume after the same step from another one.
    func applied(to volume: [UInt32]) -> [UInt32] {
        switch self {
        case .points(let points, .samePoints):
            volume.map { VolumeStep.whole(VolumeStep.added(Double(points) * VolumeStep.point, to: $0)) }
        case .points(let points, .sameProportion):
            volume.map { [loudest = max(1, volume.max() ?? 1)] in
                let new = VolumeStep.added(Double(points) * VolumeStep.point, to: loudest)
                return VolumeStep.whole(Double($0) * new / Double(loudest))
            }
        case .decibels(let decibels):
            volume.map { VolumeStep.whole(Double($0) * VolumeStep.factor(decibels)) }
        }
    }

    /// The volume in points; nil if it is not a whole number of them.
    private static func wholePoints(_ volume: UInt32) -> Double? {
        let points = (Double(volume) / point).rounded()
        return abs(Double(volume) - points * point) <= rounding ? points : nil
    }

    private static func added(_ change: Double, to volume: UInt32) -> Double { max(0, Double(volume) + change) }

    private static func isNear(_ volume: UInt32, _ expected: Double) -> Bool {
        abs(Double(volume) - expected) <= tolerance.points
    }

    private static func factor(_ decibels: Int) -> Double {
        var factor = 1.0
        for _ in 0..<abs(decibels) { factor *= decibel }
        return decibels < 0 ? 1 / factor : factor
    }

    private static func whole(_ volume: Double) -> UInt32 { UInt32(min(volume, Double(UInt32.max / 2)).rounded()) }
}
