import DBus
import TestSupport
import Testing

/// A live stream of a test picture with a microphone that hears a tone, recorded and as HLS.
final class ReporterStage {
    let stage: SessionctlStage
    let push: Child
    /// The recording.
    let file: String
    private let pulse: any PrivateServer
    private let tone: Tone
    private let ear: Ear

    /// It is live, and its session is active.
    init(_ kind: ServerKind, recording: String) throws {
        let pulse = try kind.server(
            sinks: ["speaker", "room"], modules: ["module-remap-source source_name=microphone master=room.monitor"])
        try pulse.control.setDefaultSource("microphone")
        let tone = try Tone(pulse, hertz: 440, sink: "room")
        // While it is recorded, the output renders in small blocks. Otherwise the microphone, its monitor, would be late by a
        // block of up to two seconds, which no microphone is.
        let ear = try Ear(pulse, sink: "room")
        #expect(ear.waitUntil(440, above: -40, window: 0.1, timeout: 20))
        let stage = try SessionctlStage(on: pulse)
        let file = stage.file(recording)
        let push = try stage.start(
            [
                "live", "push", stage.file("web"), "--test", "--size", "320x180", "--microphone", "--name", "Reporter",
                "--record", file,
            ], more: ["GST_REGISTRY": TestMedia.registry])
        #expect(push.line(timeout: 20) { $0 == "live" } != nil, "\(push.output) \(push.errors)")
        #expect(try eventually { try stage.session("Reporter")?["State"]?.stringValue == "active" })
        (self.stage, self.push, self.file) = (stage, push, file)
        (self.pulse, self.tone, self.ear) = (pulse, tone, ear)
    }
}
