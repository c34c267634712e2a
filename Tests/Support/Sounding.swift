import Foundation

/// Measures sound and silence in a series of samples.
///
/// A server on a busy machine inserts silence, which is all zeros. A wave is never zero for a millisecond.
public struct Sounding: Sendable {
    /// The seconds of sound, without silences.
    public let seconds: Double
    /// The silences between the first and the last sound, in seconds.
    public let silences: [Double]
    /// The time from the first to the last sound, in seconds.
    public var span: Double { seconds + silences.reduce(0, +) }

    public init(_ samples: some Sequence<Int16>, rate: Double) {
        let least = Int(rate / 1_000)
        var (sounding, zeros) = (0, 0)
        var silences: [Int] = []
        for sample in samples {
            // Resamplers and dither make silence not quite zero.
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
    /// The sound since `start` (``monotonicNow()``).
    public func sounding(since start: Double) -> Sounding {
        let (samples, blocks) = recorded
        return Sounding(samples[(place(of: start, blocks) ?? samples.count)...], rate: Ear.rate)
    }
}
