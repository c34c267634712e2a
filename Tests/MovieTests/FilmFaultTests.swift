import Foundation
import GStreamerBackend
import PluginAPI
import TestSupport
import Testing
import VideoBackend

/// What happens to a film that plays while its file, or its server, fails.
@Suite(.serialized) struct FilmFaultTests {
    /// The first part of a film in a file of its own.
    private static func cut(_ name: String, to part: Double, in folder: PrivateFolder) throws -> String {
        let whole = try Data(contentsOf: URL(fileURLWithPath: try TestMedia.named(name).path()))
        let path = folder.path + "/cut-" + name
        try whole.prefix(Int(Double(whole.count) * part)).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test(arguments: ["index-first.mp4", "matroska.mkv"]) func filmCutShort_isShownAsFarAsItIs(name: String) throws {
        let folder = try PrivateFolder()
        let stage = try FilmStage(try Self.cut(name, to: 0.5, in: folder))
        try stage.player.play()
        #expect(stage.until { stage.number > 50 })
        // It ends, or fails with the reason, and does not wait for ever.
        #expect(stage.until { stage.finished + stage.failures.count == 1 }, "\(stage.number)")
        #expect(stage.number > 100, "\(stage.number)")
        #expect(stage.player.state == .paused || stage.player.state == .failed)
        // The next film is shown.
        stage.player.load(uri: "file://" + (try TestMedia.named("short-gop.mp4").path()))
        #expect(stage.until { stage.film.isReady && stage.number == 0 })
    }

    /// - Returns: how many bytes the film has.
    private static func put(film name: String, on origin: OriginServer) throws -> Int {
        let whole = try Data(contentsOf: URL(fileURLWithPath: try TestMedia.named(name).path()))
        try whole.write(to: URL(fileURLWithPath: origin.folder.path + "/film.mp4"))
        return whole.count
    }

    private static func play(from origin: OriginServer) throws -> FilmStage {
        let stage = try FilmStage("short-gop.mp4", output: "x11")
        stage.player.load(uri: origin.url("film.mp4"))
        try stage.player.play()
        return stage
    }

    /// Python's own server; the index of the film is at its end. One that is at its beginning is played.
    @Test func serverSendsNoParts_theReasonIsSaid() throws {
        let folder = try PrivateFolder()
        let server = try Child(
            "/usr/bin/python3", ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", folder.path])
        let line = server.line { $0.hasPrefix("Serving HTTP") }?.split(separator: " ") ?? []
        let port = try #require(line.firstIndex(of: "port").map { line[$0 + 1] })
        // A smaller one would be read as a whole.
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i",
                "testsrc2=s=1280x720:r=25:d=4,noise=alls=60:allf=t", "-f", "lavfi", "-i", "sine=440:d=4", "-pix_fmt",
                "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac", folder.path + "/back.mp4",
            ], timeout: 60)
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-y", "-i", folder.path + "/back.mp4", "-c", "copy", "-movflags",
                "faststart", folder.path + "/front.mp4",
            ], timeout: 60)
        let stage = try FilmStage("short-gop.mp4", output: "x11")
        stage.player.load(uri: "http://127.0.0.1:\(port)/back.mp4")
        try stage.player.play()
        #expect(stage.until { !stage.failures.isEmpty })
        #expect(stage.failures.first?.contains("its server cannot send a part of it") == true, "\(stage.failures)")
        stage.player.load(uri: "http://127.0.0.1:\(port)/front.mp4")
        try stage.player.play()
        #expect(stage.until { stage.film.isReady && stage.player.position > 1 }, "\(stage.failures)")
    }

    @Test func filmWithoutItsIndex_failsWithTheReason() throws {
        let folder = try PrivateFolder()
        let stage = try FilmStage(try Self.cut("short-gop.mp4", to: 0.5, in: folder))
        try stage.player.play()
        #expect(stage.until(5) { stage.failures.count == 1 })
        #expect(stage.failures.first?.contains("cut-short-gop.mp4") == true, "\(stage.failures)")
        #expect(stage.player.state == .failed && stage.finished == 0)
    }

    /// Its pictures are some places behind their times, because it has no edit list.
    /// As of a recorder that was killed: its length is known only as far as it was played.
    @Test func filmInFragmentsWithoutAnIndex_canBeSoughtAsFarAsItWasPlayed() throws {
        let folder = try PrivateFolder()
        let path = folder.path + "/fragments.mp4"
        try Child.run(
            "ffmpeg",
            [
                "-nostdin", "-v", "error", "-y", "-i", try TestMedia.named("short-gop.mp4").path(), "-c", "copy",
                "-movflags", "frag_keyframe+empty_moov+skip_trailer", path,
            ], timeout: 60)
        let stage = try FilmStage(path)
        try stage.player.play()
        #expect(stage.until { stage.number > 75 })
        stage.player.pause()
        stage.player.seek(to: 0.5)
        #expect(stage.until { (8...14).contains(stage.number) }, "\(stage.number)")
        stage.player.seek(to: 2.902)
        #expect(stage.until { (66...74).contains(stage.number) }, "\(stage.number)")
        #expect((stage.player.duration ?? 0) > 2.9)
        try stage.player.play()
        #expect(stage.until { stage.finished == 1 })
        #expect(stage.until { stage.number > 295 }, "\(stage.number)")
        #expect(stage.failures == [])
    }

    @Test func fileIsRemovedWhileItPlays_isShownToItsEnd() throws {
        let folder = try PrivateFolder()
        let path = try Self.cut("short-gop.mp4", to: 1, in: folder)
        let stage = try FilmStage(path)
        try stage.player.play()
        #expect(stage.until { stage.number > 10 })
        try FileManager.default.removeItem(atPath: path)
        stage.player.seek(to: 11.5)
        #expect(stage.until { stage.finished == 1 })
        #expect(stage.until { stage.number == 299 } && stage.failures == [])
    }

    /// A film of a server that sends nothing for four seconds in its middle.
    @Test func networkGoesAndComesBack_filmWaits_andGoesOn() throws {
        let origin = try OriginServer()
        let size = try Self.put(film: "index-first.mp4", on: origin)
        try origin.tell("rate \(size / 10)")
        try origin.tell("stall \(size / 2) 6 1")
        let stage = try Self.play(from: origin)
        var hasWaited = false
        #expect(
            stage.until(60) {
                hasWaited = hasWaited || stage.player.isStalled
                return stage.finished + stage.failures.count > 0
            })
        #expect(hasWaited && stage.failures == [] && stage.finished == 1)
        #expect(stage.until { stage.number == 299 }, "\(stage.number)")
    }

    /// Two seconds of what comes are enough, of the five that are kept.
    @Test func slowServer_filmBeginsSoon() throws {
        let origin = try OriginServer()
        let size = try Self.put(film: "index-first.mp4", on: origin)
        // A fifth faster than it is played.
        try origin.tell("rate \(size / 10)")
        let stage = try Self.play(from: origin)
        #expect(stage.until(30) { stage.number > 3 })
        #expect(Double(origin.sent) < 0.4 * Double(size), "\(origin.sent) of \(size)")
        #expect(stage.until(60) { stage.finished + stage.failures.count > 0 })
        #expect(stage.failures == [] && stage.finished == 1)
    }

    @Test func serverIsSilentForEver_isAnError_andPauseIsAnsweredMeanwhile() throws {
        let origin = try OriginServer()
        let size = try Self.put(film: "index-first.mp4", on: origin)
        try origin.tell("stall \(size / 2) 600 100")
        let stage = try Self.play(from: origin)
        let heard = stage.ear.duration
        #expect(stage.until { stage.ear.duration > heard + 1 })
        let before = ContinuousClock.now
        stage.player.pause()
        #expect(stage.player.state == .paused && ContinuousClock.now - before < .milliseconds(200))
        try stage.player.play()
        #expect(stage.until(60) { stage.failures.count == 1 })
        #expect(stage.failures.first?.contains("film.mp4") == true, "\(stage.failures)")
    }
}
