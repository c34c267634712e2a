import PluginAPI

/// Which streams follow the default device: those that play on it, and for a moment after it has changed those that
/// played on the last one. The server moves them one after another, also over a device where they are only for some
/// milliseconds; such a device is not the user's choice.
struct DefaultFollowing: Sendable, Codable {
    private var device: String?
    private var streams: Set<AudioStream.ID> = []
    /// Those that followed the last default, and until when they are expected on the new one.
    private var moving = Moving(streams: [], until: 0)

    private struct Moving: Codable {
        let streams: Set<AudioStream.ID>
        let until: UInt64
    }

    /// Microseconds.
    private static let patience: UInt64 = 2_000_000

    mutating func look(_ streams: [AudioStream], defaultDevice: String?, at now: UInt64) {
        if device != defaultDevice { moving = Moving(streams: self.streams, until: now + DefaultFollowing.patience) }
        device = defaultDevice
        self.streams = Set(streams.filter { $0.deviceName == defaultDevice }.map(\.id))
        if now < moving.until { self.streams.formUnion(moving.streams) }
    }

    func contains(_ id: AudioStream.ID) -> Bool { streams.contains(id) }
}
