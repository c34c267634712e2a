public import PluginAPI

/// What the server remembers of streams that we changed, put right: the next stream of the program must start as its
/// person left the last one, not as we lowered it.
public struct MemoryRepair: Sendable, Hashable {
    /// What is to be done about what the server remembers.
    public enum Verdict: Sendable, Hashable {
        case right
        case write(StreamMemory)
        case forget
    }

    /// What was remembered before we touched anything; nil: nothing.
    public let original: StreamMemory?
    /// How the streams are, or were last, that are remembered under this name.
    public let bases: [StreamBase]

    public init(original: StreamMemory?, bases: [StreamBase]) {
        self.original = original
        self.bases = bases
    }

    /// How the person left a stream that was just found and is remembered under this name, where it started as we left the
    /// last one: the server remembered that, and nobody was in time to put it right. Nil: it started as it should.
    /// `defaultDevice` is where new streams go; `remembersDevice` tells whether the server knows where the last one was, but
    /// for us.
    public func base(of stream: AudioStream, defaultDevice: String?, remembersDevice: Bool = true) -> StreamBase? {
        var base = StreamBase(volume: stream.volume, isMuted: stream.isMuted, deviceName: nil)
        if stream.volume != original?.volume,
            !bases.contains(where: { Level.isSame($0.volume, stream.volume) }),
            let lowered = bases.last(where: { Level.of(stream.volume, below: $0.volume, isRemembered: true) != nil })
        {
            base.volume =
                original.flatMap { $0.volume.count == stream.volume.count ? $0.volume : nil } ?? lowered.volume
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

    /// What has to be done about what is remembered now; nil: nothing is.
    public func verdict(on current: StreamMemory?) -> Verdict {
        guard let current else { return original.map { .write($0) } ?? .right }
        var right = current
        right.deviceName = original?.deviceName
        let isOurs = bases.contains { Level.of(current.volume, below: $0.volume) != nil }
        if isOurs || current.volume.isEmpty {
            right.volume = original?.volume ?? bases.first?.volume ?? []
            right.channels = original?.channels ?? current.channels
        }
        // A mute of ours is not theirs; what they did meanwhile is in the base.
        right.isMuted = bases.last?.isMuted ?? original?.isMuted ?? false
        if isOurs, original == nil, !right.isMuted { return .forget }
        return right == current ? .right : .write(right)
    }
}
