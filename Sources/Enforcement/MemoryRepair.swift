public import PluginAPI

/// What the server remembers of streams that we changed, put right: the next stream of the program must start as its
/// person left the last one, not as we lowered it.
public struct MemoryRepair: Sendable, Hashable {
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
