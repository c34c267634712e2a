import PluginAPI
import Testing

@testable import PluginKit
@testable import ReferenceModel

/// A table of every input in every state, the rule of progress, and long random runs.
@Suite struct JobStatusTests {
    /// The inputs that lead to each state, by its letter in the table.
    private static let states: [(letter: Character, inputs: [JobStatus.Input])] = [
        ("W", []),
        ("R", [.begun]),
        ("P", [.begun, .pause]),
        ("Q", [.pause]),
        ("F", [.begun, .succeeded]),
        ("E", [.begun, .failed(failure)]),
        ("C", [.begun, .cancel]),
    ]
    private static let failure = SessionError(.diskFull, "the disk is full")

    private static let inputs: [(name: String, input: JobStatus.Input)] = [
        ("begun", .begun),
        ("waits", .waits("no network")),
        ("progressed", .progressed(done: 1, total: 2, share: nil)),
        ("succeeded", .succeeded),
        ("failed", .failed(failure)),
        ("pause", .pause),
        ("resume", .resume),
        ("cancel", .cancel),
        ("time passed", .timePassed),
    ]

    /// Waiting, Running, Paused, paused before it has begun (Q), Finished, failEd, Cancelled. A cell has the next state, and
    /// what is done: the work is (p)aused, (r)esumed or (c)ancelled, (t)ell, (w)ait, (e)nd.
    private static let table = """
                           | W      R      P      Q      F      E      C
        begun              | Rt     R      P      Pt     F      E      C
        waits              | Wt     Wt     Qt     Qt     F      E      C
        progressed         | Wt     Rw     Pw     Qw     F      E      C
        succeeded          | Fte    Fte    Fte    Fte    F      E      C
        failed             | Ete    Ete    Ete    Ete    F      E      C
        pause              | Qpt    Ppt    P      Q      F      E      C
        resume             | W      R      Rrt    Wrt    F      E      C
        cancel             | Ccte   Ccte   Ccte   Ccte   F      E      C
        time passed        | W      R      P      Q      F      E      C
        """

    @Test func everyInput_inEveryState_isAsInTheTable() throws {
        var table = TransitionTable(Self.states.map(\.letter), cellWidth: 7)
        for (name, input) in Self.inputs {
            var cells: [String] = []
            for (_, inputs) in Self.states {
                var status = JobStatus(.bytes, canPause: true)
                for input in inputs { _ = try status.handle(input, at: 1_000) }
                let effects = try status.handle(input, at: 1_000)
                cells.append(String(Self.letter(status)) + effects.map(Self.letter).joined())
            }
            table.add(name, cells)
        }
        #expect(table.text == Self.table, "\n\(table.text)")
    }

    private static func letter(_ status: JobStatus) -> Character {
        switch status.state {
        case .waiting: return "W"
        case .running: return "R"
        case .paused:
            var resumed = status
            _ = try? resumed.handle(.resume, at: 0)
            return resumed.state == .running ? "P" : "Q"
        case .finished: return "F"
        case .failed: return "E"
        case .cancelled: return "C"
        }
    }

    private static func letter(_ effect: JobStatus.Effect) -> String {
        switch effect {
        case .pauseWork: "p"
        case .resumeWork: "r"
        case .cancelWork: "c"
        case .tell: "t"
        case .wait: "w"
        case .end: "e"
        }
    }

    @Test func jobThatCannotPause_refusesIt() {
        var status = JobStatus(.files)
        #expect(throws: SessionError.self) { try status.handle(.pause, at: 0) }
        #expect(throws: SessionError.self) { try status.handle(.resume, at: 0) }
        #expect(status.state == .waiting)
    }

    @Test func progress_neverGoesBackAndIsOneOnlyAtTheEnd() throws {
        var status = JobStatus(.bytes)
        #expect(status.progress == nil)
        _ = try status.handle(.begun, at: 0)
        _ = try status.handle(.progressed(done: 50, total: 100, share: nil), at: 1)
        #expect(status.progress == 0.5)
        // A server that has lost a part.
        _ = try status.handle(.progressed(done: 20, total: 100, share: nil), at: 2)
        #expect(status.progress == 0.5)
        #expect(status.done == 50)
        _ = try status.handle(.progressed(done: 100, total: 100, share: nil), at: 3)
        #expect(status.progress == JobStatus.almost)
        _ = try status.handle(.progressed(done: 100, total: 100, share: .nan), at: 4)
        #expect(status.progress == JobStatus.almost)
        #expect(try status.handle(.succeeded, at: 5) == [.tell, .end(success: true)])
        #expect(status.progress == 1)
        #expect(status.remaining == 0)
    }

    @Test func failedJob_keepsItsProgressAndHasTheError() throws {
        var status = JobStatus(.bytes, total: 10)
        #expect(status.progress == 0)
        _ = try status.handle(.begun, at: 0)
        _ = try status.handle(.progressed(done: 5, total: 10, share: nil), at: 1)
        _ = try status.handle(.failed(Self.failure), at: 2)
        #expect(status.progress == 0.5)
        #expect(status.error?.code == .diskFull)
        #expect(status.message == "the disk is full (-11807)")
        #expect(status.speed == 0)
        #expect(status.remaining == nil)
    }

    @Test func speed_isThatOfTheLatestSeconds() throws {
        var status = JobStatus(.milliseconds)
        _ = try status.handle(.begun, at: 0)
        // Ten seconds at half of real time, then ten seconds at twice of it.
        var done: UInt64 = 0
        for step in 1...200 {
            done += step <= 100 ? 50 : 200
            _ = try status.handle(.progressed(done: done, total: 100_000, share: nil), at: UInt64(step) * 100_000)
            if step == 100 { #expect(abs(status.speed - 0.5) < 0.01) }
        }
        #expect(abs(status.speed - 2) < 0.01)
        #expect(abs((status.remaining ?? 0) - 37.5) < 0.5)
        _ = try status.handle(.waits("no turn"), at: 20_000_000)
        #expect(status.speed == 0)
        _ = try status.handle(.begun, at: 90_000_000)
        _ = try status.handle(.progressed(done: done + 300, total: 100_000, share: nil), at: 90_300_000)
        #expect(abs(status.speed - 1) < 0.01)
    }

    @Test func randomRuns_tellProgressAtMostTenTimesASecond() throws {
        var random = SplitMix64(seed: 18)
        for _ in 0..<200 {
            var status = JobStatus(.bytes, canPause: true)
            var now: UInt64 = 1
            var timer: UInt64?
            var told: [UInt64] = []
            var shown = -1.0
            var ends = 0
            for _ in 0..<500 {
                now += UInt64.random(in: 1...40_000, using: &random)
                var input = Self.inputs.randomElement(using: &random)?.input ?? .begun
                // Ends are rare, so that runs are long.
                switch input {
                case .succeeded, .failed, .cancel:
                    if Int.random(in: 0..<40, using: &random) != 0 { input = .begun }
                case .progressed:
                    let done = UInt64.random(in: 0...1_000, using: &random)
                    input = .progressed(done: done, total: 1_000, share: nil)
                case .begun, .waits, .leavesOut, .pause, .resume, .timePassed: break
                }
                if let due = timer, due <= now {
                    timer = nil
                    if try status.handle(.timePassed, at: now).contains(.tell) { told.append(now) }
                }
                if input == .timePassed { continue }
                let before = status.state
                let effects = try status.handle(input, at: now)
                #expect((status.progress ?? -1) >= shown)
                shown = status.progress ?? -1
                #expect((shown == 1) == (status.state == .finished))
                if before.isEnd { #expect(effects == []) }
                for effect in effects {
                    switch effect {
                    case .tell:
                        if case .progressed = input { told.append(now) } else { told = [now] }
                    case .wait(let until):
                        #expect(timer == nil)
                        timer = until
                    case .end(let success):
                        ends += 1
                        #expect(success == (status.state == .finished))
                    case .pauseWork, .resumeWork, .cancelWork: break
                    }
                }
                if told.count > 1 { #expect(told[told.count - 1] - told[told.count - 2] >= JobStatus.interval) }
            }
            #expect(ends == (status.state.isEnd ? 1 : 0))
        }
    }
}
