import PluginAPI

/// Volumes in steps of one decibel below the user's volume. The daemon writes only these values, so another program or
/// the user has set any other value. This also works after a crash.
enum Level {
    /// The lowest level that the settings allow.
    static let lowest = 96

    /// The user's volume minus `level` decibels (`pa_sw_volume_multiply`, `pa_sw_volume_from_dB`).
    static func volume(_ base: [UInt32], lowered level: Int) -> [UInt32] {
        guard level > 0 else { return base }
        let factor = factors[min(level, lowest)]
        return base.map { UInt32((UInt64($0) * factor + half) >> 16) }
    }

    /// How many decibels `volume` is below `base`; nil if it is not a value of the daemon. `isRemembered`: a session
    /// manager stored it.
    static func of(_ volume: [UInt32], below base: [UInt32], isRemembered: Bool = false) -> Int? {
        guard volume.count == base.count else { return nil }
        return (0...lowest).first { level in
            zip(Level.volume(base, lowered: level), volume).allSatisfy {
                isSame($0, $1) || isRemembered && isSameToSixPlaces($0, $1)
            }
        }
    }

    /// WirePlumber stores a volume as an amplitude with six decimal places, which is inexact for very low ones.
    private static func isSameToSixPlaces(_ one: UInt32, _ other: UInt32) -> Bool {
        func amplitude(_ volume: UInt32) -> Double {
            let part = Double(volume) / 65_536
            return part * part * part
        }
        return abs(amplitude(one) - amplitude(other)) <= 0.000_000_6
    }

    /// Servers that store a volume as a floating-point number return it slightly changed.
    static func isSame(_ one: [UInt32], _ other: [UInt32]) -> Bool {
        one.count == other.count && zip(one, other).allSatisfy { isSame($0, $1) }
    }

    private static func isSame(_ one: UInt32, _ other: UInt32) -> Bool {
        (one > other ? one - other : other - one) <= 2
    }

    private static let half: UInt64 = 32_768
    /// Element n: the factor of −n dB on the server's cubic scale, 10^(−n/60) × 65,536.
    private static let factors: [UInt64] = {
        var factor = 1.0
        return (0...lowest).map { _ in
            defer { factor *= 0.962_350_626_398_064_6 }
            return UInt64((factor * 65_536).rounded())
        }
    }()
}
