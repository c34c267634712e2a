import Foundation

/// Makes 16-bit WAV files for tests.
public enum WaveFile {
    /// Writes samples, with the channels interleaved, and returns the path.
    @discardableResult
    public static func write(
        _ samples: [Int16], rate: Int = 48_000, channels: Int = 1, to path: String
    ) throws -> String {
        var data = Data("RIFF".utf8)
        func append(_ value: Int, _ bytes: Int = 4) {
            withUnsafeBytes(of: UInt32(value).littleEndian) { data.append(contentsOf: $0.prefix(bytes)) }
        }
        append(36 + samples.count * 2)
        data.append(Data("WAVEfmt ".utf8))
        append(16)
        append(1, 2)
        append(channels, 2)
        append(rate)
        append(rate * channels * 2)
        append(channels * 2, 2)
        append(16, 2)
        data.append(Data("data".utf8))
        append(samples.count * 2)
        samples.withUnsafeBytes { data.append(contentsOf: $0) }
        try data.write(to: URL(fileURLWithPath: path))
        return path
    }

    /// One sine after the other, without a click between them; by default with -12 dBFS.
    public static func sines(
        _ stretches: [(hertz: Double, seconds: Double)], rate: Int = 48_000, channels: Int = 1,
        amplitude: Double = 8_192
    ) -> [Int16] {
        var samples: [Int16] = []
        var place = 0
        for stretch in stretches {
            for _ in 0..<Int(stretch.seconds * Double(rate)) {
                let value = Int16(amplitude * sin(2 * .pi * stretch.hertz * Double(place) / Double(rate)))
                place += 1
                for _ in 0..<channels { samples.append(value) }
            }
        }
        return samples
    }
}
