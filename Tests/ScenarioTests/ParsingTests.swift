import Foundation
import Scenario
import SessionManager
import Testing

@Suite struct ParsingTests {
    private func mistake(_ text: String) -> ScenarioError? {
        do throws(ScenarioError) {
            _ = try Scenario(text, file: "f")
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        ("actvate music", 1, 1, "unknown step 'actvate'"),
        ("session a playback\n\nactivate b", 3, 10, "there are a"),
        ("session a loud", 1, 11, "solo-ambient"),
        ("session a playback mode=voice-chat", 1, 20, "not allowed"),
        ("session a ambient options=mix-with-others", 1, 19, "not allowed"),
        ("session a playback\nsession a playback", 2, 9, "line 1"),
        ("session a \"x playback", 1, 11, "closing"),
        ("session a \"\\x\" playback", 1, 12, "escape"),
        ("session a playback loud", 1, 20, "unknown word"),
        ("session 1a playback", 1, 9, "letter"),
        ("wait soon", 1, 6, "seconds"),
        ("wait 0.0000001", 1, 6, "seconds"),
        ("wait -1", 1, 6, "seconds"),
        ("wait 1 2", 1, 8, "not expected here"),
        ("silent", 1, 7, "missing"),
        ("silent maybe", 1, 8, "neither"),
        ("expect nothing", 1, 1, "step before"),
        ("session a playback\nexpect a dancing", 2, 10, "not an expectation"),
        ("session a playback\nexpect a ended perhaps", 2, 16, "neither"),
        ("session a playback\nsettings grace=1", 2, 1, "before the first step"),
        ("settings grace=nan", 1, 10, "number"),
        ("settings grace=inf", 1, 10, "number"),
        ("settings grace", 1, 10, "grace=…"),
        ("settings gain=3", 1, 10, "number"),
        ("route sideways", 1, 7, "reason"),
        ("server out=p", 1, 8, "declare"),
        ("port p Loudspeaker", 1, 8, "Headphones"),
        ("= #1", 1, 1, "exact"),
        ("exact\nfrom session s1 \"a\" playback active", 2, 1, "contradict"),
        ("exact\nfrom last-session=1\nfrom session s1 \"a\" playback interrupted waits=s1", 3, 1, "contradict"),
        ("session a playback client=x\nvanish a", 2, 8, "client"),
        ("a=b", 1, 1, "starts"),
        ("wait \u{1}", 1, 6, "control"),
    ]) func mistake_isReportedWithItsPositionAndARemedy(text: String, line: Int, column: Int, part: String) throws {
        let error = try #require(mistake(text))
        #expect(error.line == line && error.column == column, "\(error)")
        #expect(error.message.contains(part), "\(error)")
    }

    @Test func binaryAndHugeFiles_areRefused() {
        func message(_ bytes: [UInt8]) -> String {
            do throws(ScenarioError) {
                _ = try Scenario(bytes: bytes, file: "f")
                return ""
            } catch {
                return "\(error)"
            }
        }
        #expect(message([0, 1, 2, 3]).hasPrefix("f:1:1: "))
        #expect(message([0x7F, 0x45, 0x4C, 0x46, 0xFF, 0xFE]).contains("UTF-8"))
        #expect(message(Array(repeating: 0x61, count: 1 << 20)).contains("is this a scenario"))
        #expect(message(Array(repeating: 0x0A, count: Scenario.maximumBytes + 1)).contains("larger"))
    }

    @Test func lineEndingsAndByteOrderMark_areAllowed() throws {
        let scenario = try Scenario("\u{FEFF}session a playback\r\n\tactivate a # now\r\n", file: "f")
        #expect(scenario.lines.map(\.number) == [1, 2])
    }

    /// A mutated scenario gives an error or a run, but never traps.
    @Test func mutatedScenarios_neverTrap() throws {
        var random = SystemRandomNumberGenerator()
        let sources = try ExampleTests.files.map { Array(try String(contentsOf: $0, encoding: .utf8).utf8) }
        let words = Array("nan inf 99999999999999 18446744073709551615 -1 \" \\u{110000} = s1 from exact none ,".utf8)
        for _ in 0..<3000 {
            var bytes = sources.randomElement(using: &random)!
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: place)
                case 2:
                    let start = Int.random(in: 0..<words.count, using: &random)
                    bytes.insert(contentsOf: words[start..<min(words.count, start + 9)], at: place)
                default:
                    let end = min(bytes.count, place + Int.random(in: 1...40, using: &random))
                    bytes.insert(contentsOf: bytes[place..<end], at: Int.random(in: 0..<bytes.count, using: &random))
                }
            }
            guard let scenario = try? Scenario(bytes: bytes, file: "f") else { continue }
            var run = Run(scenario)
            run.perform()
            _ = run.transcript
        }
    }

    @Test func failedExpectation_reportsTheActualState() throws {
        var run = Run(
            try Scenario(
                """
                session a playback
                session b playback
                activate a
                activate b
                expect a active
                expect a ended resume
                expect b interrupted by a
                expect refused
                expect now-playing a
                expect nothing
                """, file: "f"))
        run.perform()
        #expect(run.failures.map(\.line) == [5, 6, 7, 8, 9, 10])
        #expect(run.failures[0].seen == "a is interrupted by b and waits for b")
        #expect(run.failures[1].seen.contains("a began by b (§4)"))
        #expect(run.failures[3].seen == "not refused")
        #expect(run.failures[4].seen == "now playing is b")
    }

    @Test func claims_expireDuringAWaitAtTheirTimes() throws {
        var run = Run(
            try Scenario(
                """
                session a playback
                session b playback class=call
                activate a
                activate b
                deactivate b
                wait 100
                """, file: "f"))
        var times: [UInt64] = []
        run.perform { _, outcome in times += outcome.decisions.filter(\.isNoteworthy).map(\.time.microseconds) }
        #expect(times.last == 5_000_000)
    }
}
