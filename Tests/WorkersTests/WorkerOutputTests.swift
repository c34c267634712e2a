import Testing

@testable import Workers

@Suite struct WorkerOutputTests {
    @Test func lines_areTakenWholeInWhateverPieces() {
        var output = WorkerOutput()
        #expect(output.take("a".utf8) == [])
        #expect(output.take("b\n\nc\nd".utf8) == ["ab", "c"])
        #expect(output.end() == "d")
        #expect(output.end() == nil)
    }

    @Test func longLines_areCut() {
        var output = WorkerOutput()
        let lines = output.take((String(repeating: "x", count: 5_000) + "\ny\n").utf8)
        #expect(lines == [String(repeating: "x", count: WorkerOutput.longestLine) + "…", "y"])
    }

    @Test func manyLines_areLeftOut() {
        var output = WorkerOutput()
        let lines = output.take(String(repeating: "x\n", count: 100_000).utf8)
        #expect(lines.count == WorkerOutput.mostLines && output.isFull)
        #expect(lines.last == "x (what else this worker prints is left out)")
        #expect(output.take("more\n".utf8) == [] && output.end() == nil)
    }

    @Test func linesOfManyWorkers_areLimitedInEachMinute() {
        var budget = LineBudget()
        for time: UInt64 in [5, 5 + LineBudget.interval] {
            var count = 0
            for _ in 0..<1_000 where budget.admits(at: time) { count += 1 }
            #expect(count == LineBudget.most)
            let isAdmitted = budget.admits(at: time + LineBudget.interval - 1)
            #expect(!isAdmitted)
        }
    }
}
