import Testing

@testable import PluginKit
@testable import ReferenceModel

/// Tests every input in every state with a table, and makes long random runs.
@Suite struct GrantTests {
    /// The inputs that lead to each state, with the state's letter in the table.
    private static let states: [(letter: Character, inputs: [Grant.Input])] = [
        ("I", []),
        ("L", [.wants(at: nil), .granted(order: 1, now: 0), .replaced]),
        ("A", [.wants(at: nil)]),
        ("B", [.began(.default), .wants(at: nil)]),
        ("H", [.wants(at: nil), .granted(order: 1, now: 0), .wants(at: 9)]),
        ("R", [.wants(at: nil), .granted(order: 1, now: 0), .began(.default), resume]),
        ("D", [.wants(at: 9), .granted(order: 1, now: 0)]),
        ("S", [.wants(at: nil), .granted(order: 1, now: 0)]),
        ("E", [.wants(at: nil), .granted(order: 1, now: 0), .ending]),
        ("X", [.wants(at: nil), .granted(order: 1, now: 0), .began(.default)]),
        ("Y", [.began(.default)]),
        ("U", [.wants(at: nil), .granted(order: 1, now: 0), .began(.routeDisconnected)]),
        ("V", [.wants(at: nil), .granted(order: 1, now: 0), .began(.routeDisconnected), .began(.default)]),
    ]
    private static let resume = Grant.Input.ended(shouldResume: true, canResume: true)

    /// `granted` and `refused` answer the last request; those with `late` answer an older one.
    private static let inputs: [(name: String, input: @Sendable (_ order: UInt64) -> Grant.Input)] = [
        ("wants", { _ in .wants(at: nil) }),
        ("granted", { .granted(order: $0, now: 10) }),
        ("granted early", { .granted(order: $0, now: 0) }),
        ("granted late", { .granted(order: $0 &- 1, now: 0) }),
        ("refused", { .refused(order: $0) }),
        ("refused late", { .refused(order: $0 &- 1) }),
        ("start failed", { _ in .startFailed }),
        ("goes on", { _ in .goesOn }),
        ("due", { _ in .due }),
        ("began", { _ in .began(.default) }),
        ("began, unplugged", { _ in .began(.routeDisconnected) }),
        ("ended, resume", { _ in resume }),
        ("ended", { _ in .ended(shouldResume: false, canResume: true) }),
        ("ended, nothing", { _ in .ended(shouldResume: true, canResume: false) }),
        ("device gone", { _ in .deviceGone }),
        ("services lost", { _ in .servicesLost }),
        ("services reset", { _ in .servicesReset }),
        ("engine lost", { _ in .engineLost }),
        ("server is away", { _ in .serverIsAway }),
        ("daemon lost", { _ in .daemonLost }),
        ("expelled", { _ in .expelled }),
        ("paused", { _ in .paused }),
        ("stopped", { _ in .stopped }),
        ("ending", { _ in .ending }),
        ("replaced", { _ in .replaced }),
        ("burst over", { _ in .burstOver }),
        ("lingered", { _ in .lingered }),
        ("finished", { _ in .finished }),
        ("fell silent", { _ in .fellSilent }),
    ]

    /// States: Idle, Lingering, Asking, asking Behind an interruption, asking while Heard, Resuming, Due, Sounding,
    /// Ending, interrupted (X: will resume; Y: will not; V: will not, because its output was unplugged before),
    /// Unplugged. Effects: activate (a), deactivate with notify (d) or without (g), start (s), silence (q), wait (w),
    /// linger (l). A dot means that nothing changes.
    private static let table = """
                          | I   L   A   B   H   R   D   S   E   X   Y   U   V
        wants             | Aa  Aa  Aa  Ba  Ha  Ba  Aa  Ha  Aa  Ba  Ba  Aa  Ba
        granted           | Id  Id  Ss  Ss  Ss  Ss  .   .   .   Id  Id  Ud  Id
        granted early     | Id  Id  Ss  Ss  Dqw Ss  .   .   .   Id  Id  Ud  Id
        granted late      | Id  Id  .   .   .   .   .   .   .   Id  Id  Ud  Id
        refused           | .   .   I   X   S   I   .   .   .   .   .   .   .
        refused late      | .   .   .   .   .   .   .   .   .   .   .   .   .
        start failed      | .   .   Id  Id  Id  Id  .   Id  .   .   .   .   .
        goes on           | .   Ss  .   .   Hs  .   .   Ss  .   .   .   .   .
        due               | .   .   .   .   .   .   Ss  .   .   .   .   .   .
        began             | Yq  Yq  Bq  Bq  Bq  Rq  Xq  Xq  Eq  Yq  Yq  Vq  Vq
        began, unplugged  | Iq  Iq  Aq  Aq  Aq  Rq  Uq  Uq  Eq  Iq  Iq  Uq  Uq
        ended, resume     | .   .   .   R   .   .   .   .   .   Ra  Id  Ra  Ud
        ended             | .   .   .   R   .   R   .   .   .   Id  Id  Ud  Ud
        ended, nothing    | .   .   .   R   .   R   .   .   .   Id  Id  Ud  Ud
        device gone       | .   .   .   .   Uqg R   Uqg Uqg .   Y   .   .   .
        services lost     | .   .   .   .   Iqg R   Iqg Iqg .   Y   .   .   .
        services reset    | .   .   .   .   .   .   .   .   .   .   .   .   .
        engine lost       | Iqg Iqg Iqg Yqg Iqg Yqg Iqg Iqg Iqg Yqg Yqg Iqg Yqg
        server is away    | .   .   .   .   .   .   .   .   .   .   .   .   .
        daemon lost       | .   .   .   A   .   R   .   .   .   I   I   .   U
        expelled          | Iq  Iq  Iq  Yq  Iq  Xq  Iq  Iq  Iq  Xq  Yq  Iq  Yq
        paused            | Iqd Iqd Iqd Yq  Iqd Yq  Iqd Iqd Eq  Yq  Yq  Iqd Yq
        stopped           | Id  Id  Id  Id  Id  Id  Id  Id  Id  Id  Id  Id  Id
        ending            | E   E   E   E   E   E   E   E   .   E   E   E   E
        replaced          | .   Ll  Ll  Y   Ll  Y   Ll  Ll  Ll  Y   .   I   Y
        burst over        | Ll  Ll  Ll  Ll  Ll  Ll  Ll  Ll  Ll  Ll  Ll  Ll  Ll
        lingered          | .   Id  .   .   .   .   .   .   .   .   .   .   .
        finished          | Id  Id  Id  Id  Id  Id  Id  Id  Id  Id  Id  Id  Id
        fell silent       | .   .   .   .   .   .   .   Id  .   .   .   .   .
        """

    private static func letter(_ grant: Grant) -> Character {
        switch grant.state {
        case .idle: "I"
        case .lingering: "L"
        case .asking(let ask) where ask.isResumption: "R"
        case .asking(let ask) where ask.interruption != nil: "B"
        case .asking(let ask): ask.sounds ? "H" : "A"
        case .due: "D"
        case .sounding: "S"
        case .ending: "E"
        case .interrupted(let interruption): interruption.resumes ? "X" : interruption.isUnplugged ? "V" : "Y"
        case .unplugged: "U"
        }
    }

    private static func letter(_ effect: Grant.Effect) -> Character {
        switch effect {
        case .activate: "a"
        case .deactivate(let notifyOthers): notifyOthers ? "d" : "g"
        case .start: "s"
        case .silence: "q"
        case .wait: "w"
        case .linger: "l"
        }
    }

    @Test func everyInputInEveryState_agreesWithTheTable() {
        var table = TransitionTable(Self.states.map(\.letter), nameWidth: 17, cellWidth: 4)
        for (name, input) in Self.inputs {
            let cells = Self.states.map { state -> String in
                var grant = Grant(resumesOnReplug: true)
                for input in state.inputs { _ = grant.handle(input) }
                #expect(Self.letter(grant) == state.letter)
                let before = grant
                let effects = grant.handle(input(grant.order))
                let isNothing = effects.isEmpty && grant.state == before.state
                return isNothing ? "." : String(Self.letter(grant)) + String(effects.map(Self.letter))
            }
            table.add(name, cells)
        }
        #expect(table.text == Self.table, "\(table.text)")
    }

    @Test func scheduledSound_startsAtItsTime_orAtOnceIfThatIsPast() {
        var grant = Grant()
        #expect(grant.handle(.wants(at: 9)) == [.activate(order: 1)])
        #expect(grant.handle(.granted(order: 1, now: 5)) == [.silence, .wait(until: 9)])
        #expect(grant.handle(.began(.default)) == [.silence])
        #expect(grant.isInterrupted && !grant.sounds)
        #expect(grant.handle(.ended(shouldResume: true, canResume: true)) == [.activate(order: 2)])
        #expect(grant.handle(.granted(order: 2, now: 7)) == [.silence, .wait(until: 9)])
        #expect(grant.handle(.due) == [.start])
        var late = Grant()
        _ = late.handle(.wants(at: 9))
        #expect(late.handle(.granted(order: 1, now: 9)) == [.start])
    }

    @Test func replug_resumesOnlyAPluginThatWaitsForIt() {
        for waits in [true, false] {
            var grant = Grant(resumesOnReplug: waits)
            _ = grant.handle(.wants(at: nil))
            _ = grant.handle(.granted(order: 1, now: 0))
            #expect(grant.handle(.began(.routeDisconnected)) == [.silence])
            #expect(!grant.isInterrupted)
            let effects = grant.handle(.ended(shouldResume: true, canResume: true))
            #expect(effects == (waits ? [.activate(order: 2)] : []))
        }
    }

    @Test func interruptionEndsDuringARequest_theReplyDecides() {
        var grant = Grant()
        _ = grant.handle(.began(.default))
        #expect(grant.handle(.wants(at: nil)) == [.activate(order: 1)])
        #expect(grant.handle(.ended(shouldResume: false, canResume: true)) == [])
        #expect(grant.handle(.granted(order: 1, now: 0)) == [.start])
        #expect(grant.sounds)
    }

    @Test func lossOfTheServer_isRememberedUntilItsReturnOrTheLossOfTheDaemon() {
        for (away, back) in [(Grant.Input.servicesLost, Grant.Input.servicesReset), (.serverIsAway, .daemonLost)] {
            var grant = Grant()
            _ = grant.handle(away)
            #expect(grant.isServerAway)
            _ = grant.handle(back)
            #expect(!grant.isServerAway)
        }
    }

    @Test(arguments: [true, false]) func randomRuns_obeyTheRules(resumesOnReplug: Bool) {
        var starts = 0
        for seed in 0..<UInt64(1_500) {
            var world = GrantWorld(seed: seed, resumesOnReplug: resumesOnReplug)
            world.run(steps: 150)
            starts += world.starts
            guard world.complaints.isEmpty else {
                Issue.record("seed \(seed): \(world.complaints.joined(separator: "; "))\n\(world.trace)")
                return
            }
        }
        #expect(starts > 3_000, "the runs hardly ever start a sound")
    }
}
