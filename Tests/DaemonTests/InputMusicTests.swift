import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Music from a phone over Bluetooth, or from a line input: the server itself plays it. The source here is a generator with
/// the properties of such an input.
@Suite(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: module-sine-source")) struct InputMusicTests {
    private static func scene(_ properties: String, name: String = "bluez_source.phone", settings: String? = nil) throws
        -> ForeignProgramTests.Scene
    {
        let scene = try ForeignProgramTests.Scene(.pulseAudio, settings: settings)
        _ = try scene.pulse.loadModule(
            "module-sine-source source_name=\(name) frequency=440 "
                + "source_properties='device.description=\"Pixel 7\" \(properties)'")
        _ = try scene.pulse.loadModule("module-loopback source=\(name) sink=speaker source_dont_move=true")
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        return scene
    }

    private static let phone = "device.bus=bluetooth device.api=bluez bluetooth.protocol=a2dp_source"

    @Test(arguments: ["calls", "all"])
    func phone_isOneSessionThatIsDuckedByPromptsAndMutedByCalls(streams: String) throws {
        let scene = try Self.scene(Self.phone, settings: "[adoption]\nstreams = \(streams)\n")
        #expect(try scene.awaits("Pixel 7", "active"))
        let session = try #require(try scene.session("Pixel 7"))
        #expect(session["Category"] == .string("playback") && session["Options"] == .strings(["mix-with-others"]))
        let before = scene.ear.steadyLevel(of: 440)
        let voice = try scene.stage.foreigner()
        let prompt = voice.create("Prompt", option: "duck-others")
        #expect(voice.ask("activate \(prompt)") == "ok")
        // Once, not by each end.
        #expect(scene.ear.waitUntil(440, above: before - 12.5, below: before - 11.5, window: 0.05))
        #expect(voice.ask("deactivate \(prompt)") == "ok")
        #expect(scene.ear.waitUntil(440, above: before - 0.2, below: before + 0.2, window: 0.1))
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, below: -80))
        // It is muted, where it is.
        let sinks = try scene.pulse.pactl(["list", "short", "sink-inputs"])
        #expect(!sinks.contains("sessiond.hold"))
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, above: before - 0.5, window: 0.1))
        #expect(try scene.awaits("Pixel 7", "active"))
    }

    @Test func lineInput_isASession_andAMicrophoneIsNot() throws {
        let line = try Self.scene("device.api=alsa device.form_factor=hifi", name: "line")
        #expect(try line.awaits("Pixel 7", "active"))
        let microphone = try Self.scene("device.form_factor=microphone", name: "mic")
        // A later program is adopted, so the loopback was looked at.
        let music = try ForeignProgramTests.music(microphone.pulse, nil)
        #expect(try microphone.awaits("Music", "active"))
        #expect(try microphone.session("Pixel 7") == nil)
        withExtendedLifetime(music) {}
    }
}
