import Foundation

/// Measures the level of one frequency in a series of samples.
enum Pitch {
    /// The level of silence, in dBFS.
    static let silence = -120.0

    /// The level of a frequency in dBFS: 0 for a full-scale sine, -120 for silence and for no samples (Goertzel
    /// algorithm).
    ///
    /// A Hann window separates frequencies: the samples must cover two periods of the difference of two frequencies.
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
