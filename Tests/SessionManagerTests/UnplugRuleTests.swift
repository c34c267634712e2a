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
        #expect(world.leave(music).ended == [.resume(old)])
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
}
