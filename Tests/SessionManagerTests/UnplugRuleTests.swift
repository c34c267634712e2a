import PluginAPI
import SessionManager
import Testing

@testable import ReferenceModel

/// Rules §7: the output in use is unplugged and plugged in again.
@Suite struct UnplugRuleTests {
    @Test func unplug_nowPlayingSessionIsInterruptedUntilItActivates() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let old = world.player("old")
        let music = world.player("music")
        let decision = world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        #expect(World.interruptions(decision) == [.began(music, .routeDisconnected, by: nil)])
        #expect(world.waits(old) == [music])
        let call = world.create("call", .call, .voice)
        world.activate(call)
        #expect(world.leave(call).ended.isEmpty)
        #expect(world.state(music) == .interrupted)
        // Its output was the same one, and is still away.
        #expect(world.leave(music).ended == [.stay(old)])
    }

    @Test func unplug_adoptedPlayersArePausedToo_latestFirst() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let (radio, game) = (world.player("radio", .mixing), world.player("game", .mixing))
        let music = world.player("music")
        let video = world.player("video", .mixing)
        world.send(
            .soundingChanged(Sounding(sessions: [radio, game, video], pausable: [radio, video], others: false)))
        #expect(world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged)).began == [video, music, radio])
        #expect(world.state(game) == .active)
        // The same output is back in time.
        let back = world.send(.routeChanged(.newDeviceAvailable, Hardware.plugged))
        #expect(Set(back.ended) == [.resume(video), .resume(music), .resume(radio)])
    }

    /// A call makes the headset hands-free: its output has another uid than the one on which the music was heard.
    @Test(arguments: [false, true]) func headsetLeavesDuringACall_musicThatWasHeardOnItStaysPaused(isBack: Bool) {
        var world = World()
        let (microphone, speaker) = (Hardware.microphone, Hardware.speaker)
        let listening = Audio(
            route: Route(inputs: [microphone], outputs: [Hardware.music]), inputs: [microphone, Hardware.talkInput],
            outputs: [speaker, Hardware.music])
        let talking = Audio(
            route: Route(inputs: [Hardware.talkInput], outputs: [Hardware.talk]),
            inputs: [microphone, Hardware.talkInput], outputs: [speaker, Hardware.talk])
        world.send(.servicesReset(listening))
        let music = world.player("music", .mixing)
        world.send(
            .soundingChanged(
                Sounding(
                    sessions: [music], pausable: [music], outputs: [music: [Hardware.music.uid]], others: false)))
        let call = world.create("call", .call, .voice)
        world.activate(call)
        world.send(.routeChanged(.categoryChange, talking))
        world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        if isBack { world.send(.routeChanged(.newDeviceAvailable, listening)) }
        #expect(world.leave(call).ended == [isBack ? .resume(music) : .stay(music)])
    }

    @Test func unplug_sessionThatPrefersNotToPausePlaysOn() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let music = world.player("music")
        var preferences = Preferences()
        preferences.interruptsOnRouteDisconnect = false
        world.send(.setPreferences(music, preferences))
        #expect(world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged)).began.isEmpty)
    }

    @Test func plugIn_pausesNothing() {
        var world = World()
        world.send(.servicesReset(Hardware.unplugged))
        let music = world.player("music")
        #expect(world.send(.routeChanged(.newDeviceAvailable, Hardware.plugged)).began.isEmpty)
        #expect(world.state(music) == .active)
    }

    /// The port of a jack stays in the list, as not available.
    @Test func unplug_portStaysInTheList_nowPlayingSessionIsInterrupted() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let music = world.player("music")
        let gone = Port(type: .headphones, name: "Headphones", uid: "headphones", channels: 2, isAvailable: false)
        var audio = Hardware.unplugged
        audio.outputs.append(gone)
        #expect(world.send(.routeChanged(.oldDeviceUnavailable, audio)).began == [music])
    }

    /// A server that does not change ports by itself. The sound leaves the port because the daemon requests it.
    @Test func unplug_portIsStillTheRoute_isAnnouncedOnceAndPausesOnce() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let music = world.player("music")
        var audio = Hardware.unplugged
        let next = audio.route
        audio.route.outputs = [
            Port(type: .headphones, name: "Headphones", uid: "headphones", channels: 2, isAvailable: false)
        ]
        let first = world.send(.routeChanged(.oldDeviceUnavailable, audio))
        #expect(first.began == [music])
        #expect(!first.effects.contains { if case .routeChanged = $0 { true } else { false } })
        world.activate(music)
        audio.route = next
        let second = world.send(.routeChanged(.oldDeviceUnavailable, audio))
        #expect(second.began.isEmpty)
        #expect(
            second.effects.contains {
                if case .routeChanged(nil, .oldDeviceUnavailable, _, _) = $0 { true } else { false }
            })
    }

    @Test(arguments: [(10.0, true), (30.0, true), (30.1, false)])
    func replugInTime_givesTheResumeHint(_ seconds: Double, isOffered: Bool) {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let music = world.player("music")
        world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        world.pass(seconds)
        let decision = world.send(.routeChanged(.newDeviceAvailable, Hardware.plugged))
        #expect(decision.ended == (isOffered ? [.resume(music)] : []))
        #expect(world.state(music) == (isOffered ? .inactive : .interrupted))
    }

    @Test func replugAfterAChange_givesNoResumeHint() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let (music, other) = (world.player("music"), world.create("other", .app, .music))
        world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        world.leave(music)
        #expect(world.send(.routeChanged(.newDeviceAvailable, Hardware.plugged)).ended.isEmpty)
        world.activate(music)
        world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        world.activate(other)
        // Another session plays now. A resume would interrupt it.
        #expect(world.send(.routeChanged(.newDeviceAvailable, Hardware.plugged)).ended.isEmpty)
    }

    @Test func plugInOfAnotherDevice_givesNoResumeHint() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        world.player("music")
        world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        let screen = Port(type: .hdmi, name: "Screen", uid: "screen", channels: 2)
        let audio = Audio(
            route: Route(inputs: [], outputs: [screen]), inputs: [], outputs: [Hardware.speaker, screen])
        #expect(world.send(.routeChanged(.newDeviceAvailable, audio)).ended.isEmpty)
    }

    @Test func replugAmongDevicesOfTheSameName_givesTheResumeHint() {
        let outputs = ["desk", "phones"].map { Port(type: .headphones, name: "Analog Output", uid: $0, channels: 2) }
        let plugged = Audio(route: Route(inputs: [], outputs: [outputs[1]]), inputs: [], outputs: outputs)
        let unplugged = Audio(route: Route(inputs: [], outputs: [outputs[0]]), inputs: [], outputs: [outputs[0]])
        var world = World()
        world.send(.servicesReset(plugged))
        let music = world.player("music")
        world.send(.routeChanged(.oldDeviceUnavailable, unplugged))
        #expect(world.state(music) == .interrupted)
        #expect(world.send(.routeChanged(.newDeviceAvailable, plugged)).ended == [.resume(music)])
    }

    @Test func unplugSettingOff_musicPlaysOn() {
        var settings = Arbiter.Settings()
        settings.pausesOnUnplug = false
        var world = World(settings: settings)
        world.send(.servicesReset(Hardware.plugged))
        world.player("music")
        #expect(!world.arbiter.guardsOutput)
        #expect(world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged)).began.isEmpty)
    }

    @Test func guardsOutput_whileTheNowPlayingSessionUsesARemovableOutput() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        #expect(!world.arbiter.guardsOutput)
        let music = world.player("music")
        #expect(world.arbiter.guardsOutput)
        world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        #expect(!world.arbiter.guardsOutput)
        world.activate(music)
        #expect(!world.arbiter.guardsOutput, "the speaker cannot be unplugged")
    }

    // MARK: The output of each session

    static let screen = Port(type: .hdmi, name: "Screen", uid: "screen", channels: 2)
    /// Headphones are the route, and a screen is connected.
    static let desk = Audio(
        route: Hardware.plugged.route, inputs: Hardware.plugged.inputs,
        outputs: [Hardware.speaker, screen, Hardware.headphones])

    static func desk(without port: Port, route: Port = Hardware.headphones) -> Audio {
        Audio(
            route: Route(inputs: desk.route.inputs, outputs: [route]), inputs: desk.inputs,
            outputs: desk.outputs.filter { $0 != port })
    }

    private static func hear(_ sessions: [SessionID: Port], pausable: Set<SessionID> = []) -> Event {
        .soundingChanged(
            Sounding(
                sessions: Set(sessions.keys), pausable: pausable, outputs: sessions.mapValues { [$0.uid] },
                others: false))
    }

    @Test func otherOutputIsUnplugged_itsSessionIsInterrupted_withItsName() {
        var world = World()
        world.send(.servicesReset(Self.desk))
        let (film, music) = (world.player("film", .mixing), world.player("music"))
        world.send(Self.hear([film: Self.screen, music: Hardware.headphones], pausable: [film, music]))
        #expect(world.arbiter.guardsOutput)
        let decision = world.send(.portsChanged(Self.desk(without: Self.screen)))
        #expect(decision.began == [film])
        #expect(world.arbiter.session(film)?.interruption?.byName == "Screen")
        #expect(world.arbiter.explain(film).contains { $0.text.hasPrefix("paused: Screen, its output") })
    }

    @Test func outputOfTheRouteIsUnplugged_sessionElsewherePlaysOn() {
        var world = World()
        world.send(.servicesReset(Self.desk))
        let music = world.player("music")
        world.send(Self.hear([music: Self.screen], pausable: [music]))
        #expect(!world.arbiter.guardsOutput)
        let gone = Self.desk(without: Hardware.headphones, route: Hardware.speaker)
        #expect(world.arbiter.routeChoice(afterLossOn: gone) != nil)
        #expect(world.send(.routeChanged(.oldDeviceUnavailable, gone)).began.isEmpty)
    }

    @Test func outputIsUnplugged_callsAlertsAndWhatMixesGoOn() {
        var world = World()
        world.send(.servicesReset(Self.desk))
        let (game, call) = (world.player("game", .mixing), world.create("call", .call, .voice))
        world.activate(call)
        world.activate(game)
        world.send(Self.hear([game: Self.screen, call: Self.screen], pausable: [call]))
        #expect(world.send(.portsChanged(Self.desk(without: Self.screen))).began.isEmpty)
    }

    @Test func headsetChangesItsProfile_isNotUnplugged() {
        func audio(_ headset: Port) -> Audio {
            Audio(route: Hardware.unplugged.route, inputs: [], outputs: [Hardware.speaker, headset])
        }
        var world = World()
        world.send(.servicesReset(audio(Hardware.music)))
        let music = world.player("music")
        world.send(Self.hear([music: Hardware.music]))
        #expect(world.send(.portsChanged(audio(Hardware.talk))).began.isEmpty)
    }

    @Test func configurationChange_routeHasAnotherName_pausesNothing() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        world.player("music")
        let surround = Port(type: .headphones, name: "Headphones", uid: "surround", channels: 6)
        let audio = Audio(route: Route(inputs: [], outputs: [surround]), inputs: [], outputs: [surround])
        #expect(world.send(.routeChanged(.routeConfigurationChange, audio)).began.isEmpty)
    }

    /// Its player was asked to resume, and the server does not show its sound yet.
    @Test func unplugRightAfterACall_playerThatIsResumedIsInterruptedAgain() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let (radio, call) = (world.player("radio", .mixing), world.create("call", .call, .voice))
        world.send(Self.hear([radio: Hardware.headphones], pausable: [radio]))
        world.activate(call)
        world.send(Self.hear([:], pausable: [radio]))
        #expect(world.leave(call).ended == [.resume(radio)])
        #expect(world.arbiter.guardsOutput)
        #expect(world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged)).began == [radio])
        #expect(world.arbiter.session(radio)?.claimExpires == nil)
        #expect(world.send(.routeChanged(.newDeviceAvailable, Hardware.plugged)).ended == [.resume(radio)])
    }

    /// It is told by the route change alone.
    @Test func unplugRightAfterACall_clientThatWasToldToResumeIsNotInterrupted() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let (music, call) = (world.player("music"), world.create("call", .call, .voice))
        world.activate(call)
        #expect(world.leave(call).ended == [.resume(music)])
        #expect(world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged)).began.isEmpty)
        #expect(world.state(music) == .inactive)
    }

    // MARK: Unplugged while interrupted

    @Test func unplugDuringACall_noResumeHint_andNoReplugSaysMore() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let (music, call) = (world.player("music"), world.create("call", .call, .voice))
        world.activate(call)
        let decision = world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        #expect(decision.began.isEmpty && decision.ended.isEmpty)
        #expect(World.others(decision).contains(.routed(music, .oldDeviceUnavailable)))
        #expect(world.leave(call).ended == [.stay(music)])
        #expect(world.arbiter.explain(music).contains { $0.text.contains("Headphones, its output, was disconnected") })
        #expect(world.send(.routeChanged(.newDeviceAvailable, Hardware.plugged)).ended.isEmpty)
    }

    @Test func unplugAndReplugDuringACall_isAsIfItHadNeverGone() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let (music, call) = (world.player("music"), world.create("call", .call, .voice))
        world.activate(call)
        for _ in 0..<2 {
            world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
            world.pass(100)
            world.send(.routeChanged(.newDeviceAvailable, Hardware.plugged))
        }
        #expect(world.leave(call).ended == [.resume(music)])
    }

    @Test func otherOutputIsUnpluggedDuringACall_resumes() {
        var world = World()
        world.send(.servicesReset(Self.desk))
        let (music, call) = (world.player("music"), world.create("call", .call, .voice))
        world.send(Self.hear([music: Hardware.headphones]))
        world.activate(call)
        world.send(.portsChanged(Self.desk(without: Self.screen)))
        #expect(world.leave(call).ended == [.resume(music)])
    }

    @Test func outputOfAHeldStreamIsUnpluggedDuringACall_itIsNotInTheRoute_noResumeHint() {
        var world = World()
        world.send(.servicesReset(Self.desk))
        let (music, call) = (world.player("music"), world.create("call", .call, .voice))
        world.send(Self.hear([music: Self.screen]))
        world.activate(call)
        world.send(.portsChanged(Self.desk(without: Self.screen)))
        #expect(world.leave(call).ended == [.stay(music)])
    }

    @Test func recordingIsInterrupted_headphonesDoNotConcernIt() {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let (take, call) = (world.player("take", .recording), world.create("call", .call, .voice))
        world.activate(call)
        world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        #expect(world.leave(call).ended == [.resume(take)])
    }

    /// A daemon that starts anew reads the ports anew.
    @Test func outputIsBackWhileNoDaemonRuns_resumes() throws {
        var world = World()
        world.send(.servicesReset(Hardware.plugged))
        let (music, call) = (world.player("music"), world.create("call", .call, .voice))
        world.activate(call)
        let decision = world.send(.routeChanged(.oldDeviceUnavailable, Hardware.unplugged))
        #expect(decision.isMemorable)
        var memory = world.arbiter.memory
        memory.audio = nil
        for (ports, resumes) in [(Hardware.plugged, true), (Hardware.unplugged, false)] {
            var next = try Arbiter(memory)
            _ = next.handle(.portsChanged(ports), at: world.now)
            let end = next.handle(.deactivate(call, notifyOthers: true), at: world.now)
            #expect(end.ended == [Decision.Ended(id: music, shouldResume: resumes)])
        }
    }
}
