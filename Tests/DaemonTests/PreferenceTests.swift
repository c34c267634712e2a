import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// `SetPreferences` on a real server: the preferences of the session that selects the route reach the output.
@Suite struct PreferenceTests {
    private static func prefer(_ client: Client, _ session: String, _ name: String, _ value: Double) -> String? {
        client.call(session, "SetPreferences", [.properties([(name, .double(value))])])
    }

    /// Whether the daemon's own stream, which carries the preference to the server, is corked. Nil if there is no such
    /// stream.
    private static func isCorked(_ pulse: any PrivateServer) throws -> Bool? {
        try pulse.control.streams().first { $0.properties["media.name"] == "preferences" }?.isCorked
    }

    @Test(arguments: ServerKind.allCases)
    func preferredBuffer_isUsedByTheOutput_whileItsSessionIsActive(_ kind: ServerKind) throws {
        let stage = try RouteStage(kind.server())
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        func isAsPreferred(_ seconds: Double = 0.01) throws -> Bool {
            try eventually { abs((try stage.reads("IOBufferDuration", music).doubleValue ?? 0) - seconds) < 0.001 }
        }
        #expect(Self.prefer(client, music, "io-buffer-duration", 0.01) == nil)
        #expect(try Self.isCorked(stage.pulse) == nil, "no session is active")
        #expect(client.activate(music) == nil)
        #expect(try isAsPreferred())
        #expect(Self.prefer(client, music, "io-buffer-duration", 0.03) == nil)
        #expect(try isAsPreferred(0.03))
        if kind == .pipeWire {
            // The preference is below PipeWire's minimum, which is 256 samples, or 128 in PipeWire 1.
            #expect(Self.prefer(client, music, "io-buffer-duration", 0.001) == nil)
            let isShortest = try eventually {
                let samples = 48_000 * (try stage.reads("IOBufferDuration", music).doubleValue ?? 0)
                return [128, 256].contains { abs(samples - $0) < 1 }
            }
            #expect(isShortest)
        }
        #expect(Self.prefer(client, music, "io-buffer-duration", 0.01) == nil)
        // The preference also applies to another output.
        let module = try stage.pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(stage.goes(to: "phones"))
        #expect(try isAsPreferred())
        try stage.pulse.unloadModule(module)
        #expect(stage.goes(to: "speaker"))
        #expect(client.state(music) == "interrupted", "the daemon's own stream must not count as sound of the session")
        #expect(try eventually { try Self.isCorked(stage.pulse) == nil })
        client.activate(music)
        #expect(try isAsPreferred())
        // PipeWire obeys a stream only while the stream plays. So the daemon's stream plays while another one plays.
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
    func serverOrDaemonRestarts_preferenceIsSentAgain(_ kind: ServerKind) throws {
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
        #expect(try eventually { try Self.isCorked(stage.pulse) == nil }, "the stream ends with the daemon")
        try stage.daemon.restart()
        #expect(stage.daemon.waitForServer())
        #expect(try eventually { try Self.isCorked(stage.pulse) == true })
        #expect(client.call(music, "Close") == nil)
        #expect(try eventually { try Self.isCorked(stage.pulse) == nil })
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake card"))
    func preferredSampleRate_isUsedByAnIdleDevice() throws {
        let pulse = try PrivatePulse(sinks: [])
        let card = try FakeCard(pulse)
        try pulse.control.setDefaultSink(card.sink)
        let stage = try RouteStage(pulse)
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        // The rate of a device does not change while it plays.
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
