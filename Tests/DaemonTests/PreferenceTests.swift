import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// `SetPreferences` on a real server: what is asked of the output that a session decides, and what that then does.
@Suite struct PreferenceTests {
    private static func prefer(_ client: Client, _ session: String, _ name: String, _ value: Double) -> String? {
        client.call(session, "SetPreferences", [.properties([(name, .double(value))])])
    }

    /// Our own stream as people see it in a mixer; nil: there is none.
    private static func isCorked(_ pulse: any PrivateServer) throws -> Bool? {
        let text = try pulse.pactl(["-f", "json", "list", "sink-inputs"])
        let inputs = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]] ?? []
        let ours = inputs.first { ($0["properties"] as? [String: Any])?["media.name"] as? String == "preferences" }
        return ours.map { $0["corked"] as? Bool == true }
    }

    @Test(arguments: ServerKind.allCases)
    func preferredBuffer_isWhatTheOutputRunsWith_whileItsSessionDecides(_ kind: ServerKind) throws {
        let stage = try RouteStage(kind.server())
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        func isAsPreferred(_ seconds: Double = 0.01) throws -> Bool {
            try eventually { abs((try stage.reads("IOBufferDuration", music).doubleValue ?? 0) - seconds) < 0.001 }
        }
        #expect(Self.prefer(client, music, "io-buffer-duration", 0.01) == nil)
        #expect(try Self.isCorked(stage.pulse) == nil, "nobody is active")
        #expect(client.activate(music) == nil)
        #expect(try isAsPreferred())
        #expect(Self.prefer(client, music, "io-buffer-duration", 0.03) == nil)
        #expect(try isAsPreferred(0.03))
        if kind == .pipeWire {
            // Shorter than it has any: 256 samples, or 128 of PipeWire 1.
            #expect(Self.prefer(client, music, "io-buffer-duration", 0.001) == nil)
            let isShortest = try eventually {
                let samples = 48_000 * (try stage.reads("IOBufferDuration", music).doubleValue ?? 0)
                return [128, 256].contains { abs(samples - $0) < 1 }
            }
            #expect(isShortest)
        }
        #expect(Self.prefer(client, music, "io-buffer-duration", 0.01) == nil)
        // Wherever the sound goes.
        let module = try stage.pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(stage.goes(to: "phones"))
        #expect(try isAsPreferred())
        try stage.pulse.unloadModule(module)
        #expect(stage.goes(to: "speaker"))
        #expect(client.state(music) == "interrupted", "the stream that asks is nobody's sound")
        #expect(try eventually { try Self.isCorked(stage.pulse) == nil })
        client.activate(music)
        #expect(try isAsPreferred())
        // PipeWire does what a stream asks only while it plays, which ours does while another one does.
        let tone = try Tone(stage.pulse, hertz: 440, latency: 0.5)
        #expect(try eventually { try Self.isCorked(stage.pulse) == (kind == .pulseAudio) })
        #expect(try isAsPreferred())
        try tone.cork()
        #expect(try eventually { try Self.isCorked(stage.pulse) == true })
        #expect(client.deactivate(music) == nil)
        #expect(try eventually { try Self.isCorked(stage.pulse) == nil })
        if kind == .pulseAudio {
            #expect(try eventually { try stage.reads("IOBufferDuration", music).doubleValue ?? 0 > 0.01 })
        }
    }

    @Test(arguments: ServerKind.allCases)
    func serverOrDaemonStartedAgain_thePreferenceIsAskedForAgain(_ kind: ServerKind) throws {
        let stage = try RouteStage(kind.server())
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        #expect(Self.prefer(client, music, "io-buffer-duration", 0.01) == nil)
        #expect(client.activate(music) == nil)
        #expect(try eventually { try Self.isCorked(stage.pulse) == true })
        stage.pulse.kill()
        #expect(try eventually { try stage.daemon.property("ServerConnected").boolValue == false })
        try stage.pulse.restart()
        #expect(stage.daemon.waitForServer())
        #expect(try eventually { try Self.isCorked(stage.pulse) == true })
        stage.daemon.daemon.kill()
        #expect(try eventually { try Self.isCorked(stage.pulse) == nil }, "nothing stays behind")
        try stage.daemon.restart()
        #expect(stage.daemon.waitForServer())
        #expect(try eventually { try Self.isCorked(stage.pulse) == true })
        #expect(client.call(music, "Close") == nil)
        #expect(try eventually { try Self.isCorked(stage.pulse) == nil })
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: its card"))
    func preferredSampleRate_isTheIdleDevices() throws {
        let pulse = try PrivatePulse(sinks: [])
        let card = try FakeCard(pulse)
        try pulse.pactl(["set-default-sink", card.sink])
        let stage = try RouteStage(pulse)
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        // What plays is not disturbed.
        let tone = try Tone(pulse, hertz: 440)
        #expect(Self.prefer(client, music, "sample-rate", 44_100) == nil)
        #expect(client.activate(music) == nil)
        #expect(try eventually { try Self.isCorked(pulse) == true })
        #expect(try stage.reads("SampleRate", music).doubleValue == 48_000)
        try tone.cork()
        #expect(client.deactivate(music) == nil)
        #expect(try eventually { try Self.isCorked(pulse) == nil })
        _ = try client.heard()
        #expect(client.activate(music) == nil)
        #expect(try eventually { try stage.reads("SampleRate", music).doubleValue == 44_100 })
        #expect(try client.heard().contains("Music route 8"))
    }
}
