import PluginAPI
import SessionManager
import Testing

/// Rules §7: which session decides the route, which ports it may use, and what is announced.
@Suite struct RouteTests {
    private static let talking: Configuration = .of(.playAndRecord)

    /// Some ports. The route goes through the last output and the last input.
    static func audio(_ outputs: [Port], _ inputs: [Port] = []) -> Audio {
        Audio(route: Route(inputs: inputs.suffix(1), outputs: outputs.suffix(1)), inputs: inputs, outputs: outputs)
    }

    static func world(_ outputs: [Port], _ inputs: [Port] = []) -> World {
        var world = World()
        world.send(.servicesReset(audio(outputs, inputs)))
        return world
    }

    private func reasons(_ decision: Decision, _ id: SessionID?) -> [RouteChangeReason] {
        decision.effects.compactMap {
            if case .routeChanged(id, let reason, _, _) = $0 { reason } else { nil }
        }
    }

    // MARK: The deciding session

    @Test func noSessionActive_newestPortsAreUsed_butNotReceiverOrHandsFree() {
        let all = [Hardware.speaker, Hardware.headphones, Hardware.receiver]
        let world = RouteTests.world(all, [Hardware.microphone, Hardware.talkInput])
        #expect(world.arbiter.routeChoice.output == "headphones")
        #expect(world.arbiter.routeChoice.input == "microphone")
        #expect(RouteTests.world([Hardware.receiver]).arbiter.routeChoice.output == "receiver")
    }

    @Test func playAndRecord_prefersTheReceiver_unlessDefaultToSpeakerOrANewerPort() {
        let pair = [Hardware.receiver, Hardware.speaker]
        var world = RouteTests.world(pair)
        let voice = world.player("voice", RouteTests.talking)
        #expect(world.arbiter.routeChoice.output == "receiver")
        world.send(.setCategory(voice, .of(.playAndRecord, .default, .defaultToSpeaker)))
        #expect(world.arbiter.routeChoice.output == "speaker")
        world.send(.setCategory(voice, RouteTests.talking))
        world.send(.portsChanged(RouteTests.audio(pair + [Hardware.headphones])))
        #expect(world.arbiter.routeChoice.output == "headphones")
        world.send(.portsChanged(RouteTests.audio([Hardware.speaker])))
        #expect(world.arbiter.routeChoice.output == "speaker")
        world.leave(voice)
        world.send(.portsChanged(RouteTests.audio(pair)))
        #expect(world.arbiter.routeChoice.output == "speaker", "no call: the speaker again")
    }

    @Test func playAndRecord_usesBluetoothAndNetworkOnlyWithAnOption() {
        let outputs = [Hardware.speaker, Hardware.network, Hardware.music]
        for (options, expected) in [
            ([], "speaker"), (.allowAirPlay, "kitchen"), (.allowBluetoothA2DP, "buds/a2dp"),
        ] as [(Options, String)] {
            var world = RouteTests.world(outputs)
            world.player("voice", .of(.playAndRecord, .default, options))
            #expect(world.arbiter.routeChoice.output == expected)
        }
        var world = RouteTests.world(outputs)
        world.player("music")
        #expect(world.arbiter.routeChoice.output == "buds/a2dp", "categories without input need no option")
    }

    @Test func voiceChat_changesTheHeadsetToItsCallProfile() {
        var world = RouteTests.world(
            [Hardware.speaker, Hardware.music], [Hardware.microphone, Hardware.talkInput])
        let chat = world.player("chat", .voice)
        let choice = world.arbiter.routeChoice
        #expect(choice.input == "buds/hfp-input" && choice.handsFree == "buds/hfp-input")
        #expect(choice.output == "buds/a2dp", "the headset changes its profile and stays the output")
        world.leave(chat)
        #expect(world.arbiter.routeChoice.handsFree == nil)
        #expect(world.arbiter.routeChoice.input == "microphone")
        let plain = world.player("plain", RouteTests.talking)
        #expect(world.arbiter.session(plain).map { world.arbiter.availableInputs(of: $0) } == [Hardware.microphone])
        #expect(world.arbiter.routeChoice.output == "speaker")
    }

    @Test func severalSessions_latestNonMixableDecides_orElseTheLatest() {
        let outputs = [Hardware.speaker, Hardware.receiver]
        var world = RouteTests.world(outputs)
        let quiet = world.player("quiet", .of(.playAndRecord, .default, [.mixWithOthers]))
        #expect(world.arbiter.routeChoice.output == "receiver")
        let music = world.player("music")
        #expect(world.arbiter.routeChoice.output == "speaker")
        world.send(.setCategory(quiet, .of(.playAndRecord, .voiceChat, [.mixWithOthers])))
        #expect(world.arbiter.routeChoice.output == "speaker", "it is newer, but it mixes")
        world.leave(music)
        #expect(world.arbiter.routeChoice.output == "receiver")
        world.player("mixing", .mixing)
        #expect(world.arbiter.routeChoice.output == "speaker")
    }

    @Test func preferencesOfTheDecidingSession_areRequestedFromTheOutput() {
        var world = RouteTests.world([Hardware.speaker], [Hardware.microphone])
        var preferences = Preferences()
        (preferences.sampleRate, preferences.ioBufferDuration) = (44_100, 0.01)
        let music = world.player("music")
        #expect(world.arbiter.routeChoice.wish.isEmpty)
        world.send(.setPreferences(music, preferences))
        #expect(world.arbiter.routeChoice.wish == OutputWish(sampleRate: 44_100, bufferDuration: 0.01))
        world.player("mixing", .mixing)
        #expect(world.arbiter.routeChoice.wish.bufferDuration == 0.01, "it is newer, but it mixes")
        world.leave(music)
        #expect(world.arbiter.routeChoice.wish.isEmpty)
        world.send(.setPreferences(world.player("memo", .recording), preferences))
        #expect(world.arbiter.routeChoice.wish.isEmpty, "the category has no output")
    }

    @Test func preferredInputOfTheDecidingSession_isTheInput_andEmptyWhenRemoved() {
        let inputs = [Hardware.headset, Hardware.microphone]
        var world = RouteTests.world([Hardware.speaker], inputs)
        let memo = world.player("memo", .recording)
        #expect(world.arbiter.routeChoice.input == "microphone")
        let chosen = world.send(.setPreferredInput(memo, uid: "headset"))
        #expect(reasons(chosen, memo) == [.override], "the others are notified when the server has changed")
        #expect(world.arbiter.routeChoice.input == "headset")
        let gone = world.send(.portsChanged(RouteTests.audio([Hardware.speaker], [Hardware.microphone])))
        #expect(world.arbiter.session(memo)?.preferredInput == "")
        #expect(world.arbiter.routeChoice.input == "microphone")
        // The server's route was another one all the time.
        #expect(reasons(gone, memo) == [.oldDeviceUnavailable] && reasons(gone, nil) == [.oldDeviceUnavailable])
    }

    @Test func preferredInputOfASessionThatDoesNotDecide_isAnnouncedOnceGlobally() {
        var world = RouteTests.world([Hardware.speaker], [Hardware.headset, Hardware.microphone])
        let memo = world.create("memo", .app, .recording)
        let chosen = world.send(.setPreferredInput(memo, uid: "headset"))
        #expect(reasons(chosen, memo) == [.override] && reasons(chosen, nil) == [.override])
    }

    /// Another input in the route would look like the end of the mute.
    @Test func microphoneIsMuted_theRouteKeepsTheInputOfTheInterruptedSession() {
        var world = RouteTests.world([Hardware.speaker], [Hardware.microphone, Hardware.headset])
        let memo = world.player("memo", .recording)
        world.send(.setPreferredInput(memo, uid: "microphone"))
        #expect(world.send(.microphoneMuted(true)).began == [memo])
        #expect(world.arbiter.routeChoice.input == "microphone")
        world.player("other", .voice)
        #expect(world.arbiter.routeChoice.input == "headset", "who records decides first")
    }

    @Test func microphoneIsMuted_thoseWithAnotherOnePlayOn_theOthersAreToldLatestFirst() {
        var world = RouteTests.world([Hardware.speaker], [Hardware.headset, Hardware.microphone])
        let chat = world.player("chat", .mixingVoice)
        let (first, second) = (world.player("first", .mixingVoice), world.player("second", .mixingVoice))
        world.send(.setPreferredInput(chat, uid: "headset"))
        world.leave(first)
        world.activate(first)
        #expect(world.send(.microphoneMuted(true)).began == [first, second])
        #expect(world.state(chat) == .active)
    }

    // MARK: The override

    @Test func overrideOfTheDecidingSession_appliesUntilTheRouteChanges() {
        let outputs = [Hardware.speaker, Hardware.headphones]
        var world = RouteTests.world(outputs)
        let voice = world.player("voice", RouteTests.talking)
        #expect(world.arbiter.routeChoice.output == "headphones")
        world.send(.overrideOutput(voice, .speaker))
        #expect(world.arbiter.routeChoice.output == "speaker" && world.arbiter.routeChoice.isOverridden)
        var audio = RouteTests.audio(outputs)
        audio.route.outputs = [Hardware.speaker]
        let moved = world.send(.routeChanged(.override, audio))
        #expect(reasons(moved, voice) == [.override] && reasons(moved, nil) == [.override])
        #expect(world.arbiter.session(voice)?.override == .speaker, "its own change must not end it")
        world.send(.routeChanged(.newDeviceAvailable, RouteTests.audio(outputs + [Hardware.network])))
        #expect(world.arbiter.session(voice)?.override == OutputOverride.none)
        #expect(world.arbiter.routeChoice.isOverridden == false)
    }

    @Test func override_endsWhenItsSessionChoosesAnotherInput() {
        var world = RouteTests.world(
            [Hardware.speaker, Hardware.headphones], [Hardware.headset, Hardware.microphone])
        let voice = world.player("voice", RouteTests.talking)
        world.send(.overrideOutput(voice, .speaker))
        world.send(.setPreferredInput(voice, uid: "microphone"))
        #expect(world.arbiter.session(voice)?.override == .speaker, "it is the input already")
        world.send(.setPreferredInput(voice, uid: "headset"))
        #expect(world.arbiter.session(voice)?.override == OutputOverride.none)
    }

    @Test func override_endsWhenItsActiveSessionChangesItsMode() {
        var world = RouteTests.world([Hardware.receiver, Hardware.speaker])
        let voice = world.player("voice", RouteTests.talking)
        world.send(.overrideOutput(voice, .speaker))
        let changed = world.send(.setCategory(voice, .of(.playAndRecord, .measurement, [])))
        #expect(
            changed.effects.contains(.selectOutput(voice, uid: nil)) && reasons(changed, voice) == [.categoryChange])
        #expect(world.arbiter.routeChoice.output == "receiver")
        // Inactive, its route does not change.
        world.send(.overrideOutput(voice, .speaker))
        world.leave(voice)
        world.send(.setCategory(voice, RouteTests.talking))
        #expect(world.arbiter.session(voice)?.override == .speaker)
    }

    // MARK: Announcements

    @Test func newPortThatWillBeTheRoute_isAnnouncedOnceWhenItIs() {
        var world = RouteTests.world([Hardware.speaker])
        let music = world.player("music")
        var audio = RouteTests.audio([Hardware.speaker, Hardware.headphones])
        audio.route.outputs = [Hardware.speaker]
        let could = world.send(.routeChanged(.newDeviceAvailable, audio))
        #expect(reasons(could, nil).isEmpty)
        audio.route.outputs = [Hardware.headphones]
        let become = world.send(.routeChanged(.newDeviceAvailable, audio))
        #expect(reasons(become, nil) == [.newDeviceAvailable] && reasons(become, music) == [.newDeviceAvailable])
    }

    @Test func newPortThatWillNotBeTheRoute_isAnnouncedAtOnce() {
        var world = RouteTests.world([Hardware.speaker])
        let voice = world.player("voice", RouteTests.talking)
        var audio = RouteTests.audio([Hardware.speaker, Hardware.music])
        audio.route.outputs = [Hardware.speaker]
        let could = world.send(.routeChanged(.newDeviceAvailable, audio))
        #expect(reasons(could, nil) == [.newDeviceAvailable] && reasons(could, voice).isEmpty)
    }

    @Test func noInput_isAnnouncedAtActivationAtAChangeAndWhenTheLastIsRemoved() {
        var world = RouteTests.world([Hardware.speaker], [Hardware.talkInput])
        let memo = world.create("memo", .app, .recording)
        let activated = world.activate(memo)
        #expect(reasons(activated, memo) == [.noSuitableRouteForCategory], "a headset it may not use does not count")
        #expect(reasons(activated, nil) == [.noSuitableRouteForCategory])
        #expect(reasons(world.send(.setCategory(memo, .music)), memo) == [.categoryChange])
        #expect(
            reasons(world.send(.setCategory(memo, .recording)), memo)
                == [.categoryChange, .noSuitableRouteForCategory])
        let both = RouteTests.audio([Hardware.speaker], [Hardware.microphone])
        #expect(reasons(world.send(.routeChanged(.newDeviceAvailable, both)), memo) == [.newDeviceAvailable])
        let gone = world.send(.routeChanged(.oldDeviceUnavailable, RouteTests.audio([Hardware.speaker])))
        #expect(reasons(gone, memo) == [.oldDeviceUnavailable, .noSuitableRouteForCategory])
        #expect(reasons(gone, nil) == [.oldDeviceUnavailable, .noSuitableRouteForCategory])
    }

    @Test func wakeFromSleep_isAnnouncedToActiveSessions_andChangesNothing() {
        var world = RouteTests.world([Hardware.speaker, Hardware.headphones])
        let voice = world.player("voice", RouteTests.talking)
        let idle = world.create("idle", .app, .music)
        world.send(.overrideOutput(voice, .speaker))
        let woken = world.send(
            .routeChanged(.wakeFromSleep, RouteTests.audio([Hardware.speaker, Hardware.headphones])))
        #expect(reasons(woken, voice) == [.wakeFromSleep] && reasons(woken, nil) == [.wakeFromSleep])
        #expect(reasons(woken, idle).isEmpty)
        #expect(world.arbiter.session(voice)?.override == .speaker)
    }
}
