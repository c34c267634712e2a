import DBus
import Foundation
import SessionBus
import TestSupport
import Testing

private let loud = -25.0

/// GStreamer writes its registry, a list of all plugins, when a program first needs it. So the registry's file shows
/// whether the player needed it.
@Suite(.serialized) struct PlayerFormatTests {
    private let stage: PlayerStage
    private let music: PluginProgram
    private let list: String

    init() throws {
        stage = try PlayerStage()
        list = stage.media.path + "/registry.bin"
        music = try stage.player(registry: list)
    }

    private var isListThere: Bool { FileManager.default.fileExists(atPath: list) }

    /// The URI of a sine that ffmpeg encoded with that encoder.
    private func encoded(_ hertz: Double, _ kind: String, _ encoder: String, seconds: Double = 30) throws -> String {
        let wave = String(try stage.sine(hertz, seconds: seconds).dropFirst(7))
        let path = "\(wave).\(kind)"
        try Child.run("ffmpeg", ["-nostdin", "-loglevel", "error", "-i", wave, "-c:a", encoder, path])
        return "file://" + path
    }

    private func isHeard(_ hertz: Double, _ uri: String) -> Bool {
        music.call("Load", [.string(uri)]) == nil && music.call("Play") == nil
            && stage.ear.waitUntil(hertz, above: loud)
    }

    @Test func knownFormats_playWithoutTheRegistry_andOthersPlayAfterThem() throws {
        let known = [
            ("aiff", "pcm_s16be"), ("flac", "flac"), ("ogg", "libvorbis"), ("opus", "libopus"), ("mp3", "libmp3lame"),
            ("m4a", "aac"),
        ]
        var pitch = 440.0
        #expect(isHeard(pitch, try stage.sine(pitch, seconds: 30)))
        for (kind, encoder) in known {
            pitch += 100
            #expect(isHeard(pitch, try encoded(pitch, kind, encoder)), "\(kind)")
        }
        for (property, value) in [("Pan", 0.5), ("Rate", 1.5)] { #expect(music.set(property, .double(value)) == nil) }
        #expect(music.set("MeteringEnabled", .bool(true)) == nil)
        #expect(isHeard(1_300, try stage.sine(1_300, seconds: 30)))
        #expect(!isListThere)
        // The decoder for ALAC is one of 651 in a plugin. Without the registry GStreamer would create all of them.
        #expect(isHeard(1_400, try encoded(1_400, "m4a", "alac")))
        #expect(isListThere)
        #expect(isHeard(1_600, try encoded(1_600, "mka", "libvorbis")))
        #expect(isHeard(1_500, try encoded(1_500, "mp3", "libmp3lame")))
        #expect(music.signals == [])
    }

    @Test func unknownFormatAfterAKnownOne_isPreparedWhileThatPlays() throws {
        let uris = [try stage.sine(440, seconds: 2), try encoded(880, "mka", "libvorbis", seconds: 1)]
        #expect(music.call("LoadList", [.strings(uris), .uint32(0)]) == nil)
        #expect(music.call("Play") == nil)
        #expect(stage.ear.waitUntil(880, above: loud))
        #expect(eventually { music.signals == ["Finished true"] }, "\(music.signals)")
        // The first item played without a gap while the player read the registry.
        let sounds = stage.ear.trace(440, window: 0.01).map { $0.level > -30 }
        let first = try #require(sounds.firstIndex(of: true)), last = try #require(sounds.lastIndex(of: true))
        #expect(sounds[first...last].filter { !$0 }.count <= 1)
        #expect(isListThere)
    }
}
