import Foundation

/// Music whose position can be read from its sound, so that a recording shows what is missing. The left channel has a
/// sine, the right channel a ramp that begins again every ``period`` seconds.
public enum CountedMusic {
    public static let hertz = 440.0
    public static let period = 4.0
    static let amplitude = 0.25

    /// A WAV file of that many seconds, 48 kHz, 16 bits, two channels.
    public static func file(in folder: PrivateFolder, seconds: Int = 60) throws -> String {
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
        return try WaveFile.write(samples, channels: 2, to: folder.path + "/counted.wav")
    }
}

/// The longest silence in a recording of ``CountedMusic``, and what was lost in it.
public struct MusicHeard: Sendable {
    /// The seconds of silence.
    public let silence: Double
    /// The seconds of music that are missing: neither heard before nor continued afterwards. Its absolute value is less
    /// than half a period.
    public let lost: Double
    /// The seconds of all other silences together, in which a program delivered no data in time.
    public let dropOuts: Double
}

extension Ear {
    /// Examines the recording from `start` to `end` (``monotonicNow()``). Returns nil unless the music was heard with
    /// the same volume shortly before and after the longest silence.
    ///
    /// On a busy machine programs may deliver data too late, before or after the silence, and gst-play skips what was
    /// due meanwhile. That does not count as lost.
    public func music(from start: Double, to end: Double) -> MusicHeard? {
        let (samples, blocks) = recorded
        guard let first = place(of: start, blocks), let last = place(of: end, blocks), first < last else { return nil }
        // A little more than a period of the sine, so that each window contains both half-waves.
        let window = Int(Ear.rate * 0.0025)
        var longest = first..<first
        var current = first..<first
        var silent = 0
        for place in stride(from: first, to: last - window, by: window) {
            let stretch = samples[place..<place + window]
            // The ramp changes by less than that in one window.
            guard Int(stretch.max() ?? 0) - Int(stretch.min() ?? 0) < 60 else { continue }
            silent += window
            current = (current.upperBound == place ? current.lowerBound : place)..<place + window
            if current.count > longest.count { longest = current }
        }
        // The largest of several, because some may contain a drop-out.
        var full = 0.0
        for start in stride(from: first - Ear.stretch, to: max(0, first - 9 * Ear.stretch), by: -Ear.stretch) {
            full = max(full, sine(samples[start..<start + Ear.stretch]))
        }
        guard let before = position(samples, at: longest.lowerBound, -1, full),
            let after = position(samples, at: longest.upperBound, 1, full)
        else { return nil }
        // How far the music advanced between the two stretches, minus the music that was heard between them.
        var lost = after.seconds - before.seconds - Double(after.place - before.place - longest.count) / Ear.rate
        lost -= CountedMusic.period * (lost / CountedMusic.period).rounded()
        if abs(lost) > 0.03 { keep(samples, "lost-\(Int(lost * 1_000))-ms-at-\(longest.lowerBound)") }
        return MusicHeard(
            silence: Double(longest.count) / Ear.rate, lost: lost,
            dropOuts: Double(silent - longest.count) / Ear.rate)
    }

    /// Writes a recording to the folder `SESSIOND_TEST_RECORDINGS`, if that is set.
    private func keep(_ samples: [Int16], _ name: String) {
        guard let folder = ProcessInfo.processInfo.environment["SESSIOND_TEST_RECORDINGS"] else { return }
        _ = try? WaveFile.write(samples, to: "\(folder)/\(name)-\(getpid()).wav")
    }

    func place(of time: Double, _ blocks: [(end: Int, arrival: Double)]) -> Int? {
        blocks.first { $0.arrival >= time }.map { max(0, $0.end - Int(($0.arrival - time) * Ear.rate)) }
    }

    /// The samples in eleven periods of the sine. Over whole periods, the sine does not change the mean of the ramp.
    private static let stretch = Int(11 / CountedMusic.hertz * Ear.rate)

    /// The amplitude of the sine over whole periods, without a window function.
    private func sine(_ samples: ArraySlice<Int16>) -> Double {
        let step = 2 * Double.pi * CountedMusic.hertz / Ear.rate
        var (real, imaginary) = (0.0, 0.0)
        for (place, sample) in samples.enumerated() {
            real += Double(sample) * cos(step * Double(place))
            imaginary += Double(sample) * sin(step * Double(place))
        }
        return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(max(1, samples.count))
    }

    /// The position of the music, in seconds into its period. It is measured in the middle of the nearest steady
    /// stretch, in the direction of `steps` from `place`: one that is clear, and from which the music goes on evenly. A server
    /// that resumes a stream may first repeat some milliseconds, and then skip as many.
    private func position(
        _ samples: [Int16], at place: Int, _ steps: Int, _ full: Double
    ) -> (seconds: Double, place: Int)? {
        let count = Ear.stretch
        for step in 0..<80 {
            let start = (steps < 0 ? place - count : place) + step * steps * count / 4
            let further = start + 2 * steps * count
            guard min(start, further) >= 0, max(start, further) + count <= samples.count else { return nil }
            guard let one = position(in: samples[start..<start + count], full),
                let two = position(in: samples[further..<further + count], full),
                abs(two - one - Double(2 * steps * count) / Ear.rate) < 0.002
            else { continue }
            return (one, start + count / 2)
        }
        return nil
    }

    /// The position in the middle of a clear stretch: one with the sine at its `full` amplitude, which is neither faded nor
    /// interrupted. Nil: it is not clear.
    private func position(in stretch: ArraySlice<Int16>, _ full: Double) -> Double? {
        guard full > 300, abs(sine(stretch) / full - 1) < 0.002 else { return nil }
        func ramp(_ part: ArraySlice<Int16>) -> Double {
            part.reduce(0.0) { $0 + Double($1) } / Double(part.count) / full
        }
        // Where the ramp begins again, the position is unclear. The rest of the sine in each half is 0.06.
        let count = stretch.count
        let halves = (ramp(stretch.prefix(count / 2)), ramp(stretch.suffix(count / 2)))
        guard abs(ramp(stretch)) < 0.95, abs(halves.0 - halves.1) < 0.16 else { return nil }
        return (ramp(stretch) + 1) / 2 * CountedMusic.period
    }
}
