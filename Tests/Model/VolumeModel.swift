import Glibc

/// A second, independent implementation of what it means if a volume is set while a stream is ducked, from the rules: for one
/// channel, in points (hundredths of full volume on the server's cubic scale).
struct VolumeModel {
    /// The user's volume.
    private(set) var base: Double
    /// Decibels by which it is ducked; 0 also after a volume that stays.
    private(set) var lowered: Int

    var shown: Double { VolumeModel.moved(base, by: -Double(lowered)) }

    init(base: Double, lowered: Int) { (self.base, self.lowered) = (base, lowered) }

    /// The volume that many decibels louder.
    static func moved(_ volume: Double, by decibels: Double) -> Double { volume * pow(10, decibels / 60) }

    /// These volumes were set, each within 0.3 s of the one before, and none for 0.3 s after them.
    mutating func set(_ volumes: [Double]) {
        guard let last = volumes.last else { return }
        if volumes.count == 1, lowered > 0, let stepped = base(after: last) {
            base = stepped
        } else {
            (base, lowered) = (last, 0)
        }
    }

    private func base(after volume: Double) -> Double? {
        let difference = volume - shown
        let isWhole = abs(volume - volume.rounded()) < 0.003_1
        for step in [1.0, 2, 3, 5, 10] {
            for signed in [step, -step] where abs(difference - signed) <= 0.6 { return max(0, base + signed) }
        }
        guard !isWhole else {
            let counted = volume.rounded() - floor(shown)
            return [1.0, 2, 3, 5, 10].contains(abs(counted)) ? max(0, base + counted) : nil
        }
        let decibels = 60 * log10(volume / shown)
        for step in [1.0, 2, 3, 6] {
            for signed in [step, -step] where abs(decibels - signed) <= 0.1 {
                return VolumeModel.moved(base, by: signed)
            }
        }
        return nil
    }
}
