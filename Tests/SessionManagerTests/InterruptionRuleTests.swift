import PluginAPI
import SessionManager
import Testing

@testable import ReferenceModel

/// Rules R1 to R15, each in a short scenario.
@Suite struct InterruptionRuleTests {
    /// A < B < C: three players, each interrupted by the next.
    private struct Chain {
        var world = World()
        let a: SessionID
        let b: SessionID
        let c: SessionID

        init() {
            a = world.player("a")
            b = world.player("b")
            c = world.player("c")
        }
    }

    @Test func r1_furtherInterruptions_noSecondBegan() {
        var world = World()
        let music = world.player("music")
        let call = world.create("call", .call, .voice)
        let alert = world.create("alert", .alert, .music)
        #expect(world.activate(alert).began == [music])
        #expect(world.activate(call).began == [alert])
        #expect(world.waits(music) == [call, alert])
        #expect(world.arbiter.session(music)?.interruption?.by == alert)
    }

    @Test func r2_interruptedSessionIsSilentAtOnce_andResumesByActivating() {
        var world = World()
        let music = world.player("music")
        let call = world.create("call", .call, .voice)
        let decision = world.activate(call)
        let began = decision.effects.firstIndex { if case .interruptionBegan(music, _) = $0 { true } else { false } }
        #expect(began! < decision.effects.firstIndex(of: .activated(call))!)
        #expect(world.state(music) == .interrupted)
        world.leave(call)
        #expect(world.state(music) == .inactive)
        #expect(world.activate(music).effects.contains(.activated(music)))
    }

    @Test func r3_thirdStarts_onlyTheSecondIsNotified() {
        var world = World()
        let a = world.player("a")
        let b = world.player("b")
        let c = world.create("c", .app, .music)
        #expect(world.activate(c).began == [b])
        #expect(world.waits(a) == [b, c])
        #expect(world.waits(b) == [c])
    }

    @Test func r4_thirdEnds_onlyTheSecondIsNotified() {
        var chain = Chain()
        #expect(chain.world.leave(chain.c).ended == [.resume(chain.b)])
        #expect(chain.world.waits(chain.a) == [chain.b])
        #expect(chain.world.state(chain.a) == .interrupted)
    }

    @Test(arguments: [true, false])
    func r5_ownerLeaves_hintFollowsItsNotifyOption(_ notify: Bool) {
        var world = World()
        let a = world.player("a")
        let b = world.player("b")
        world.pass(2)
        let decision = world.leave(b, notify: notify)
        #expect(
            World.interruptions(decision) == [
                .ended(a, shouldResume: notify, microseconds: 2_000_000, .default)
            ])
    }

    @Test(arguments: [SessionClass.call, .alert])
    func r5_callOrAlertEndsInAnyWay_givesTheResumeHint(_ sessionClass: SessionClass) {
        for way in 0..<4 {
            var world = World()
            let music = world.player("music")
            let other = world.create("other", sessionClass, .music, client: 9)
            world.activate(other)
            let decision =
                switch way {
                case 0: world.leave(other, notify: false)
                case 1: world.send(.close(other))
                case 2: world.send(.clientVanished(ClientID(9)))
                default: world.leave(other, notify: true)
                }
            #expect(decision.ended == [.resume(music)])
        }
    }

    @Test func r5_heldCallEnds_givesTheResumeHint() {
        var world = World()
        let music = world.player("music")
        let held = world.create("held", .call, .voice)
        let second = world.create("second", .call, .voice)
        world.activate(held)
        world.activate(second)
        #expect(world.leave(held, notify: false).ended.isEmpty)
        #expect(world.waits(music) == [second])
        #expect(world.leave(second, notify: false).ended == [.resume(music)])
    }

    @Test func r6_claimExpires_nextGetsNoResumeHint() {
        var chain = Chain()
        chain.world.leave(chain.c)
        #expect(chain.world.arbiter.nextDeadline == chain.world.now.advanced(bySeconds: 5))
        let decision = chain.world.expire()
        #expect(decision?.ended == [.stay(chain.a)])
        #expect(decision?.effects.contains(.claimDropped(chain.b, rule: .grace)) == true)
    }

    @Test func r6_sessionResumesInTime_othersStillWait() {
        var chain = Chain()
        chain.world.leave(chain.c)
        chain.world.pass(4.9)
        chain.world.activate(chain.b)
        #expect(chain.world.waits(chain.a) == [chain.b])
        #expect(chain.world.arbiter.nextDeadline == nil)
        #expect(chain.world.leave(chain.b).ended == [.resume(chain.a)])
    }

    @Test func r6_claimOfACallExpires_nextGetsNoResumeHint() {
        var world = World()
        let music = world.player("music")
        let held = world.create("held", .call, .voice)
        let second = world.create("second", .call, .voice)
        world.activate(held)
        world.activate(second)
        #expect(world.leave(second).ended == [.resume(held)])
        #expect(world.expire()?.ended == [.stay(music)])
    }

    @Test func r6_beforeTheEndOfTheGracePeriod_nothingExpires() {
        var chain = Chain()
        chain.world.leave(chain.c)
        chain.world.pass(4.999)
        #expect(chain.world.send(.timePassed).effects.isEmpty)
    }

    @Test func r6_graceIsConfigurable() {
        var settings = Arbiter.Settings()
        settings.grace = 0.5
        var world = World(settings: settings)
        world.player("a")
        let b = world.player("b")
        world.leave(b)
        #expect(world.arbiter.nextDeadline == world.now.advanced(bySeconds: 0.5))
    }

    @Test func r7_oneOfTwoOwnersLeaves_waiterWaitsForTheOther() {
        var chain = Chain()
        let decision = chain.world.leave(chain.b)
        #expect(decision.ended.isEmpty)
        #expect(chain.world.waits(chain.a) == [chain.c])
        #expect(chain.world.leave(chain.c).ended == [.resume(chain.a)])
    }

    @Test(arguments: [(true, true), (true, false), (false, true), (false, false)])
    func r8_severalOwnersLeave_hintNeedsAllOfThem(_ first: Bool, _ second: Bool) {
        var chain = Chain()
        chain.world.leave(chain.b, notify: first)
        let decision = chain.world.leave(chain.c, notify: second)
        #expect(decision.ended == [first && second ? .resume(chain.a) : .stay(chain.a)])
    }

    @Test func r9_interruptedSessionTakesTheSoundBack_withoutAnEnd() {
        var world = World()
        let a = world.player("a")
        let b = world.player("b")
        let decision = world.activate(a)
        #expect(decision.began == [b])
        #expect(decision.ended.isEmpty)
        #expect(world.waits(b) == [a])
        #expect(world.waits(a).isEmpty)
    }

    @Test func r9_againstACall_theMatrixDecides() {
        var world = World()
        let recorder = world.player("recorder", .recording)
        let music = world.create("music", .app, .music)
        let call = world.create("call", .call, .voice)
        world.activate(call)
        #expect(world.activate(recorder).refusal?.code == .insufficientPriority)
        #expect(world.state(recorder) == .interrupted)
        #expect(world.activate(music).refusal == nil)
        // The music plays during the call, and the recorder must wait for it.
        #expect(world.waits(recorder) == [music, call])
        #expect(world.leave(call).ended.isEmpty)
        #expect(world.leave(music).ended == [.resume(recorder)])
    }

    @Test func r10_callEnds_allAreReleased_lastInterruptedFirst() {
        var world = World()
        let a = world.player("a", .mixing)
        let b = world.player("b", .mixing)
        let c = world.player("c", .music)
        let call = world.create("call", .call, .voice)
        #expect(world.activate(call).began == [c, b, a])
        #expect(world.leave(call).ended == [.resume(a), .resume(b), .resume(c)])
    }

    @Test func r10_callEnds_sessionThatWaitsForAnotherStillWaits() {
        var world = World()
        let a = world.player("a")
        let b = world.player("b")
        let call = world.create("call", .call, .voice)
        world.activate(call)
        #expect(world.waits(a) == [b, call])
        #expect(world.leave(call).ended == [.resume(b)])
        #expect(world.waits(a) == [b])
    }

    @Test(arguments: [true, false])
    func r11_ownerDisconnects_hintFollowsNotifyOnExit(_ notifiesOnExit: Bool) {
        var world = World()
        let a = world.player("a")
        let b = world.create("b", .app, .music, client: 7, notifiesOnExit: notifiesOnExit)
        world.activate(b)
        let decision = world.send(.clientVanished(ClientID(7)))
        #expect(decision.ended == [notifiesOnExit ? .resume(a) : .stay(a)])
        #expect(world.arbiter.isExpired(b))
    }

    @Test func r11_clientWithTwoSessionsDisconnects_onlyOthersAreNotified() {
        var world = World()
        let outside = world.player("outside")
        let first = world.create("first", .app, .music, client: 7, notifiesOnExit: true)
        let second = world.create("second", .app, .music, client: 7)
        world.activate(first)
        world.activate(second)
        #expect(world.send(.clientVanished(ClientID(7))).ended == [.stay(outside)])
        #expect(world.arbiter.sessions.map(\.id) == [outside])
    }

    @Test func r11_unknownClientDisconnects_nothingChanges() {
        var world = World()
        world.player("a")
        #expect(world.send(.clientVanished(ClientID(999))).effects.isEmpty)
    }

    @Test(arguments: [true, false])
    func r12_sessionLeavesWhileInterrupted_noEndFollows(_ notify: Bool) {
        var chain = Chain()
        let decision = chain.world.leave(chain.b, notify: notify)
        #expect(decision.refusal == nil)
        #expect(chain.world.state(chain.b) == .inactive)
        #expect(!chain.world.leave(chain.c).ended.contains { $0.id == chain.b })
    }

    @Test(arguments: [true, false])
    func r12_sessionLeavesWithinTheGracePeriod_hintFollowsItsNotifyOption(_ notify: Bool) {
        var chain = Chain()
        chain.world.leave(chain.c)
        let decision = chain.world.leave(chain.b, notify: notify)
        #expect(decision.ended == [notify ? .resume(chain.a) : .stay(chain.a)])
        #expect(chain.world.arbiter.session(chain.b)?.holdsClaim == false)
    }

    @Test func r13_promptsInARow_areOneInterruption() {
        var world = World()
        let podcast = world.player("podcast", .podcast)
        let prompts = (0..<3).map { world.create("prompt \($0)", .app, .prompt) }
        var told: [Told] = []
        for prompt in prompts { told += World.interruptions(world.activate(prompt)) }
        for prompt in prompts { told += World.interruptions(world.leave(prompt)) }
        #expect(
            told == [
                .began(podcast, .default, by: prompts[0]),
                .ended(podcast, shouldResume: true, microseconds: 0, .default),
            ])
    }

    @Test func r14_firstActivatedDuringACall_followsTheMatrix() {
        var world = World()
        world.activate(world.create("call", .call, .voice))
        let recorder = world.create("recorder", .app, .recording)
        let decision = world.activate(recorder)
        #expect(decision.refusal?.code == .insufficientPriority)
        #expect(world.state(recorder) == .inactive)
        #expect(world.waits(recorder).isEmpty)
    }

    @Test func r15_sessionThatWasNeverActive_getsNoEnd() {
        var world = World()
        let idle = world.create("idle", .app, .music)
        let b = world.player("b")
        let call = world.create("call", .call, .voice)
        world.activate(call)
        let decision = world.leave(call)
        #expect(decision.ended == [.resume(b)])
        #expect(world.state(idle) == .inactive)
        #expect(world.leave(call).effects.isEmpty)
    }

    @Test func twoSessionsInterruptEachOther_lossIsReportedOnceBeforeEachGain() {
        var world = World()
        let a = world.player("a")
        let b = world.create("b", .app, .music)
        for _ in 0..<200 {
            #expect(world.activate(b).began == [a])
            #expect(world.activate(a).began == [b])
        }
        #expect(world.leave(a).ended == [.resume(b)])
    }

    // MARK: max-age

    @Test(arguments: [(9.0, true), (11.0, false)])
    func interruptionLongerThanMaxAge_givesNoResumeHint(_ seconds: Double, _ resumes: Bool) {
        var settings = Arbiter.Settings()
        settings.maxAge = 10
        var world = World(settings: settings)
        let music = world.player("music")
        let call = world.create("call", .call, .voice)
        world.activate(call)
        world.pass(seconds)
        #expect(world.leave(call).ended == [resumes ? .resume(music) : .stay(music)])
    }

    // MARK: Other reasons

    @Test func microphoneMuted_recordersAreInterrupted_andReleased() {
        var world = World()
        let talker = world.player("talker", .mixingVoice)
        let listener = world.player("listener", .mixing)
        let patient = world.player(
            "patient", .of(.multiRoute, .default, [.mixWithOthers, .overrideMutedMicrophoneInterruption]))
        let decision = world.send(.microphoneMuted(true))
        #expect(World.interruptions(decision) == [.began(talker, .builtInMicMuted, by: nil)])
        #expect(world.state(listener) == .active && world.state(patient) == .active)
        #expect(world.send(.microphoneMuted(true)).effects.isEmpty)
        #expect(world.send(.microphoneMuted(false)).ended.map(\.id) == [talker])
    }

    @Test func noInterruptionsFromAlerts_playsOnDuringAnAlertButNotDuringACall() {
        var world = World()
        let music = world.create("music", .app, .music)
        var preferences = Preferences()
        preferences.noInterruptionsFromAlerts = true
        world.send(.setPreferences(music, preferences))
        world.activate(music)
        #expect(world.activate(world.create("alert", .alert, .music)).began.isEmpty)
        #expect(world.state(music) == .active)
        #expect(world.activate(world.create("call", .call, .voice)).began.contains(music))
    }
}
