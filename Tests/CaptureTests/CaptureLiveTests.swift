import DBus
import Foundation
import Glibc
import PluginAPI
import SessionBus
import SessionKit
import TestSupport
import Testing

/// A live stream beside a film of the same camera.
@Suite(
    .serialized,
    .enabled(if: VirtualCamera.isPossible && RTMPServer.isInstalled, "needs gstreamer1.0-pipewire and nginx with RTMP"))
struct CaptureLiveTests {
    /// The checksum of each encoded picture.
    private func packets(_ path: String) throws -> [String] {
        try Child.run(
            "ffprobe",
            [
                "-v", "error", "-select_streams", "v", "-show_data_hash", "md5", "-show_entries", "packet=data_hash",
                "-of", "csv=p=0", path,
            ]
        ).split(separator: "\n").map(String.init)
    }

    private func session(_ stage: CaptureStage, _ live: CaptureSession.Live) async throws -> CaptureSession {
        let bus = BusAddress.custom(stage.bus.address)
        let session = CaptureSession(name: "App", on: bus)
        for media in [CaptureDevice.MediaType.video, .audio] {
            try await session.addInput(try #require(try await CaptureDevice.default(for: media, on: bus)))
        }
        try await session.addOutput(.movieFile)
        try await session.addOutput(live)
        return session
    }

    /// What is recorded meanwhile is the point.
    private func wait(_ seconds: Double) async throws { try await Task.sleep(for: .seconds(seconds)) }

    @Test(.timeLimit(.minutes(2))) func serverIsKilledAndComesBack_theFilmMissesNothing() throws {
        let stage = try CaptureStage()
        let server = try RTMPServer()
        let film = stage.path("film.mp4")
        let record = try stage.sessionctl("camera", "record", "--live", server.url("name"), film)
        #expect(record.line(timeout: 30) { $0 == "stream: live" } != nil, "\(record.output) \(record.errors)")
        Thread.sleep(forTimeInterval: 2)
        server.kill()
        #expect(record.line(timeout: 30) { $0 == "stream: reconnecting" } != nil, "\(record.output) \(record.errors)")
        Thread.sleep(forTimeInterval: 2)
        try server.restart()
        #expect(
            eventually(timeout: 30) {
                _ = record.line(timeout: 0) { _ in false }
                return record.output.filter { $0 == "stream: live" }.count == 2
            }, "\(record.output) \(record.errors)")
        Thread.sleep(forTimeInterval: 2)
        record.signal(SIGINT)
        #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
        let read = try ReadFilm(film)
        // On a busy machine some pictures come too late; the outage has lasted for 60 and more.
        #expect(read.isInOrder && read.steps.allSatisfy { $0 < 10 }, "\(read.steps)")
        #expect(read.videoLength > 7 && Double(read.pictures.count) > read.videoLength * 30 - 10, "\(read.videoLength)")
        #expect(abs((read.audioLength ?? 0) - read.videoLength) < 0.001, "\(String(describing: read.audioLength))")
        // The server got the same pictures, before and after: another encoder would have made others.
        let recorded = Set(try packets(film))
        for file in server.taken {
            // The server writes the end of its file when it notices the end of the connection.
            _ = eventually { (try? packets(file).count) ?? 0 > 40 }
            let sent = try packets(file)
            #expect(sent.count > 30 && sent.filter(recorded.contains).count > sent.count / 2, "\(sent.count)")
        }
        #expect(server.taken.count == 2)
    }

    @Test(
        .timeLimit(.minutes(2)),
        .enabled(if: WHIPServer.isInstalled, "gstreamer1.0-nice and gir1.2-gst-plugins-bad-1.0 are not installed"),
        arguments: TLSRelay.isInstalled && TLSRelay.canBeTrusted ? ["http", "https"] : ["http"])
    func whip_getsPicturesAndSound_andTheFilmHasThem(_ scheme: String) throws {
        let server = try WHIPServer()
        let relay = scheme == "https" ? try TLSRelay(to: server.port) : nil
        let stage = try CaptureStage(hasTicks: true, trusting: relay)
        let film = stage.path("film.mp4")
        try "right-token\n".write(toFile: stage.path("key"), atomically: true, encoding: .utf8)
        let record = try stage.sessionctl(
            "camera", "record", "--live", relay.map { "https://127.0.0.1:\($0.port)/whip" } ?? server.url, "--key-file",
            stage.path("key"), film)
        #expect(record.line(timeout: 30) { $0 == "stream: live" } != nil, "\(record.output) \(record.errors)")
        #expect(eventually(timeout: 30) { server.numbers.count > 60 && server.loudest > 0.1 })
        let plugin = try stage.plugin()
        record.signal(SIGINT)
        #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
        // The end of the stream was told, with the token.
        #expect(eventually(timeout: 10) { server.has("deleted") }, "\(server.lines.suffix(3))")
        // The end of the client is the end of the stream, and of nothing else.
        let list = try stage.sessionctl("camera", "list")
        #expect(list.wait(timeout: 20) == .code(0) && !list.text.contains("sessionctl"), "\(list.text)")
        #expect(try stage.plugin() == plugin, "\(stage.errors)")
        let read = try ReadFilm(film)
        #expect(read.isInOrder && abs((read.audioLength ?? 0) - read.videoLength) < 0.001, "\(read.steps)")
        // The server reads the lower half of the pictures, which has the complement.
        let sent = server.numbers.map { $0 ^ 0xFFFF }
        let recorded = Set(read.pictures)
        // On a busy machine one may be sent twice.
        #expect(zip(sent, sent.dropFirst()).allSatisfy { $0 <= $1 }, "\(sent)")
        #expect(sent.filter(recorded.contains).count > sent.count / 2, "\(sent) \(read.pictures)")
    }

    @Test(
        .timeLimit(.minutes(2)),
        .enabled(if: WHIPServer.isInstalled, "gstreamer1.0-nice and gir1.2-gst-plugins-bad-1.0 are not installed"))
    func whipThatRefusesTheToken_isTold_andTheFilmGoesOn() throws {
        let stage = try CaptureStage()
        let server = try WHIPServer()
        let film = stage.path("film.mp4")
        try "wrong-token\n".write(toFile: stage.path("key"), atomically: true, encoding: .utf8)
        let record = try stage.sessionctl(
            "camera", "record", "--live", server.url, "--key-file", stage.path("key"), "--duration", "3", film)
        let code = record.wait(timeout: 60)
        let text = (record.output + record.errors).joined(separator: "\n")
        #expect(code == .code(1) && text.contains("never live") && text.contains("401"), "\(text)")
        #expect(!text.contains("wrong-token"))
        #expect(try ReadFilm(film).pictures.count == 90)
    }

    @Test(.timeLimit(.minutes(2))) func filmThatPauses_doesNotStopTheStream_norDoesItsEnd() async throws {
        let stage = try CaptureStage()
        let server = try RTMPServer()
        let session = try await session(stage, .init(url: server.url("name")))
        // A film may begin before the stream, and share its encoder.
        try await session.startRunning()
        let film = stage.path("film.mkv")
        try await session.startRecording(to: film)
        let early = await #expect(throws: SessionError.self) { try await session.setLiveMicrophone(false) }
        #expect(early?.code == .notReady)
        var notices = session.notices.makeAsyncIterator()
        try await session.startLive()
        while let notice = await notices.next(), notice != .live(.stateDidChange(.live)) {}
        try await wait(1)
        try await session.pauseRecording()
        try await session.setLiveMicrophone(false)
        try await wait(1.5)
        try await session.resumeRecording()
        try await wait(1)
        try await session.stopRecording()
        try await wait(1)
        #expect(try await session.liveStatistics.state == .live)
        #expect(try await session.status.droppedFrames < 10)
        try await session.stopLive()
        while let notice = await notices.next(), notice != .live(.didFinish(.stopped)) {}
        await session.close()
        let read = try ReadFilm(film)
        #expect(read.isInOrder && read.steps.filter { $0 > 20 }.count == 1, "\(read.steps)")
        let sent = try ReadFilm(try #require(server.taken.first))
        #expect(sent.isInOrder && sent.steps.allSatisfy { $0 < 12 } && sent.pictures.count > 110, "\(sent.steps)")
        let recorded = Set(try packets(film))
        #expect(try packets(try #require(server.taken.first)).filter(recorded.contains).count > 30)
    }

    @Test(.timeLimit(.minutes(2))) func call_silencesStreamAndFilm_andBothGoOn() async throws {
        let stage = try CaptureStage()
        let server = try RTMPServer()
        let session = try await session(stage, .init(url: server.url("name")))
        try await session.startRunning()
        var notices = session.notices.makeAsyncIterator()
        let film = stage.path("film.mp4")
        try await session.startLive()
        while let notice = await notices.next(), notice != .live(.stateDidChange(.live)) {}
        try await session.startRecording(to: film)
        try await wait(1)
        let call = try stage.call()
        try call.begin()
        while let notice = await notices.next(), notice != .wasInterrupted(.audioDeviceInUse) {}
        let status = try await session.status
        #expect(status.isRecording && !status.isPaused, "\(status)")
        try await wait(1)
        #expect(try await session.liveStatistics.state == .live)
        try call.end()
        while let notice = await notices.next(), notice != .interruptionEnded {}
        try await session.stopRunning()
        let read = try ReadFilm(film)
        #expect(read.isInOrder && read.steps.allSatisfy { $0 < 6 } && read.pictures.count > 50, "\(read.steps)")
        #expect(server.taken.count == 1)
        await session.close()
    }

    @Test(.timeLimit(.minutes(2))) func streamThatCannotStart_saysWhy_andTheSessionStays() async throws {
        let stage = try CaptureStage()
        let bus = BusAddress.custom(stage.bus.address)
        let other = CaptureSession(name: "App", on: bus)
        let wrong = await #expect(throws: SessionError.self) { try await other.addOutput(.init(url: "ftp://x/y")) }
        #expect(
            wrong?.code == .badParameter && wrong?.message.contains("rtmp:") == true, "\(String(describing: wrong))")
        await other.close()
        let session = try await session(stage, .init(url: stage.path("web")))
        let early = await #expect(throws: SessionError.self) { try await session.startLive() }
        #expect(
            early?.code == .notReady && early?.message.contains("StartRunning") == true, "\(String(describing: early))")
        // A camera that goes away ends the stream, too.
        var notices = session.notices.makeAsyncIterator()
        try await session.startRunning()
        try await session.startLive()
        while let notice = await notices.next(), notice != .live(.stateDidChange(.live)) {}
        let list = stage.path("web/stream.m3u8")
        #expect(eventually(timeout: 20) { FileManager.default.fileExists(atPath: list) })
        stage.camera.remove()
        var failure: SessionError?
        while failure == nil, let notice = await notices.next() {
            if case .live(.didFail(let error)) = notice { failure = error }
        }
        #expect(failure?.message.contains("did not come back") == true, "\(String(describing: failure))")
        #expect(FileManager.default.fileExists(atPath: list))
        await session.close()
    }
}
