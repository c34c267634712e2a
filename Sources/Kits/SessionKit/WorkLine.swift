import Synchronization

/// Does pieces of work one after the other, in the order in which they were added, also if they wait in between.
final class WorkLine: Sendable {
    private let last = Mutex<Task<Void, Never>?>(nil)

    /// Adds a piece of work. The result is complete when the work is done.
    @discardableResult
    func add<Result: Sendable>(_ work: @escaping @Sendable () async -> Result) -> Task<Result, Never> {
        last.withLock { last in
            let task = Task { [last] in
                await last?.value
                return await work()
            }
            last = Task { _ = await task.value }
            return task
        }
    }

    /// Adds a piece of work and waits for it.
    func run<Result: Sendable>(_ work: @escaping @Sendable () async -> Result) async -> Result {
        await add(work).value
    }
}
