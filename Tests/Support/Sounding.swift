import Foundation

/// How much of a stretch of samples sounds, whatever it is, and where it is silent between.
///
/// A server that a busy machine starves puts silence in, all zeros; a wave is never at zero for a millisecond.
public struct Sounding: Sendable {
    /// Seconds of sound, the silences left out.
    public let seconds: Double
    /// The silences between the first and the last of the sound, in seconds each.
    public let silences: [Double]
    /// From the first to the last of the sound, in seconds.
    public var span: Double { seconds + silences.reduce(0, +) }

    public init(_ samples: some Sequence<Int16>, rate: Double) {
        let least = Int(rate / 1_000)
        var (sounding, zeros) = (0, 0)
        var silences: [Int] = []
        for sample in samples {
            // Resamplers and dither leave a trace.
            guard sample.magnitude > 2 else {
                zeros += 1
                continue
            }
            if sounding > 0 {
                if zeros >= least { silences.append(zeros) } else { sounding += zeros }
            }
            sounding += 1
            zeros = 0
        }
        seconds = Double(sounding) / rate
        self.silences = silences.map { Double($0) / rate }
    }
}

extension Ear {
    /// What sounded from then (``monotonicNow()``) until now.
    public func sounding(since start: Double) -> Sounding {
        let (samples, blocks) = recorded
        return Sounding(samples[(place(of: start, blocks) ?? samples.count)...], rate: Ear.rate)
    }
}
