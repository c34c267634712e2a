import Foundation
import LiveBackend
import LiveStreaming
import PluginAPI
import TestSupport
import Testing

/// Live streams to the real servers, with a film whose pictures have numbers.
@Suite(.serialized) struct LivePushTests {
    private static let hasServer = RTMPServer.isInstalled

    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func film_reachesTheServerAndTheRecordingWhole() throws {
        let server = try RTMPServer()
        let stage = try LiveStage(to: server.url("some-key"))
        try stage.start()
        #expect(stage.until { stage.isOver })
        #expect(stage.end == .ended && stage.texts.isEmpty, "\(stage.texts)")
        #expect(stage.states.map(\.state) == [.connecting, .live, .idle])
        #expect(try LiveStage.numbers(stage.recording) == allPictures)
        // An ordinary film, with sound.
        #expect(try LiveStage.probe(stage.recording, "stream=codec_name", "a:0") == ["aac"])
        #expect(try LiveStage.probe(stage.recording, "stream=nb_frames") == ["300"])
        #expect(eventually { server.taken.count == 1 })
        let numbers = try LiveStage.numbers(try #require(server.taken.first))
        // The first connection takes a moment, and then begins with a key frame.
        #expect(numbers == Array(allPictures.suffix(numbers.count)) && numbers.count >= 275, "\(numbers.count)")
        // A key frame each two seconds.
        let keys = try LiveStage.probe(stage.recording, "packet=pts_time,flags").filter { $0.contains("K") }
            .compactMap { $0.split(separator: ",").first.flatMap { Double($0) } }
        #expect(keys.count >= 6 && zip(keys, keys.dropFirst()).allSatisfy { $1 - $0 <= 2.05 }, "\(keys)")
    }

    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func serverKilledForFiveSeconds_costsTheRecordingNothing() throws {
        let server = try RTMPServer()
        let stage = try LiveStage(to: server.url("some-key"))
        try stage.start()
        #expect(stage.until { stage.push.state == .live })
        stage.pass(1)
        server.kill()
        #expect(stage.until(5) { stage.push.state == .reconnecting })
        stage.pass(5)
        try server.restart()
        let back = monotonicNow()
        #expect(stage.until(10) { stage.push.state == .live })
        let delay = monotonicNow() - back
        #expect(delay <= 2.2, "live again after \(delay) s")
        print("live again \(delay) s after the server is back")
        #expect(stage.until { stage.isOver })
        #expect(stage.push.reconnects == 1)
        #expect(try LiveStage.numbers(stage.recording) == allPictures)
        #expect(eventually { server.taken.count == 2 })
        let again = try #require(server.taken.last)
        #expect(try LiveStage.probe(again, "packet=flags").first?.hasPrefix("K") == true)
        let numbers = try LiveStage.numbers(again)
        #expect(numbers == Array(allPictures.suffix(numbers.count)) && !numbers.isEmpty)
        // The times of each connection begin anew.
        let start = try LiveStage.probe(again, "packet=pts_time").first.flatMap { Double($0.filter { $0 != "," }) }
        #expect((start ?? 9) < 0.5)
    }

    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func serverThatReadsNothing_stopsNeitherEncoderNorRecording() throws {
        let server = try RTMPServer()
        let peer = try DeafPeer(to: server.port)
        let folder = try PrivateFolder()
        let film = try LiveStage.noisyFilm(in: folder)
        let wanted = 8_000_000
        let stage = try LiveStage(to: server.url("some-key", port: peer.port)) {
            ($0.source, $0.bitrate) = (.file(film), wanted)
        }
        try stage.start()
        #expect(stage.until { stage.push.state == .live })
        peer.stopReading()
        #expect(stage.until(16) { stage.push.state == .reconnecting }, "\(stage.states)")
        #expect(stage.messages.last?.contains("takes nothing") == true, "\(stage.messages)")
        #expect(stage.push.droppedFrames > 0)
        #expect((stage.bitrates.min() ?? .max) < wanted * 7 / 10, "\(stage.bitrates)")
        peer.goOn()
        #expect(stage.until(5) { stage.push.state == .live })
        #expect(stage.until(30) { stage.isOver })
        #expect(stage.end == .ended && stage.push.reconnects == 1, "\(stage.texts)")
        #expect(try LiveStage.numbers(stage.recording) == Array(0..<500))
    }

    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func filmThatEndsWhileNothingIsSent_isAFailure() throws {
        let server = try RTMPServer()
        let stage = try LiveStage(to: server.url("some-key"))
        try stage.start()
        #expect(stage.until { stage.push.state == .live })
        server.kill()
        #expect(stage.until(30) { stage.isOver })
        #expect(stage.errors.first?.message.contains("the film ended while it was not sent") == true, "\(stage.texts)")
        #expect(try LiveStage.numbers(stage.recording) == allPictures)
    }

    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func refusedKey_isToldWithoutTheKey() throws {
        let server = try RTMPServer()
        let right = try LiveStage(to: server.url("right-key", application: "private"))
        try right.start()
        #expect(right.until(5) { right.push.state == .live })
        right.push.stop()
        #expect(right.until(5) { right.end == .stopped })

        let stage = try LiveStage(to: server.url("wrong-s3cret", application: "private")) { $0.giveUp = 3 }
        try stage.start()
        #expect(stage.until(10) { stage.isOver })
        let error = try #require(stage.errors.first)
        #expect(error.code == .networkFailed && error.message.contains("refused the stream"), "\(error)")
        #expect(!stage.texts.contains { $0.contains("wrong-s3cret") })
        // What was recorded until then can be played.
        let numbers = try LiveStage.numbers(stage.recording)
        #expect(numbers == Array(allPictures.prefix(numbers.count)) && numbers.count > 25)
    }

    @Test func serverThatIsNotThere_isTold() throws {
        let stage = try LiveStage(to: "rtmp://127.0.0.1:1/live/some-key", recording: nil) { $0.giveUp = 1.2 }
        try stage.start()
        #expect(stage.until(5) { stage.isOver })
        #expect(stage.errors.first?.message.contains("rtmp://127.0.0.1:1/live/… cannot be reached") == true)
        #expect(stage.states.map(\.state) == [.connecting, .failed])
    }

    @Test func hostWithoutAddress_isTold() throws {
        let stage = try LiveStage(to: "rtmp://nowhere.invalid/live/some-key", recording: nil) { $0.giveUp = 1.2 }
        try stage.start()
        #expect(stage.until(10) { stage.isOver })
        #expect(stage.errors.first?.code == .networkFailed)
    }

    @Test func folder_getsHLS() throws {
        let web = try PrivateFolder()
        let stage = try LiveStage(to: web.path + "/live", recording: nil)
        try stage.start()
        #expect(stage.until { stage.isOver })
        #expect(stage.end == .ended && stage.texts.isEmpty, "\(stage.texts)")
        let list = try String(contentsOfFile: web.path + "/live/stream.m3u8", encoding: .utf8)
        #expect(list.contains("#EXT-X-ENDLIST") && list.contains("segment0000"))
        #expect(stage.push.bytesSent > 0)
        // The last five segments, without a gap.
        let numbers = try LiveStage.numbers(web.path + "/live/stream.m3u8")
        #expect(numbers == Array(allPictures.suffix(numbers.count)) && numbers.count >= 200, "\(numbers.count)")
    }

    @Test(.enabled(if: Child.isInstalled("srt-live-transmit"), "srt-tools is not installed"))
    func srtServerKilled_isConnectedAgain() throws {
        let folder = try PrivateFolder()
        let port = try LoopbackPort.free()
        func server(_ name: String) throws -> Child {
            try Child(
                "/bin/sh",
                [
                    "-c",
                    "exec srt-live-transmit -q 'srt://127.0.0.1:\(port)?mode=listener' file://con >\(folder.path)/\(name)",
                ])
        }
        let first = try server("first.ts")
        let stage = try LiveStage(to: "srt://127.0.0.1:\(port)?streamid=some-key")
        try stage.start()
        #expect(stage.until { stage.push.state == .live })
        stage.pass(1)
        first.kill()
        let second = try server("second.ts")
        #expect(stage.until(12) { stage.push.state == .reconnecting })
        #expect(stage.until(5) { stage.push.state == .live })
        #expect(stage.until { stage.isOver })
        #expect(stage.end == .ended && stage.push.reconnects == 1)
        #expect(try LiveStage.numbers(stage.recording) == allPictures)
        second.signal(SIGTERM)
        _ = second.wait(timeout: 5)
        let numbers = try LiveStage.numbers(folder.path + "/second.ts")
        #expect(!numbers.isEmpty && numbers == Array((numbers.first ?? 0)..<((numbers.last ?? 0) + 1)))
        #expect((numbers.last ?? 0) >= 290)
    }

    /// A twentieth of all datagrams is lost on both ways; SRT sends them again.
    @Test(.enabled(if: Child.isInstalled("srt-live-transmit"), "srt-tools is not installed"))
    func networkThatLosesPackets_costsNoPicture() throws {
        let folder = try PrivateFolder()
        let port = try LoopbackPort.free()
        let relay = try Child(
            "/usr/bin/python3",
            [repository.appendingPathComponent("Tests/Support/LossyRelay.py").path, "\(port)", "5"])
        let way = try #require(relay.line { Int($0) != nil })
        let server = try Child(
            "/bin/sh",
            [
                "-c",
                "exec srt-live-transmit -q 'srt://127.0.0.1:\(port)?mode=listener&latency=300' file://con >\(folder.path)/taken.ts",
            ])
        let stage = try LiveStage(to: "srt://127.0.0.1:\(way)?latency=300")
        try stage.start()
        #expect(stage.until { stage.push.state == .live })
        #expect(stage.until(30) { stage.isOver })
        #expect(stage.end == .ended && stage.push.reconnects == 0, "\(stage.texts)")
        #expect(try LiveStage.numbers(stage.recording) == allPictures)
        server.signal(SIGTERM)
        _ = server.wait(timeout: 5)
        relay.signal(SIGTERM)
        let counts = try #require(relay.line { $0.includes(" ") }).split(separator: " ").compactMap { Int($0) }
        print("srt: \(counts) datagrams were lost and passed")
        #expect(counts[0] > 20)
        let numbers = try LiveStage.numbers(folder.path + "/taken.ts")
        // On a busy machine the relay is a network that is too slow: then the sender leaves pictures out.
        let dropped = Int(stage.push.droppedFrames)
        let (first, last) = (numbers.first ?? 300, numbers.last ?? 0)
        #expect(numbers == Set(numbers).sorted() && first < 20 && last >= 290, "\(numbers)")
        #expect(last + 1 - first - numbers.count <= dropped && dropped < 75, "\(numbers.count), \(dropped)")
    }

    @Test func fileThatIsNoFilm_isRefused() throws {
        let folder = try PrivateFolder()
        let path = try folder.file("film.mp4", "this is no film")
        let stage = try LiveStage(to: "rtmp://127.0.0.1:1/live/key", recording: nil) { $0.source = .file(path) }
        #expect(throws: SessionError.self) { try stage.start() }
    }

    @Test func recordingThatExists_isKept() throws {
        let stage = try LiveStage(to: "rtmp://127.0.0.1:1/live/key")
        try "mine".write(toFile: stage.recording, atomically: true, encoding: .utf8)
        let error = #expect(throws: SessionError.self) { try stage.start() }
        #expect(error?.code == .fileAlreadyExists)
        #expect(try String(contentsOfFile: stage.recording, encoding: .utf8) == "mine")
    }

    @Test func recordingOfAnotherFormat_isRefusedAtOnce() throws {
        let error = #expect(throws: SessionError.self) {
            try LiveStage(to: "rtmp://127.0.0.1:1/live/key", recording: "film.avi")
        }
        #expect(error?.code == .formatNotSupported)
    }

    @Test func stop_completesTheRecording() throws {
        let stage = try LiveStage(to: "rtmp://127.0.0.1:1/live/key") { ($0.source, $0.keyFrameInterval) = (.test, 0.5) }
        try stage.start()
        stage.pass(1.5)
        stage.push.stop()
        #expect(stage.until(5) { stage.end == .stopped })
        let frames = try LiveStage.probe(stage.recording, "stream=nb_frames").first.flatMap { Int($0) } ?? 0
        #expect((20...60).contains(frames), "\(frames)")
        // Viewers who join wait for a key frame.
        let keys = try LiveStage.probe(stage.recording, "packet=flags").filter { $0.hasPrefix("K") }
        #expect(keys.count >= 2, "\(keys)")
        #expect(stage.recordingErrors.isEmpty)
    }

    @Test func recordingThatIsRemovedMeanwhile_isTold() throws {
        let stage = try LiveStage(to: "rtmp://127.0.0.1:1/live/key") { $0.source = .test }
        try stage.start()
        stage.pass(1)
        try FileManager.default.removeItem(atPath: stage.recording)
        stage.push.stop()
        #expect(stage.until(5) { stage.end == .stopped })
        #expect(stage.recordingErrors.count == 1 && "\(stage.recordingErrors)".contains("was removed"))
    }
}
