import DBus
import Foundation
import SessionBus
import TestSupport
import Testing

/// Programs that never heard of us beside each other, beside others who arbitrate, and in what they were made for:
/// sandboxes, streams that nobody may move, ends in the middle of something.
@Suite struct ForeignAdoptionTests {
    typealias Scene = ForeignProgramTests.Scene

    /// `adoption = all`: of two players that never heard of each other the newest has the sound; the former has it back.
    @Test(arguments: ServerKind.allCases)
    func twoPlayers_theNewestWins_andTheFormerComesBack(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "[adoption]\nstreams = all\n")
        let first = try Tone.program(scene.pulse, hertz: 440, name: "First")
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("First", "active"))
        let second = try Tone(scene.pulse, hertz: 1_000, name: "Second")
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(scene.ear.waitUntil(1_000, above: -20))
        #expect(try scene.session("First")?["State"] == .string("interrupted"))
        // Its person pauses it, starts it again, and pauses it.
        try second.cork()
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.1))
        #expect(try scene.awaits("First", "active"))
        try second.uncork()
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(scene.ear.waitUntil(1_000, above: -20))
        #expect(try scene.awaits("First", "interrupted"))
        try second.cork()
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.1))
        #expect(try scene.awaits("First", "active"))
        withExtendedLifetime(first) {}
    }

    /// PulseAudio's module-role-cork mutes the music too, and asks it to pause; module-role-ducking lowers it. Both forget
    /// a stream that is moved meanwhile. It is back once, as it was, after each call.
    @Test(
        .enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: its modules"),
        arguments: [("module-role-cork", false), ("module-role-cork", true), ("module-role-ducking", false)])
    func besideOtherPolicySoftware_theMusicIsRestoredOnce(module: String, obeys: Bool) throws {
        let scene = try Scene(modules: [module])
        let music = try Tone(
            scene.pulse, hertz: 440, name: "Music", properties: ["media.role": "music"], obeysCork: obeys)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("Music", "active"))
        let before = scene.ear.steadyLevel(of: 440)
        for count in 1...2 {
            let phone = try Tone.program(
                scene.pulse, hertz: 1_000, name: "Phone", properties: ["media.role": "phone"])
            #expect(scene.ear.waitUntil(440, below: -80))
            #expect(scene.ear.waitUntil(1_000, above: -20))
            #expect(try scene.awaits("Phone", "active"))
            #expect(try scene.awaits("Music", "interrupted"))
            phone.kill()
            #expect(try scene.awaits("Music", "active"))
            // And stays: nobody has something left to do to it.
            #expect(scene.ear.waitUntil(440, above: before - 0.5, below: before + 0.5, window: 0.5))
            let input = try #require(try scene.inputs().first)
            #expect(input["mute"] as? Bool == false && input["corked"] as? Bool == false, "\(input)")
            #expect(music.sink == "speaker")
            // It asks only those to go on who have paused.
            #expect(music.events.count == (module == "module-role-cork" ? count * (obeys ? 2 : 1) : 0))
        }
    }

    /// What stream-restore remembers of a held stream is not where we held it.
    @Test(arguments: ServerKind.allCases, [false, true])
    func killedWhileHeld_playsOnItsDeviceAtItsVolumeNextTime(_ kind: ServerKind, duringTheCall: Bool) throws {
        let scene = try Scene(kind, modules: ["module-null-sink sink_name=other rate=48000"])
        let other = try Ear(scene.pulse, sink: "other")
        // A quarter of full scale at that volume; of PipeWire, which has drop-outs on a busy machine, less is asked.
        let range = kind == .pulseAudio ? (-25.4, -24.4) : (-40, -15)
        func isHeard() -> Bool { other.waitUntil(440, above: range.0, below: range.1, window: 0.15) }
        var music = try ForeignProgramTests.music(scene.pulse, nil)
        #expect(try scene.awaits("Music", "active"))
        let index = "\(try scene.inputs()[0]["index"] ?? 0)"
        try scene.pulse.pactl(["set-sink-input-volume", index, "40000"])
        try scene.pulse.moveStream(index, to: "other")
        #expect(isHeard())
        func hasItsVolume() throws -> Bool { abs(try scene.volume() - 40_000) < 3 }
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(other.waitUntil(440, below: -80))
        #expect(try eventually { try scene.inputs()[0]["mute"] as? Bool == false && hasItsVolume() })
        music.kill()
        #expect(try eventually { try scene.pulse.pactl(["list", "short", "sink-inputs"]).isEmpty })
        if !duringTheCall { #expect(phone.ask("deactivate \(call)") == "ok") }
        let begun = monotonicNow()
        music = try ForeignProgramTests.music(scene.pulse, nil)
        // Who starts anew during a call plays beside it, as everybody who mixes may.
        #expect(
            isHeard(),
            """
            other \(other.level(of: 440)) dB, speaker \(scene.ear.level(of: 440)) dB, \((try? scene.inputs()) ?? []), \
            \((try? scene.pulse.pactl(["list", "short", "sinks"])) ?? "")
            """)
        #expect(try eventually(hasItsVolume))
        let astray = scene.ear.trace(440, since: begun).filter { $0.level > -80 }
        // PipeWire's session manager may link it to the default first.
        #expect(
            kind == .pipeWire || astray.isEmpty,
            "\(astray.map { (Int(($0.time - begun) * 1_000), Int($0.level)) })")
        if duringTheCall { #expect(phone.ask("deactivate \(call)") == "ok") }
    }

    /// A stream that nobody may move is muted instead; its player is told to pause like any other.
    @Test(arguments: ServerKind.allCases)
    func streamThatCannotBeHeld_isMutedAndItsPlayerPaused(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        let music = try Tone(scene.pulse, hertz: 440, name: "Music", isFixed: true)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("Music", "active"))
        let before = scene.ear.steadyLevel(of: 440)
        // Started by us, as the sound is: one program.
        let player = try ForeignPlayer("music", on: scene.stage)
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(eventually { player.calls == ["Pause"] })
        #expect(try eventually { try scene.inputs()[0]["mute"] as? Bool == true })
        #expect(music.sink == "speaker")
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, above: before - 0.5, window: 0.1))
        #expect(eventually { player.calls == ["Pause", "Play"] })
        #expect(try scene.inputs()[0]["mute"] as? Bool == false)
        #expect(try scene.awaits("Music", "active"))
    }

    /// In a sandbox, as Flatpak makes it, all that plays is one application, whatever it runs and calls itself; and it
    /// belongs to the session that somebody in there asked for.
    @Test(.enabled(if: getuid() == 0, "mounts are root's")) func sandbox_isOneApplication() throws {
        let scene = try Scene()
        let root = try PrivateFolder()
        try root.file(".flatpak-info", "[Application]\nname=org.example.Music\nruntime=runtime/x\n")
        let first = try Self.confined(scene.pulse, root, 440, "First")
        #expect(try scene.awaits("First", "active"))
        let second = try Self.confined(scene.pulse, root, 1_000, "Second")
        #expect(scene.ear.waitUntil(1_000, above: -20) && scene.ear.waitUntil(440, above: -20))
        #expect(try scene.stage.listedSessions().count == 1)
        // Somebody in there speaks to us: the sound is that session's from now on.
        let told = try scene.stage.foreigner()
        #expect(told.ask("chroot \(root.path)") == "ok")
        let session = told.create("Own")
        #expect(try eventually { try scene.session("First") == nil })
        // And silent with it, though it has not been started: a call comes.
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, below: -80) && scene.ear.waitUntil(1_000, below: -80))
        #expect(session.hasPrefix("/org/"))
        #expect(try scene.stage.listedSessions().count == 2)
        withExtendedLifetime((first, second)) {}
    }

    /// A tone from a process whose root is that folder, with all of this machine in it.
    private static func confined(
        _ pulse: any PrivateServer, _ root: PrivateFolder, _ hertz: Double, _ name: String
    ) throws -> Child {
        // Gone with the process: nobody else sees these mounts.
        let script = """
            root=$1; shift
            for folder in bin dev etc lib lib64 proc sbin sys tmp usr; do
                [ -d /$folder ] && mkdir -p "$root/$folder" && mount --rbind /$folder "$root/$folder"
            done
            exec chroot "$root" "$@"
            """
        // pacat by another name, as an application has more than one program.
        let program = root.path + "/" + name
        if !FileManager.default.fileExists(atPath: program) {
            try FileManager.default.copyItem(atPath: "/usr/bin/pacat", toPath: program)
        }
        let wave = try Tone.file(pulse, hertz: hertz)
        return try Child(
            "unshare",
            ["--mount", "sh", "-euc", script, "sh", root.path, "/" + name, "--playback", "--raw", "--format=s16le"]
                + ["--rate=48000", "--channels=1", "--latency-msec=200", "--client-name=" + name, wave],
            environment: pulse.environment)
    }
}
