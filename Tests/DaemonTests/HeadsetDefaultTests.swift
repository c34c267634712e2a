import DBus
import Foundation
import TestSupport
import Testing

/// After a call through a headset everything is as before it: the default output and input, the profile of the headset,
/// and what the server remembers as the choice of the user (rules §7).
@Suite struct HeadsetDefaultTests {
    /// What a call must not change.
    private struct State: Equatable {
        var defaults: ServerControl.Defaults
        var profile: String
        /// The lines about configured defaults in PipeWire's metadata.
        var configured: [String] = []
    }

    private static func state(of stage: RouteStage, _ radio: FakeBluetooth) throws -> State {
        var state = State(
            defaults: try stage.pulse.control.defaults(), profile: try stage.activeProfile(of: radio.card))
        if stage.pulse is PrivatePipeWire {
            let metadata = try Child.run("pw-metadata", ["-n", "default", "0"], environment: stage.pulse.environment)
            state.configured = metadata.split(separator: "\n").map(String.init)
                .filter { $0.contains("default.configured.audio") }.sorted()
        }
        return state
    }

    /// Calls twice, once with a daemon that is killed during the call. `handsFree`: whether the call records from the
    /// headset.
    private func call(_ stage: RouteStage, _ radio: FakeBluetooth, handsFree: Bool) throws {
        let before = try Self.state(of: stage, radio)
        for isKilled in [false, true] {
            let client = try stage.daemon.client()
            let chat = try client.session("Chat", category: "play-and-record", mode: "voice-chat")
            try #require(client.activate(chat) == nil)
            if handsFree {
                #expect(eventually { stage.input.hasSuffix("/hfp-input") }, "\(stage.story)")
                #expect(try eventually { try stage.activeProfile(of: radio.card).hasPrefix("a2dp") == false })
            } else {
                #expect(eventually { !stage.output.hasSuffix("/a2dp") }, "\(stage.story)")
            }
            if isKilled {
                stage.daemon.daemon.kill()
                client.connection.close()
                try stage.daemon.restart()
                #expect(stage.daemon.waitForServer())
            } else {
                client.deactivate(chat)
            }
            var after: State?
            let isAsBefore = try eventually {
                after = try Self.state(of: stage, radio)
                return after == before
            }
            #expect(isAsBefore, "\(String(describing: after)) after \(before): \(stage.story)")
            // Nothing changes later, either: the session manager decides in steps.
            #expect(try !eventually(timeout: 2.5) { try Self.state(of: stage, radio) != before })
        }
    }

    private static let deskMicrophone =
        "module-remap-source source_name=desk source_properties=device.form_factor=microphone master=speaker.monitor"

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: its own headset"), arguments: [false, true])
    func callAtPulseAudio_leavesEverythingAsItWas(isHeadsetDefault: Bool) throws {
        let radio = try FakeBluetooth()
        let stage = try RouteStage(radio, modules: [Self.deskMicrophone])
        if !isHeadsetDefault {
            _ = try stage.pulse.pactl(["set-default-sink", "speaker"])
            #expect(stage.goes(to: "speaker"))
        }
        let before = try Self.state(of: stage, radio)
        let client = try stage.daemon.client()
        let chat = try client.session("Chat", category: "play-and-record", mode: "voice-chat")
        client.activate(chat)
        #expect(eventually { stage.input.hasSuffix("/hfp-input") })
        client.deactivate(chat)
        let isAsBefore = try eventually { try Self.state(of: stage, radio) == before }
        try #require(isAsBefore)
        try call(stage, radio, handsFree: isHeadsetDefault)
    }

    /// The session of the call outlives the daemon, and so does its route.
    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: its own headset"))
    func daemonIsKilledDuringACall_callKeepsTheHeadset() throws {
        let radio = try FakeBluetooth()
        let stage = try RouteStage(radio, modules: [Self.deskMicrophone])
        let before = try Self.state(of: stage, radio)
        let client = try stage.daemon.client()
        let chat = try client.session("Chat", category: "play-and-record", mode: "voice-chat")
        try #require(client.activate(chat) == nil)
        #expect(eventually { stage.input.hasSuffix("/hfp-input") }, "\(stage.story)")
        #expect(try eventually { try !stage.activeProfile(of: radio.card).hasPrefix("a2dp") })
        let during = try Self.state(of: stage, radio)
        stage.daemon.daemon.kill()
        try stage.daemon.restart()
        #expect(stage.daemon.waitForServer())
        #expect(try !eventually(timeout: 2) { try Self.state(of: stage, radio) != during }, "\(stage.story)")
        client.deactivate(chat)
        #expect(try eventually { try Self.state(of: stage, radio) == before }, "\(stage.story)")
    }

    /// `chosen`: the devices that the user has chosen; the session manager chooses the others. The first event that the
    /// daemon sees is the call.
    @Test(
        .enabled(if: ServerKind.pipeWire.isHere && FakeBluetooth.isKnownToPipeWire, "needs libspa-0.2-bluetooth"),
        arguments: [[], ["set-default-source", "desk"], ["set-default-sink", "speaker"]] as [[String]])
    func callAtPipeWire_leavesEverythingAsItWas(chosen: [String]) throws {
        let radio = try FakeBluetooth()
        let pulse = try PrivatePipeWire(
            sinks: [],
            modules: [
                "module-null-sink sink_name=speaker sink_properties=priority.session=1000",
                "module-null-sink sink_name=desk media.class=Audio/Source/Virtual "
                    + "sink_properties=priority.session=2009",
            ], radio: radio)
        try radio.connect(.hfp)
        try radio.connect(.a2dp)
        #expect(eventually(timeout: 15) { (try? pulse.control.defaults().sink.hasPrefix("bluez_output")) == true })
        if !chosen.isEmpty {
            _ = try pulse.pactl(chosen)
            // WirePlumber writes its file one second after the last change.
            let file = pulse.folder.path + "/state/wireplumber/default-nodes"
            #expect(
                eventually { (try? String(contentsOfFile: file, encoding: .utf8))?.contains(chosen[1]) == true })
        }
        // WirePlumber 0.5 soon chooses the microphone of the headset, whose source exists in each profile; 0.4 never does.
        if !chosen.contains("desk") {
            _ = eventually(timeout: 4) { (try? pulse.control.defaults().source.hasPrefix("bluez_input")) == true }
        }
        let stage = try RouteStage(pulse)
        let usesHeadset = stage.input.hasSuffix("/hfp-input")
        try call(stage, radio, handsFree: usesHeadset)
    }
}
