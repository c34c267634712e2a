/// A stream as its person left it: what it is given back as.
public struct StreamBase: Sendable, Hashable {
    /// As ``AudioStream/volume``.
    public var volume: [UInt32]
    public var isMuted: Bool
    /// Where it played; nil: where new streams go, wherever that is by then.
    public var deviceName: String?
    /// Somebody set the volume while it was other than they had left it: it is theirs until we are done.
    public var isVolumeTheirs: Bool
    /// The same of the mute.
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
