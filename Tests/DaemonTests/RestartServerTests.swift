import DBus
import EventLoop
import Foundation
import TestSupport
import Testing

/// What befell the sound server while no daemon was there (behaviour §8).
@Suite struct RestartServerTests {
    /// What changed while no daemon was there to see it is seen by the next one.
    @Test(arguments: ServerKind.allCases)
    func microphoneUnmutedMeanwhile_itsInterruptionEnds(_ kind: ServerKind) throws {
        let pulse = try kind.server(modules: [
            "module-null-sink sink_name=room",
            "module-remap-source source_name=microphone master=room.monitor "
                + "source_properties=device.form_factor=internal",
        ])
        try pulse.setDefaultSource("microphone")
        try pulse.wake("microphone")
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        let client = try stage.client()
        let path = try client.session("Memo", category: "record")
        client.activate(path)
        try pulse.pactl(["set-source-mute", "microphone", "1"])
        #expect(eventually { client.state(path) == "interrupted" })
        _ = try client.heard()
        stage.daemon.kill()
        try pulse.pactl(["set-source-mute", "microphone", "0"])
        try stage.restart()
        #expect(eventually { client.state(path) == "inactive" })
        #expect(try client.heard() == ["Memo ended resume"])
    }

    /// What was heard by an earlier daemon is not believed once it is known that nobody can be asked.
    @Test(arguments: ServerKind.allCases)
    func soundServerGoneMeanwhile_whoSoundedIsForgotten(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse, settings: "[adoption]\nstreams = off\n")
        #expect(stage.waitForServer())
        let client = try stage.client()
        // Of another process, or the sound were its own: we have started it.
        let path = try client.session(
            "A", category: "ambient", more: [("pid", .uint32(UInt32(stage.bus.processID)))])
        client.activate(path)
        let tone = try Tone.program(pulse, hertz: 440)
        #expect(try eventually { try stage.property("OtherAudioPlaying", of: path) == .bool(true) })
        stage.daemon.kill()
        pulse.kill()
        try stage.restart()
        // By their states, alone: nobody else is active.
        #expect(try eventually { try stage.property("OtherAudioPlaying", of: path) == .bool(false) })
        try pulse.restart()
        let again = try Tone.program(pulse, hertz: 440)
        #expect(try eventually { try stage.property("OtherAudioPlaying", of: path) == .bool(true) })
        withExtendedLifetime((tone, again)) {}
    }

    @Test(arguments: ServerKind.allCases) func soundServerBackMeanwhile_itsReturnIsTold(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        let told = ServerNews(stage)
        pulse.kill()
        #expect(stage.loop.iterate(timeout: 10) { told.events == ["ServicesLost"] }, "\(told.events)")
        stage.daemon.kill()
        try pulse.restart()
        try stage.restart()
        #expect(
            stage.loop.iterate(timeout: 10) { told.events == ["ServicesLost", "ServicesReset"] }, "\(told.events)")
        // Once: not by the next ones, which find everything as it was.
        for _ in 0..<2 {
            stage.daemon.kill()
            try stage.restart()
            #expect(stage.waitForServer())
        }
        try stage.manager("History", [.uint32(0)])
        stage.loop.iterate(timeout: 0.01) { false }
        #expect(told.events.count == 2, "\(told.events)")
    }

    @Test(arguments: ServerKind.allCases) func soundServerGoneMeanwhile_itsLossIsTold(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        let told = ServerNews(stage)
        stage.daemon.kill()
        pulse.kill()
        try stage.restart()
        #expect(stage.loop.iterate(timeout: 10) { told.events == ["ServicesLost"] }, "\(told.events)")
        stage.daemon.kill()
        try stage.restart()
        try pulse.restart()
        #expect(
            stage.loop.iterate(timeout: 10) { told.events == ["ServicesLost", "ServicesReset"] }, "\(told.events)")
    }
}
