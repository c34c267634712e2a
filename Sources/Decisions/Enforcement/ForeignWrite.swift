/// A volume that the user or another program has set while the stream is ducked. Alone for a while, it may be a step;
/// several in a row are a slider.
struct ForeignWrite: Sendable, Hashable, Codable {
    let volume: [UInt32]
    /// The level at that time, and before it those from which the step may have been computed.
    let shown: [[UInt32]]
    /// Microseconds on the monotonic clock.
    let time: UInt64
    /// Whether the daemon may have set its next level after it: then the server shows that level again, but the volume
    /// was not taken back.
    let isOverwritten: Bool

    /// Microseconds without another such volume, after which it may be a step.
    static let alone: UInt64 = 300_000

    /// Nil: it is not a step.
    var step: VolumeStep? {
        for shown in shown {
            if let step = VolumeStep(from: shown, to: volume) { return step }
        }
        return nil
    }
}
