import DBus
import Foundation
import TestSupport
import Testing

/// The settings change while an adopted program is held or ducked. Its session changes with them, and the program is
/// silent only as long as there is a cause.
@Suite struct ForeignSettingsTests {
    typealias Scene = ForeignProgramTests.Scene

    private static func reload(_ settings: String, _ scene: Scene) throws {
        _ = try scene.stage.bus.folder.file("sessiond.conf", settings)
        scene.stage.daemon.signal(SIGHUP)
    }

    private static func state(_ name: String, _ scene: Scene) throws -> [String] {
        try scene.stage.listedSessions().filter { $0["Name"]?.stringValue == name }
            .compactMap { $0["State"]?.stringValue }
    }

    /// The call continues all the time. It silences the program as long as the program is adopted, with any category
    /// and option.
    @Test(arguments: ServerKind.allCases) func settingsReloadedDuringACall_silenceFollows(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "")
        let music = try ForeignProgramTests.music(scene.pulse, nil)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("Music", "active"))
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, below: -80))
        // Another setting changes the session's options. The session stays interrupted.
        for streams in ["all", "calls", "all"] {
            let begun = monotonicNow()
            try Self.reload("[adoption]\nstreams = \(streams)\n", scene)
            #expect(
                try eventually {
                    try scene.session("Music")?["Options"]?.stringsValue
                        == (streams == "all" ? [] : ["mix-with-others"])
                })
            #expect(try Self.state("Music", scene) == ["interrupted"])
            let heard = scene.ear.trace(440, since: begun).filter { $0.level > -80 }
            #expect(heard.isEmpty, "\(streams): \(heard.map { (Int(($0.time - begun) * 1_000), Int($0.level)) })")
        }
        for mode in ["off", "full"] {
            try Self.reload("[enforcement]\nmode = \(mode)\n", scene)
            let level = mode == "off" ? -20.0...0 : -.infinity ... -80
            #expect(scene.ear.waitUntil(440, above: level.lowerBound, below: level.upperBound, window: 0.1))
            #expect(try Self.state("Music", scene) == ["interrupted"])
        }
        try Self.reload("[adoption]\nstreams = off\n", scene)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.1))
        #expect(try eventually { try scene.stage.listedSessions().count == 1 })
        // The program is adopted only now, but it played before the call, so it is silent.
        try Self.reload("", scene)
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(try eventually { try Self.state("Music", scene) == ["inactive"] })
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.1))
        #expect(try scene.awaits("Music", "active"))
        #expect(try Self.state("Music", scene).count == 1)
        withExtendedLifetime(music) {}
    }

    /// The daemon restarts with other settings. The same session changes its options and stays interrupted.
    @Test(arguments: ServerKind.allCases) func otherSettingsAfterARestart_silenceFollows(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "")
        let music = try ForeignProgramTests.music(scene.pulse, nil)
        #expect(try scene.awaits("Music", "active"))
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, below: -80))
        func restart(_ settings: String) throws {
            scene.stage.daemon.kill()
            _ = try scene.stage.bus.folder.file("sessiond.conf", settings)
            try scene.stage.restart()
            #expect(scene.stage.waitForServer())
        }
        for streams in ["all", "calls"] {
            try restart("[adoption]\nstreams = \(streams)\n")
            #expect(
                try eventually {
                    try scene.session("Music")?["Options"]?.stringsValue
                        == (streams == "all" ? [] : ["mix-with-others"])
                })
            #expect(try Self.state("Music", scene) == ["interrupted"])
            #expect(scene.ear.waitUntil(440, below: -80))
        }
        try restart("[adoption]\nnever = Music\n")
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.1))
        #expect(try eventually { try scene.stage.listedSessions().count == 1 })
        withExtendedLifetime(music) {}
    }

    /// Adoption was off when the call began. When it is turned on, a program that played before the call falls silent.
    /// A program that started during the call plays at the same time, because it mixes with others (§4).
    @Test(arguments: ServerKind.allCases) func adoptionTurnedOnDuringACall_earlierMusicFallsSilent(
        _ kind: ServerKind
    ) throws {
        let scene = try Scene(kind, settings: "[adoption]\nstreams = off\n")
        let music = try ForeignProgramTests.music(scene.pulse, nil)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        let before = scene.ear.steadyLevel(of: 440)
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.level(of: 440, last: 0.1) > -20)
        let late = try Tone.program(scene.pulse, hertz: 1_000, name: "Late")
        #expect(scene.ear.waitUntil(1_000, above: -20, window: 0.15))
        try Self.reload("", scene)
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(try scene.awaits("Late", "active"))
        #expect(scene.ear.waitUntil(440, below: -80, window: 0.5))
        #expect(scene.ear.waitUntil(1_000, above: -20, window: 0.5))
        #expect(try Self.state("Music", scene) == ["inactive"])
        let path = try #require(try scene.stage.sessions().first { $1["Name"] == .string("Music") }?.key)
        func why(_ cause: String) throws -> String { try scene.stage.explanation(cause, of: path) }
        let isSilentUntilTheEnd = "; it played before the current call or alert began, and is silent until that ends"
        #expect(try why("adopted").hasSuffix(isSilentUntilTheEnd))
        // The next daemon does not start it either.
        scene.stage.daemon.kill()
        try scene.stage.restart()
        #expect(try eventually { try !why("stream-silenced").isEmpty })
        #expect(scene.ear.waitUntil(440, below: -80, window: 0.5))
        #expect(scene.ear.waitUntil(1_000, above: -20, window: 0.5))
        #expect(try Self.state("Music", scene) == ["inactive"])
        #expect(try why("adopted").hasSuffix(isSilentUntilTheEnd))
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, above: before - 0.5, below: before + 0.5, window: 0.1))
        #expect(try scene.awaits("Music", "active"))
        withExtendedLifetime((music, late)) {}
    }

    /// A prompt ducks the music. The user's volume is restored when the settings no longer allow ducking.
    @Test(arguments: ServerKind.allCases) func settingsReloadedWhileDucked_volumeFollows(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "")
        let music = try ForeignProgramTests.music(scene.pulse, nil)
        #expect(try scene.awaits("Music", "active"))
        let voice = try scene.stage.foreigner()
        let prompt = voice.create("Prompt", option: "duck-others")
        #expect(voice.ask("activate \(prompt)") == "ok")
        func isLowered(_ by: Double) throws -> Bool {
            try eventually { abs(Double(try scene.volume()) - 65_536 * pow(10, -by / 60)) < 3 }
        }
        #expect(try isLowered(12))
        for off in ["[adoption]\nstreams = off\n", "[enforcement]\nmode = off\n"] {
            try Self.reload(off, scene)
            #expect(try isLowered(0))
            try Self.reload("", scene)
            #expect(try isLowered(12))
        }
        #expect(voice.ask("deactivate \(prompt)") == "ok")
        #expect(try isLowered(0))
        withExtendedLifetime(music) {}
    }

    /// The setting changes between mixing and excluding. When they exclude each other, the newest player has the sound.
    @Test(arguments: ServerKind.allCases) func twoPlayers_mixOrExcludeEachOther(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "[adoption]\nstreams = all\n")
        let first = try Tone.program(scene.pulse, hertz: 440, name: "First")
        #expect(try scene.awaits("First", "active"))
        let second = try Tone.program(scene.pulse, hertz: 1_000, name: "Second")
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(scene.ear.waitUntil(1_000, above: -20))
        for _ in 0..<2 {
            try Self.reload("", scene)
            // At once, and not only when its claim expires.
            #expect(scene.ear.waitUntil(440, above: -20, window: 0.1, timeout: 3))
            #expect(scene.ear.waitUntil(1_000, above: -20, window: 0.1))
            try Self.reload("[adoption]\nstreams = all\n", scene)
            #expect(scene.ear.waitUntil(440, below: -80))
            #expect(scene.ear.waitUntil(1_000, above: -20))
            #expect(try Self.state("First", scene) == ["interrupted"])
            #expect(try Self.state("Second", scene) == ["active"])
        }
        // A program in `never` does not interrupt others.
        try Self.reload("[adoption]\nstreams = all\nnever = Second\n", scene)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.1))
        #expect(try eventually { try scene.stage.listedSessions().count == 1 })
        withExtendedLifetime((first, second)) {}
    }
}
