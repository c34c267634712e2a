/// A stream as its person left it: what it is given back as.
public struct StreamBase: Sendable, Hashable {
    public var volume: [UInt32]
    public var isMuted: Bool
    /// Where it played; nil: where new streams go, wherever that is by then.
    public var deviceName: String?

    public init(volume: [UInt32], isMuted: Bool, deviceName: String?) {
        self.volume = volume
        self.isMuted = isMuted
        self.deviceName = deviceName
    }
}
