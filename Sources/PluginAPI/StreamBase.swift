/// The state of a stream as the user left it; the daemon restores it.
public struct StreamBase: Sendable, Hashable, Codable {
    /// As ``AudioStream/volume``.
    public var volume: [UInt32]
    public var isMuted: Bool
    /// The device it played on; nil: the default at that time.
    public var deviceName: String?
    public var volumeChange: VolumeChange
    /// Whether the user or another program changed the mute switch while the daemon had changed it. It is kept until the
    /// daemon's change ends.
    public var isMuteTheirs: Bool

    /// How the user or another program changed the volume while the daemon had changed it.
    public enum VolumeChange: UInt8, Sendable, Hashable, CaseIterable, Codable {
        /// Not at all.
        case none
        /// By a step louder or softer: the stream is ducked below the new volume.
        case step
        /// To another volume, which is kept: the stream is not ducked until the daemon's change ends.
        case absolute
    }

    public init(
        volume: [UInt32], isMuted: Bool, deviceName: String?, volumeChange: VolumeChange = .none,
        isMuteTheirs: Bool = false
    ) {
        self.volume = volume
        self.isMuted = isMuted
        self.deviceName = deviceName
        self.volumeChange = volumeChange
        self.isMuteTheirs = isMuteTheirs
    }
}
