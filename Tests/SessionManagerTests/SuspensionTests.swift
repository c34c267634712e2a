import PluginAPI
import SessionManager
import Testing

@testable import ReferenceModel

/// The machine sleeps, and a client hangs (rules §5).
@Suite struct SuspensionTests {
    private func world(resumes: Bool = false, pauses: Bool = true) -> World {
        var settings = Arbiter.Settings()
        settings.resumesAfterSleep = resumes
        settings.pausesForSleep = pauses
        return World(settings: settings)
    }

    @Test(arguments: [false, true]) func sleep_interruptsActiveAppsLatestFirst_andWakingReleasesThem(resumes: Bool) {
        var world = world(resumes: resumes)
        let game = world.player("game", .ambient)
        let music = world.player("music")
        let idle = world.create("idle", .app, .music)
        let decision = world.send(.asleep(true))
        #expect(decision.began == [music, game])
        for case .interruptionBegan(_, let interruption) in decision.effects {
            #expect(interruption.reason == .appWasSuspended && interruption.by == nil)
            #expect(interruption.rule == .suspended)
        }
        #expect(world.state(idle) == .inactive)
        #expect(world.send(.asleep(true)).effects.isEmpty)
        world.pass(3_600)
        let woken = world.send(.asleep(false))
        #expect(Set(woken.ended.map(\.id)) == [music, game] && woken.ended.allSatisfy { $0.shouldResume == resumes })
        #expect(world.send(.asleep(false)).effects.isEmpty)
    }

    @Test(arguments: [SessionClass.call, .alert]) func sleep_saysNothingToCallsAndAlerts(_ sessionClass: SessionClass) {
        var world = world()
        let loud = world.create("loud", sessionClass, .music)
        world.activate(loud)
        #expect(world.send(.asleep(true)).effects.isEmpty && world.state(loud) == .active)
        #expect(!world.arbiter.hasActiveApp)
    }

    @Test func sleepIsTurnedOff_nothingHappens() {
        var world = world(pauses: false)
        let music = world.player("music")
        #expect(world.send(.asleep(true)).effects.isEmpty && !world.arbiter.isAsleep)
        #expect(world.send(.asleep(false)).effects.isEmpty && world.state(music) == .active)
    }

    /// "A session that waited already keeps its waits; its hint is the AND with `[sleep] resume` (R8)."
    @Test(arguments: [false, true]) func sessionThatWaits_keepsItsWaits_andItsHintDependsOnTheSetting(resumes: Bool) {
        var world = world(resumes: resumes)
        let music = world.player("music")
        let call = world.create("call", .call, .voice)
        world.activate(call)
        #expect(world.send(.asleep(true)).began.isEmpty)
        #expect(world.send(.asleep(false)).ended.isEmpty && world.waits(music) == [call])
        #expect(world.leave(call).ended == [resumes ? .resume(music) : .stay(music)])
    }

    /// An alarm wakes the machine before the sessions learn of it.
    @Test func alertDuringSleep_isWaitedForAsWell() {
        var world = world(resumes: true)
        let music = world.player("music")
        let alarm = world.create("alarm", .alert, .music)
        world.send(.asleep(true))
        #expect(world.activate(alarm).began.isEmpty && world.waits(music) == [alarm])
        #expect(world.send(.asleep(false)).ended.isEmpty)
        #expect(world.leave(alarm).ended == [.resume(music)])
    }

    @Test func userPlaysBeforeTheSessionsAreReleased_isHeard_andIsNotReleasedAgain() {
        var world = world()
        let music = world.player("music")
        world.send(.asleep(true))
        #expect(world.activate(music).effects.contains(.activated(music)))
        #expect(world.send(.asleep(false)).ended.isEmpty && world.state(music) == .active)
    }

    @Test func wakeUp_isAnnouncedToThoseThatSlept() {
        var world = world()
        world.send(.servicesReset(Hardware.plugged))
        let music = world.player("music")
        world.send(.asleep(true))
        let woken = world.send(.routeChanged(.wakeFromSleep, Hardware.plugged))
        let isTold = woken.effects.contains {
            if case .routeChanged(music, .wakeFromSleep, _, _) = $0 { true } else { false }
        }
        #expect(isTold)
    }

    @Test(arguments: [false, true]) func outputIsUnpluggedDuringSleep_noHint(resumes: Bool) {
        var world = world(resumes: resumes)
        world.send(.servicesReset(Hardware.plugged))
        let music = world.player("music")
        world.send(.asleep(true))
        world.send(.routeChanged(.wakeFromSleep, Hardware.plugged))
        world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        #expect(world.send(.asleep(false)).ended == [.stay(music)])
    }

    // MARK: A client that hangs

    @Test func clientHangs_isInactive_andThoseItLoweredAreNot() {
        var world = world()
        let music = world.player("music")
        let prompt = world.player("prompt", .ducker)
        #expect(world.isDucked(music))
        #expect(world.arbiter.lowersSince(prompt) != nil && world.arbiter.lowersSince(music) == nil)
        let decision = world.send(.clientHangs(prompt))
        #expect(decision.began == [prompt] && world.state(prompt) == .inactive && !world.isDucked(music))
        #expect(world.arbiter.session(prompt)?.holdsClaim == false)
        // It activates itself again.
        #expect(world.activate(prompt).effects.contains(.activated(prompt)) && world.isDucked(music))
    }

    @Test func clientThatInterruptsHangs_othersAreReleasedWithoutTheHint() {
        var world = world()
        let music = world.player("music")
        let message = world.player("message")
        #expect(world.arbiter.interruptsSince(message) != nil && world.arbiter.interruptsSince(music) == nil)
        let decision = world.send(.clientHangs(message))
        #expect(decision.began == [message] && decision.ended == [.stay(music)])
        #expect(world.arbiter.explain(message).first?.text.contains("did not answer") == true)
    }

    @Test(arguments: [SessionClass.call, .alert]) func callOrAlertHangs_goesOn(_ sessionClass: SessionClass) {
        var world = world()
        let loud = world.create("loud", sessionClass, .music)
        world.activate(loud)
        #expect(world.send(.clientHangs(loud)).effects.isEmpty && world.state(loud) == .active)
    }

    // MARK: Alerts that are ducked

    @Test(arguments: [false, true]) func prompt_ducksAnAlertOnlyByTheSetting(isOn: Bool) {
        var settings = Arbiter.Settings()
        settings.ducksAlerts = isOn
        var world = World(settings: settings)
        let alarm = world.create("alarm", .alert, .music)
        let call = world.create("call", .call, .voice)
        world.activate(alarm)
        world.player("answer", .ducker)
        #expect(world.isDucked(alarm) == isOn)
        world.activate(call)
        #expect(!world.isDucked(call))
    }
}
