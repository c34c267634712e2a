import DBus
import Foundation
import Glibc
import PluginAPI
import SessionKit
import TestSupport
import Testing

/// What a film keeps, whatever happens at whatever moment. With `SESSIOND_TEST_LONG`, as often as the promise says.
@Suite(.serialized, .enabled(if: VirtualCamera.isPossible, "needs gstreamer1.0-pipewire"))
struct CaptureProofTests {
    private static let period = 1.0 / 30

    /// What is recorded meanwhile is the point.
    private func wait(_ seconds: Double) {
        let end = monotonicNow() + seconds
        _ = eventually(timeout: seconds + 1) { monotonicNow() >= end }
    }

    /// Pictures and sound are as long as the pictures that are there.
    private func expectWhole(_ film: ReadFilm, sourceLocation: SourceLocation = #_sourceLocation) {
        let length = Double(film.pictures.count) * Self.period
        #expect(film.isInOrder && !film.isFragmented, "\(film.steps)", sourceLocation: sourceLocation)
        #expect(abs(film.videoLength - length) < 0.001, "\(film.videoLength)", sourceLocation: sourceLocation)
        if let sound = film.audioLength {
            #expect(abs(sound - length) < 0.001, "\(sound)", sourceLocation: sourceLocation)
        }
    }

    @Test(arguments: [[], ["--no-sound"]]) func pluginIsKilledAtAnyMoment_theFilmIsThere(_ words: [String]) throws {
        var lost: [Double] = []
        for _ in 0..<amount(2, long: 10) {
            // A plugin that crashes too often in a row is not started again.
            let stage = try CaptureStage()
            let film = stage.path("film.mp4")
            let record = try Child(
                try builtProduct(named: "sessionctl"), ["camera", "record"] + words + [film],
                environment: stage.environment)
            #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors)")
            let begun = monotonicNow()
            let plugin = try stage.plugin()
            wait(.random(in: 1.2...3))
            kill(plugin, SIGKILL)
            let killed = monotonicNow()
            #expect(record.wait() == .code(1))
            // The next start of the plugin completes the film.
            #expect(eventually(timeout: 20) { stage.errors.contains("it is an ordinary film now") }, "\(stage.errors)")
            let read = try ReadFilm(film)
            #expect(read.isInOrder && !read.isFragmented, "\(read.steps)")
            lost.append(killed - begun - Double(read.pictures.count) * Self.period)
        }
        print("lost before the kill: \(lost.map { Int($0 * 1_000) }) ms")
        // A fragment, and what was in the encoder; more on a busy machine.
        #expect(lost.allSatisfy { $0 < 1.5 }, "\(lost)")
    }

    @Test func callAtAnyMoment_isOneFileWithBothParts() throws {
        let stage = try CaptureStage()
        for number in 0..<amount(2, long: 20) {
            let film = stage.path("film\(number).mp4")
            let record = try stage.sessionctl("camera", "record", film)
            #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors)")
            let call = try stage.call()
            wait(.random(in: 0.2...1.2))
            try call.begin()
            #expect(record.line { $0 == "interrupted" } != nil, "\(record.errors)")
            wait(.random(in: 0.7...1.2))
            try call.end()
            #expect(record.line { $0 == "resumed" } != nil, "\(record.errors)")
            wait(0.5)
            record.signal(SIGINT)
            #expect(record.wait(timeout: 20) == .code(0), "\(record.errors)")
            let read = try ReadFilm(film)
            expectWhole(read)
            // The call is the one large step, and nothing else is missing.
            #expect(read.steps.filter { $0 > 12 }.count == 1, "\(read.steps)")
            unlink(film)
        }
    }

    @Test(.timeLimit(.minutes(2))) func manyPauses_leaveNoSeam() async throws {
        let stage = try CaptureStage()
        let bus = BusAddress.custom(stage.bus.address)
        let session = CaptureSession(name: "App", on: bus)
        for media in [CaptureDevice.MediaType.video, .audio] {
            try await session.addInput(try #require(try await CaptureDevice.default(for: media, on: bus)))
        }
        try await session.addOutput(.movieFile)
        try await session.startRunning()
        let film = stage.path("film.mp4")
        try await session.startRecording(to: film, CaptureSession.Film())
        let pauses = amount(10, long: 100)
        for _ in 0..<pauses {
            try await Task.sleep(for: .seconds(.random(in: 0.1...0.3)))
            try await session.pauseRecording()
            try await Task.sleep(for: .seconds(.random(in: 0.05...0.2)))
            try await session.resumeRecording()
        }
        try await session.stopRecording()
        let read = try ReadFilm(film)
        expectWhole(read)
        #expect(read.pictures.count > 2 * pauses, "\(read.pictures.count)")
        await session.close()
    }
}
