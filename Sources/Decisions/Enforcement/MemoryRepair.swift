public import PluginAPI

/// Corrects what the server remembers under one name, after the daemon changed streams of that name: the next one must start
/// as the user left the last one, not ducked.
public struct MemoryRepair: Sendable, Hashable {
    /// The action for a remembered entry.
    public enum Verdict: Sendable, Hashable {
        case right
        case write(StreamMemory)
        case forget
    }

    /// As ``AudioStream/memoryName``.
    public let name: String
    /// The entry before the daemon changed anything; nil: none.
    public let original: StreamMemory?
    /// The current or last state of the streams that are remembered under this name, the newest last.
    public private(set) var bases: [StreamBase]

    public init(name: String, original: StreamMemory?, bases: [StreamBase]) {
        self.name = name
        self.original = original
        self.bases = bases
    }

    /// Adds the state of a stream. The server remembers the values of one of the last streams.
    mutating func add(_ base: StreamBase) {
        bases.removeAll { $0 == base }
        bases = bases.suffix(7) + [base]
    }

    /// The user's values of the last stream; nil if unknown.
    var usersValues: StreamMemory? {
        guard let base = bases.last, let channels = original?.channels, channels.count == base.volume.count else {
            return nil
        }
        return StreamMemory(name: name, channels: channels, volume: base.volume, isMuted: base.isMuted)
    }

    /// The volume that the user set last while the streams were ducked; nil: none.
    private var usersVolume: [UInt32]? { bases.last { $0.volumeChange != .none }?.volume }

    /// The user's values for a new stream that is remembered under this name and started with the daemon's values of
    /// the last one, because the entry was not corrected in time. Nil: it started correctly. `defaultDevice` is the
    /// default device; `remembersDevice` tells whether the server, not only the daemon, knows the last stream's device.
    public func base(of stream: AudioStream, defaultDevice: String?, remembersDevice: Bool = true) -> StreamBase? {
        var base = StreamBase(volume: stream.volume, isMuted: stream.isMuted, deviceName: nil)
        if stream.volume != original?.volume,
            !bases.contains(where: { Level.isSame($0.volume, stream.volume) }),
            let lowered = bases.last(where: { Level.of(stream.volume, below: $0.volume, isRemembered: true) != nil })
        {
            base.volume =
                [usersVolume, original?.volume].compactMap { $0 }.first { $0.count == stream.volume.count }
                ?? lowered.volume
        }
        if stream.isMuted, !bases.isEmpty, original?.isMuted != true, !bases.contains(where: \.isMuted) {
            base.isMuted = false
        }
        let chosen = original?.deviceName ?? bases.last?.deviceName
        let isAstray = stream.isHeld || !remembersDevice && stream.deviceName != chosen
        if base.volume == stream.volume, base.isMuted == stream.isMuted, !isAstray || chosen == nil { return nil }
        if isAstray, stream.isHeld || chosen != nil {
            base.deviceName = chosen
        } else if stream.deviceName != defaultDevice {
            base.deviceName = stream.deviceName
        }
        return base
    }

    /// The correction that the current entry needs; nil: none.
    public func verdict(on current: StreamMemory?) -> Verdict {
        guard let current else { return original.map { .write($0) } ?? .right }
        var right = current
        right.deviceName = original?.deviceName
        let isOurs = bases.contains { Level.of(current.volume, below: $0.volume) != nil }
        if isOurs || current.volume.isEmpty {
            right.volume = usersVolume ?? original?.volume ?? bases.first?.volume ?? []
            right.channels = original?.channels ?? current.channels
        }
        // The daemon's mute is not the user's; changes by the user are in the base.
        right.isMuted = bases.last?.isMuted ?? original?.isMuted ?? false
        if isOurs, original == nil, usersVolume == nil, !right.isMuted { return .forget }
        return right == current ? .right : .write(right)
    }
}
