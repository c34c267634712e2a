/// The files that workers read at present, by the task that was given to a worker.
struct ScanReadings {
    /// A file that a worker reads. Its answer has the number of the request, which a file that is found to be another
    /// item does not keep.
    struct Reading: Hashable {
        let request: Int64
        var id: Int64
        let path: [UInt8]
    }

    /// The files of each running task that have not been answered yet, in the order in which the worker reads them.
    private var tasks: [UInt64: [Reading]] = [:]

    /// The number of tasks.
    var count: Int { tasks.count }
    var isEmpty: Bool { tasks.isEmpty }
    var running: some Sequence<UInt64> { tasks.keys }

    /// The items that are being read.
    var items: Set<Int64> { Set(tasks.values.flatMap { $0.map(\.id) }) }

    mutating func begin(_ files: [Reading], in task: UInt64) { tasks[task] = files }

    /// Removes and returns the file that an answer is about; nil: the task has no such file.
    mutating func answered(_ request: Int64, in task: UInt64) -> Reading? {
        guard let index = tasks[task]?.firstIndex(where: { $0.request == request }) else { return nil }
        return tasks[task]?.remove(at: index)
    }

    /// Removes the task, and returns the files that it has not answered.
    mutating func end(_ task: UInt64) -> [Reading] { tasks.removeValue(forKey: task) ?? [] }

    /// The two items have exchanged their places: what is being read at these places now is of the other one.
    mutating func exchange(_ one: Int64, _ other: Int64) {
        for task in tasks.keys {
            for index in tasks[task]?.indices ?? 0..<0 {
                switch tasks[task]?[index].id {
                case one: tasks[task]?[index].id = other
                case other: tasks[task]?[index].id = one
                case .some, nil: break
                }
            }
        }
    }
}
