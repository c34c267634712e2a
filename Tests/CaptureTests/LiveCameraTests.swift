import Foundation
import TestSupport
import Testing

/// A camera that is sent and recorded at the same time.
@Suite(.serialized, .enabled(if: VirtualCamera.isPossible, "GStreamer has no elements for PipeWire here"))
struct LiveCameraTests {
    @Test(.enabled(if: RTMPServer.isInstalled, "nginx has no module for RTMP here"))
    func camera_isSentAndRecorded_byOneEncoder() throws {
        let stage = try CaptureStage()
        let server = try RTMPServer()
        let push = try stage.sessionctl(
            "live", "push", server.url("name"), "--camera", "front", "--record", stage.path("film.mp4"))
        #expect(push.line(timeout: 30) { $0 == "live" } != nil, "\(push.output) \(push.errors)")
        // The length of the film; nothing has to be ready.
        Thread.sleep(forTimeInterval: 4)
        push.signal(SIGINT)
        #expect(push.wait(timeout: 30) == .code(0), "\(push.errors)")
        let recorded = try Self.packets(stage.path("film.mp4"))
        let sent = try Self.packets(try #require(server.taken.first))
        #expect(recorded.count > 60)
        // What the server got are the same bytes as those in the file: another encoder would have made others.
        #expect(sent.count > 30 && recorded.contains(sent[5]), "\(sent.count) of \(recorded.count)")
        let common = Set(recorded).intersection(sent)
        #expect(common.count >= Set(sent).count - 2, "\(common.count) of \(Set(sent).count)")
    }

    @Test func cameraThatIsNotThere_isNamed_withThoseThatAre() throws {
        let stage = try CaptureStage()
        let push = try stage.sessionctl("live", "push", stage.path("web"), "--camera", "back")
        #expect(push.wait(timeout: 30) == .code(1))
        #expect(push.errors.contains { $0.contains("there is no camera 'back'; there are 'front'") }, "\(push.errors)")
    }

    @Test func cameraIsUnplugged_theStreamFailsWithTheReason_andTheFilmIsWhole() throws {
        let stage = try CaptureStage()
        let push = try stage.sessionctl(
            "live", "push", stage.path("web"), "--camera", "front", "--record", stage.path("film.mp4"))
        #expect(push.line(timeout: 30) { $0 == "live" } != nil, "\(push.errors)")
        Thread.sleep(forTimeInterval: 3)
        stage.camera.remove()
        #expect(push.wait(timeout: 30) == .code(1))
        #expect(push.errors.contains { $0.contains("camera 'front'") }, "\(push.errors)")
        #expect(Self.pictures(stage.path("film.mp4")) > 30)
    }

    /// How many pictures a file has.
    private static func pictures(_ path: String) -> Int { (try? packets(path).count) ?? 0 }

    /// The checksum of each encoded picture.
    private static func packets(_ path: String) throws -> [String] {
        try Child.run(
            "ffprobe",
            [
                "-v", "error", "-select_streams", "v", "-show_data_hash", "md5", "-show_entries", "packet=data_hash",
                "-of", "csv=p=0", path,
            ]
        ).split(separator: "\n").map(String.init)
    }
}
