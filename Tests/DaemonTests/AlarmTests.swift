import DBus
import Foundation
import TestSupport
import Testing

/// Alarms are heard with the silent switch on (rules §6).
@Suite struct AlarmTests {
    typealias Scene = ForeignProgramTests.Scene

    private static func event(_ id: String) -> [String: String] { ["media.role": "event", "event.id": id] }

    /// `properties`: of a program that plays for a while.
    @Test(arguments: ServerKind.allCases) func silentSwitchIsOn_alarmIsHeard_ringingIsNot(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        try scene.stage.manager("SetSilentMode", [.bool(true)])
        for (properties, isHeard) in [
            (Self.event("alarm-clock-elapsed"), true), (["media.role": "alarm"], true),
            (Self.event("phone-incoming-call"), false), (Self.event("message-new-instant"), false),
        ] {
            let clock = try Tone.program(
                scene.pulse, hertz: 440, name: "Clock", properties: properties)
            if isHeard {
                #expect(scene.ear.waitUntil(440, above: -20, window: 0.15), "\(properties)")
                #expect(try scene.session("Clock")?["Class"] == .string("alert"), "\(properties)")
            } else {
                #expect(try eventually { try scene.session("Clock")?["Muted"] == .bool(true) }, "\(properties)")
                #expect(scene.ear.waitUntil(440, below: -60, window: 0.15), "\(properties)")
            }
            clock.kill()
            #expect(scene.ear.waitUntil(440, below: -60, window: 0.15))
            #expect(try eventually(timeout: 15) { try scene.session("Clock") == nil })
        }
    }

    /// PulseAudio plays it as a stream without a client.
    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: streams without a client"))
    func alarmFromTheSampleCache_interruptsTheMusic_untilItRingsNoMore() throws {
        let scene = try Scene(.pulseAudio)
        try scene.stage.manager("SetSilentMode", [.bool(true)])
        let music = try ForeignProgramTests.music(scene.pulse, nil)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("Music", "active"))
        let file = try WaveFile.write(
            WaveFile.sines([(660, 1)]), to: scene.pulse.folder.path + "/alarm.wav")
        try scene.pulse.pactl(["upload-sample", file, "alarm-clock-elapsed"])
        for _ in 0..<2 {
            try scene.pulse.pactl(["play-sample", "alarm-clock-elapsed"])
            #expect(scene.ear.waitUntil(660, above: -20, window: 0.1))
            #expect(try scene.awaits("Music", "interrupted"))
            #expect(scene.ear.waitUntil(660, below: -60, window: 0.1))
        }
        #expect(try scene.stage.listedSessions().filter { $0["Class"]?.stringValue == "alert" }.count == 1)
        #expect(try eventually(timeout: 15) { try scene.session("Music")?["State"]?.stringValue == "active" })
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        withExtendedLifetime(music) {}
    }

    @Test func alertWithoutACategory_isPlayback() throws {
        let stage = try DaemonStage()
        for (sessionClass, category) in [("alert", "playback"), ("app", "solo-ambient"), ("call", "solo-ambient")] {
            let options = Value.properties([("class", .string(sessionClass))])
            let path = try stage.manager("CreateSession", [.string("S"), options])[0].objectPathValue
            #expect(try stage.property("Category", of: path) == .string(category))
        }
    }
}
