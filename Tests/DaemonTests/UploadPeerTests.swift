import DBus
import Foundation
import PluginAPI
import TestSupport
import Testing

/// Uploads to servers that others wrote, and the tests' own server with a client that others wrote. `Scripts/check tus`
/// installs the server and the client of tus; the tests with them only run there.
@Suite(.serialized) struct UploadPeerTests {
    @Test(.enabled(if: Child.hasNginx, "nginx is not installed")) func nginx_hasTheFile() throws {
        let stage = try UploadStage()
        let nginx = try Nginx()
        let (path, bytes) = try stage.file(20_000_003)
        let job = try stage.upload(path, to: nginx.url("films/film.mp4"), [("method", .string("put"))])
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(try stage.answer(job).status == 201)
        #expect(nginx.stored("films/film.mp4") == bytes)
        // It knows no OPTIONS.
        let asked = try stage.upload(path, to: nginx.url("asked"))
        #expect(stage.end(asked) == "finished", "\(stage.message(asked))")
        #expect(nginx.stored("asked") == bytes)
        let refused = try stage.upload(path, to: nginx.url("films"), [("method", .string("put"))])
        #expect(stage.end(refused) == "failed")
        #expect(stage.error(refused) == "NetworkFailed")
    }

    /// aiohttp-tus keeps whole pieces only, and takes 1 MB in one request unless it is told otherwise.
    @Test(arguments: [1 << 20, 64 << 20])
    func otherServer_hasTheFileAlsoAfterKills_ifItIsInstalled(_ largest: Int) throws {
        guard TusPeer.python != nil else { return }
        let stage = try UploadStage(machine: true)
        let peer = try TusPeer(largest: largest)
        let (path, bytes) = try stage.file(12_000_003)
        let job = try stage.upload(
            path, to: peer.url,
            [("method", .string("tus")), ("rate", .uint64(8_000_000)), ("chunk-size", .uint64(2 << 20))])
        #expect(stage.wait { stage.done(job) > 3_000_000 }, "\(stage.message(job))")
        try stage.restart()
        #expect(stage.wait { stage.done(job) > 7_000_000 }, "\(stage.message(job))")
        try peer.restart()
        #expect(
            stage.wait {
                stage.nudge(job)
                return stage.state(job) == "finished"
            }, "\(stage.message(job))")
        #expect(peer.stored("film.mp4") == bytes)
        let cancelled = try stage.upload(
            stage.file(3_000_000, "other.mp4").path, to: peer.url,
            [("method", .string("tus")), ("rate", .uint64(1_000_000))])
        #expect(stage.wait { stage.done(cancelled) > 0 })
        try stage.job(cancelled, "Cancel")
        #expect(
            stage.wait {
                ((try? FileManager.default.contentsOfDirectory(atPath: peer.folder.path + "/.metadata")) ?? []).isEmpty
            })
    }

    @Test func otherClient_uploadsToTheTestServer_ifItIsInstalled() throws {
        guard let python = TusPeer.python else { return }
        let server = try UploadServer()
        let folder = try PrivateFolder()
        let bytes = randomBytes(5_000_003)
        let path = folder.path + "/film.mp4"
        try bytes.write(to: URL(fileURLWithPath: path))
        try server.tell("cut 3000000")
        let program = """
            import sys
            from tusclient.client import TusClient
            TusClient(sys.argv[1]).uploader(sys.argv[2], chunk_size=2 << 20, retries=3, retry_delay=0).upload()
            """
        let client = try Child(python, ["-c", program, server.url("tus"), path])
        #expect(client.wait(timeout: 30) == .code(0), "\(client.errors)")
        #expect(server.storedByTus == bytes)
    }
}
