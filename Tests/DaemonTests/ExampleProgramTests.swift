import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Starts the programs in `Examples` that are written in other languages. `BindingsTests` tests those that need a
/// compiler.
@Suite(.serialized) struct ExampleProgramTests {
    private func example(_ path: String, _ arguments: [String] = [], on stage: SessionctlStage) throws -> Child {
        try Child("\(repository.path)/Examples/\(path)", arguments, environment: stage.programs())
    }

    private func state(_ name: String, _ stage: SessionctlStage) throws -> String? {
        try stage.session(name)?["State"]?.stringValue
    }

    @Test func alarmSounds_anotherAppIsSilentAndPlaysOn() throws {
        let stage = try SessionctlStage()
        let radio = try Child(try builtProduct(named: "example-radio"), environment: stage.environment)
        #expect(radio.line { $0 == "playing" } != nil, "\(radio.errors)")
        let alarm = try example("Python/alarm.py", ["cat"], on: stage)
        #expect(radio.line { $0 == "silent: Alarm has the sound" } != nil, "\(alarm.errors)")
        #expect(try state("Alarm", stage) == "active")
        #expect(try state("Radio", stage) == "interrupted")
        alarm.closeInput()
        #expect(alarm.wait() == .code(0))
        #expect(radio.line { $0 == "playing on" } != nil)
    }

    @Test func alarmDuringACall_isRefused() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        client.activate(try client.session("Phone", category: "play-and-record", class: "call"))
        let alarm = try example("Python/alarm.py", ["true"], on: stage)
        #expect(alarm.wait() == .code(1))
        #expect(alarm.errors == ["the alarm has to wait: org.sessiond1.Error.InsufficientPriority"])
    }

    /// The music does not use sessiond, so this needs a real sound server.
    @Test func satelliteSpeaks_musicIsDucked() throws {
        let pulse = try ServerKind.standard.server()
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        let tone = try Tone(pulse, hertz: 440, name: "Music")
        #expect(try eventually { try state("Music", stage) == "active" })
        let satellite = try example("Python/satellite.py", on: stage)
        #expect(satellite.line { $0 == "ready" } != nil, "\(satellite.errors)")
        for _ in 0..<2 {
            satellite.send("speak")
            #expect(try eventually { try stage.session("Music")?["Ducked"]?.boolValue == true })
            #expect(try state("Satellite", stage) == "active" && state("Music", stage) == "active")
            satellite.send("done")
            #expect(try eventually { try stage.session("Music")?["Ducked"]?.boolValue == false })
        }
        satellite.closeInput()
        #expect(satellite.wait() == .code(0))
        #expect(satellite.output == ["ready", "speaking", "done", "speaking", "done"])
        #expect(try eventually { try stage.session("Satellite") == nil })
        withExtendedLifetime(tone) {}
    }

    @Test func deviceComesAndGoes_routeListenerPrintsIt() throws {
        let pulse = try ServerKind.standard.server()
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        let listener = try example("Python/route.py", on: stage)
        #expect(eventually { listener.text != "" }, "\(listener.errors)")
        let before = listener.output[0]
        let headphones = try pulse.addSink("headphones")
        #expect(listener.line { $0.hasPrefix("\(before) → ") && $0.hasSuffix(": new device available") } != nil)
        try pulse.unloadModule(headphones)
        #expect(
            listener.line { $0.hasSuffix(" → \(before): old device unavailable") } != nil, "\(listener.output)")
    }

    @Test(arguments: [true, false]) func recording_isUploadedOverCutsAndThereAsItIsHere(byTus: Bool) throws {
        let pulse = try ServerKind.standard.server()
        try UploadPlugin.install(below: pulse.folder.path)
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        let tone = try Tone(pulse, hertz: 440, name: "Music")
        let server = try UploadServer()
        if byTus { for place in [5_000, 60_000, 90_000, 100_000, 150_000] { try server.tell("cutat \(place)") } }
        let file = pulse.folder.path + "/clip.wav"
        let program = try example(
            "Shell/record-and-upload", ["2", file, server.url(byTus ? "tus" : "clip")], on: stage)
        #expect(program.wait(timeout: 60) == .code(0), "\(program.errors)")
        #expect(program.output.last?.hasPrefix("the same there as here: ") == true, "\(program.output)")
        #expect(server.uploads.count == (byTus ? 1 : 0))
        withExtendedLifetime(tone) {}
    }

    @Test func quietHours_muteOnlySessionsThatObeyTheSwitch() throws {
        let stage = try SessionctlStage()
        let client = try stage.daemon.client()
        client.activate(try client.session("Game", category: "ambient"))
        client.activate(try client.session("Film", options: ["mix-with-others"]))
        func quietHours(_ words: String...) throws -> [String] {
            let child = try example("Shell/quiet-hours", words, on: stage)
            #expect(child.wait() == .code(0), "\(child.errors)")
            return child.output
        }
        #expect(try quietHours("on") == ["silent switch: true", "heard: Film"])
        #expect(try quietHours("off") == ["silent switch: false", "heard: Game", "heard: Film"])
        #expect(try example("Shell/quiet-hours", on: stage).wait() == .code(64))
    }

    /// Runs the command line of the drop-in with `sleep` in place of the service's program.
    @Test func serviceWithTheDropIn_hasASessionAndStopsDuringACall() throws {
        let stage = try SessionctlStage()
        let dropIn = try String(
            contentsOfFile: repository.path + "/Examples/systemd/session.conf", encoding: .utf8)
        let line = try #require(dropIn.split(separator: "\n").last { $0.hasPrefix("ExecStart=sessionctl ") })
        let end = try #require(line.range(of: " -- ")?.upperBound)
        let command = "exec \(line[..<end].dropFirst("ExecStart=".count))sleep 60"
        let service = try Child("sh", ["-c", command], environment: stage.programs())
        #expect(try eventually { try state("MPD", stage) == "active" }, "\(service.errors)")
        let process = Int32(try stage.session("MPD")?["ProcessId"]?.uint32Value ?? 0)
        let client = try stage.daemon.client()
        let phone = try client.beginCall("Phone")
        #expect(eventually { SessionctlStage.isStopped(process) })
        client.deactivate(phone, notify: true)
        #expect(eventually { !SessionctlStage.isStopped(process) })
        service.signal(SIGTERM)
        #expect(service.wait() == .code(143))
    }

    @Test func mpvThroughRun_isSilentDuringACallAndHeardAgain() throws {
        let pulse = try ServerKind.standard.server()
        let stage = try SessionctlStage(pulse: pulse)
        #expect(stage.daemon.waitForServer())
        let file = try WaveFile.write(
            WaveFile.sines([(440, 30)], rate: 48_000), rate: 48_000, to: stage.daemon.bus.folder.path + "/story.wav")
        let ear = try Ear(pulse, sink: "speaker")
        let (child, process) = try stage.guarded(
            "Story", ["--mode", "spoken-audio"],
            ["mpv", "--no-config", "--no-terminal", "--no-video", "--ao=pulse", file])
        #expect(eventually { ear.level(of: 440) > -30 })
        let client = try stage.daemon.client()
        let phone = try client.beginCall("Phone")
        #expect(eventually { SessionctlStage.isStopped(process) && ear.level(of: 440) < -60 })
        client.deactivate(phone, notify: true)
        #expect(eventually { ear.level(of: 440) > -30 })
        child.signal(SIGTERM)
        #expect(child.wait() != nil)
    }
}
