import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// `[ducking] screen-readers`: a screen reader that speaks ducks others, and is itself never silenced.
@Suite struct ScreenReaderTests {
    @Test(arguments: ServerKind.allCases) func readerSpeaks_musicIsDuckedByTheSetting_andACallNeverSilencesIt(
        _ kind: ServerKind
    ) throws {
        let scene = try ForeignProgramTests.Scene(kind, settings: "[ducking]\nscreen-readers = on\n")
        let music = try ForeignProgramTests.music(scene.pulse, nil)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("Music", "active"))
        let before = scene.ear.steadyLevel(of: 440)
        // eSpeak alone, without speech-dispatcher.
        let reader = try Tone.program(scene.pulse, hertz: 880, name: "espeak-ng")
        #expect(scene.ear.waitUntil(440, above: before - 12.5, below: before - 11.5, window: 0.1))
        #expect(try scene.awaits("espeak-ng", "active"))
        let spoken = scene.ear.steadyLevel(of: 880)
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(scene.ear.waitUntil(880, above: spoken - 0.5, below: spoken + 0.5, window: 0.1))
        #expect(phone.ask("deactivate \(call)") == "ok")
        reader.kill()
        #expect(scene.ear.waitUntil(440, above: before - 0.2, below: before + 0.2, window: 0.1))
        withExtendedLifetime(music) {}
    }

    @Test(arguments: ServerKind.allCases) func settingIsOff_readerDucksNobody(_ kind: ServerKind) throws {
        let scene = try ForeignProgramTests.Scene(kind)
        let reader = try Tone.program(scene.pulse, hertz: 880, name: "espeak-ng")
        #expect(scene.ear.waitUntil(880, above: -20, window: 0.15))
        let music = try ForeignProgramTests.music(scene.pulse, nil)
        #expect(try scene.awaits("Music", "active"))
        #expect(try scene.session("Music")?["Ducked"] == .bool(false) && scene.session("espeak-ng") == nil)
        withExtendedLifetime((music, reader)) {}
    }
}
