import Enforcement
import PluginAPI
import Testing

@testable import State

/// What an earlier daemon has changed is found again, also if the server is moving it.
@Suite struct FormerStreamsTests {
    private func stream(_ number: UInt32, process: UInt32 = 70, name: String = "music") -> AudioStream {
        var stream = AudioStream(
            id: AudioStream.ID(.playback, number), processID: process, deviceName: "speaker", volume: [20_000])
        stream.properties["module-stream-restore.id"] = name
        return stream
    }

    private func entry(_ stream: AudioStream, instance: UInt32 = 1) -> StreamRecord.Entry {
        StreamRecord.Entry(
            instance: instance, stream, KeptStream(base: StreamBase(volume: [65_536], isMuted: false, deviceName: nil)))
    }

    private func numbers(_ found: [(stream: AudioStream, entry: StreamRecord.Entry)]) -> [UInt32] {
        found.map(\.stream.id.number)
    }

    @Test func streamWithoutADevice_isFoundWhenItHasOne() {
        var former = FormerStreams([entry(stream(1)), entry(stream(2)), entry(stream(3))], instance: 1)
        // The third one has ended.
        #expect(numbers(former.find(in: [stream(1)], unplaced: [stream(2)])) == [1])
        #expect(former.awaited.map(\.id.number) == [2])
        #expect(numbers(former.find(in: [stream(1)], unplaced: [stream(2)])) == [])
        #expect(numbers(former.find(in: [stream(1), stream(2)], unplaced: [])) == [2])
        #expect(former.awaited.isEmpty)
    }

    @Test func streamThatEndsWithoutADevice_isNoLongerAwaited() {
        var former = FormerStreams([entry(stream(1))], instance: 1)
        _ = former.find(in: [], unplaced: [stream(1)])
        _ = former.find(in: [], unplaced: [])
        #expect(former.awaited.isEmpty)
        #expect(former.find(in: [stream(1)], unplaced: []).isEmpty)
    }

    @Test func numberOfAnotherProgramOrRun_isNotFound() {
        var former = FormerStreams(
            [entry(stream(1)), entry(stream(2)), entry(stream(3), instance: 2)], instance: 1)
        let others = [stream(1, process: 71), stream(2, name: "speech"), stream(3)]
        #expect(former.find(in: others, unplaced: []).isEmpty)
        #expect(former.awaited.isEmpty)
    }
}
