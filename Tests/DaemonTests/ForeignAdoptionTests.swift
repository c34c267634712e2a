import DBus
import Foundation
import SessionBus
import TestSupport
import Testing

/// Adopted programs: two players at once, neighbours with their own rules, sandboxes, streams that cannot be moved, and
/// programs that end while they are held.
@Suite struct ForeignAdoptionTests {
    typealias Scene = ForeignProgramTests.Scene

    /// With `streams = all`, the player that started last has the sound. The earlier one gets it back.
    @Test(arguments: ServerKind.allCases)
    func twoPlayers_theNewestHasTheSound_andTheFormerGetsItBack(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "[adoption]\nstreams = all\n")
        let first = try Tone.program(scene.pulse, hertz: 440, name: "First")
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("First", "active"))
        let second = try Tone(scene.pulse, hertz: 1_000, name: "Second")
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(scene.ear.waitUntil(1_000, above: -20))
        #expect(try scene.session("First")?["State"] == .string("interrupted"))
        // The user pauses the second player, starts it again, and pauses it.
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

    /// Players that are scripts of one interpreter, started by another script of it, are programs of their own.
    @Test(arguments: ServerKind.allCases)
    func scriptsOfAScript_areProgramsOfTheirOwn(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "[adoption]\nstreams = all\n")
        let folder = scene.pulse.folder
        for (name, hertz) in [("first", 440), ("second", 1_000)] {
            _ = try folder.file("\(name).py", ForeignAdoptionTests.player(name, hertz))
        }
        let launcher = try folder.file(
            "launcher.py",
            """
            import subprocess, sys
            for line in sys.stdin:
                subprocess.Popen([sys.executable, line.strip()], stdin=subprocess.DEVNULL)
            """)
        let programs = try Child(
            "/usr/bin/python3", ["-u", launcher], environment: scene.pulse.environment)
        programs.send("\(folder.path)/first.py")
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15), "\(programs.errors)")
        #expect(try scene.awaits("first", "active"))
        programs.send("\(folder.path)/second.py")
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(scene.ear.waitUntil(1_000, above: -20))
        #expect(try scene.awaits("first", "interrupted"))
        #expect(try scene.awaits("second", "active"))
    }

    /// A script that plays a tone until it is ended, or for half a minute.
    private static func player(_ name: String, _ hertz: Int) -> String {
        """
        import array, ctypes, math
        class Spec(ctypes.Structure):
            _fields_ = [("format", ctypes.c_int), ("rate", ctypes.c_uint32), ("channels", ctypes.c_uint8)]
        pulse, error = ctypes.CDLL("libpulse-simple.so.0"), ctypes.c_int()
        pulse.pa_simple_new.restype = ctypes.c_void_p
        server = pulse.pa_simple_new(None, b"\(name)", 1, None, b"\(name)", ctypes.byref(Spec(3, 48000, 1)), None, None,
            ctypes.byref(error))
        # One second: whole periods.
        sound = array.array("h", [int(8000 * math.sin(2 * math.pi * \(hertz) * n / 48000)) for n in range(48000)]).tobytes()
        for _ in range(30):
            pulse.pa_simple_write(ctypes.c_void_p(server), sound, ctypes.c_size_t(len(sound)), ctypes.byref(error))
        """
    }

    /// PulseAudio's module-role-cork also mutes the music and asks it to pause; module-role-ducking ducks it. Both
    /// forget a stream that is moved in the meantime. After each call the music is restored once, as it was.
    @Test(
        .enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: its modules"),
        arguments: [("module-role-cork", false), ("module-role-cork", true), ("module-role-ducking", false)])
    func neighbourMutesOrDucksToo_musicIsRestoredOnce(module: String, obeys: Bool) throws {
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
            // It stays so. No module changes it later.
            #expect(scene.ear.waitUntil(440, above: before - 0.5, below: before + 0.5, window: 0.5))
            let stream = try scene.stream()
            #expect(!stream.isMuted && !stream.isCorked, "\(stream)")
            #expect(music.sink == "speaker")
            // The module asks only those programs to go on that have paused.
            #expect(music.events.count == (module == "module-role-cork" ? count * (obeys ? 2 : 1) : 0))
        }
    }

    /// The sound server remembers the sink that the user chose for the stream, not the hold sink.
    @Test(arguments: ServerKind.allCases, [false, true])
    func programIsKilledWhileHeld_itsNextStreamHasItsSinkAndVolume(_ kind: ServerKind, duringTheCall: Bool) throws {
        let scene = try Scene(kind, modules: ["module-null-sink sink_name=other rate=48000"])
        let other = try Ear(scene.pulse, sink: "other")
        // A quarter of full scale at that volume. The range for PipeWire is wider because it has drop-outs on a busy
        // machine.
        let range = kind == .pulseAudio ? (-25.4, -24.4) : (-40, -15)
        func isHeard() -> Bool { other.waitUntil(440, above: range.0, below: range.1, window: 0.15) }
        var music = try ForeignProgramTests.music(scene.pulse, nil)
        #expect(try scene.awaits("Music", "active"))
        let index = try scene.stream().index
        try scene.pulse.control.setVolume(ofStream: index, to: 40_000)
        try scene.pulse.moveStream(index, to: "other")
        #expect(isHeard())
        func hasItsVolume() throws -> Bool { abs(try scene.volume() - 40_000) < 3 }
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(other.waitUntil(440, below: -80))
        #expect(try eventually { try !scene.stream().isMuted && hasItsVolume() })
        music.kill()
        #expect(try eventually { try scene.pulse.control.streams().isEmpty })
        if !duringTheCall { #expect(phone.ask("deactivate \(call)") == "ok") }
        let begun = monotonicNow()
        music = try ForeignProgramTests.music(scene.pulse, nil)
        // A program that starts during a call plays at the same time, because it mixes with others.
        #expect(
            isHeard(),
            """
            other \(other.level(of: 440)) dB, speaker \(scene.ear.level(of: 440)) dB, \
            \((try? scene.pulse.control.streams()) ?? [])
            """)
        #expect(try eventually(hasItsVolume))
        let astray = scene.ear.trace(440, since: begun).filter { $0.level > -80 }
        // PipeWire's session manager may link it to the default sink first.
        #expect(
            kind == .pipeWire || astray.isEmpty,
            "\(astray.map { (Int(($0.time - begun) * 1_000), Int($0.level)) })")
        if duringTheCall { #expect(phone.ask("deactivate \(call)") == "ok") }
    }

    /// A stream that cannot be moved is muted instead. Its player is paused like any other.
    @Test(arguments: ServerKind.allCases)
    func streamThatCannotBeHeld_isMutedAndItsPlayerPaused(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        let music = try Tone(scene.pulse, hertz: 440, name: "Music", isFixed: true)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("Music", "active"))
        let before = scene.ear.steadyLevel(of: 440)
        // The test starts both the player and the sound, so they are one program.
        let player = try ForeignPlayer("music", on: scene.stage)
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, below: -80))
        #expect(eventually { player.calls == ["Pause"] })
        #expect(try eventually { try scene.stream().isMuted })
        #expect(music.sink == "speaker")
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, above: before - 0.5, window: 0.1))
        #expect(eventually { player.calls == ["Pause", "Play"] })
        #expect(try !scene.stream().isMuted)
        #expect(try scene.awaits("Music", "active"))
    }

    /// All programs in one Flatpak sandbox are one application, whatever their names. Their sound belongs to the
    /// session that a program in the sandbox created.
    @Test(.enabled(if: getuid() == 0, "only root can mount")) func sandbox_isOneApplication() throws {
        let scene = try Scene()
        let root = try PrivateFolder()
        try root.file(".flatpak-info", "[Application]\nname=org.example.Music\nruntime=runtime/x\n")
        let first = try Self.confined(scene.pulse, root, 440, "First")
        #expect(try scene.awaits("First", "active"))
        let second = try Self.confined(scene.pulse, root, 1_000, "Second")
        #expect(scene.ear.waitUntil(1_000, above: -20) && scene.ear.waitUntil(440, above: -20))
        #expect(try scene.stage.listedSessions().count == 1)
        // A program in the sandbox creates a session. From now on the sound belongs to that session.
        let told = try scene.stage.foreigner()
        #expect(told.ask("chroot \(root.path)") == "ok")
        let session = told.create("Own")
        #expect(try eventually { try scene.session("First") == nil })
        // A call silences the sound with that session, although the session was never activated.
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, below: -80) && scene.ear.waitUntil(1_000, below: -80))
        #expect(session.hasPrefix("/org/"))
        #expect(try scene.stage.listedSessions().count == 2)
        withExtendedLifetime((first, second)) {}
    }

    /// Plays a tone in a process whose root is that folder. The folders of this machine are mounted there.
    private static func confined(
        _ pulse: any PrivateServer, _ root: PrivateFolder, _ hertz: Double, _ name: String
    ) throws -> Child {
        // Only this process sees the mounts, and they end with it.
        let script = """
            root=$1; shift
            for folder in bin dev etc lib lib64 proc sbin sys tmp usr; do
                [ -d /$folder ] && mkdir -p "$root/$folder" && mount --rbind /$folder "$root/$folder"
            done
            exec chroot "$root" "$@"
            """
        // A copy of pacat with another name, because an application can consist of several programs.
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
