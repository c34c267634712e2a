import Foundation
import TestSupport
import Testing

@Suite struct SupportTests {
    @Test func privateBus_answersAndIsKilled() throws {
        let bus = try PrivateBus()
        let names = try Child.run(
            "dbus-send",
            ["--session", "--print-reply", "--dest=org.freedesktop.DBus", "/", "org.freedesktop.DBus.ListNames"],
            environment: bus.environment)
        #expect(names.contains("org.freedesktop.DBus"))
        bus.kill()
        #expect(kill(bus.processID, 0) != 0)
    }

    @Test(arguments: ServerKind.allCases) func privateServerPlaysATone_recordingContainsIt(_ kind: ServerKind) throws {
        let pulse = try kind.server(sinks: ["speaker", "other"])
        let ear = try Ear(pulse, sink: "speaker")
        let tone = try Tone(pulse, hertz: 440, properties: ["media.role": "music"])
        // PipeWire 0.3 mixes the two channels of the monitor to one with a factor of 0.7 each, which makes it 3 dB
        // louder; PipeWire 1.4 takes their mean. A window that begins before the tone has a lower level.
        #expect(ear.waitUntil(440, above: -12.5, below: kind == .pipeWire ? -8.5 : -11.5, window: 0.1))
        #expect(eventually { ear.level(of: 1_000) < -50 })
        try tone.cork()
        #expect(ear.waitUntil(440, below: -60))
        let trace = ear.trace(440)
        #expect(trace.contains { $0.level > -15 })
        let program = try Tone.program(pulse, hertz: 1_000, properties: ["media.role": "phone"])
        #expect(ear.waitUntil(1_000, above: -15))
        #expect(try pulse.pactl(["list", "sink-inputs"]).contains("application.process.id = \"\(program.processID)\""))
        pulse.suspend()
        pulse.resume()
        try pulse.restart()
        #expect(try pulse.pactl(["list", "short", "sinks"]).contains("other"))
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake card"))
    func fakeCard_isPluggedAndUnplugged() throws {
        let pulse = try PrivatePulse(modules: ["module-switch-on-port-available"])
        let card = try FakeCard(pulse)
        func activePort() throws -> String? {
            try pulse.pactl(["list", "sinks"]).split(separator: "\n").last { $0.contains("Active Port:") }.map {
                String($0.split(separator: " ")[2])
            }
        }
        #expect(try activePort() == "analog-output-speaker")
        try card.plug(.headphones)
        #expect(try activePort() == "analog-output-headphones")
        try card.unplug(.headphones)
        #expect(try activePort() == "analog-output-speaker")
        try card.plug(.headsetMicrophone)
        #expect(try pulse.pactl(["list", "sources"]).contains("Active Port: analog-input-headset-mic"))
        try card.remove()
        #expect(pulse.isRunning)
        #expect(try pulse.pactl(["list", "short", "cards"]).isEmpty)
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake headset"))
    func fakeBluetooth_connectsAndDisconnects() throws {
        let radio = try FakeBluetooth()
        let pulse = try PrivatePulse(environment: radio.environment)
        try radio.attach(to: pulse)
        func sinks() throws -> String { try pulse.pactl(["list", "short", "sinks"]) }
        // Connect both profiles at once, so that the server does not wait for the second one.
        try radio.connect(.hfp)
        try radio.connect(.a2dp)
        #expect(try eventually { try sinks().contains("bluez_sink.02_00_00_00_00_02.a2dp_sink") })
        try pulse.pactl(["set-card-profile", radio.card, "handsfree_head_unit"])
        #expect(try eventually { try sinks().contains("bluez_sink.02_00_00_00_00_02.handsfree_head_unit") })
        try radio.disconnect(.hfp)
        try radio.disconnect(.a2dp)
        #expect(try eventually { try !pulse.pactl(["list", "short", "cards"]).contains(radio.card) })
    }

    @Test func child_endsAndIsReported() throws {
        let child = try Child("sh", ["-c", "echo ready; read x; echo $x; exit 7"])
        #expect(child.line { $0 == "ready" } != nil)
        child.send("hello")
        #expect(child.wait() == .code(7))
        #expect(child.output == ["ready", "hello"])
        let killed = try Child("sleep", ["100"])
        killed.kill()
        #expect(killed.wait() == .signal(SIGKILL))
        #expect(throws: SupportError.self) { try Child("/nowhere/at/all") }
    }
}
