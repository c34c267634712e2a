import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Rules §7 on a real server: which route is selected, and that the sound follows it.
@Suite struct RouteTests {
    private static func microphone(_ name: String, _ sink: String) -> String {
        "module-remap-source source_name=\(name) source_properties=device.form_factor=microphone "
            + "master=\(sink).monitor"
    }

    // MARK: Last in wins

    @Test(arguments: ServerKind.allCases)
    func newestDeviceIsSelected_andTheOneBeforeWhenItIsRemoved(_ kind: ServerKind) throws {
        let stage = try RouteStage(kind.server())
        let phones = try stage.pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(stage.goes(to: "phones"))
        #expect(stage.defaultSink == "phones")
        let speakers = try stage.pulse.addSink("usb", properties: ["device.bus": "usb"])
        #expect(stage.goes(to: "usb"))
        #expect(stage.reasons == [.newDeviceAvailable, .newDeviceAvailable], "one change for each device")
        stage.forget()
        try stage.pulse.unloadModule(speakers)
        #expect(stage.goes(to: "phones"))
        try stage.pulse.unloadModule(phones)
        #expect(stage.goes(to: "speaker"))
        #expect(stage.reasons == [.oldDeviceUnavailable, .oldDeviceUnavailable], "one change for each device")
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: its modules"))
    func serverSwitchesByItself_daemonAgrees() throws {
        let stage = try RouteStage(PrivatePulse(modules: ["module-switch-on-connect ignore_virtual=no"]))
        let phones = try stage.pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(stage.goes(to: "phones"))
        try stage.pulse.unloadModule(phones)
        #expect(stage.goes(to: "speaker"))
        #expect(stage.reasons == [.newDeviceAvailable, .oldDeviceUnavailable])
    }

    @Test(arguments: ServerKind.allCases)
    func usersChoice_staysUntilTheNextDeviceAppears_alsoAfterARestart(_ kind: ServerKind) throws {
        let stage = try RouteStage(kind.server(sinks: ["first", "second", "third"]))
        #expect(stage.defaultSink == stage.output)
        try stage.pulse.control.setDefaultSink("first")
        #expect(stage.goes(to: "first"))
        stage.daemon.daemon.kill()
        try stage.daemon.restart()
        #expect(stage.daemon.waitForServer())
        #expect(stage.goes(to: "first"))
        let music = try stage.daemon.client()
        music.activate(try music.session("Music"))
        #expect(stage.defaultSink == "first")
        let module = try stage.pulse.addSink("fourth")
        #expect(stage.goes(to: "fourth"))
        try stage.pulse.unloadModule(module)
        #expect(stage.goes(to: "first"), "the user's choice counts as newer than older devices")
    }

    /// faults.md, D3.
    @Test(arguments: ServerKind.allCases) func devicesComeAndGoFast_lastStateAndAllReasonsAreRight(
        _ kind: ServerKind
    ) throws {
        let stage = try RouteStage(kind.server())
        let rounds = amount(25, long: 125)
        for _ in 0..<rounds {
            let one = try stage.pulse.addSink("one")
            let two = try stage.pulse.addSink("two")
            try stage.pulse.unloadModule(one)
            try stage.pulse.unloadModule(two)
            _ = stage.reasons
        }
        let last = try stage.pulse.addSink("last")
        #expect(stage.goes(to: "last"))
        #expect(eventually { stage.defaultSink == "last" })
        try stage.pulse.unloadModule(last)
        #expect(stage.goes(to: "speaker"))
        #expect(
            try eventually { try stage.daemon.property("AvailableOutputs").ports.map(\.uid) == ["speaker"] })
        _ = stage.reasons
        for change in stage.told {
            switch change.reason {
            case .newDeviceAvailable: #expect(change.current.outputs.first?.uid != "speaker")
            case .oldDeviceUnavailable: #expect(change.previous.outputs != change.current.outputs)
            case .unknown: break
            default: Issue.record("\(change)")
            }
        }
    }

    @Test(arguments: ServerKind.allCases) func filterOverADevice_isNotSelected(_ kind: ServerKind) throws {
        let stage = try RouteStage(kind.server())
        try stage.pulse.loadModule("module-remap-sink sink_name=mono master=speaker")
        #expect(
            eventually {
                (try? stage.daemon.property("AvailableOutputs"))?.ports.contains { $0.uid == "mono" } == true
            })
        #expect(stage.output == "speaker" && stage.defaultSink == "speaker")
    }

    // MARK: Categories

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake card"))
    func call_usesTheReceiverUnlessAJackIsPlugged_thenTheSpeaker() throws {
        let pulse = try PrivatePulse(sinks: [])
        let card = try FakeCard(pulse)
        let stage = try RouteStage(pulse)
        let client = try stage.daemon.client()
        let call = try client.session("Call", category: "play-and-record")
        #expect(stage.goes(to: card.speaker))
        #expect(client.activate(call) == nil)
        #expect(stage.goes(to: card.earpiece))
        #expect(stage.reasons == [.categoryChange])
        try card.plug(.headphones)
        #expect(stage.goes(to: card.headphones))
        try card.unplug(.headphones)
        #expect(stage.goes(to: card.speaker), "the unplug interrupted the call")
        #expect(client.state(call) == "interrupted")
        #expect(client.activate(call) == nil)
        #expect(
            client.call(
                call, "SetCategory",
                [.string("play-and-record"), .string("default"), .strings(["default-to-speaker"])]) == nil)
        #expect(stage.goes(to: card.speaker))
        #expect(
            client.call(call, "SetCategory", [.string("play-and-record"), .string("default"), .strings([])]) == nil)
        #expect(stage.goes(to: card.earpiece))
        client.deactivate(call)
        #expect(stage.goes(to: card.speaker))
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake card"))
    func jackIsPulled_serverDoesNotChangePorts_oneRouteChangeIsSent() throws {
        let pulse = try PrivatePulse(sinks: [])
        let card = try FakeCard(pulse)
        let stage = try RouteStage(pulse)
        try card.plug(.headphones)
        #expect(stage.goes(to: card.headphones))
        stage.forget()
        try card.unplug(.headphones)
        #expect(stage.goes(to: card.speaker))
        // In between the server selects another device by itself. No change is announced for it.
        #expect(stage.reasons == [.oldDeviceUnavailable])
        #expect(stage.told.first?.previous.outputs.map(\.uid) == [card.headphones])
    }

    @Test(arguments: ServerKind.allCases) func noInput_isReportedWithReasonSeven(_ kind: ServerKind) throws {
        let stage = try RouteStage(kind.server())
        let client = try stage.daemon.client()
        let memo = try client.session("Memo", category: "record")
        #expect(client.activate(memo) == nil)
        #expect(try client.heard().contains("Memo route 7"))
        let module = try stage.pulse.loadModule(RouteTests.microphone("mic", "speaker"))
        #expect(stage.records(from: "mic"))
        #expect(try eventually { try stage.reads("AvailableInputs", memo).ports.map(\.uid) == ["mic"] })
        _ = try client.heard()
        try stage.pulse.unloadModule(module)
        #expect(stage.records(from: ""))
        let heard = try client.heard()
        #expect(heard.filter { $0.hasPrefix("Memo route") } == ["Memo route 2", "Memo route 7"])
    }

    // MARK: Requests of a session

    @Test(arguments: ServerKind.allCases) func override_movesTheSound_untilTheRouteChanges(_ kind: ServerKind) throws {
        let pulse = try kind.server(sinks: [])
        try pulse.addSink("loud", properties: ["device.form_factor": "speaker"])
        try pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        try pulse.control.setDefaultSink("phones")
        let stage = try RouteStage(pulse)
        let (loud, phones) = (try Ear(pulse, sink: "loud"), try Ear(pulse, sink: "phones"))
        let client = try stage.daemon.client()
        let call = try client.session("Call", category: "play-and-record")
        client.activate(call)
        let tone = try Tone.program(pulse, hertz: 440)
        #expect(phones.waitUntil(440, above: -30))
        #expect(client.call(call, "OverrideOutput", [.string("speaker")]) == nil)
        #expect(loud.waitUntil(440, above: -30) && phones.waitUntil(440, below: -60))
        #expect(stage.goes(to: "loud"))
        #expect(
            client.heard(2, of: "Call route") == ["Call route 7", "Call route 4"], "there is no input")
        #expect(client.call(call, "OverrideOutput", [.string("none")]) == nil)
        #expect(phones.waitUntil(440, above: -30) && loud.waitUntil(440, below: -60))
        #expect(client.call(call, "OverrideOutput", [.string("speaker")]) == nil)
        #expect(stage.goes(to: "loud"))
        let module = try pulse.addSink("usb", properties: ["device.bus": "usb"])
        #expect(stage.goes(to: "usb"))
        #expect(loud.waitUntil(440, below: -60))
        try pulse.unloadModule(module)
        #expect(stage.goes(to: "phones"), "the override has ended")
        withExtendedLifetime(tone) {}
    }

    @Test(arguments: ServerKind.allCases)
    func preferredInput_movesTheSessionsRecordings_andIsEmptyWhenRemoved(_ kind: ServerKind) throws {
        let pulse = try kind.server(modules: [RouteTests.microphone("desk", "speaker")])
        let module = try pulse.loadModule(RouteTests.microphone("lapel", "speaker"))
        try pulse.control.setDefaultSource("desk")
        let stage = try RouteStage(pulse)
        let recorder = try Child("parec", ["/dev/null"], environment: pulse.environment)
        let other = try Child("sh", ["-c", "parec /dev/null"], environment: pulse.environment)
        #expect(try eventually { try stage.recordedSources() == ["desk", "desk"] })
        let client = try stage.daemon.client()
        let memo = try client.session(
            "Memo", category: "record", more: [("pid", .uint32(UInt32(recorder.processID)))])
        let idle = try client.session("Idle")
        #expect(try stage.reads("AvailableInputs", idle).ports.isEmpty == true)
        #expect(client.call(idle, "SetPreferredInput", [.string("lapel")]) == "org.sessiond1.Error.BadParameter")
        #expect(client.call(memo, "SetPreferredInput", [.string("lapel")]) == nil)
        #expect(try eventually { try stage.recordedSources().sorted() == ["desk", "lapel"] })
        #expect(try stage.reads("PreferredInput", memo).stringValue == "lapel")
        #expect(client.call(memo, "SetPreferredInput", [.string("")]) == nil)
        #expect(try eventually { try stage.recordedSources() == ["desk", "desk"] })
        #expect(client.call(memo, "SetPreferredInput", [.string("lapel")]) == nil)
        try pulse.unloadModule(module)
        #expect(try eventually { try stage.reads("PreferredInput", memo).stringValue == "" })
        withExtendedLifetime(other) {}
    }

    @Test(arguments: ServerKind.allCases)
    func volumeAndLatency_areReadFromTheServer_andAnnouncedToActiveSessions(_ kind: ServerKind) throws {
        let stage = try RouteStage(kind.server())
        // A virtual sink of PipeWire 1.4 takes no volume before it has run.
        _ = try Ear(stage.pulse, sink: "speaker")
        // PipeWire's PulseAudio server knows the latency of streams, but not of devices (ADR 13).
        let hasLatency = kind == .pulseAudio
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        var volumes: [Double] = []
        let subscription = client.connection.subscribe(
            path: music, interface: StandardName.properties, sender: BusName.service
        ) { message in
            let changed = (try? message.arguments())?[1].asProperties ?? [:]
            if let volume = changed["OutputVolume"]?.doubleValue { volumes.append(volume) }
        }
        _ = try client.heard()
        try stage.pulse.pactl(["set-sink-volume", "speaker", "50%"])
        #expect(stage.daemon.loop.iterate(timeout: 10) { volumes == [0.5] })
        let tone = try Tone(stage.pulse, hertz: 440, latency: 0.04)
        #expect(try eventually { try (stage.reads("IOBufferDuration", music).doubleValue ?? 0 > 0) == hasLatency })
        #expect(try stage.reads("SampleRate", music).doubleValue == 48_000)
        // A monitor does not count as an input, and a session that only plays has no input.
        #expect(try (stage.reads("OutputLatency", music).doubleValue ?? 0 > 0) == hasLatency)
        #expect(try stage.reads("InputLatency", music).doubleValue == 0)
        #expect(
            client.call(
                music, "SetPreferences",
                [.properties([("sample-rate", .double(96_000)), ("io-buffer-duration", .double(2))])]) == nil)
        #expect(try stage.reads("SampleRate", music).doubleValue == 48_000, "the real rate, not the preferred one")
        if hasLatency { #expect(try stage.reads("IOBufferDuration", music).doubleValue ?? 9 < 2) }
        stage.pulse.kill()
        #expect(try eventually { try stage.daemon.property("ServerConnected").boolValue == false })
        #expect(try stage.reads("SampleRate", music).doubleValue == 0)
        #expect(try stage.reads("IOBufferDuration", music).doubleValue == 2)
        withExtendedLifetime((tone, subscription)) {}
    }

    // MARK: Bluetooth

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake headset"))
    func callThroughAHeadset_changesItsProfileAndBack() throws {
        let radio = try FakeBluetooth()
        let stage = try RouteStage(radio)
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        let plain = try client.session("Plain", category: "play-and-record")
        #expect(try stage.reads("AvailableInputs", plain).ports.contains { $0.type == .bluetoothHFP } == false)
        #expect(client.call(music, "Close") == nil)
        stage.forget()
        let chat = try client.session("Chat", category: "play-and-record", mode: "voice-chat")
        #expect(try stage.reads("AvailableInputs", chat).ports.contains { $0.type == .bluetoothHFP } == true)
        #expect(client.activate(chat) == nil)
        #expect(try eventually { try stage.activeProfile(of: radio.card) == "handsfree_head_unit" })
        #expect(eventually { stage.output.hasSuffix("/hfp") && stage.input.hasSuffix("/hfp-input") })
        #expect(Set(stage.reasons).isSubset(of: [.categoryChange]), "\(stage.story)")
        #expect(client.state(chat) == "active", "a change of the profile is no unplug")
        client.deactivate(chat)
        #expect(try eventually { try stage.activeProfile(of: radio.card) == "a2dp_sink" })
        #expect(eventually { stage.output.hasSuffix("/a2dp") })
        #expect(Set(stage.reasons).isSubset(of: [.categoryChange]), "\(stage.story)")
        try radio.disconnect(.hfp)
        try radio.disconnect(.a2dp)
        #expect(stage.goes(to: "speaker"))
    }

    /// The next request comes before the server shows the profile that was requested last.
    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake headset"))
    func callsFollowEachOtherAtOnce_lastProfileIsTheRequestedOne() throws {
        let radio = try FakeBluetooth()
        let stage = try RouteStage(radio)
        let client = try stage.daemon.client()
        let chat = try client.session("Chat", category: "play-and-record", mode: "voice-chat")
        func quickly(_ steps: () -> Void) {
            stage.pulse.suspend()
            steps()
            stage.pulse.resume()
            // Both changes are over when the server has answered.
            #expect(stage.daemon.waitForServer())
        }
        for _ in 0..<3 {
            quickly {
                client.activate(chat)
                client.deactivate(chat)
            }
            #expect(try eventually { try stage.activeProfile(of: radio.card) == "a2dp_sink" })
            client.activate(chat)
            #expect(eventually { stage.input.hasSuffix("/hfp-input") }, "\(stage.reasons): \(stage.story)")
            quickly {
                client.deactivate(chat)
                client.activate(chat)
            }
            #expect(
                try eventually { try stage.activeProfile(of: radio.card) == "handsfree_head_unit" },
                "\(stage.reasons): \(stage.story)")
            #expect(eventually { stage.input.hasSuffix("/hfp-input") }, "\(stage.reasons): \(stage.story)")
            client.deactivate(chat)
            #expect(try eventually { try stage.activeProfile(of: radio.card) == "a2dp_sink" })
        }
    }

    /// The server lists the music profile until the headset has changed to the other one. A request for it would fail
    /// then.
    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake headset"))
    func headsetIsSelectedAgain_withoutAWarning() throws {
        let radio = try FakeBluetooth()
        let stage = try RouteStage(radio)
        let client = try stage.daemon.client()
        let plain = try client.session("Plain", category: "play-and-record")
        client.activate(plain)
        #expect(stage.goes(to: "speaker"))
        for _ in 0..<3 {
            let chat = try client.session("Chat", category: "play-and-record", mode: "voice-chat")
            client.activate(chat)
            #expect(eventually { stage.output.hasSuffix("/hfp") })
            #expect(client.call(chat, "Close") == nil)
            client.activate(plain)
            #expect(stage.goes(to: "speaker"))
            #expect(try eventually { try stage.activeProfile(of: radio.card) == "a2dp_sink" })
        }
        #expect(stage.daemon.daemon.errors.filter { $0.contains("warning") }.isEmpty)
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake headset"))
    func daemonIsKilledDuringACall_headsetIsStillRestored() throws {
        let radio = try FakeBluetooth()
        let stage = try RouteStage(radio)
        let client = try stage.daemon.client()
        let chat = try client.session("Chat", category: "play-and-record", mode: "voice-chat")
        client.activate(chat)
        #expect(eventually { stage.output.hasSuffix("/hfp") })
        stage.daemon.daemon.kill()
        try stage.daemon.restart()
        #expect(stage.daemon.waitForServer())
        #expect(eventually { stage.output.hasSuffix("/hfp") })
        #expect(client.state(chat) == "active")
        client.deactivate(chat)
        #expect(try eventually { try stage.activeProfile(of: radio.card) == "a2dp_sink" })
    }

    /// The journal shows the next daemon which headset was switched.
    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake headset"))
    func callEndsWhileNoDaemonRuns_headsetIsRestored() throws {
        let radio = try FakeBluetooth()
        let stage = try RouteStage(radio)
        for isKilled in [true, false] {
            let client = try stage.daemon.client()
            let chat = try client.session("Chat", category: "play-and-record", mode: "voice-chat")
            client.activate(chat)
            #expect(eventually { stage.output.hasSuffix("/hfp") })
            if isKilled {
                stage.daemon.daemon.kill()
            } else {
                stage.daemon.daemon.signal(SIGTERM)
                #expect(stage.daemon.daemon.wait() == .code(0))
                #expect(try stage.activeProfile(of: radio.card) == "handsfree_head_unit", "the call continues")
            }
            client.connection.close()
            try stage.daemon.restart()
            #expect(stage.daemon.waitForServer())
            #expect(try eventually { try stage.activeProfile(of: radio.card) == "a2dp_sink" })
            #expect(eventually { stage.output.hasSuffix("/a2dp") })
        }
        func journals() throws -> [String] {
            try FileManager.default.contentsOfDirectory(atPath: stage.daemon.stateFolder)
                .filter { $0.hasPrefix("streams-") }
        }
        #expect(try eventually { try journals() == [] }, "nothing is left to restore")
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake headset"))
    func serverSwitchesProfilesByItself_daemonDoesNotInterfere() throws {
        let radio = try FakeBluetooth()
        let stage = try RouteStage(
            radio, modules: [RouteTests.microphone("desk", "speaker"), "module-bluetooth-policy auto_switch=1"])
        // A phone program that does not use sessiond. The server keeps the headset in its call profile while the
        // program records.
        let phone = try Child(
            "parec", ["--property=media.role=phone", "/dev/null"], environment: stage.pulse.environment)
        #expect(try eventually { try stage.activeProfile(of: radio.card) == "handsfree_head_unit" })
        #expect(eventually { stage.output.hasSuffix("/hfp") })
        let client = try stage.daemon.client()
        let chat = try client.session("Chat", category: "play-and-record", mode: "voice-chat")
        client.activate(chat)
        client.deactivate(chat)
        #expect(try stage.activeProfile(of: radio.card) == "handsfree_head_unit", "the server chose it, not the daemon")
        client.activate(chat)
        stage.daemon.daemon.kill()
        try stage.daemon.restart()
        #expect(stage.daemon.waitForServer())
        client.deactivate(chat)
        #expect(
            try !eventually(timeout: 0.3) { try stage.activeProfile(of: radio.card) != "handsfree_head_unit" },
            "also after a restart")
        phone.kill()
        #expect(try eventually { try stage.activeProfile(of: radio.card) == "a2dp_sink" })
        #expect(eventually { stage.output.hasSuffix("/a2dp") })
    }

    /// WirePlumber 0.5 has a source for the headset's microphone also while the headset plays music.
    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake headset"))
    func headsetHasASourceInItsMusicProfile_itIsListedOnce() throws {
        let radio = try FakeBluetooth()
        let stage = try RouteStage(
            radio,
            modules: [
                "module-remap-source source_name=bluez_input master=speaker.monitor "
                    + "source_properties='device.api=bluez5 device.string=02:00:00:00:00:02'"
            ])
        let client = try stage.daemon.client()
        let chat = try client.session("Chat", category: "play-and-record", mode: "voice-chat")
        #expect(
            try eventually {
                let uids = try stage.reads("AvailableInputs", chat).ports.map(\.uid)
                return uids.contains { $0.hasSuffix("/hfp-input") } && Set(uids).count == uids.count
            })
        #expect(try stage.reads("AvailableInputs", chat).ports.count { $0.type == .bluetoothHFP } == 1)
    }

    // MARK: Sleep

    @Test func machineWakes_activeSessionsAreNotified() throws {
        let stage = try RouteStage(ServerKind.standard.server())
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        let logind = try Child(
            "/usr/bin/python3", ["-m", "dbusmock", "--system", "--template", "logind"],
            environment: stage.pulse.environment.merging(stage.daemon.bus.environment) { $1 })
        func sleep(_ falls: Bool) -> Bool {
            let call = try? stage.daemon.observer.callAndWait(
                "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.DBus.Mock", "EmitSignal",
                [
                    .string("org.freedesktop.login1.Manager"), .string("PrepareForSleep"), .string("b"),
                    .array(of: "v", [.variant(.bool(falls))]),
                ], timeout: 5)
            return call != nil
        }
        #expect(
            try eventually { try sleep(true) && client.heard().contains("Music began app-was-suspended by ") },
            "\(logind.errors)")
        // The daemon may notice the new name on the bus a moment later, so try again.
        #expect(try eventually { try sleep(false) && client.heard().contains("Music route 6") })
        #expect(stage.reasons.contains(.wakeFromSleep))
    }

    // MARK: The command line

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake card"))
    func unplug_isPrintedByMonitorAndStatus() throws {
        let pulse = try PrivatePulse(sinks: [], modules: ["module-switch-on-port-available"])
        let card = try FakeCard(pulse)
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        let monitor = try stage.start(["monitor"])
        // Nothing shows when the monitor has subscribed, so repeat the change until it is printed.
        #expect(
            try eventually {
                try stage.daemon.manager("SetSilentMode", [.bool(true)])
                try stage.daemon.manager("SetSilentMode", [.bool(false)])
                return monitor.text.contains("silent switch")
            })
        try card.plug(.headphones)
        #expect(monitor.line { $0.contains("Headphones connected ← Speaker") } != nil, "\(monitor.text)")
        try card.unplug(.headphones)
        #expect(monitor.line { $0.contains("Headphones unplugged → Speaker") } != nil, "\(monitor.text)")
        let status = try stage.run(["status"]).output
        #expect(status.contains { $0.hasPrefix("Output") && $0.contains("Speakers ← Headphones (old device") })
        let lines = try stage.run(["route", "list"]).output
        #expect(lines.contains { $0.hasPrefix("* out") && $0.contains("Speaker") })
        #expect(lines.contains { $0.hasPrefix("  out") && $0.contains("Receiver") })
    }
}
