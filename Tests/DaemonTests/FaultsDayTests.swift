import Foundation
import TestSupport
import Testing

@testable import ReferenceModel

/// Faults of docs/faults.md, drawn at random, in random histories on each sound server (`Scripts/faults-day`).
///
/// After each step: the daemon lives and answers, each session is as the second model has it, and the music of a program that
/// does not use sessiond is as its session says. At the end of each history everybody leaves: no volume, mute, sink or default
/// sink is other than its person left it, also for the next stream; the music plays on; the state can be read; memory and
/// descriptors are those of before. A history that ends otherwise is made shorter for as long as it still does.
@Suite(.serialized) struct FaultsDayTests {
    private struct Finding: Equatable {
        let law: String
        let what: String
        /// How many were taken until then.
        let steps: Int
    }

    private struct History {
        let seed: UInt64
        let kind: ServerKind
        var steps: [FaultsDayStep]
        /// What the headphones do is in every fourth.
        var pausesOnUnplug: Bool { seed % 4 == 0 }

        init(seed: UInt64, on kind: ServerKind, length: Int) {
            var random = SplitMix64(seed: seed)
            self.seed = seed
            self.kind = kind
            steps = (0..<length).map { _ in FaultsDayStep(using: &random) }
        }

        /// What was broken, after how many steps; nil: nothing.
        func run() -> Finding? {
            var count = 0
            do {
                let world = try FaultsDayWorld(kind, pausesOnUnplug: pausesOnUnplug)
                for step in steps {
                    count += 1
                    try world.perform(step)
                }
                try world.expectNothingLeft()
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

    private static let seconds = variable("SECONDS").flatMap { Double($0) } ?? 0
    private static let firstSeed = variable("SEED").flatMap { UInt64($0) } ?? 1

    /// Runs a history; a finding is shortened and reported. Returns how many faults there were.
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

    /// Without any of the variables, the same short day each time.
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
