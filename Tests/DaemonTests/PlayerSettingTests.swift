import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// `[mpris] resume` and `no-media-keys`, and `sessionctl run --if-interrupted`.
@Suite struct PlayerSettingTests {
    @Test(arguments: ServerKind.allCases) func resumeIsOff_pausedPlayerStaysPaused(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse, settings: "[mpris]\nresume = off\n")
        #expect(stage.waitForServer())
        let player = try ForeignPlayer(
            "music", on: stage, command: ["pacat", "--raw", "/dev/zero"], environment: pulse.environment)
        func state() throws -> String? {
            try stage.state(named: "pacat")
        }
        #expect(try eventually { try state() == "active" })
        let phone = try stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(eventually { player.status == "Paused" })
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(try eventually { try state() != "interrupted" })
        for _ in 0..<3 {
            _ = try stage.manager("History", [.uint32(0)])
            #expect(player.status == "Paused")
        }
        #expect(player.calls == ["Pause"])
        // The user plays it, and the next call pauses it again.
        player.person("Playing")
        #expect(try eventually { try state() == "active" })
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(eventually { player.calls == ["Pause", "Pause"] })
    }

    @Test func noMediaKeys_listedPlayerIsNeverInFront() throws {
        let stage = try DaemonStage(settings: "[mpris]\nno-media-keys = radio\n")
        func title() -> String {
            (try? Child.run(
                "playerctl", ["-p", "sessiond", "metadata", "xesam:title"], environment: stage.bus.environment)) ?? ""
        }
        let radio = try ForeignPlayer("radio", on: stage)
        let music = try ForeignPlayer("music", status: "Paused", on: stage)
        #expect(eventually { title() == "music 1" })
        radio.person("track 2")
        music.person("Playing")
        music.person("Paused")
        radio.person("Playing")
        #expect(title() == "music 1")
        music.process.kill()
        #expect(eventually { title().isEmpty })
        withExtendedLifetime(radio) {}
    }

    @Test func ifInterruptedDrop_commandIsEnded_andNotContinued() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        let child = try stage.start(
            ["run", "--name", "Turn", "--if-interrupted", "drop", "--", "sh", "-c", "echo spoken; exec sleep 60"])
        #expect(child.line { $0 == "spoken" } != nil, "\(child.errors)")
        try client.beginCall("Phone")
        #expect(child.wait() == .code(1))
        #expect(child.errors.contains { $0.contains("interrupted by Phone; dropped") }, "\(child.errors)")
        #expect(try eventually { try stage.session("Turn") == nil })
        // A command that ignores the request to end is killed.
        #expect(client.deactivate(try #require(try stage.session("Phone")?["path"]?.objectPathValue)) == nil)
        let stubborn = try stage.start(
            [
                "run", "--name", "Turn", "--if-interrupted", "drop", "--", "sh", "-c",
                "trap '' TERM; echo on; sleep 60 & wait",
            ])
        #expect(stubborn.line { $0 == "on" } != nil, "\(stubborn.errors)")
        try client.beginCall("Phone")
        #expect(stubborn.wait() == .code(1))
        #expect(try stage.run(["run", "--if-interrupted", "later", "--", "true"]).code == 64)
    }

    /// The recipe in docs/smart-speaker.md.
    @Test(arguments: ServerKind.allCases) func dictation_pausesListedPlayers_andTheyPlayOn(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try SessionctlStage(pulse: pulse, settings: "[adoption]\nalways = pacat\n")
        #expect(stage.daemon.waitForServer())
        let ear = try Ear(pulse, sink: "speaker", fragment: 0.002)
        let music = try ForeignProgramTests.music(pulse, nil)
        #expect(ear.waitUntil(440, above: -20, window: 0.15))
        let dictation = try stage.start(["run", "--name", "Dictation", "--category", "record", "--", "cat"])
        #expect(ear.waitUntil(440, below: -80))
        #expect(try stage.session("Music")?["State"]?.stringValue == "interrupted")
        dictation.closeInput()
        #expect(dictation.wait() == .code(0))
        #expect(ear.waitUntil(440, above: -20))
        withExtendedLifetime(music) {}
    }

    /// The recipe in docs/smart-speaker.md: an alarm on two outputs, each at a volume of its own.
    @Test(arguments: ServerKind.allCases) func alarm_isHeardOnTheSpeakerBesideTheHeadphones(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        _ = try pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        try pulse.control.setDefaultSink("phones")
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        let (speaker, phones) = (try Ear(pulse, sink: "speaker"), try Ear(pulse, sink: "phones"))
        let music = try ForeignProgramTests.music(pulse, nil)
        #expect(phones.waitUntil(440, above: -20, window: 0.15))
        let sound = try WaveFile.write(WaveFile.sines([(880, 20)]), to: stage.file("alarm.wav"))
        let alarm = try Child(
            try builtProduct(named: "sessionctl"),
            [
                "run", "--name", "Alarm", "--class", "alert", "--", "sh", "-c",
                "paplay --device=speaker --volume=52000 \(sound) & paplay --volume=30000 \(sound); wait",
            ], environment: stage.environment)
        #expect(speaker.waitUntil(880, above: -30, window: 0.1), "\(alarm.errors)")
        #expect(phones.waitUntil(880, above: -45, window: 0.1) && phones.waitUntil(440, below: -80))
        // (52 000 / 30 000)³ is 14.3 dB. With PipeWire 0.3, both have one volume, as the recipe says.
        let difference = speaker.steadyLevel(of: 880) - phones.steadyLevel(of: 880)
        #expect(
            abs(difference - 14.3) < 1 || kind == .pipeWire && abs(difference) < 1, "\(difference) dB")
        alarm.signal(SIGTERM)
        _ = alarm.wait()
        #expect(phones.waitUntil(440, above: -20))
        withExtendedLifetime(music) {}
    }
}
