import EventLoop
import PluginAPI
import TestSupport
import Testing

@testable import PulseBackend

@Suite struct DefaultRequestTests {
    private func request(_ sink: String, before: String, number: UInt64 = 1) -> DefaultRequest? {
        DefaultRequest(output: sink, sink: sink, before: before, number: number)
    }

    @Test func sinkThatIsTheDefaultAlready_isNotAwaited() {
        #expect(request("a", before: "a") == nil)
    }

    @Test func request_isAwaitedOnlyWhileTheOldDefaultIsShown() throws {
        let one = try #require(request("b", before: "a"))
        #expect(one.isAwaited(with: "a"))
        #expect(!one.isAwaited(with: "b"), "it took effect")
        #expect(!one.isAwaited(with: "c"), "the user chose another one")
        #expect(one.repetition == ["a", "b"])
    }

    @Test func request_isMadeThreeTimes() {
        var request = request("b", before: "a")
        var times = 0
        while let one = request {
            times += 1
            request = one.next
        }
        #expect(times == 3)
    }

    @Test func sameSinkRequestedAgain_isAnotherRequest() {
        #expect(request("b", before: "a") != request("b", before: "a", number: 2))
    }

    /// The request took effect, and the user selected the old default again before the adapter checked it.
    @Test func userChangesTheDefaultBack_isNotOverruled() throws {
        let bench = try PulseBackendTests.Bench(ServerKind.pipeWire.server(sinks: ["first", "second"]))
        func route() -> String? { bench.backend.snapshot.route.outputs.first?.uid }
        #expect(bench.wait { route() == "first" })
        #expect(
            bench.result {
                bench.backend.selectOutput("second", reason: .override, isTemporary: false, completion: $0)
            }?.isSuccess == true)
        #expect(bench.wait { route() == "second" })
        try bench.pulse.control.setDefaultSink("first")
        #expect(bench.wait { route() == "first" })
        // Longer than the adapter waits before it would repeat the request.
        #expect(!bench.wait(2.5) { route() == "second" })
    }
}
