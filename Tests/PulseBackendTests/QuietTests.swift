import EventLoop
import Foundation
import PluginAPI
import TestSupport
import Testing

@testable import PulseBackend

/// If nothing happens, the process does not wake up.
@Suite struct QuietTests {
    /// Dispatches for `seconds`, and counts how often the loop woke up meanwhile.
    private func wakeUps(_ loop: EventLoop, seconds: Double) -> Int {
        var isOver = false
        var count = 0
        let end = Timer(on: loop) { isOver = true }
        end.arm(after: seconds)
        while !isOver {
            loop.iterate()
            count += 1
        }
        return count - 1
    }

    @Test func connectedAndIdle_neverWakesUp() throws {
        let bench = try PulseBackendTests.Bench(ServerKind.standard.server())
        _ = wakeUps(bench.loop, seconds: 0.3)
        #expect(wakeUps(bench.loop, seconds: 2.5) == 0)
    }

    /// After a call, streams that begin are read for a while, because they may be moved. Also short ones end that.
    @Test(arguments: ServerKind.allCases) func soundsDuringAndAfterACall_leaveNoWakeUpsAndNoHoldSink(
        _ kind: ServerKind
    ) throws {
        let bench = try PulseBackendTests.Bench(kind.server(), holdIdleTime: 5)
        func hasHold() -> Bool { bench.backend.snapshot.hasHold }
        func sound(_ seconds: Double) throws {
            let program = try Tone.program(bench.pulse, hertz: 440, seconds: seconds, latency: 0.02)
            // Its end is no event of the loop.
            #expect(bench.loop.iterate(timeout: 10, askingEvery: 0.02) { !program.isRunning })
        }
        let tone = try Tone(bench.pulse, hertz: 440, name: "player", processID: 4_711)
        let id = AudioStream.ID(.playback, tone.index)
        func stream() -> AudioStream? { bench.backend.snapshot.streams.first { $0.id == id } }
        #expect(bench.wait { stream()?.isCorked == false })
        #expect(bench.result { bench.backend.hold(id, completion: $0) }?.isSuccess == true)
        #expect(bench.wait { stream()?.isHeld == true && hasHold() })
        try sound(0.08)
        #expect(bench.result { bench.backend.letGo(id, to: nil, completion: $0) }?.isSuccess == true)
        #expect(bench.wait { stream()?.isHeld == false })
        try sound(0.08)
        try sound(0.2)
        #expect(hasHold(), "the next call uses it")
        #expect(bench.wait(30) { !hasHold() })
        #expect(bench.wait(40) { bench.backend.reads.next == nil })
        _ = wakeUps(bench.loop, seconds: 0.3)
        #expect(wakeUps(bench.loop, seconds: 1.5) == 0)
        withExtendedLifetime(tone) {}
    }

    @Test func serverAbsentForLong_neverWakesUp() throws {
        let bench = try PulseBackendTests.Bench(ServerKind.standard.server(start: false), connects: false)
        #expect(bench.wait(30) { bench.backend.isWaitingForSocketOnly })
        #expect(wakeUps(bench.loop, seconds: 2.5) == 0)
        // A file of another name is ignored.
        try bench.pulse.folder.file("run/pulse/other", "")
        try bench.pulse.restart()
        #expect(bench.wait { bench.backend.snapshot.isConnected })
        #expect(bench.told.all == [.lost, .reset])
    }
}
