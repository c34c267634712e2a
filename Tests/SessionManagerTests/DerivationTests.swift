import PluginAPI
import SessionManager
import Testing

@testable import ReferenceModel

/// Ducking, muting and hints, which follow from all sessions together (rules §4, §6).
@Suite struct DerivationTests {
    // MARK: Ducking

    @Test func ducking_isCounted() {
        var world = World()
        let music = world.player("music")
        let first = world.player("first", .ducker)
        let second = world.create("second", .app, .ducker)
        #expect(world.isDucked(music))
        #expect(!world.activate(second).effects.contains { if case .duckingChanged = $0 { true } else { false } })
        world.leave(first)
        #expect(world.isDucked(music))
        let decision = world.leave(second)
        #expect(decision.effects.contains(.duckingChanged(music, ducked: false, gain: 0)))
    }

    @Test func duckerStarts_musicIsDuckedFirst() {
        var world = World()
        let music = world.player("music")
        let ducker = world.create("ducker", .app, .ducker)
        let effects = world.activate(ducker).effects
        let lowered = effects.firstIndex(of: .duckingChanged(music, ducked: true, gain: -12))
        #expect(lowered != nil)
        #expect((lowered ?? 0) < effects.firstIndex(of: .activated(ducker))!)
    }

    @Test func sessionStartsDuringDucking_isDucked() {
        var world = World()
        world.player("ducker", .ducker)
        let music = world.player("music")
        #expect(world.isDucked(music))
    }

    @Test func duckerStartsDuringDucking_isNotDucked() {
        var world = World()
        let first = world.player("first", .ducker)
        let second = world.player("second", .ducker)
        #expect(!world.isDucked(first) && !world.isDucked(second))
    }

    @Test func recorderAndCall_areNeverDucked() {
        var world = World()
        let recorder = world.player("recorder", .recording)
        world.player("ducker", .ducker)
        #expect(!world.isDucked(recorder))
        let call = world.create("call", .call, .music)
        world.activate(call)
        world.player("another", .ducker)
        #expect(world.state(call) == .active && !world.isDucked(call))
    }

    @Test func duckerDisconnects_musicIsRestored() {
        var world = World()
        let music = world.player("music")
        let ducker = world.create("ducker", .app, .ducker, client: 5)
        world.activate(ducker)
        let decision = world.send(.clientVanished(ClientID(5)))
        #expect(decision.effects.contains(.duckingChanged(music, ducked: false, gain: 0)))
    }

    @Test func duckerIsInterrupted_musicIsRestored() {
        var world = World()
        let music = world.player("music")
        world.player("ducker", .ducker)
        let call = world.create("call", .call, .music)
        world.activate(call)
        world.activate(music)
        #expect(!world.isDucked(music))
        #expect(world.state(music) == .active)
    }

    @Test func gainChangesDuringDucking_isAnnounced() {
        var world = World()
        let music = world.player("music")
        world.player("ducker", .ducker)
        var settings = Arbiter.Settings()
        settings.duckGain = -20
        #expect(
            world.send(.settingsChanged(settings)).effects.contains(.duckingChanged(music, ducked: true, gain: -20)))
    }

    // MARK: The silent switch and the screen lock

    @Test(arguments: Category.allCases)
    func silentSwitch_mutesAmbientCategories_andInterruptsNothing(_ category: Category) {
        for event in [Event.setSilentMode, Event.setScreenLocked] {
            var world = World()
            let id = world.create("session", .app, .of(category))
            world.activate(id)
            let obeys = category == .ambient || category == .soloAmbient
            let on = world.send(event(true))
            #expect(on.effects.contains(.mutedChanged(id, true)) == obeys)
            #expect(world.state(id) == .active && world.isMuted(id) == obeys)
            #expect(world.send(event(true)).effects.isEmpty)
            #expect(world.send(event(false)).effects.contains(.mutedChanged(id, false)) == obeys)
        }
    }

    @Test func bothSwitches_muteUntilBothAreOff() {
        var world = World()
        let id = world.create("idle")
        world.send(.setSilentMode(true))
        world.send(.setScreenLocked(true))
        world.send(.setSilentMode(false))
        #expect(world.isMuted(id))
        world.send(.setScreenLocked(false))
        #expect(!world.isMuted(id))
    }

    @Test func categoryChangesWhileTheSwitchIsOn_muteFollows() {
        var world = World()
        let id = world.player("session")
        world.send(.setSilentMode(true))
        #expect(!world.isMuted(id))
        world.send(.setCategory(id, .ambient))
        #expect(world.isMuted(id))
        world.send(.setCategory(id, .mixing))
        #expect(!world.isMuted(id))
    }

    // MARK: Secondary audio

    @Test func nonMixableStarts_onlyActiveForegroundSessionsGetTheHint() {
        var world = World()
        let game = world.player("game", .ambient)
        let hidden = world.player("hidden", .mixing)
        let idle = world.create("idle", .app, .ambient)
        world.send(.setForeground(hidden, false))
        let music = world.create("music", .app, .music)
        #expect(world.activate(music).hints == [.hint(game, true)])
        for id in [game, hidden, idle] {
            #expect(world.arbiter.session(id)?.shouldSilenceSecondaryAudio == true)
            #expect(world.arbiter.session(id)?.otherAudioPlaying == true)
        }
        #expect(world.leave(music).hints == [.hint(game, false)])
    }

    @Test func mixableStarts_otherAudioIsReportedWithoutAHint() {
        var world = World()
        let game = world.player("game", .ambient)
        let decision = world.activate(world.create("other", .app, .mixing))
        #expect(decision.hints.isEmpty)
        #expect(world.arbiter.session(game)?.otherAudioPlaying == true)
        #expect(world.arbiter.session(game)?.shouldSilenceSecondaryAudio == false)
    }

    @Test func hint_doesNotCountTheSessionItself() {
        var world = World()
        let music = world.player("music")
        #expect(world.arbiter.session(music)?.shouldSilenceSecondaryAudio == false)
        #expect(world.arbiter.session(music)?.otherAudioPlaying == false)
    }

    @Test func recorderAndMutedSession_doNotSound() {
        var world = World()
        let game = world.player("game", .mixing)
        let recorder = world.player("recorder", .recording)
        #expect(world.arbiter.session(game)?.otherAudioPlaying == false)
        world.leave(recorder)
        world.player("solo", .initial)
        #expect(world.arbiter.session(game)?.shouldSilenceSecondaryAudio == true)
        #expect(world.send(.setSilentMode(true)).hints == [.hint(game, false)])
    }

    /// After a restart the arbiter still knows which sessions sounded, but has no server yet.
    @Test func serverMissingAfterARestart_soundFollowsFromStates() throws {
        var world = World()
        let game = world.player("game", .ambient)
        world.send(.soundingChanged(Sounding(sessions: [], others: true)))
        var again = try Arbiter(world.arbiter.memory)
        #expect(again.session(game)?.otherAudioPlaying == true)
        let decision = again.handle(.servicesLost, at: world.now)
        #expect(decision.isMemorable)
        #expect(again.session(game)?.otherAudioPlaying == false)
        #expect(!decision.effects.contains(.servicesLost), "the server was never announced")
    }

    @Test func serverConnected_soundFollowsFromStreams() {
        var world = World()
        let game = world.player("game", .ambient)
        let music = world.player("music")
        #expect(world.send(.soundingChanged(Sounding(sessions: [game], others: false))).hints == [.hint(game, false)])
        #expect(world.arbiter.session(music)?.otherAudioPlaying == true)
        world.send(.soundingChanged(Sounding(sessions: [], others: true)))
        #expect(world.arbiter.session(game)?.otherAudioPlaying == true)
        #expect(world.arbiter.session(game)?.shouldSilenceSecondaryAudio == false)
        #expect(world.send(.soundingChanged(nil)).hints == [.hint(game, true)])
    }

    /// The streams of interrupted sessions may play a moment longer.
    @Test func callBegins_interruptedStreamsGiveNoHint() {
        var world = World()
        let music = world.player("music")
        let call = world.create("call", .call, .voice)
        world.send(.soundingChanged(Sounding(sessions: [music], others: false)))
        #expect(world.arbiter.session(call)?.shouldSilenceSecondaryAudio == true, "the music still plays")
        #expect(world.activate(call).hints == [.hint(call, false)])
        #expect(world.arbiter.session(call)?.otherAudioPlaying == false)
        #expect(world.send(.soundingChanged(Sounding(sessions: [], others: false))).hints.isEmpty)
    }

    @Test func mixingCallSounds_othersGetTheHint() {
        var world = World()
        world.activate(world.create("call", .call, .mixing))
        let game = world.player("game", .ambient)
        #expect(world.arbiter.session(game)?.shouldSilenceSecondaryAudio == true)
    }
}
