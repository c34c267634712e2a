public import EventLoop
import Glibc
import Processes

/// Processes that open untrusted files. If a decoder hangs, crashes or uses all its memory, only its task fails, with a
/// clear error.
///
/// ``WorkerPool`` decides. A worker is a program that gets a socket as its last argument, and sends and receives
/// ``WorkerMessage``s on it: first `ready`, then for each request any number of answers and `done`. It must end with
/// this process. ``WorkerProcess`` implements all this.
public final class Workers {
    /// The reason why a task has no result.
    public enum Failure: Error, Sendable, Hashable {
        /// It sent nothing for this many seconds.
        case silent(Double)
        /// It was not done after this many seconds.
        case tookTooLong(Double)
        /// The worker ended.
        case ended
        /// No worker could be started.
        case notStarted
    }

    private struct Request {
        var message: WorkerMessage
        var descriptors: [Int32]
        var onAnswer: (WorkerMessage) -> Void
        var onEnd: (Result<WorkerMessage, Failure>) -> Void
    }

    private let loop: EventLoop
    private let program: String
    private let arguments: [String]
    private let answers: AnswerLimits
    private var pool: WorkerPool
    private var lines: [UInt64: WorkerLine] = [:]
    /// Killed processes that have not ended yet.
    private var dying: [Int32: ProcessWatch] = [:]
    private var requests: [UInt64: Request] = [:]
    private var tasks: [UInt64: UInt64] = [:]
    private var lastTask: UInt64 = 0
    private let log: (String) -> Void
    private var lineBudget = LineBudget()
    private lazy var timer = Timer(on: loop) { [unowned self] in take(.timePassed) }

    /// - Parameters:
    ///   - program: its path; it is not searched in PATH.
    ///   - arguments: the arguments before the number of the socket.
    ///   - answers: the limits of the answers. A worker that sends another message, or a larger one, is killed.
    ///   - log: called with each line that a worker prints; it must escape the text. Long lines are cut, and lines beyond
    ///     a number left out.
    public init(
        _ program: String, _ arguments: [String], _ limits: WorkerPool.Limits, _ answers: AnswerLimits,
        on loop: EventLoop, log: @escaping (String) -> Void
    ) {
        (self.loop, self.program, self.arguments, self.log) = (loop, program, arguments, log)
        self.answers = answers
        pool = WorkerPool(limits)
        // Writing to a worker that has ended must not end this process.
        signal(SIGPIPE, SIG_IGN)
    }

    deinit { for line in lines.values { line.kill() } }

    /// Whether there is a task.
    public var isBusy: Bool { pool.isBusy }

    /// The processes, for tests.
    public var processes: [Int32] { lines.values.map(\.process) + dying.keys }

    /// Starts a worker before it is needed.
    public func prepare() { take(.prepare) }

    /// Gives a task to a worker. All handlers are called from the loop.
    ///
    /// - Parameters:
    ///   - descriptors: the worker gets copies with the request. The caller still owns them, and must keep them open
    ///     until the end.
    ///   - owner: the client that requested the task; owners take turns.
    ///   - patience: the longest time between two answers, in seconds.
    ///   - longest: the longest duration of the task, in seconds.
    ///   - isLong: whether the task may take minutes.
    ///   - affinity: tasks with the same affinity are faster on the same worker.
    ///   - onAnswer: called with each answer but the last.
    ///   - onEnd: called once with the answer `done` or `failed`, or with the reason why there is none; not after
    ///     ``cancel(_:)``.
    /// - Returns: the number of the task.
    public func run(
        _ message: WorkerMessage, for owner: String = "", descriptors: [Int32] = [], patience: Double,
        longest: Double = .infinity, isLong: Bool = false, affinity: String = "",
        onAnswer: @escaping (WorkerMessage) -> Void = { _ in },
        onEnd: @escaping (Result<WorkerMessage, Failure>) -> Void
    ) -> UInt64 {
        lastTask += 1
        let id = lastTask
        requests[id] = Request(message: message, descriptors: descriptors, onAnswer: onAnswer, onEnd: onEnd)
        let task = WorkerPool.Task(
            id: id, owner: owner, patience: MonotonicClock.microseconds(patience),
            longest: longest.isFinite ? MonotonicClock.microseconds(longest) : .max, isLong: isLong, affinity: affinity)
        // All results of the task come later, from the loop.
        take(.asked(task))
        return id
    }

    /// Ends a task at once; its handlers are not called any more.
    public func cancel(_ task: UInt64) {
        guard requests.removeValue(forKey: task) != nil else { return }
        take(.cancelled(task: task))
    }

    /// Whether the task may be paused; false if too many workers are stopped.
    public func canPause(_ task: UInt64) -> Bool { pool.canPause(task) }

    /// Stops the worker of a task, until ``resume(_:)``.
    public func pause(_ task: UInt64) { take(.paused(task: task)) }

    public func resume(_ task: UInt64) { take(.resumed(task: task)) }

    private func take(_ input: WorkerPool.Input) {
        for effect in pool.handle(input, at: MonotonicClock.now()) {
            switch effect {
            case .start(let worker): start(worker)
            case .give(let task, let worker): give(task, to: worker)
            case .kill(let worker): kill(worker)
            case .stop(let worker): lines[worker]?.signal(SIGSTOP)
            case .continue(let worker): lines[worker]?.signal(SIGCONT)
            case .fail(let task, let reason): end(task, .failure(Failure(reason)))
            case .wait(let until): timer.arm(at: until)
            }
        }
    }

    private func start(_ worker: UInt64) {
        guard let line = WorkerLine(program, arguments, answers, on: loop) else {
            return loop.later { [weak self] in self?.take(.notStarted(worker: worker)) }
        }
        line.onMessage = { [weak self] in self?.heard($0, from: worker) }
        line.onEnd = { [weak self] in self?.take(.ended(worker: worker)) }
        line.onLine = { [weak self] in self?.printed($0, by: worker) }
        lines[worker] = line
    }

    private func give(_ task: UInt64, to worker: UInt64) {
        guard let request = requests[task] else { return }
        tasks[worker] = task
        lines[worker]?.send(request.message, request.descriptors)
    }

    private func kill(_ worker: UInt64) {
        tasks[worker] = nil
        guard let line = lines.removeValue(forKey: worker) else { return }
        line.kill()
        let process = line.process
        // Until the process is reaped, it is a zombie.
        dying[process] = ProcessWatch(UInt32(process), on: loop) { [weak self] in
            _ = ChildChange.next(of: process)
            self?.dying[process] = nil
        }
        if dying[process] == nil { _ = ChildChange.next(of: process) }
    }

    private func heard(_ message: WorkerMessage, from worker: UInt64) {
        switch message.name {
        case "ready": take(.ready(worker: worker))
        case "done", "failed":
            let task = tasks.removeValue(forKey: worker)
            take(.done(worker: worker))
            if let task { end(task, .success(message)) }
        default:
            take(.answered(worker: worker))
            if let task = tasks[worker] { requests[task]?.onAnswer(message) }
        }
    }

    private func printed(_ line: String, by worker: UInt64) {
        if lineBudget.admits(at: MonotonicClock.now()) { log("worker \(worker): \(line)") }
    }

    private func end(_ task: UInt64, _ result: Result<WorkerMessage, Failure>) {
        requests.removeValue(forKey: task)?.onEnd(result)
    }
}

extension Workers.Failure {
    fileprivate init(_ reason: WorkerPool.Reason) {
        switch reason {
        case .silent(let microseconds): self = .silent(Double(microseconds) / 1_000_000)
        case .tookTooLong(let microseconds): self = .tookTooLong(Double(microseconds) / 1_000_000)
        case .workerEnded: self = .ended
        case .noWorker: self = .notStarted
        }
    }
}
