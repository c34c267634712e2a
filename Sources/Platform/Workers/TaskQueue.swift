/// The tasks that wait for a worker.
///
/// The owners take turns: an owner with thousands of tasks does not delay the first task of another owner. The tasks of
/// one owner are done in order. No operation visits all tasks.
struct TaskQueue: Sendable {
    typealias Task = WorkerPool.Task

    /// The tasks of one owner in order. Tasks that no longer wait are removed when they are first in the line.
    private struct Line: Sendable {
        let owner: String
        var short = Fifo()
        var long = Fifo()
    }

    private struct Fifo: Sendable {
        private var tasks: [Task] = []
        private var begin = 0

        var first: Task? { begin < tasks.count ? tasks[begin] : nil }

        mutating func append(_ task: Task) { tasks.append(task) }

        mutating func removeFirst() {
            begin += 1
            // Removed in blocks, because removing them one by one would be slow.
            guard begin == tasks.count || begin >= 64 else { return }
            tasks.removeFirst(begin)
            begin = 0
        }
    }

    /// The line of the owner whose turn is next comes first.
    private var lines: [Line] = []
    private var short: [UInt64: Task] = [:]
    private var long: [UInt64: Task] = [:]
    private var held: [UInt64: Task] = [:]
    /// All tasks that are in a line.
    private var lined: Set<UInt64> = []

    var isEmpty: Bool { count == 0 }
    /// The number of tasks, including held ones.
    var count: Int { short.count + long.count + held.count }

    /// The number of tasks that could be started now.
    func count(long isWanted: Bool) -> Int { short.count + (isWanted ? long.count : 0) }

    mutating func add(_ task: Task) {
        if task.isLong { long[task.id] = task } else { short[task.id] = task }
        // A held task is still at its old place.
        guard lined.insert(task.id).inserted else { return }
        let index = lines.firstIndex { $0.owner == task.owner } ?? lines.endIndex
        if index == lines.endIndex { lines.append(Line(owner: task.owner)) }
        if task.isLong { lines[index].long.append(task) } else { lines[index].short.append(task) }
    }

    mutating func remove(_ id: UInt64) {
        short[id] = nil
        long[id] = nil
        held[id] = nil
        if isEmpty { self = TaskQueue() }
    }

    /// The task is not started before ``release(_:)``.
    mutating func hold(_ id: UInt64) {
        guard let task = short.removeValue(forKey: id) ?? long.removeValue(forKey: id) else { return }
        held[id] = task
    }

    mutating func release(_ id: UInt64) {
        if let task = held.removeValue(forKey: id) { add(task) }
    }

    /// Removes all tasks; returns them, oldest first.
    mutating func removeAll() -> [UInt64] {
        defer { self = TaskQueue() }
        return (Array(short.keys) + long.keys + held.keys).sorted()
    }

    /// Removes the next task; nil: none can be started now.
    /// - Parameter isWanted: whether the task may be a long one.
    mutating func next(long isWanted: Bool) -> Task? {
        var index = 0
        while index < lines.count {
            Self.skip(&lines[index].short, short, &lined)
            Self.skip(&lines[index].long, long, &lined)
            let shortTask = lines[index].short.first
            let longTask = lines[index].long.first
            if shortTask == nil, longTask == nil {
                lines.remove(at: index)
                continue
            }
            guard let task = Self.older(shortTask, isWanted ? longTask : nil) else {
                index += 1
                continue
            }
            // The turn of its owner is over.
            var line = lines.remove(at: index)
            if task.isLong { line.long.removeFirst() } else { line.short.removeFirst() }
            lined.remove(task.id)
            lines.append(line)
            remove(task.id)
            return task
        }
        return nil
    }

    private static func older(_ one: Task?, _ other: Task?) -> Task? {
        guard let one, let other else { return one ?? other }
        return one.id < other.id ? one : other
    }

    /// Removes the tasks that no longer wait.
    private static func skip(_ fifo: inout Fifo, _ waiting: [UInt64: Task], _ lined: inout Set<UInt64>) {
        while let task = fifo.first, waiting[task.id] == nil {
            fifo.removeFirst()
            lined.remove(task.id)
        }
    }
}
