import DBus
import Foundation
import TestSupport
import Testing

/// Settings read anew while a program that never heard of us is held by a call, or lowered: what it counts as changes,
/// and nobody is silent, or heard, without a cause.
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

    /// The call goes on all the while: it silences whoever is a session, in whatever way.
    @Test(arguments: ServerKind.allCases) func readAnewDuringACall_silenceFollows(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "")
        let music = try ForeignProgramTests.music(scene.pulse, nil)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("Music", "active"))
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, below: -80))
        // Another configuration of the same session, which goes on waiting.
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
        // It played before the call: found only now, it is silent all the same.
        try Self.reload("", scene)
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(try eventually { try Self.state("Music", scene) == ["inactive"] })
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.1))
        #expect(try scene.awaits("Music", "active"))
        #expect(try Self.state("Music", scene).count == 1)
        withExtendedLifetime(music) {}
    }

    /// Another daemon with other settings instead of SIGHUP: the same session counts as what it counts as now, and waits.
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

    /// Nobody counted as a session when the call began. Who played then is silent as soon as he counts as one; who begins
    /// during it plays beside it, as everybody who mixes may (§4).
    @Test(arguments: ServerKind.allCases) func adoptionTurnedOnDuringACall_whoPlayedBeforeFallsSilent(
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
        let causes = try scene.stage.manager("Explain", [.objectPath(path)])[0].arrayValue?.compactMap(\.asProperties)
        let why = causes?.first { $0["cause"]?.stringValue == "adopted" }?["text"]?.stringValue ?? ""
        #expect(why.hasSuffix("; it played before the current call or alert began, and is silent until that ends"))
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, above: before - 0.5, below: before + 0.5, window: 0.1))
        #expect(try scene.awaits("Music", "active"))
        withExtendedLifetime((music, late)) {}
    }

    /// Lowered by a prompt: back at the volume of its person where it is no longer to be lowered.
    @Test(arguments: ServerKind.allCases) func readAnewWhileLowered_theVolumeFollows(_ kind: ServerKind) throws {
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

    /// Two that exclude each other mix again, and the other way round: the newest keeps the sound.
    @Test(arguments: ServerKind.allCases) func twoPlayers_mixOrExcludeEachOther(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "[adoption]\nstreams = all\n")
        let first = try Tone.program(scene.pulse, hertz: 440, name: "First")
        #expect(try scene.awaits("First", "active"))
        let second = try Tone.program(scene.pulse, hertz: 1_000, name: "Second")
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(scene.ear.waitUntil(1_000, above: -20))
        for _ in 0..<2 {
            try Self.reload("", scene)
            // Not when its claim has run out.
            #expect(scene.ear.waitUntil(440, above: -20, window: 0.1, timeout: 3))
            #expect(scene.ear.waitUntil(1_000, above: -20, window: 0.1))
            try Self.reload("[adoption]\nstreams = all\n", scene)
            #expect(scene.ear.waitUntil(440, below: -80))
            #expect(scene.ear.waitUntil(1_000, above: -20))
            #expect(try Self.state("First", scene) == ["interrupted"])
            #expect(try Self.state("Second", scene) == ["active"])
        }
        // Left alone by name: as if there were none.
        try Self.reload("[adoption]\nstreams = all\nnever = Second\n", scene)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.1))
        #expect(try eventually { try scene.stage.listedSessions().count == 1 })
        withExtendedLifetime((first, second)) {}
    }
}
