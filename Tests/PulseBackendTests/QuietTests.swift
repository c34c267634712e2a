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
