import EventLoop
import Foundation
import PluginAPI
import TestSupport
import Testing

@testable import PulseBackend

/// The server ends, stops, is missing at the start, and returns.
@Suite struct ServerLifeTests {
    private typealias Bench = PulseBackendTests.Bench

    @Test(arguments: ServerKind.allCases)
    func serverIsKilledAndRestarted_lossAndReturnAreReportedOnce(_ kind: ServerKind) throws {
        let bench = try Bench(kind.server())
        bench.pulse.kill()
        #expect(bench.wait { bench.told.all.contains(.lost) })
        #expect(bench.backend.snapshot == .disconnected)
        try bench.pulse.restart()
        #expect(bench.wait { bench.backend.snapshot.isConnected })
        #expect(bench.told.all == [.lost, .reset])
        #expect(bench.backend.snapshot.route.outputs.map(\.uid) == ["speaker"])
    }

    @Test(arguments: ServerKind.allCases) func twentyRestarts_areReportedAsTwentyPairs(_ kind: ServerKind) throws {
        let bench = try Bench(kind.server())
        for _ in 0..<20 {
            bench.pulse.kill()
            #expect(bench.wait { !bench.backend.snapshot.isConnected })
            try bench.pulse.restart()
            #expect(bench.wait { bench.backend.snapshot.isConnected })
        }
        #expect(bench.told.all == Array(repeating: [Recorder.Told.lost, .reset], count: 20).flatMap { $0 })
    }

    @Test func serverIsKilledAndRestarted_standInsAreCreatedAgain() throws {
        let bench = try Bench(ServerKind.pipeWire.server())
        func standIns() -> [String] {
            bench.backend.snapshot.streams.filter { $0.properties["media.name"] == "Volume correction by sessiond" }
                .compactMap(\.memoryName)
        }
        let name = "sink-input-by-application-name:Music"
        bench.backend.wantedStandIns = [StreamMemory(name: name, channels: [1, 2])]
        #expect(bench.wait { standIns() == [name] })
        for _ in 0..<2 {
            bench.pulse.kill()
            #expect(bench.wait { !bench.backend.snapshot.isConnected })
            try bench.pulse.restart()
            #expect(bench.wait { bench.backend.snapshot.isConnected && standIns() == [name] })
        }
        bench.backend.wantedStandIns = []
        #expect(bench.wait { standIns().isEmpty })
    }

    /// PipeWire does not report another default while a program connects; here one always does.
    @Test(arguments: ServerKind.allCases) func programsStartAllTheTime_routeChangesAreStillReported(
        _ kind: ServerKind
    ) throws {
        let bench = try Bench(kind.server())
        let phones = try bench.pulse.addSink("phones")
        try bench.pulse.control.setDefaultSink("phones")
        #expect(bench.wait { bench.backend.snapshot.route.outputs.map(\.uid) == ["phones"] })
        let visitors = try (0..<3).map { _ in
            try Child(
                "/bin/sh", ["-c", "while :; do pactl info; done >/dev/null"], environment: bench.pulse.environment)
        }
        var module = phones
        for _ in 0..<5 {
            try bench.pulse.unloadModule(module)
            #expect(bench.wait { bench.backend.snapshot.route.outputs.map(\.uid) == ["speaker"] })
            module = try bench.pulse.addSink("phones")
            if kind == .pulseAudio { try bench.pulse.control.setDefaultSink("phones") }
            #expect(bench.wait { bench.backend.snapshot.route.outputs.map(\.uid) == ["phones"] })
        }
        #expect(!bench.told.all.contains(.lost))
        for visitor in visitors { visitor.kill() }
    }

    @Test(arguments: ServerKind.allCases) func serverAbsentAtStart_isFoundWhenItStarts(_ kind: ServerKind) throws {
        let pulse = try kind.server(start: false)
        // Even the folder is missing.
        try FileManager.default.removeItem(atPath: pulse.folder.path + "/run")
        let bench = try Bench(pulse, connects: false)
        #expect(bench.wait { bench.told.all == [.lost] })
        _ = try pulse.folder.folder("run/pulse")
        try pulse.restart()
        #expect(bench.wait { bench.backend.snapshot.isConnected })
        #expect(bench.told.all == [.lost, .reset])
    }

    @Test(arguments: ServerKind.allCases) func serverIsStopped_requestFailsAtItsTimeout_andTheAdapterContinues(
        _ kind: ServerKind
    ) throws {
        let bench = try Bench(kind.server(sinks: ["first", "second"]), patience: 0.3)
        bench.pulse.suspend()
        let result = bench.result {
            bench.backend.selectOutput("second", reason: .override, isTemporary: false, completion: $0)
        }
        #expect(result?.code == .mediaServicesFailed)
        #expect(bench.told.all == [.lost])
        let next = bench.result {
            bench.backend.selectOutput("second", reason: .override, isTemporary: false, completion: $0)
        }
        #expect(next?.code == .mediaServicesFailed)
        bench.pulse.resume()
        #expect(bench.wait { bench.backend.snapshot.isConnected })
        #expect(bench.told.all == [.lost, .reset])
    }

    @Test(arguments: ServerKind.allCases) func backendReleasedDuringARequestOrWithoutAServer_leavesNothingBehind(
        _ kind: ServerKind
    ) throws {
        let pulse = try kind.server()
        let loop = EventLoop()
        weak var dropped: PulseBackend?
        do {
            let backend = PulseBackend(on: loop, server: pulse.serverString)
            dropped = backend
            backend.start()
            loop.iterate(timeout: 5) { backend.snapshot.isConnected }
            backend.selectOutput("speaker", reason: .override, isTemporary: false) { _ in }
        }
        #expect(dropped == nil)
        pulse.kill()
        do {
            let backend = PulseBackend(on: loop, server: pulse.serverString)
            dropped = backend
            backend.start()
        }
        #expect(dropped == nil)
        loop.iterate(timeout: 0.1) { false }
    }

    @Test func serverStrings_giveTheirSockets() {
        let none: (String) -> String? = { _ in nil }
        #expect(ServerAddress.sockets("unix:/a/b", environment: none) == ["/a/b"])
        #expect(ServerAddress.sockets("{abc}unix:/a tcp:host /b", environment: none) == ["/a", "/b"])
        #expect(ServerAddress.sockets("tcp:host:4713", environment: none) == [])
        #expect(ServerAddress.sockets(nil) { ["PULSE_SERVER": "unix:/x"][$0] } == ["/x"])
        #expect(
            ServerAddress.sockets(nil) { ["XDG_RUNTIME_DIR": "/run/user/7"][$0] }
                == ["/run/user/7/pulse/native", "/run/pulse/native"])
        #expect(ServerAddress.sockets(nil) { ["PULSE_RUNTIME_PATH": "/p"][$0] }.first == "/p/native")
    }
}
