import EventLoop
import PluginAPI
import TestSupport
import Testing

@testable import PulseBackend

/// Measures streams of a real private server.
@Suite struct MeterTests {
    private typealias Bench = PulseBackendTests.Bench

    @Test(arguments: ServerKind.allCases) func streamWithSound_isDistinguishedFromASilentOne(_ kind: ServerKind) throws
    {
        let bench = try Bench(kind.server(sinks: ["speaker", "other"]))
        let voice = try Tone(bench.pulse, hertz: 440, name: "voice", processID: 4_711)
        let silence = try Tone(bench.pulse, hertz: 440, amplitude: 0, name: "silence", processID: 4_712)
        let id = AudioStream.ID(.playback, voice.index)
        let silentID = AudioStream.ID(.playback, silence.index)
        func stream(_ id: AudioStream.ID) -> AudioStream? { bench.backend.snapshot.streams.first { $0.id == id } }
        #expect(bench.wait { stream(id)?.isCorked == false && stream(silentID)?.isCorked == false })
        #expect(stream(id)?.hasSound == false, "nothing is measured yet")
        bench.backend.measured = [id, silentID]
        #expect(bench.wait { stream(id)?.hasSound == true })
        #expect(!bench.wait(1) { stream(silentID)?.hasSound == true || stream(id)?.hasSound == false })
        // PulseAudio ends the recording of a stream that is moved.
        #expect(bench.result { bench.backend.moveStream(id, to: "other", completion: $0) }?.isSuccess == true)
        #expect(bench.wait { stream(id)?.portUID == "other" })
        #expect(!bench.wait(1) { stream(silentID)?.hasSound == true || stream(id)?.hasSound == false })
        #expect(
            !bench.backend.snapshot.streams.contains { $0.direction == .record }, "the recordings are the daemon's own")
        bench.backend.setMuted(true, stream: id) { _ in }
        #expect(bench.wait { stream(id)?.hasSound == false })
        bench.backend.setMuted(false, stream: id) { _ in }
        #expect(bench.wait { stream(id)?.hasSound == true })
        bench.backend.measured = []
        #expect(bench.wait { stream(id)?.hasSound == false && bench.backend.model.recording.isEmpty })
        withExtendedLifetime((voice, silence)) {}
    }
}
