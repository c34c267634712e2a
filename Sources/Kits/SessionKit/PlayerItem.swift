public import PluginAPI
import Synchronization

/// What a ``Player`` plays (AVPlayerItem): a file or a stream. It belongs to one player.
public final class PlayerItem: Sendable, Hashable {
    /// AVPlayerItem.Status.
    public enum Status: Sendable, Hashable {
        /// It has not been opened.
        case unknown
        case readyToPlay
        /// It cannot be played; ``PlayerItem/error`` has the reason.
        case failed
    }

    private struct Facts {
        var status = Status.unknown
        var error: SessionError?
        var duration = 0.0
    }

    /// The URI.
    public let url: String
    private let facts = Mutex(Facts())
    private let statusBroadcast = Broadcast<Status>()
    private let endBroadcast = Broadcast<Bool>()

    /// - Parameter url: a path, a URI or a URL.
    public init(url: some MediaAddress) { self.url = MediaPath.uri(url) }

    deinit {
        statusBroadcast.finish()
        endBroadcast.finish()
    }

    public var status: Status { facts.withLock(\.status) }
    /// Why it cannot be played.
    public var error: SessionError? { facts.withLock(\.error) }
    /// Zero until it is ready, and for a stream without an end.
    public var duration: MediaTime { MediaTime(seconds: facts.withLock(\.duration)) }

    /// The status now, and every change from now on.
    public var statuses: AsyncStream<Status> {
        // A change in between may come twice; it is not lost.
        let changes = statusBroadcast.stream()
        let now = status
        let (stream, continuation) = AsyncStream.makeStream(of: Status.self)
        continuation.yield(now)
        let task = Task {
            var last = now
            for await status in changes where status != last {
                continuation.yield(status)
                last = status
            }
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }

    /// It was played to its end (didPlayToEndTime): true; or it failed while it played (failedToPlayToEndTime): false.
    public var ends: AsyncStream<Bool> { endBroadcast.stream() }

    public static func == (one: PlayerItem, other: PlayerItem) -> Bool { one === other }
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    // MARK: For the player

    func becomeReady(duration: Double) { settle(Facts(status: .readyToPlay, duration: duration)) }
    func fail(_ error: SessionError) { settle(Facts(status: .failed, error: error)) }
    func end(_ success: Bool) { endBroadcast.send(success) }

    private func settle(_ new: Facts) {
        let isNew = facts.withLock { facts in
            defer { facts = new }
            return facts.status != new.status
        }
        if isNew { statusBroadcast.send(new.status) }
    }
}
