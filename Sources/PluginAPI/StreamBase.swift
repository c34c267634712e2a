/// The state of a stream as the user left it; the daemon restores it.
public struct StreamBase: Sendable, Hashable {
    /// As ``AudioStream/volume``.
    public var volume: [UInt32]
    public var isMuted: Bool
    /// The device it played on; nil: the default at that time.
    public var deviceName: String?
    /// Whether the user or another program changed the volume while the daemon had changed it. The new volume is kept
    /// until the daemon's change ends.
    public var isVolumeTheirs: Bool
    /// The same for the mute switch.
    public var isMuteTheirs: Bool

    public init(
        volume: [UInt32], isMuted: Bool, deviceName: String?, isVolumeTheirs: Bool = false, isMuteTheirs: Bool = false
    ) {
        self.volume = volume
        self.isMuted = isMuted
        self.deviceName = deviceName
        self.isVolumeTheirs = isVolumeTheirs
        self.isMuteTheirs = isMuteTheirs
    }
}
