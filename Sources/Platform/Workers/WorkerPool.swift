/// Decides which worker does which task, and when a worker is started and killed. Inputs are what has happened; effects
/// are what must be done.
///
/// - A task is done by one worker, which does nothing else meanwhile. If a task sends nothing for longer than its
///   patience, it has failed, and its worker is killed.
/// - If a worker ends, its task fails, and no other task is affected.
/// - One worker is kept free of long tasks, for short ones. The number of paused workers is limited, so that all
///   workers can still run.
/// - The owners of tasks take turns, however many tasks each of them has.
/// - A worker is replaced after a number of tasks, because decoders leak memory. It ends after some time without a
///   task.
/// - A cancelled task ends at once: its worker is killed.
///
/// Times are those of ``MonotonicClock``, in microseconds.
public struct WorkerPool: Sendable {
    /// The limits of a pool.
    public struct Limits: Sendable {
        /// The number of workers that run at the same time, at least two.
        public var workers: Int
        /// The number of tasks after which a worker is replaced.
        public var tasks: Int
        /// The time until a worker must be ready, in microseconds. The first worker of a user may have to read all
        /// plugins of GStreamer.
        public var start: UInt64
        /// The time after which a worker without a task ends, in microseconds.
        public var idle: UInt64

        public init(workers: Int, tasks: Int = 200, start: UInt64 = 120_000_000, idle: UInt64 = 30_000_000) {
            self.workers = max(2, workers)
            self.tasks = tasks
            self.start = start
            self.idle = idle
        }
    }

    /// A task, from its request to its result.
    public struct Task: Sendable, Hashable {
        /// The number of the task; never used again.
        public let id: UInt64
        /// The client that requested the task.
        public let owner: String
        /// The longest time between two answers, in microseconds.
        public let patience: UInt64
        /// The longest duration of the task in microseconds, without the time while it is paused.
        public let longest: UInt64
        /// The task may take minutes.
        public let isLong: Bool
        /// Tasks with the same affinity are faster on the same worker.
        public let affinity: String

        public init(
            id: UInt64, owner: String = "", patience: UInt64, longest: UInt64 = .max, isLong: Bool = false,
            affinity: String = ""
        ) {
            (self.id, self.owner, self.patience, self.longest) = (id, owner, patience, longest)
            (self.isLong, self.affinity) = (isLong, affinity)
        }
    }

    /// An event. Workers have numbers; a number is never used again.
    public enum Input: Sendable, Hashable {
        case asked(Task)
        /// A worker is to be started before there is a task.
        case prepare
        /// The worker has reported that it is ready.
        case ready(worker: UInt64)
        /// The worker has sent a part of its answer.
        case answered(worker: UInt64)
        /// The worker has sent the last part of its answer.
        case done(worker: UInt64)
        /// The process of the worker has ended, or has sent an invalid message.
        case ended(worker: UInt64)
        /// The process of the worker could not be started.
        case notStarted(worker: UInt64)
        case cancelled(task: UInt64)
        case paused(task: UInt64)
        case resumed(task: UInt64)
        /// The time of ``Effect/wait(until:)`` has come.
        case timePassed
    }

    /// An action to carry out; several in this order.
    public enum Effect: Sendable, Hashable {
        /// Start a process.
        case start(worker: UInt64)
        /// Give the task to the worker.
        case give(task: UInt64, worker: UInt64)
        /// Kill the process; its later messages are ignored.
        case kill(worker: UInt64)
        /// Stop the process, or let it continue (`SIGSTOP`, `SIGCONT`).
        case stop(worker: UInt64)
        case `continue`(worker: UInt64)
        case fail(task: UInt64, Reason)
        /// Pass ``Input/timePassed`` at this time; replaces an earlier one.
        case wait(until: UInt64)
    }

    /// The reason why a task failed.
    public enum Reason: Sendable, Hashable {
        /// It sent nothing for this many microseconds.
        case silent(UInt64)
        /// It was not done after this many microseconds.
        case tookTooLong(UInt64)
        /// Its worker ended.
        case workerEnded
        /// No worker could be started.
        case noWorker
    }

    private struct Worker: Sendable {
        enum State: Sendable {
            case starting(due: UInt64)
            case idle(since: UInt64)
            case working(Task, due: UInt64)
            /// The process is stopped.
            case paused(Task)
        }

        let id: UInt64
        var state: State
        var count = 0
        var affinity = ""
        /// The remaining time of its task at ``began``, when it got the task or the task was resumed, in microseconds.
        var left: UInt64 = .max
        var began: UInt64 = 0

        /// The task starts or resumes now.
        mutating func work(on task: Task, _ now: UInt64) {
            began = now
            state = .working(task, due: due(task, now))
        }

        /// The time at which the task fails if it sends nothing after now.
        func due(_ task: Task, _ now: UInt64) -> UInt64 {
            let (end, isNever) = began.addingReportingOverflow(left)
            return isNever ? now &+ task.patience : min(now &+ task.patience, end)
        }

        mutating func stop(_ task: Task, _ now: UInt64) {
            if left != .max { left -= min(left, now &- began) }
            state = .paused(task)
        }

        var task: Task? {
            switch state {
            case .starting, .idle: nil
            case .working(let task, _), .paused(let task): task
            }
        }
        var isPaused: Bool { if case .paused = state { true } else { false } }
    }

    private let limits: Limits
    private var workers: [Worker] = []
    private var queue = TaskQueue()
    private var lastWorker: UInt64 = 0
    /// The number of consecutive failed starts.
    private var failures = 0
    private var timer: UInt64?

    /// After this many failed starts, the waiting tasks fail.
    private static let patienceWithStarts = 2

    public init(_ limits: Limits) { self.limits = limits }

    /// Whether there is a task.
    public var isBusy: Bool { !queue.isEmpty || workers.contains { $0.task != nil } }

    /// Whether the task may be paused: the number of stopped workers is limited, so that all other workers can still
    /// run.
    public func canPause(_ task: UInt64) -> Bool {
        workers.count(where: \.isPaused) < 3 * limits.workers || !workers.contains { $0.task?.id == task }
    }

    /// The letters of the workers' states, for tests: (s)tarting, (i)dle, (w)orking, (p)aused.
    var letters: String {
        String(
            workers.map { worker -> Character in
                switch worker.state {
                case .starting: "s"
                case .idle: "i"
                case .working: "w"
                case .paused: "p"
                }
            })
    }
    /// The number of tasks without a worker, for tests.
    var waiting: Int { queue.count }

    public mutating func handle(_ input: Input, at now: UInt64) -> [Effect] {
        var effects: [Effect] = []
        switch input {
        case .asked(let task): queue.add(task)
        case .prepare: if workers.isEmpty { start(now, &effects) }
        case .ready(let id):
            change(id) { worker in
                if case .starting = worker.state { worker.state = .idle(since: now) }
            }
            failures = 0
        case .answered(let id):
            change(id) { worker in
                if case .working(let task, _) = worker.state {
                    worker.state = .working(task, due: worker.due(task, now))
                }
            }
        case .done(let id): done(id, now, &effects)
        case .ended(let id), .notStarted(let id): ended(id, &effects)
        case .cancelled(let task): cancel(task, &effects)
        case .paused(let task): pause(task, now, &effects)
        case .resumed(let task): resume(task, now, &effects)
        case .timePassed: timer = nil
        }
        expire(now, &effects)
        serve(now, &effects)
        setTimer(&effects)
        return effects
    }

    private mutating func change(_ id: UInt64, _ body: (inout Worker) -> Void) {
        if let index = workers.firstIndex(where: { $0.id == id }) { body(&workers[index]) }
    }

    private mutating func start(_ now: UInt64, _ effects: inout [Effect]) {
        lastWorker += 1
        workers.append(Worker(id: lastWorker, state: .starting(due: now &+ limits.start)))
        effects.append(.start(worker: lastWorker))
    }

    private mutating func kill(_ id: UInt64, _ effects: inout [Effect]) {
        workers.removeAll { $0.id == id }
        effects.append(.kill(worker: id))
    }

    private mutating func done(_ id: UInt64, _ now: UInt64, _ effects: inout [Effect]) {
        guard let index = workers.firstIndex(where: { $0.id == id }), workers[index].task != nil else { return }
        workers[index].count += 1
        if workers[index].count >= limits.tasks {
            kill(id, &effects)
        } else {
            if workers[index].isPaused { effects.append(.continue(worker: id)) }
            workers[index].state = .idle(since: now)
        }
    }

    private mutating func ended(_ id: UInt64, _ effects: inout [Effect]) {
        guard let worker = workers.first(where: { $0.id == id }) else { return }
        // Its connection may have ended while the process still runs.
        kill(id, &effects)
        if let task = worker.task {
            effects.append(.fail(task: task.id, .workerEnded))
        } else if case .starting = worker.state {
            startFailed(&effects)
        }
    }

    private mutating func startFailed(_ effects: inout [Effect]) {
        failures += 1
        guard failures >= Self.patienceWithStarts else { return }
        for task in queue.removeAll() { effects.append(.fail(task: task, .noWorker)) }
        failures = 0
    }

    private mutating func cancel(_ id: UInt64, _ effects: inout [Effect]) {
        queue.remove(id)
        if let worker = workers.first(where: { $0.task?.id == id }) { kill(worker.id, &effects) }
    }

    private mutating func pause(_ id: UInt64, _ now: UInt64, _ effects: inout [Effect]) {
        queue.hold(id)
        guard let index = workers.firstIndex(where: { $0.task?.id == id }),
            case .working(let task, _) = workers[index].state
        else { return }
        workers[index].stop(task, now)
        effects.append(.stop(worker: workers[index].id))
    }

    private mutating func resume(_ id: UInt64, _ now: UInt64, _ effects: inout [Effect]) {
        queue.release(id)
        guard let index = workers.firstIndex(where: { $0.task?.id == id }),
            case .paused(let task) = workers[index].state
        else { return }
        workers[index].work(on: task, now)
        effects.append(.continue(worker: workers[index].id))
    }

    /// Handles all tasks and workers whose time is over.
    private mutating func expire(_ now: UInt64, _ effects: inout [Effect]) {
        for worker in workers {
            switch worker.state {
            case .starting(let due) where due <= now:
                kill(worker.id, &effects)
                startFailed(&effects)
            case .working(let task, let due) where due <= now:
                kill(worker.id, &effects)
                let isOver = worker.left != .max && now &- worker.began >= worker.left
                effects.append(
                    .fail(task: task.id, isOver ? .tookTooLong(task.longest) : .silent(task.patience)))
            case .idle(let since) where since &+ limits.idle <= now: kill(worker.id, &effects)
            case .starting, .working, .idle, .paused: break
            }
        }
    }

    /// Gives tasks to idle workers, and starts workers for the other tasks. Stopped workers do not count, up to three
    /// times the number of workers.
    private mutating func serve(_ now: UInt64, _ effects: inout [Effect]) {
        while hasIdleWorker, let task = queue.next(long: runningLong < limits.workers - 1) {
            guard let index = idleWorker(for: task) else { break }
            workers[index].left = task.longest
            workers[index].affinity = task.affinity
            workers[index].work(on: task, now)
            effects.append(.give(task: task.id, worker: workers[index].id))
        }
        let wanted = queue.count(long: runningLong < limits.workers - 1)
        var starting = workers.count { if case .starting = $0.state { true } else { false } }
        while starting < wanted, workers.count(where: { !$0.isPaused }) < limits.workers,
            workers.count < 4 * limits.workers
        {
            start(now, &effects)
            starting += 1
        }
    }

    private var hasIdleWorker: Bool {
        workers.contains { if case .idle = $0.state { true } else { false } }
    }

    private var runningLong: Int {
        workers.count { if case .working(let task, _) = $0.state { task.isLong } else { false } }
    }

    /// The idle worker that knows the file, otherwise the one that became idle last, so that the others can end.
    private func idleWorker(for task: Task) -> Int? {
        var best: (index: Int, knows: Bool, since: UInt64)?
        for (index, worker) in workers.enumerated() {
            guard case .idle(let since) = worker.state else { continue }
            let knows = !task.affinity.isEmpty && worker.affinity == task.affinity
            if let found = best, (found.knows ? 1 : 0, found.since) >= (knows ? 1 : 0, since) { continue }
            best = (index, knows, since)
        }
        return best?.index
    }

    private mutating func setTimer(_ effects: inout [Effect]) {
        let next = workers.compactMap { worker -> UInt64? in
            switch worker.state {
            case .starting(let due), .working(_, let due): due
            case .idle(let since): since &+ limits.idle
            case .paused: nil
            }
        }.min()
        // A timer that fires too early is harmless, so an answer need not set it again.
        guard let next, timer.map({ next < $0 }) ?? true else { return }
        timer = next
        effects.append(.wait(until: next))
    }
}
