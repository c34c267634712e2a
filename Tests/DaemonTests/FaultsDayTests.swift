import Foundation
import TestSupport
import Testing

@testable import ReferenceModel

/// Random faults of docs/faults.md in random histories on each sound server (`Scripts/faults-day`).
///
/// After each step, the daemon runs and answers, each session agrees with the second model, and the music of an adopted
/// program is played or silenced as its session requires. At the end of each history, all clients leave. Then volume,
/// mute, sink and default sink are as the user left them, also for the next stream; the music plays; the state file can
/// be read; memory and descriptors are as before; the daemon never wakes up; and, in long runs, no sink of it is left. A history that breaks one of these laws is shortened as far as it
/// still breaks it.
@Suite(.serialized) struct FaultsDayTests {
    private struct Finding: Equatable {
        let law: String
        let what: String
        /// The number of steps until then.
        let steps: Int
    }

    private struct History {
        let seed: UInt64
        let kind: ServerKind
        var steps: [FaultsDayStep]
        /// Whether an unplug pauses sessions: in every fourth history.
        var pausesOnUnplug: Bool { seed % 4 == 0 }

        init(seed: UInt64, on kind: ServerKind, length: Int) {
            var random = SplitMix64(seed: seed)
            self.seed = seed
            self.kind = kind
            steps = (0..<length).map { _ in FaultsDayStep(using: &random) }
        }

        /// The broken law and the number of steps; nil: none was broken.
        func run() -> Finding? {
            var count = 0
            do {
                let world = try FaultsDayWorld(kind, pausesOnUnplug: pausesOnUnplug)
                for step in steps {
                    count += 1
                    try world.perform(step)
                }
                try world.expectNothingLeft(forLong: FaultsDayTests.seconds > 0 && seed % 4 == 1)
                return nil
            } catch let broken as FaultsDayWorld.Broken {
                return Finding(law: broken.law, what: broken.what, steps: count)
            } catch {
                return Finding(law: "the tools work", what: "\(error)", steps: count)
            }
        }

        /// Leaves out steps, in halves, quarters and so on, while the same law is broken.
        func shortened(breaking law: String, within seconds: Double) -> History {
            let end = monotonicNow() + seconds
            var best = self
            var size = max(1, best.steps.count / 2)
            while monotonicNow() < end {
                var start = 0
                while start < best.steps.count, monotonicNow() < end {
                    var less = best
                    less.steps.removeSubrange(start..<min(start + size, best.steps.count))
                    if less.run()?.law == law { best = less } else { start += size }
                }
                if size == 1 { break }
                size /= 2
            }
            return best
        }

        var text: String { steps.map(\.description).joined(separator: "; ") }
    }

    private static func variable(_ name: String) -> String? {
        ProcessInfo.processInfo.environment["SESSIOND_FAULTS_" + name]
    }

    fileprivate static let seconds = variable("SECONDS").flatMap { Double($0) } ?? 0
    private static let firstSeed = variable("SEED").flatMap { UInt64($0) } ?? 1

    /// Runs a history, and shortens and reports a finding. Returns the number of faults.
    private func run(_ history: History) -> Int {
        let faults = history.steps.count { $0.word.isFault }
        guard let broken = history.run() else { return faults }
        var found = history
        found.steps = Array(history.steps.prefix(broken.steps))
        found = found.shortened(breaking: broken.law, within: Self.seconds > 0 ? 600 : 60)
        let last = found.run()
        Issue.record(
            """
            \(history.kind), seed \(history.seed): \(broken.law): \(broken.what)
            shortest, \(last?.law == broken.law ? last?.what ?? "" : "not each time"):
            SESSIOND_FAULTS_SEED=\(history.seed) SESSIOND_TEST_SERVERS=\(history.kind) Scripts/faults-day '\(found.text)'
            """)
        return faults
    }

    /// Without any of the variables, it runs the same short histories each time.
    @Test(arguments: ServerKind.allCases) func histories_leaveNothingBehind(_ kind: ServerKind) throws {
        if let text = Self.variable("STEPS") {
            var history = History(seed: Self.firstSeed, on: kind, length: 0)
            history.steps = try #require(FaultsDayStep.steps(text), "unknown steps in: \(text)")
            let broken = history.run()
            #expect(broken == nil)
            return
        }
        let begun = monotonicNow()
        let share = Self.seconds / Double(ServerKind.allCases.count)
        var (seed, faults, histories) = (Self.firstSeed, 0, 0)
        repeat {
            faults += run(History(seed: seed, on: kind, length: Self.seconds > 0 ? 30 : 14))
            histories += 1
            print(
                "faults-day: \(kind), seed \(seed): \(faults) faults in \(histories) histories, "
                    + "\(Int(monotonicNow() - begun)) s")
            fflush(nil)
            seed += 1
        } while monotonicNow() < begun + share || Self.seconds == 0 && histories < 3
    }
}
