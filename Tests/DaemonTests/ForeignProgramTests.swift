import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import SessionKit
import TestSupport
import Testing

/// Adopted programs on real sound servers. The tests record the sink's monitor to measure that programs are silenced,
/// ducked and restored.
@Suite struct ForeignProgramTests {
    static let modules = ["module-stream-restore"]

    final class Scene {
        let pulse: any PrivateServer
        let stage: DaemonStage
        let ear: Ear

        init(
            _ kind: ServerKind = .standard, modules: [String] = [], settings: String? = nil, crash: String? = nil,
            fragment: Double = 0.002
        ) throws {
            pulse = try kind.server(
                modules: (kind == .pulseAudio ? ForeignProgramTests.modules : []) + modules)
            stage = try DaemonStage(pulse: pulse, settings: settings, crash: crash)
            ear = try Ear(pulse, sink: "speaker", fragment: fragment)
            if crash == nil { #expect(stage.waitForServer()) }
        }

        /// The session of that name as D-Bus shows it.
        func session(_ name: String) throws -> [String: Value]? {
            try stage.listedSessions().first { $0["Name"]?.stringValue == name }
        }

        func awaits(_ name: String, _ state: String) throws -> Bool {
            try eventually { try session(name)?["State"]?.stringValue == state }
        }

        /// The only stream that plays, or the first one.
        func stream() throws -> ServerControl.Stream {
            guard let stream = try pulse.control.streams().first else { throw SupportError("no stream") }
            return stream
        }

        func volume() throws -> Int { try stream().volume }
    }

    static func music(_ pulse: any PrivateServer, _ role: String?) throws -> Child {
        try Tone.program(
            pulse, hertz: 440, name: "Music", properties: role.map { ["media.role": $0] } ?? [:])
    }

    @Test(arguments: ServerKind.allCases, [nil, "music"])
    func call_silencesAnAdoptedProgram(_ kind: ServerKind, role: String?) throws {
        let scene = try Scene(kind)
        let music = try Self.music(scene.pulse, role)
        // The whole of the window that is measured next.
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("Music", "active"))
        let before = scene.ear.steadyLevel(of: 440)
        let phone = try scene.stage.foreigner()
        let call = phone.create("Phone", category: "play-and-record", class: "call")
        let begun = monotonicNow()
        #expect(phone.ask("activate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, below: -80))
        let silent = scene.ear.trace(440, since: begun).first { $0.level < -80 }
        print("silent \(Int(((silent?.time ?? 0) - begun) * 1_000)) ms after the call")
        #expect(try scene.session("Music")?["State"] == .string("interrupted"))
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(scene.ear.waitUntil(440, above: -20))
        #expect(try scene.awaits("Music", "active"))
        #expect(scene.ear.waitUntil(440, above: before - 0.5, window: 0.1))
        withExtendedLifetime(music) {}
    }

    /// The volume must change in small steps. A drop-out of PipeWire on a busy machine looks like a large step, so the
    /// test measures up to ten prompts and needs one without.
    @Test(arguments: ServerKind.allCases) func prompt_ducksAndRestoresExactly(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        let music = try Self.music(scene.pulse, nil)
        // The whole of the window that is measured next.
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("Music", "active"))
        let before = scene.ear.steadyLevel(of: 440)
        let voice = try scene.stage.foreigner()
        let prompt = voice.create("Prompt", option: "duck-others")
        var most: [Double] = []
        // A step of the ramp is 2 dB. Half a decibel more is allowed because the windows are not aligned with the
        // steps.
        while most.count < (kind == .pipeWire ? 10 : 1), most.allSatisfy({ $0 > 2.5 }) {
            let begun = monotonicNow()
            #expect(voice.ask("activate \(prompt)") == "ok")
            #expect(scene.ear.waitUntil(440, above: before - 12.5, below: before - 11.5, window: 0.05))
            #expect(voice.ask("deactivate \(prompt)") == "ok")
            #expect(scene.ear.waitUntil(440, above: before - 0.2, below: before + 0.2, window: 0.1))
            let levels = scene.ear.trace(440, window: 0.01, since: begun).map(\.level)
            most.append(zip(levels, levels.dropFirst()).map { abs($0 - $1) }.max() ?? .infinity)
            #expect(try eventually { try scene.volume() == 65_536 })
        }
        #expect(most.contains { $0 <= 2.5 }, "\(most)")
        withExtendedLifetime(music) {}
    }

    /// PipeWire applies a volume at the beginning of a cycle. The client with the shortest latency, here the recording
    /// of the monitor, sets the cycle's length. On a busy machine PipeWire misses or delays cycles, so the test
    /// measures up to 40 prompts and needs one without.
    @Test(arguments: [1_024.0, 2_048.0]) func promptOnPipeWire_ducksByTwoDecibelsInEachCycle(cycle: Double) throws {
        let scene = try Scene(.pipeWire, fragment: cycle / Ear.rate)
        let music = try Self.music(scene.pulse, nil)
        #expect(scene.ear.waitUntil(440, above: -20, window: 0.15))
        #expect(try scene.awaits("Music", "active"))
        let voice = try scene.stage.foreigner()
        let prompt = voice.create("Prompt", option: "duck-others")
        /// The levels from now until the server has reached that volume and played it for a while.
        func heard(until decibels: Double) throws -> [Double] {
            let begun = monotonicNow()
            #expect(voice.ask("\(decibels < 0 ? "" : "de")activate \(prompt)") == "ok")
            let volume = 65_536 * pow(10, decibels / 60)
            #expect(try eventually { abs(Double(try scene.volume()) - volume) < 3 })
            let there = scene.ear.duration
            #expect(eventually { scene.ear.duration > there + 0.2 })
            // Four whole periods.
            return scene.ear.trace(440, window: 4.0 / 440, since: begun).map(\.level)
        }
        var most: [Double] = []
        while most.count < 40, most.allSatisfy({ $0 > 2.5 }) {
            let fall = try heard(until: -12)
            let rise = try heard(until: 0)
            let changes = zip(fall, fall.dropFirst()).map { $0 - $1 } + zip(rise, rise.dropFirst()).map { $1 - $0 }
            // A step in the wrong direction is a drop-out.
            most.append(changes.contains { $0 < -0.3 } ? .infinity : changes.max() ?? .infinity)
        }
        print("a cycle of \(Int(cycle)): at most \(most) dB at once")
        #expect(most.contains { $0 <= 2.5 })
        withExtendedLifetime(music) {}
    }

    /// New settings apply at once to streams that are already ducked: to an adopted program, which the daemon ducks at
    /// the server, and to a client that ducks itself.
    @Test(arguments: ServerKind.allCases)
    func settingsReloadedWhileDucking_applyToTheDuckedStream(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "[ducking]\ngain = -12\n")
        let music = try Self.music(scene.pulse, nil)
        #expect(try scene.awaits("Music", "active"))
        // With the daemon's process id. With the test's own, the music would belong to this session, since the test
        // started it.
        let own = AudioSessionClient(
            .init(
                name: "Own", category: .playback, options: .mixWithOthers,
                processID: UInt32(scene.stage.daemon.processID), lowersItself: true),
            on: scene.stage.observer
        ) { _ in }
        var answer: Result<Void, Failure>?
        own.activate { answer = $0 }
        #expect(scene.stage.loop.iterate(timeout: 10) { answer != nil })
        let voice = try scene.stage.foreigner()
        let prompt = voice.create("Prompt", option: "duck-others")
        #expect(voice.ask("activate \(prompt)") == "ok")
        /// The factor of the amplitude is the cube of the volume.
        func isLowered(by decibels: Double) throws -> Bool {
            let volume = 65_536 * pow(10, -decibels / 60)
            return try eventually { abs(Double(try scene.volume()) - volume) < 3 }
        }
        #expect(try isLowered(by: 12))
        #expect(scene.stage.loop.iterate(timeout: 10) { own.duckGain == -12 })
        for (gain, release) in [(-6.0, 0.5), (-20, 0.5), (-20, 0.1)] {
            _ = try scene.stage.bus.folder.file(
                "sessiond.conf", "[ducking]\ngain = \(gain)\nrelease = \(release)\nhold = 0\n")
            scene.stage.daemon.signal(SIGHUP)
            #expect(try isLowered(by: -gain))
            #expect(
                scene.stage.loop.iterate(timeout: 10) { own.duckGain == gain && own.ducking.release == release },
                "\(own.duckGain) \(own.ducking)")
        }
        #expect(voice.ask("deactivate \(prompt)") == "ok")
        #expect(try isLowered(by: 0))
        #expect(scene.stage.loop.iterate(timeout: 10) { !own.isDucked })
        withExtendedLifetime(music) {}
    }
}
