import Synchronization

/// Sends each value to all streams that were created before it.
final class Broadcast<Element: Sendable>: Sendable {
    private struct Listeners {
        var byNumber: [Int: AsyncStream<Element>.Continuation] = [:]
        var last = 0
        var isOver = false
    }

    private let listeners = Mutex(Listeners())
    /// The number of values that wait for a slow reader; older ones are dropped.
    private static var limit: Int { 256 }

    /// All values from now on, until the end.
    func stream() -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Element.self, bufferingPolicy: .bufferingNewest(Self.limit))
        let number: Int? = listeners.withLock { listeners in
            guard !listeners.isOver else { return nil }
            listeners.last += 1
            listeners.byNumber[listeners.last] = continuation
            return listeners.last
        }
        if let number {
            continuation.onTermination = { [weak self] _ in
                self?.listeners.withLock { _ = $0.byNumber.removeValue(forKey: number) }
            }
        } else {
            continuation.finish()
        }
        return stream
    }

    /// The values for which `transform` returns one.
    func stream<Other: Sendable>(_ transform: @escaping @Sendable (Element) -> Other?) -> AsyncStream<Other> {
        let (result, continuation) = AsyncStream.makeStream(
            of: Other.self, bufferingPolicy: .bufferingNewest(Self.limit))
        let values = stream()
        let task = Task {
            for await value in values {
                if let other = transform(value) { continuation.yield(other) }
            }
            continuation.finish()
        }
        continuation.onTermination = { _ in task.cancel() }
        return result
    }

    func send(_ element: Element) {
        // Not under the lock: a listener that ends takes the lock itself.
        for listener in listeners.withLock({ Array($0.byNumber.values) }) { listener.yield(element) }
    }

    /// Ends all streams, also those created later.
    func finish() {
        let all = listeners.withLock { listeners in
            listeners.isOver = true
            return Array(listeners.byNumber.values)
        }
        for listener in all { listener.finish() }
    }
}
