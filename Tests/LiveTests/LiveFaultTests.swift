import Foundation
import LiveBackend
import LiveStreaming
import PluginAPI
import TestSupport
import Testing

/// What goes wrong beside a live stream: servers, disks and screens that misbehave.
@Suite(.serialized) struct LiveFaultTests {
    private static let hasServer = RTMPServer.isInstalled

    /// A program in Python whose first line is its port.
    private static func peer(_ program: String, _ arguments: [String] = []) throws -> (child: Child, port: Int) {
        let child = try Child("/usr/bin/python3", ["-u", "-c", program] + arguments)
        guard let line = child.line(where: { Int($0) != nil }), let port = Int(line) else {
            throw SupportError("the peer did not start: \(child.errors)")
        }
        return (child, port)
    }

    @Test func serverThatNeverAnswers_isToldInTime_andTheRecordingIsWhole() throws {
        let (peer, port) = try Self.peer(
            "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1]); time.sleep(600)"
        )
        let stage = try LiveStage(to: "rtmp://127.0.0.1:\(port)/live/some-key")
        try stage.start()
        let begin = monotonicNow()
        #expect(stage.until(10) { !stage.messages.isEmpty })
        #expect(monotonicNow() - begin <= 6, "\(monotonicNow() - begin) s")
        #expect(stage.messages.first?.contains("takes nothing") == true, "\(stage.messages)")
        #expect(stage.until(30) { stage.isOver })
        #expect(try LiveStage.numbers(stage.recording) == allPictures)
        withExtendedLifetime(peer) {}
    }

    @Test(.enabled(if: hasServer, "nginx has no module for RTMP here"))
    func serverThatHasTheOldConnection_isAskedUntilItTakesTheNewOne() throws {
        let server = try RTMPServer()
        let film = try TestMedia.named("short-gop.mp4").path()
        let former = try Child(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-re", "-stream_loop", "-1", "-i", film, "-c", "copy", "-f", "flv",
                server.url("some-key"),
            ])
        #expect(eventually { server.taken.count == 1 })
        let stage = try LiveStage(to: server.url("some-key"))
        try stage.start()
        #expect(stage.until(10) { !stage.messages.isEmpty })
        #expect(stage.messages.first?.contains("refused the stream") == true, "\(stage.messages)")
        #expect(stage.push.state == .connecting)
        former.kill()
        #expect(stage.until(10) { stage.push.state == .live }, "\(stage.messages)")
        #expect(stage.until { stage.isOver })
        #expect(stage.end == .ended)
        #expect(try LiveStage.numbers(stage.recording) == allPictures)
    }

    @Test(.enabled(if: hasServer && TLSRelay.isInstalled, "nginx has no module for RTMP here, or openssl is missing"))
    func certificateThatNobodySigned_isToldAtOnce_andNothingIsSent() throws {
        let server = try RTMPServer()
        let relay = try TLSRelay(to: server.port)
        let stage = try LiveStage(to: "rtmps://127.0.0.1:\(relay.port)/live/s3cret")
        try stage.start()
        // It is not tried for as long as an address that may be wrong.
        #expect(stage.until(5) { stage.isOver })
        let error = try #require(stage.errors.first)
        #expect(error.code == .networkFailed, "\(error)")
        #expect(error.message.contains("the certificate of the server is not valid"), "\(error)")
        #expect(error.message.contains("update-ca-certificates"), "\(error)")
        #expect(!stage.texts.contains { $0.contains("s3cret") })
        #expect(server.taken.isEmpty)
    }

    /// A disk of its own, which only root may make.
    private static func disk(_ size: String, in folder: PrivateFolder) throws -> String? {
        let disk = try folder.folder("disk")
        // A container may not mount.
        guard (try? Child.run("mount", ["-t", "tmpfs", "-o", "size=" + size, "tmpfs", disk])) != nil else { return nil }
        return disk
    }

    @Test(.enabled(if: hasServer && geteuid() == 0, "only root may make a small disk"))
    func diskOfTheRecordingIsFull_theStreamGoesOn() throws {
        let folder = try PrivateFolder()
        guard let disk = try Self.disk("200k", in: folder) else { return }
        defer { _ = try? Child.run("umount", ["-l", disk]) }
        let server = try RTMPServer()
        let film = try LiveStage.noisyFilm(in: folder)
        let stage = try LiveStage(to: server.url("some-key"), recording: nil) {
            ($0.source, $0.recording) = (.file(film), disk + "/recording.mp4")
        }
        try stage.start()
        #expect(stage.until { !stage.recordingErrors.isEmpty })
        #expect(stage.recordingErrors.first?.code == .diskFull, "\(stage.recordingErrors)")
        #expect(stage.push.state == .live)
        #expect(stage.until(40) { stage.isOver })
        #expect(stage.end == .ended && stage.errors.isEmpty && stage.push.reconnects == 0, "\(stage.texts)")
        let numbers = try LiveStage.numbers(try #require(server.taken.first))
        #expect(numbers == Array((500 - numbers.count)..<500) && numbers.count > 470, "\(numbers.count)")
        // What fitted can be played.
        let kept = try LiveStage.numbers(disk + "/recording.mp4")
        #expect(kept == Array(0..<kept.count) && !kept.isEmpty, "\(kept.count)")
    }

    @Test(.enabled(if: geteuid() == 0, "only root may make a small disk"))
    func diskOfTheStreamIsFull_theRecordingIsWhole() throws {
        let folder = try PrivateFolder()
        guard let disk = try Self.disk("300k", in: folder) else { return }
        defer { _ = try? Child.run("umount", ["-l", disk]) }
        let film = try LiveStage.noisyFilm(in: folder)
        let stage = try LiveStage(to: disk + "/live") { $0.source = .file(film) }
        try stage.start()
        #expect(stage.until(60) { stage.isOver })
        #expect(stage.texts.contains { $0.contains("cannot be written") }, "\(stage.texts)")
        #expect(stage.recordingErrors.isEmpty)
        let numbers = try LiveStage.numbers(stage.recording)
        // Until it gave up, or all of the film.
        #expect(numbers == Array(0..<numbers.count) && numbers.count > 250, "\(numbers.count)")
    }

    private static let hasScreen = Child.isInstalled("Xvnc") && Child.isInstalled("xrandr")

    @Test(.enabled(if: hasScreen, "tigervnc-standalone-server and x11-xserver-utils are not installed"))
    func screenThatIsMadeSmaller_isStillSent() throws {
        let folder = try PrivateFolder()
        let server = try Child(
            "Xvnc",
            [
                "-displayfd", "1", "-geometry", "1280x720", "-depth", "24", "-SecurityTypes", "None", "-localhost",
                "-noreset",
                "-rfbport", "\(try LoopbackPort.free())",
            ])
        let number = try #require(server.line { Int($0) != nil })
        func paint(_ words: [String]) throws {
            try Child.run(words[0], ["-display", ":" + number] + words.dropFirst())
        }
        try paint(["xsetroot", "-solid", "black"])
        let stage = try LiveStage(to: folder.path + "/live") {
            ($0.source, $0.frameRate) = (.screen(display: ":" + number), 10)
        }
        try stage.start()
        stage.pass(2)
        try paint(["xrandr", "-s", "640x480"])
        stage.pass(2)
        try paint(["xsetroot", "-solid", "white"])
        stage.pass(3)
        stage.push.stop()
        #expect(stage.until(10) { stage.end == .stopped }, "\(stage.texts)")
        #expect(stage.texts.isEmpty)
        #expect(try LiveStage.probe(stage.recording, "stream=width,height").first == "1280,720")
        let raw = folder.path + "/raw"
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-y", "-i", stage.recording, "-vf", "crop=64:64", "-vsync", "passthrough",
                "-f", "rawvideo", "-pix_fmt", "gray", raw,
            ])
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: raw)))
        let means = stride(from: 0, to: bytes.count - 4_095, by: 4_096).map { place in
            bytes[place..<place + 4_096].reduce(0) { $0 + Int($1) } / 4_096
        }
        #expect(means.count > 40, "\(means.count) pictures")
        #expect((means.first ?? 255) < 40 && (means.last ?? 0) > 200, "\(means)")
    }
}
