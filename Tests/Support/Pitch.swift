import Foundation

/// How loud one pitch is in a stretch of samples.
enum Pitch {
    /// What silence measures, in dBFS.
    static let silence = -120.0

    /// The pitch's level in dBFS, 0 for a sine of full scale (Goertzel). -120 for silence and for no samples.
    ///
    /// A Hann window keeps one pitch out of another's figure: two pitches need two periods of their difference.
    static func level(of hertz: Double, in samples: ArraySlice<Int16>, rate: Double) -> Double {
        guard !samples.isEmpty else { return silence }
        let step = 2 * Double.pi * hertz / rate
        let coefficient = 2 * cos(step)
        var (first, second) = (0.0, 0.0)
        let turn = 2 * Double.pi / Double(samples.count)
        for (place, sample) in samples.enumerated() {
            let hann = 1 - cos(turn * (Double(place) + 0.5))
            let next = Double(sample) / 32_768 * hann + coefficient * first - second
            (first, second) = (next, first)
        }
        let power = first * first + second * second - coefficient * first * second
        let amplitude = 2 * max(0, power).squareRoot() / Double(samples.count)
        return max(silence, 20 * log10(max(amplitude, 1e-6)))
    }
}
