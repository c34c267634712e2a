import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// A call begins while music plays. The tests record the sink's monitor, for several programs on both servers, with and
/// without a label.
@Suite struct ForeignProofTests {
    /// Unmodified players, each in a process of its own.
    enum Program: String, CaseIterable, CustomStringConvertible {
        case gstPlay = "gst-play-1.0"
        case pacat
        case ffplay
        case mpv

        var description: String { rawValue }

        func arguments(_ file: String) -> [String] {
            switch self {
            case .gstPlay: ["--no-interactive", "--quiet", "--audiosink=pulsesink", file]
            case .pacat: ["--playback", "--file-format=wav", "--latency-msec=200", file]
            case .ffplay: ["-nodisp", "-loglevel", "quiet", "-autoexit", file]
            case .mpv: ["--no-config", "--no-terminal", "--no-video", "--ao=pulse", file]
            }
        }

        func play(_ file: String, on server: any PrivateServer, role: String?) throws -> Child {
            var environment = server.environment.merging(["SDL_AUDIODRIVER": "pulse"]) { $1 }
            if let role { environment["PULSE_PROP"] = "media.role=\(role)" }
            return try Child(rawValue, arguments(file), environment: environment)
        }
    }

    struct Case: CustomTestStringConvertible {
        let server: ServerKind
        let program: Program
        let role: String?

        var testDescription: String { "\(program) on \(server), \(role ?? "no") role" }

        static let all = ServerKind.allCases.flatMap { server in
            Program.allCases.flatMap { program in
                [nil, "music"].map { Case(server: server, program: program, role: $0) }
            }
        }
    }

    /// Only the long form runs all programs on PipeWire too.
    private static let cases = amount(
        Case.all.filter { $0.server == .standard || $0.program == .pacat }, long: Case.all)

    @Test(arguments: cases) func callBegins_programIsSilentAndLosesNoSound(_ given: Case) throws {
        let scene = try ForeignProgramTests.Scene(given.server)
        let file = try CountedMusic.file(in: scene.pulse.folder)
        let music = try given.program.play(file, on: scene.pulse, role: given.role)
        let hertz = CountedMusic.hertz
        // Steady during the whole time that the test measures afterwards.
        #expect(scene.ear.waitUntil(hertz, above: -25, window: 0.7, timeout: 30), "\(music.errors)")
        #expect(try eventually { try scene.onlySession() == "active" })
        let before = scene.ear.steadyLevel(of: hertz)
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        let rung = monotonicNow()
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.waitUntil(hertz, below: -80, window: 0.1))
        #expect(try scene.onlySession() == "interrupted")
        // As long as a user needs to decline a call.
        #expect(scene.ear.waitUntil(hertz, below: -80, window: 0.8))
        #expect(phone.ask("deactivate \(call)") == "ok")
        // First as loud as before for a moment, because PipeWire has drop-outs on a busy machine. Then as long as the
        // test measures afterwards.
        #expect(scene.ear.waitUntil(hertz, above: before - 0.3, window: 0.05, timeout: 30))
        let back = scene.ear.duration
        #expect(eventually(timeout: 30) { scene.ear.duration > back + 0.7 })
        #expect(try eventually { try scene.onlySession() == "active" })
        let heard = try #require(scene.ear.music(from: rung - 0.05, to: monotonicNow() - 0.6))
        let silent = scene.ear.trace(hertz, since: rung).first { $0.level < -80 }
        print(
            "\(given.testDescription): silent \(Int(((silent?.time ?? 0) - rung) * 1_000)) ms after the call, for "
                + "\(Int(heard.silence * 1_000)) ms, of which \(Int((heard.lost * 1_000).rounded())) ms were lost; other "
                + "silences \(Int(heard.dropOuts * 1_000)) ms")
        // A muted stream would lose all of it. A held stream loses only what the server had already fetched: a fragment
        // or two.
        #expect(heard.silence > 0.8)
        #expect(abs(heard.lost) < 0.05)
    }

    /// A player that is paused over MPRIS is also held. It must play again before the hold ends; otherwise each resume
    /// lost 30 ms. The test takes the best of three calls, or of six on a machine that is slow to notice that the player
    /// plays.
    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: its sink can rewind"))
    func playerPausedDuringACall_losesNoSoundWhenItResumes() throws {
        let scene = try ForeignProgramTests.Scene(.pulseAudio)
        let file = try CountedMusic.file(in: scene.pulse.folder)
        let socket = scene.pulse.folder.path + "/mpv"
        let music = try ForeignPlayer(
            "counted", on: scene.stage, command: ["mpv", "--input-ipc-server=" + socket] + Program.mpv.arguments(file),
            socket: socket, environment: scene.pulse.environment)
        let hertz = CountedMusic.hertz
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        var lost: [Double] = []
        while lost.count < 3 || lost.count < 6 && lost.min() ?? 1 >= 0.015 {
            #expect(scene.ear.waitUntil(hertz, above: -25, window: 0.7, timeout: 30), "\(music.process.errors)")
            #expect(try eventually { try scene.onlySession() == "active" })
            let rung = monotonicNow()
            #expect(phone.ask("activate \(call)") == "ok")
            #expect(scene.ear.waitUntil(hertz, below: -80, window: 0.1))
            #expect(eventually { music.status == "Paused" })
            #expect(scene.ear.waitUntil(hertz, below: -80, window: 0.5))
            #expect(phone.ask("deactivate \(call)") == "ok")
            #expect(scene.ear.waitUntil(hertz, above: -25, window: 0.7, timeout: 30))
            #expect(music.status == "Playing")
            lost.append(abs(try #require(scene.ear.music(from: rung - 0.05, to: monotonicNow() - 0.6)).lost))
        }
        print("lost \(lost.map { Int(($0 * 1_000).rounded()) }) ms")
        #expect(lost.min() ?? 1 < 0.015)
    }

    /// PulseAudio plays what it had fetched of a held stream as soon as that is on its sink again, also if the program was
    /// paused meanwhile.
    @Test(arguments: ServerKind.allCases)
    func programThatItsUserPausesDuringACall_isNotHeardWhenItEnds(_ kind: ServerKind) throws {
        let scene = try ForeignProgramTests.Scene(kind)
        let file = try CountedMusic.file(in: scene.pulse.folder)
        let hertz = CountedMusic.hertz
        // The user of mpv writes commands.
        let music = try Child(
            "mpv",
            ["--no-config", "--no-terminal", "--no-video", "--load-scripts=no", "--ao=pulse", "--loop=inf"]
                + ["--input-ipc-client=fd://0", file],
            environment: scene.pulse.environment)
        #expect(scene.ear.waitUntil(hertz, above: -25, window: 0.7, timeout: 30), "\(music.errors)")
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        for _ in 0..<2 {
            #expect(try eventually { try scene.onlySession() == "active" })
            #expect(phone.ask("activate \(call)") == "ok")
            #expect(scene.ear.waitUntil(hertz, below: -80, window: 0.5))
            music.send("set pause yes")
            #expect(try eventually { try scene.stream().isCorked })
            let ended = monotonicNow()
            #expect(phone.ask("deactivate \(call)") == "ok")
            #expect(try eventually { try scene.stream().sink == "speaker" })
            // It is as its user left it.
            #expect(try eventually { try !scene.stream().isMuted })
            #expect(scene.ear.waitUntil(hertz, below: -80, window: 0.5))
            let heard = scene.ear.trace(hertz, since: ended).filter { $0.level > -80 }
            #expect(heard.isEmpty, "\(heard.map { (Int(($0.time - ended) * 1_000), Int($0.level)) })")
            music.send("set pause no")
            #expect(scene.ear.waitUntil(hertz, above: -25, window: 0.7, timeout: 30))
            #expect(try !scene.stream().isMuted)
        }
    }
}

extension ForeignProgramTests.Scene {
    /// The state of the only session except that of the phone.
    func onlySession() throws -> String? {
        let others = try stage.listedSessions().filter { $0["Name"]?.stringValue != "Phone" }
        return others.count == 1 ? others[0]["State"]?.stringValue : nil
    }
}
