import DBus
import EventLoop
import Foundation
import TestSupport
import Testing

/// The sound server changes while no daemon runs (rules §8).
@Suite struct RestartServerTests {
    /// The next daemon notices what changed in between.
    @Test(arguments: ServerKind.allCases)
    func microphoneIsUnmutedWithoutADaemon_itsInterruptionEnds(_ kind: ServerKind) throws {
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

    /// Without a sound server, the next daemon does not keep the earlier daemon's knowledge of who plays.
    @Test(arguments: ServerKind.allCases)
    func soundServerEndsWithoutADaemon_playingProgramsAreForgotten(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse, settings: "[adoption]\nstreams = off\n")
        #expect(stage.waitForServer())
        let client = try stage.client()
        // With another process id. With the test's own, the sound would belong to this session, since the test started
        // it.
        let path = try client.session(
            "A", category: "ambient", more: [("pid", .uint32(UInt32(stage.bus.processID)))])
        client.activate(path)
        let tone = try Tone.program(pulse, hertz: 440)
        #expect(try eventually { try stage.property("OtherAudioPlaying", of: path) == .bool(true) })
        stage.daemon.kill()
        pulse.kill()
        try stage.restart()
        // Now only the states of sessions count, and no other session is active.
        #expect(try eventually { try stage.property("OtherAudioPlaying", of: path) == .bool(false) })
        try pulse.restart()
        let again = try Tone.program(pulse, hertz: 440)
        #expect(try eventually { try stage.property("OtherAudioPlaying", of: path) == .bool(true) })
        withExtendedLifetime((tone, again)) {}
    }

    @Test(arguments: ServerKind.allCases)
    func soundServerReturnsWithoutADaemon_resetIsSentOnce(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        let told = try ServerNews(stage)
        pulse.kill()
        #expect(stage.loop.iterate(timeout: 10) { told.events == ["ServicesLost"] }, "\(told.events)")
        stage.daemon.kill()
        try pulse.restart()
        try stage.restart()
        #expect(
            stage.loop.iterate(timeout: 10) { told.events == ["ServicesLost", "ServicesReset"] }, "\(told.events)")
        // The next daemons do not send it again, because nothing changes.
        for _ in 0..<2 {
            stage.daemon.kill()
            try stage.restart()
            #expect(stage.waitForServer())
        }
        try stage.manager("History", [.uint32(0)])
        stage.loop.iterate(timeout: 0.01) { false }
        #expect(told.events.count == 2, "\(told.events)")
    }

    @Test(arguments: ServerKind.allCases) func soundServerEndsWithoutADaemon_lossIsSent(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        let told = try ServerNews(stage)
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
