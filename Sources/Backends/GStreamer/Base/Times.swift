/// Seconds as the public interfaces have them, and nanoseconds as GStreamer counts them: the one conversion of both.
package enum Times {
    /// Seconds as GStreamer's nanoseconds: rounded, so that 4.1 s are 4,100,000,000; never negative, a century at the most,
    /// 0 for NaN.
    package static func nanoseconds(_ seconds: Double) -> UInt {
        seconds > 0 ? UInt((min(seconds, 3.15e9) * 1e9).rounded()) : 0
    }

    package static func seconds(_ nanoseconds: UInt) -> Double { Double(nanoseconds) / 1e9 }
    package static func seconds(_ nanoseconds: Int) -> Double { Double(nanoseconds) / 1e9 }
}
