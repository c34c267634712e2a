/// The values of a stream that a sound server remembers for the next stream of its kind (`pa_ext_stream_restore_info`).
public struct StreamMemory: Sendable, Hashable {
    /// As ``AudioStream/memoryName``.
    public let name: String
    /// The server's numbers of the channel positions (`pa_channel_position_t`); empty if it remembers no volume.
    public var channels: [Int32]
    /// The volume of each of the ``channels``, as in ``AudioStream/volume``.
    public var volume: [UInt32]
    public var isMuted: Bool
    /// The name of the device; nil if none is remembered.
    public var deviceName: String?

    public init(
        name: String, channels: [Int32] = [], volume: [UInt32] = [], isMuted: Bool = false, deviceName: String? = nil
    ) {
        self.name = name
        self.channels = channels
        self.volume = volume
        self.isMuted = isMuted
        self.deviceName = deviceName
    }
}

/// What can be done about the values that a server remembers of streams.
public enum MemoryAccess: Sendable, Hashable {
    /// They can be read and written (PulseAudio).
    case readAndWrite
    /// They can be written. ``AudioBackend/readMemory(_:)`` finds only the channels of playing streams (WirePlumber
    /// before 0.5).
    case writeOnly
    /// Written values are ignored: only a stream itself can change what is remembered (WirePlumber from 0.5 on).
    /// ``AudioBackend/readMemory(_:)`` finds only the channels of playing streams.
    case streamsOnly
}
