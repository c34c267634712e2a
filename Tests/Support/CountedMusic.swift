import Foundation

/// A piece that says at each moment how far it is, so that what was left out of it can be heard: a sine on the left,
/// and on the right a ramp that begins again every ``period`` seconds.
public enum CountedMusic {
    public static let hertz = 440.0
    public static let period = 4.0
    static let amplitude = 0.25

    /// A WAV file of that many seconds, 48 kHz, 16 bits, two channels.
    public static func file(in folder: PrivateFolder, seconds: Int = 60) throws -> String {
        let path = folder.path + "/counted.wav"
        var samples: [Int16] = []
        let count = seconds * Int(Ear.rate)
        samples.reserveCapacity(count * 2)
        let turn = Int(period * Ear.rate)
        // A whole number of periods of the sine, so that it need not be computed for each second.
        let second = (0..<Int(Ear.rate)).map { place in
            Int16(amplitude * 32_767 * sin(2 * .pi * hertz * Double(place) / Ear.rate))
        }
        for place in 0..<count {
            samples.append(second[place % second.count])
            samples.append(Int16(amplitude * 32_767 * (2 * Double(place % turn) / Double(turn) - 1)))
        }
        var data = Data("RIFF".utf8)
        func append(_ value: UInt32, _ bytes: Int = 4) {
            withUnsafeBytes(of: value.littleEndian) { data.append(contentsOf: $0.prefix(bytes)) }
        }
        append(UInt32(36 + samples.count * 2))
        data.append(Data("WAVEfmt ".utf8))
        append(16)
        append(1, 2)
        append(2, 2)
        append(48_000)
        append(192_000)
        append(4, 2)
        append(16, 2)
        data.append(Data("data".utf8))
        append(UInt32(samples.count * 2))
        samples.withUnsafeBytes { data.append(contentsOf: $0) }
        try data.write(to: URL(fileURLWithPath: path))
        return path
    }
}

/// What became of a ``CountedMusic`` over a stretch of time.
public struct MusicHeard: Sendable {
    /// Seconds in which nothing was heard.
    public let silence: Double
    /// Seconds of the piece that are missing: neither heard, nor put off. Less than half a period either way.
    public let lost: Double
}

extension Ear {
    /// Listens back from `start` to `end` (``monotonicNow()``); nil where the music was not heard, both at the same
    /// volume, for half a second before and after.
    public func music(from start: Double, to end: Double) -> MusicHeard? {
        let (samples, blocks) = recorded
        guard let first = place(of: start, blocks), let last = place(of: end, blocks), first < last,
            let before = position(samples, at: first, -1), let after = position(samples, at: last, 1)
        else { return nil }
        // A little more than a period of the sine, whose two halves are then both seen.
        let window = Int(Ear.rate * 0.0025)
        var silent = 0
        var place = first
        while place + window <= last {
            let stretch = samples[place..<place + window]
            // The ramp moves by less than that in one window.
            if Int(stretch.max() ?? 0) - Int(stretch.min() ?? 0) < 60 { silent += window }
            place += window
        }
        let silence = Double(silent) / Ear.rate
        var lost = after - before - (Double(last - first) / Ear.rate - silence)
        lost -= CountedMusic.period * (lost / CountedMusic.period).rounded()
        return MusicHeard(silence: silence, lost: lost)
    }

    func place(of time: Double, _ blocks: [(end: Int, arrival: Double)]) -> Int? {
        blocks.first { $0.arrival >= time }.map { max(0, $0.end - Int(($0.arrival - time) * Ear.rate)) }
    }

    /// How far the music is at that place, in seconds into its period, by the nearest stretch on the way of `steps` that
    /// says so clearly.
    private func position(_ samples: [Int16], at place: Int, _ steps: Int) -> Double? {
        // Eleven periods of the sine leave the ramp alone.
        let count = Int(11 / CountedMusic.hertz * Ear.rate)
        for step in 0..<20 {
            let start = place + step * steps * count
            guard start >= 0, start + count <= samples.count else { return nil }
            let stretch = samples[start..<start + count]
            let level = Pitch.level(of: CountedMusic.hertz, in: stretch, rate: Ear.rate)
            let sine = pow(10, level / 20) * 32_768
            // A busy machine lets the player run dry here and there.
            guard sine > 300 else { continue }
            func ramp(_ part: ArraySlice<Int16>) -> Double {
                part.reduce(0.0) { $0 + Double($1) } / Double(part.count) / sine
            }
            // Where it begins again there is no saying; what is left of the sine in each half is 0.06.
            let halves = (ramp(stretch.prefix(count / 2)), ramp(stretch.suffix(count / 2)))
            guard abs(ramp(stretch)) < 0.9, abs(halves.0 - halves.1) < 0.16 else { continue }
            return (ramp(stretch) + 1) / 2 * CountedMusic.period - Double(start - place + count / 2) / Ear.rate
        }
        return nil
    }
}
