import DBus
import Foundation
import SessionBus
import TestSupport
import Testing

/// The example app that records and plays by itself: SessionKit's player, recorder, now-playing info and commands.
@Suite(.serialized) struct VoiceNotesTests {
    private let path = "/org/mpris/MediaPlayer2"
    private let interface = "org.mpris.MediaPlayer2.Player"

    private func app(_ stage: KitStage, _ words: [String]) throws -> Child {
        let environment = stage.environment.merging(stage.daemon.bus.environment) { $1 }
        return try Child(try builtProduct(named: "example-voice-notes"), words, environment: environment)
    }

    private func call(_ stage: KitStage, _ name: String, _ member: String, _ arguments: [Value] = []) throws {
        _ = try stage.daemon.observer.callAndWait(name, path, interface, member, arguments, timeout: 10)
    }

    private func get(_ stage: KitStage, _ name: String, _ property: String) throws -> Value {
        try stage.daemon.observer.callAndWait(
            name, path, StandardName.properties, "Get", [.string(interface), .string(property)], timeout: 10)[0]
            .unwrapped
    }

    @Test func desktop_seesTheAppAndControlsIt() throws {
        let stage = try KitStage()
        let app = try app(stage, ["play", try stage.sine(440, seconds: 60)])
        #expect(app.line(timeout: 60) { $0 == "playing" } != nil, "\(app.errors)")
        #expect(stage.ear.waitUntil(440, above: -20))
        #expect(try stage.sessions() == ["Voice notes active"])
        let name = "org.mpris.MediaPlayer2.Voice_notes.instance\(app.processID)"
        #expect(eventually { (try? get(stage, name, "PlaybackStatus"))?.stringValue == "Playing" })
        let metadata = try get(stage, name, "Metadata").asProperties
        #expect(metadata?["xesam:title"]?.stringValue == "440-60.0.wav")
        #expect(metadata?["mpris:length"]?.int64Value == 60_000_000)
        #expect(try get(stage, name, "CanGoNext").boolValue == false)
        try call(stage, name, "Pause")
        #expect(stage.ear.waitUntil(440, below: -80))
        #expect(eventually { (try? get(stage, name, "PlaybackStatus"))?.stringValue == "Paused" })
        try call(stage, name, "PlayPause")
        #expect(stage.ear.waitUntil(440, above: -20))
        let track = metadata?["mpris:trackid"] ?? .objectPath("/")
        try call(stage, name, "SetPosition", [track, .int64(59_000_000)])
        #expect(app.line { $0 == "position 59" } != nil)
        #expect(app.line { $0 == "finished" } != nil)
        #expect(app.wait() == .code(0), "\(app.errors)")
    }

    @Test func commandsOneAfterTheOther_areCarriedOutInTheirOrder() throws {
        let stage = try KitStage()
        let app = try app(stage, ["play", try stage.sine(440, seconds: 60)])
        #expect(app.line(timeout: 60) { $0 == "playing" } != nil, "\(app.errors)")
        let name = "org.mpris.MediaPlayer2.Voice_notes.instance\(app.processID)"
        #expect(eventually { (try? get(stage, name, "PlaybackStatus"))?.stringValue == "Playing" })
        // Nobody waits for an answer in between.
        let words = Array(repeating: ["Pause", "Play"], count: 10).flatMap(\.self) + ["PlayPause", "PlayPause"]
        for word in words { stage.daemon.observer.call(name, path, interface, word, []) { _ in } }
        _ = try get(stage, name, "Volume")
        let expected = Array(repeating: ["pause", "play"], count: 11).flatMap(\.self)
        let commands = { app.text.split(separator: "\n").map(String.init).filter { $0 == "pause" || $0 == "play" } }
        #expect(eventually { commands().count == expected.count })
        #expect(commands() == expected)
        #expect(stage.ear.waitUntil(440, above: -20))
    }

    @Test func call_silencesTheApp_andItPlaysOn() throws {
        let stage = try KitStage()
        let app = try app(stage, ["play", try stage.sine(440, seconds: 60)])
        #expect(app.line(timeout: 60) { $0 == "playing" } != nil, "\(app.errors)")
        #expect(stage.ear.waitUntil(440, above: -20))
        let client = try stage.daemon.client()
        let call = try client.beginCall("Phone")
        #expect(app.line { $0 == "silent: Phone has the sound" } != nil)
        #expect(stage.ear.waitUntil(440, below: -80))
        client.deactivate(call, notify: true)
        #expect(app.line { $0 == "playing on" } != nil)
        #expect(stage.ear.waitUntil(440, above: -20))
        app.kill()
        #expect(try eventually { try !stage.sessions().contains { $0.hasPrefix("Voice notes") } })
    }

    @Test func recording_isAFileOfThatLength() throws {
        let stage = try KitStage()
        let file = stage.media.path + "/note.wav"
        let app = try app(stage, ["record", file, "1.5"])
        #expect(app.line(timeout: 60) { $0 == "recorded \(file)" } != nil, "\(app.text) \(app.errors)")
        #expect(app.wait() == .code(0), "\(app.errors)")
        // 44.1 kHz, one channel, 16 bit.
        let size = try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int ?? 0
        #expect(abs(Double(size) / 88_200 - 1.5) < 0.2, "\(size)")
    }
}
