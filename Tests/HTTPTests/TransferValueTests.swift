import Testing

@testable import HTTP

/// What a transfer knows, as values: the answer, the body of the request, and the silence of the connection.
@Suite struct TransferValueTests {
    private func read(_ lines: [String], into answer: inout AnswerReader) -> [AnswerReader.Head] {
        lines.map { line in
            var line = Array(line.utf8)
            return line.withUnsafeMutableBytes { answer.read(line: UnsafeRawBufferPointer($0)) }
        }
    }

    private func read(body: [UInt8], into answer: inout AnswerReader) {
        body.withUnsafeBytes { answer.read(body: $0) }
    }

    // MARK: The answer

    @Test func preliminaryHead_isNotTheHead() {
        var answer = AnswerReader(bodyLimit: 10)
        let preliminary = read(["HTTP/1.1 100 Continue\r\n", "Upload: 1\r\n", "\r\n"], into: &answer)
        #expect(preliminary == [.more, .more, .more] && !answer.isHeadWhole)
        let final = read(["HTTP/1.1 201 Created\r\n", "Location:  /a \t\r\n", "no field\r\n", "\r\n"], into: &answer)
        #expect(final == [.more, .more, .more, .isWhole] && answer.isHeadWhole && answer.status == 201)
        #expect(answer.fields.map(\.name) == ["Location"] && answer.fields.map(\.value) == ["/a"])
        // The fields after the body end with an empty line, too.
        #expect(read(["Digest: x\r\n", "\r\n"], into: &answer) == [.more, .more])
    }

    @Test func headsBeyondTheLimit_areTooLong() {
        var answer = AnswerReader(bodyLimit: 10)
        let field = "A: " + String(repeating: "a", count: 1_019) + "\r\n"
        #expect(read(Array(repeating: field, count: 64), into: &answer).allSatisfy { $0 == .more })
        #expect(read(["\r\n"], into: &answer) == [.isTooLong])
    }

    @Test(arguments: [(0, 0), (3, 3), (5, 5), (6, 5)]) func body_isCutAtItsLimit(bytes: Int, kept: Int) {
        var answer = AnswerReader(bodyLimit: 5)
        for _ in 0..<bytes { read(body: [7], into: &answer) }
        #expect(answer.body.count == kept && answer.isBodyCut == (bytes >= 5))
    }

    // MARK: The body of the request

    @Test func lastByteIsPassed_once() {
        var progress = BodyProgress(length: 10)
        let passed = [4, 10, 10].map { progress.passed($0) }
        #expect(passed == [false, true, false] && progress.isSent)
        var nothing = BodyProgress(length: 0)
        let isPassed = nothing.passed(0)
        #expect(!isPassed && !nothing.isSent)
    }

    @Test func bytesAreAcknowledged_neverFewerThanBefore() {
        var progress = BodyProgress(length: 10)
        _ = progress.passed(8)
        // Another connection after a cut has more in its queue.
        let steps = [5, 8, 100, 0].map { (progress.acknowledged(waiting: $0), progress.delivered) }
        #expect(steps.map(\.0) == [true, false, false, true])
        #expect(steps.map(\.1) == [3, 3, 3, 8])
    }

    @Test func reports_comeAtMostEachInterval_andLooksBecomeRarerAndEnd() {
        var progress = BodyProgress(length: 100)
        _ = progress.passed(50)
        _ = progress.acknowledged(waiting: 40)
        var now: UInt64 = 5_000_000
        #expect(progress.allowed(at: now) == nil && progress.hasSentMore)
        var reports = [progress.report(at: now)]
        #expect(progress.allowed(at: now + 1) == now + BodyProgress.interval)
        var looks = [progress.nextLook(hasReported: true, at: now)]
        for _ in 0..<6 {
            now += 2_000_000
            reports.append(progress.report(at: now))
            looks.append(progress.nextLook(hasReported: false, at: now).map { $0 - now })
        }
        #expect(reports == [true, false, false, false, false, false, false])
        #expect(looks == [5_100_000, 200_000, 400_000, 800_000, 1_000_000, 1_000_000, 1_000_000])
        _ = progress.acknowledged(waiting: 0)
        reports = [progress.report(at: now)]
        looks = [progress.nextLook(hasReported: true, at: now)]
        #expect(reports == [true] && looks == [nil] && !progress.hasSentMore)
    }

    // MARK: Silence

    @Test func silence_isCountedFromTheLastByte_andTheAnswerHasALimitOfItsOwn() {
        var silence = SilenceLimit(moving: 2, answering: 60, at: 1_000_000)
        var progress = BodyProgress(length: 10)
        func verdict(_ now: UInt64, isHeadWhole: Bool = false) -> SilenceLimit.Verdict {
            silence.verdict(on: progress, isHeadWhole: isHeadWhole, at: now)
        }
        #expect(verdict(2_000_000) == .look(at: 3_000_000))
        #expect(verdict(3_000_000) == .tooLong)
        silence.moved(at: 3_000_000)
        #expect(verdict(3_000_000) == .look(at: 5_000_000))
        // The last byte is on its way: no event says when it arrives.
        _ = progress.passed(10)
        #expect(verdict(3_500_000) == .look(at: 4_500_000))
        // It has arrived, and the server works.
        _ = progress.acknowledged(waiting: 0)
        #expect(verdict(5_000_000) == .look(at: 63_000_000))
        #expect(verdict(63_000_000) == .tooLong)
        // The answer arrives.
        #expect(verdict(4_000_000, isHeadWhole: true) == .look(at: 5_000_000))
    }
}
