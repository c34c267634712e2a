import PluginAPI

/// A volume that the user or a program sets for a stream, in points: hundredths of the full volume, as mixers show it.
enum VolumeChange: Sendable, Hashable {
    case to(Int)
    case points(Int)
    case decibels(Int)

    /// `50`, `+10` or `-3dB`.
    init?(_ text: String) {
        let isStep = text.hasPrefix("+") || text.hasPrefix("-")
        let isInDecibels = text.hasSuffix("dB")
        guard let number = Int(isInDecibels ? text.dropLast(2) : text[...]) else { return nil }
        switch (isStep, isInDecibels) {
        case (false, false) where (0...150).contains(number): self = .to(number)
        case (true, false) where (-150...150).contains(number): self = .points(number)
        case (true, true) where (-96...20).contains(number): self = .decibels(number)
        case (false, _), (true, _): return nil
        }
    }

    func applied(to volume: [UInt32]) -> [UInt32] {
        let full = Double(AudioStream.fullVolume)
        return volume.map { channel in
            let new =
                switch self {
                case .to(let points): Double(points) / 100 * full
                case .points(let points): Double(channel) + Double(points) / 100 * full
                case .decibels(let decibels): Double(channel) * VolumeChange.factor(decibels)
                }
            return UInt32(max(0, new).rounded())
        }
    }

    /// On the server's cubic scale: 10^(decibels/60).
    private static func factor(_ decibels: Int) -> Double {
        (0..<abs(decibels)).reduce(1.0) { factor, _ in decibels < 0 ? factor / 1.039_122_3 : factor * 1.039_122_3 }
    }
}

extension AudioStream {
    /// The volume of the loudest channel, in whole points.
    var points: Int { Int((Double(volume.max() ?? 0) * 100 / Double(AudioStream.fullVolume)).rounded()) }
}
