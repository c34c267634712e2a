import Testing

@testable import ReferenceModel
@testable import Workers

/// A table of every input in every state, single rules, and long random runs against what must always hold.
@Suite struct WorkerPoolTests {
    private static let limits = WorkerPool.Limits(workers: 2, tasks: 3, start: 50, idle: 1_000)
    private static func task(_ id: UInt64, isLong: Bool = false) -> WorkerPool.Task {
        WorkerPool.Task(id: id, patience: 100, isLong: isLong)
    }

    /// The inputs that lead to each state of one worker, by its letter in the table.
    private static let states: [(letter: Character, inputs: [WorkerPool.Input])] = [
        ("N", []),
        ("S", [.asked(task(1))]),
        ("I", [.prepare, .ready(worker: 1)]),
        ("W", [.asked(task(1)), .ready(worker: 1)]),
        ("P", [.asked(task(1)), .ready(worker: 1), .paused(task: 1)]),
    ]

    private static let inputs: [(name: String, input: WorkerPool.Input)] = [
        ("asked", .asked(task(2))),
        ("prepare", .prepare),
        ("ready", .ready(worker: 1)),
        ("answered", .answered(worker: 1)),
        ("done", .done(worker: 1)),
        ("ended", .ended(worker: 1)),
        ("not started", .notStarted(worker: 1)),
        ("cancelled", .cancelled(task: 1)),
        ("paused", .paused(task: 1)),
        ("resumed", .resumed(task: 1)),
        ("time passed", .timePassed),
    ]

    /// No worker, Starting for task 1, Idle, Working on task 1, Paused. A cell has the workers that are left (starting,
    /// idle, working, paused), the tasks that wait, and what is done: a worker is (S)tarted or (K)illed, s(T)opped or
    /// (C)ontinued, a task is (G)iven to one, or (F)ails.
    private static let table = """
                           | N         S         I         W         P
        asked              | s1S       ss2S      w0G       ws1S      ps1S
        prepare            | s0S       s1        i0        w0        p0
        ready              | 0         w0G       i0        w0        p0
        answered           | 0         s1        i0        w0        p0
        done               | 0         s1        i0        i0        i0C
        ended              | 0         s1KS      0K        0KF       0KF
        not started        | 0         s1KS      0K        0KF       0KF
        cancelled          | 0         s0        i0        0K        0K
        paused             | 0         s1        i0        p0T       p0
        resumed            | 0         s1        i0        w0        w0C
        time passed        | 0         s1        i0        w0        p0
        """

    @Test func everyInput_inEveryState_isAsInTheTable() {
        var table = TransitionTable(Self.states.map(\.letter), cellWidth: 10)
        for (name, input) in Self.inputs {
            var cells: [String] = []
            for (_, inputs) in Self.states {
                var pool = WorkerPool(Self.limits)
                for input in inputs { _ = pool.handle(input, at: 10) }
                let effects = pool.handle(input, at: 20)
                cells.append(pool.letters + String(pool.waiting) + effects.map(Self.letter).joined())
            }
            table.add(name, cells)
        }
        #expect(table.text == Self.table, "\n\(table.text)")
    }

    private static func letter(_ effect: WorkerPool.Effect) -> String {
        switch effect {
        case .start: "S"
        case .give: "G"
        case .kill: "K"
        case .stop: "T"
        case .continue: "C"
        case .fail: "F"
        case .wait: ""
        }
    }

    private func given(_ effects: [WorkerPool.Effect]) -> [UInt64] {
        effects.compactMap { if case .give(let task, _) = $0 { task } else { nil } }
    }

    @Test func ownersTakeTurns_howeverManyTasksEachHas() {
        var pool = WorkerPool(WorkerPool.Limits(workers: 2, tasks: 1_000, start: 50, idle: 1_000))
        for id in 1...100 { _ = pool.handle(.asked(.init(id: UInt64(id), owner: ":1.1", patience: 100)), at: 1) }
        _ = pool.handle(.asked(.init(id: 101, owner: ":1.2", patience: 100)), at: 1)
        _ = pool.handle(.asked(.init(id: 102, owner: ":1.3", patience: 100)), at: 1)
        _ = pool.handle(.asked(.init(id: 103, owner: ":1.2", patience: 100)), at: 1)
        var order = given(pool.handle(.ready(worker: 1), at: 2))
        for _ in 0..<6 { order += given(pool.handle(.done(worker: 1), at: 2)) }
        #expect(order == [1, 101, 102, 2, 103, 3, 4])
        // One that was paused before it began keeps its place; one that is cancelled leaves it.
        _ = pool.handle(.paused(task: 5), at: 2)
        _ = pool.handle(.cancelled(task: 6), at: 2)
        #expect(given(pool.handle(.done(worker: 1), at: 2)) == [7])
        _ = pool.handle(.resumed(task: 5), at: 2)
        #expect(given(pool.handle(.done(worker: 1), at: 2)) == [8])
        let rest = (0..<200).flatMap { _ in given(pool.handle(.done(worker: 1), at: 2)) }
        #expect(Set(rest) == Set([5] + (9...100)) && rest.count == 93)
    }

    @Test func taskThatNeverEnds_failsAlsoIfThereIsNews() {
        var pool = WorkerPool(Self.limits)
        _ = pool.handle(.asked(.init(id: 1, patience: 100, longest: 250)), at: 0)
        _ = pool.handle(.ready(worker: 1), at: 0)
        for time: UInt64 in [90, 180] { _ = pool.handle(.answered(worker: 1), at: time) }
        // The time for which it is stopped does not count.
        _ = pool.handle(.paused(task: 1), at: 200)
        #expect(!pool.handle(.timePassed, at: 5_000).contains(.kill(worker: 1)))
        _ = pool.handle(.resumed(task: 1), at: 6_000)
        #expect(!pool.handle(.timePassed, at: 6_049).contains(.kill(worker: 1)))
        let effects = pool.handle(.timePassed, at: 6_050)
        #expect(effects.contains(.kill(worker: 1)) && effects.contains(.fail(task: 1, .tookTooLong(250))))
    }

    @Test func manyPausedTasks_leaveAllWorkersForOthers() {
        var pool = WorkerPool(WorkerPool.Limits(workers: 2, tasks: 1_000, start: 50, idle: 100_000))
        var last: UInt64 = 0
        for id in 1...10 as ClosedRange<UInt64> {
            for effect in pool.handle(.asked(.init(id: id, patience: 1_000_000, isLong: true)), at: 1) {
                if case .start(let worker) = effect { last = worker }
            }
            _ = pool.handle(.ready(worker: last), at: 1)
            if pool.canPause(id) { _ = pool.handle(.paused(task: id), at: 1) }
        }
        #expect(pool.letters.filter { $0 == "p" }.count == 6)
        // One is working on a long task, and the others wait for it; a short one gets the last worker.
        let effects = pool.handle(.asked(.init(id: 11, patience: 100)), at: 1)
        let started = effects.compactMap { if case .start(let worker) = $0 { worker } else { nil as UInt64? } }
        #expect(given(effects) + started.flatMap { given(pool.handle(.ready(worker: $0), at: 1)) } == [11])
    }

    @Test func silentWorker_isKilledAndItsTaskFails() {
        var pool = WorkerPool(Self.limits)
        _ = pool.handle(.asked(Self.task(1)), at: 0)
        #expect(pool.handle(.ready(worker: 1), at: 10).contains(.give(task: 1, worker: 1)))
        #expect(pool.handle(.timePassed, at: 109) == [.wait(until: 110)])
        // An answer gives it the same time again.
        _ = pool.handle(.answered(worker: 1), at: 109)
        #expect(pool.handle(.timePassed, at: 110) == [.wait(until: 209)])
        _ = pool.handle(.asked(Self.task(2)), at: 120)
        let effects = pool.handle(.timePassed, at: 209)
        #expect(effects.contains(.kill(worker: 1)))
        #expect(effects.contains(.fail(task: 1, .silent(100))))
        #expect(pool.letters.contains("s"), "the next task gets a worker")
    }

    @Test func pausedTask_hasNoDeadlineAndLeavesItsPlaceToOthers() {
        var pool = WorkerPool(Self.limits)
        for id in 1...2 as ClosedRange<UInt64> { _ = pool.handle(.asked(Self.task(id)), at: 0) }
        for id in 1...2 as ClosedRange<UInt64> { _ = pool.handle(.ready(worker: id), at: 0) }
        for id in 1...2 as ClosedRange<UInt64> {
            #expect(pool.handle(.paused(task: id), at: 1).contains(.stop(worker: id)))
        }
        #expect(!pool.handle(.timePassed, at: 10_000).contains { if case .fail = $0 { true } else { false } })
        #expect(pool.handle(.asked(Self.task(3)), at: 10_000).contains(.start(worker: 3)))
        #expect(pool.handle(.resumed(task: 1), at: 10_001).contains(.continue(worker: 1)))
        #expect(pool.handle(.timePassed, at: 10_101).contains(.fail(task: 1, .silent(100))))
    }

    @Test func longTasks_leaveOneWorkerForShortOnes() {
        var pool = WorkerPool(Self.limits)
        for id in 1...4 as ClosedRange<UInt64> { _ = pool.handle(.asked(Self.task(id, isLong: true)), at: 0) }
        _ = pool.handle(.ready(worker: 1), at: 1)
        _ = pool.handle(.ready(worker: 2), at: 1)
        #expect(pool.letters.filter { $0 == "w" }.count == 1)
        #expect(pool.handle(.asked(Self.task(5)), at: 2).contains { if case .give(5, _) = $0 { true } else { false } })
    }

    @Test func worker_isReplacedAfterItsTasks() {
        var pool = WorkerPool(Self.limits)
        _ = pool.handle(.prepare, at: 0)
        _ = pool.handle(.ready(worker: 1), at: 0)
        for id in 1...3 as ClosedRange<UInt64> {
            #expect(pool.handle(.asked(Self.task(id)), at: id).contains(.give(task: id, worker: 1)))
            let effects = pool.handle(.done(worker: 1), at: id)
            #expect(effects.contains(.kill(worker: 1)) == (id == 3))
        }
    }

    @Test func idleWorker_endsAfterAWhile() {
        var pool = WorkerPool(Self.limits)
        _ = pool.handle(.prepare, at: 0)
        _ = pool.handle(.ready(worker: 1), at: 10)
        #expect(pool.handle(.timePassed, at: 1_009) == [.wait(until: 1_010)])
        #expect(pool.handle(.timePassed, at: 1_010) == [.kill(worker: 1)])
        #expect(pool.letters.isEmpty)
    }

    @Test func workerThatKnowsTheFile_isPreferred() {
        var pool = WorkerPool(Self.limits)
        func ask(_ id: UInt64, _ affinity: String) -> [WorkerPool.Effect] {
            pool.handle(.asked(WorkerPool.Task(id: id, patience: 100, affinity: affinity)), at: id)
        }
        _ = ask(1, "a")
        _ = ask(2, "b")
        _ = pool.handle(.ready(worker: 1), at: 2)
        _ = pool.handle(.ready(worker: 2), at: 2)
        _ = pool.handle(.done(worker: 2), at: 3)
        _ = pool.handle(.done(worker: 1), at: 4)
        #expect(ask(5, "b").contains(.give(task: 5, worker: 2)))
        #expect(ask(6, "c").contains(.give(task: 6, worker: 1)))
    }

    @Test func startsThatFail_failTheTasks() {
        var pool = WorkerPool(Self.limits)
        _ = pool.handle(.asked(Self.task(1)), at: 0)
        #expect(pool.handle(.notStarted(worker: 1), at: 1).contains(.start(worker: 2)))
        #expect(pool.handle(.notStarted(worker: 2), at: 2).contains(.fail(task: 1, .noWorker)))
        #expect(!pool.isBusy)
    }

    @Test func randomRuns_keepWhatMustAlwaysHold() {
        var random = SplitMix64(seed: 42)
        for _ in 0..<150 {
            var pool = WorkerPool(Self.limits)
            var now: UInt64 = 0
            var lastTask: UInt64 = 0
            var alive: Set<UInt64> = []
            var stopped: Set<UInt64> = []
            var doing: [UInt64: UInt64] = [:]
            var open: Set<UInt64> = []
            func apply(_ effects: [WorkerPool.Effect]) {
                for effect in effects {
                    switch effect {
                    case .start(let worker): #expect(alive.insert(worker).inserted)
                    case .give(let task, let worker):
                        #expect(alive.contains(worker) && doing[worker] == nil && !stopped.contains(worker))
                        #expect(open.contains(task) && !doing.values.contains(task))
                        doing[worker] = task
                    case .kill(let worker):
                        alive.remove(worker)
                        stopped.remove(worker)
                        doing[worker] = nil
                    case .stop(let worker): #expect(alive.contains(worker) && stopped.insert(worker).inserted)
                    case .continue(let worker): #expect(stopped.remove(worker) != nil)
                    case .fail(let task, _): #expect(open.remove(task) != nil, "once")
                    case .wait(let until): #expect(until > now || until == now)
                    }
                }
            }
            for _ in 0..<400 {
                now += UInt64.random(in: 0...30, using: &random)
                let worker = alive.randomElement(using: &random) ?? 99
                let task = open.randomElement(using: &random) ?? 99
                switch Int.random(in: 0..<12, using: &random) {
                case 0, 1, 2:
                    lastTask += 1
                    open.insert(lastTask)
                    apply(pool.handle(.asked(Self.task(lastTask, isLong: lastTask % 3 == 0)), at: now))
                case 3, 4: apply(pool.handle(.ready(worker: worker), at: now))
                case 5: apply(pool.handle(.answered(worker: worker), at: now))
                case 6, 7:
                    if let finished = doing.removeValue(forKey: worker) { open.remove(finished) }
                    apply(pool.handle(.done(worker: worker), at: now))
                case 8:
                    if Int.random(in: 0..<4, using: &random) == 0 {
                        apply(pool.handle(.ended(worker: worker), at: now))
                    }
                case 9:
                    open.remove(task)
                    apply(pool.handle(.cancelled(task: task), at: now))
                case 10: apply(pool.handle(.paused(task: task), at: now))
                default: apply(pool.handle(.resumed(task: task), at: now))
                }
                apply(pool.handle(.timePassed, at: now))
                #expect(alive.count <= 4 * Self.limits.workers)
                #expect(pool.isBusy == !open.isEmpty)
            }
        }
    }
}
