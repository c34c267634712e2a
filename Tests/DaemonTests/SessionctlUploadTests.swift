import DBus
import Foundation
import PluginAPI
import SessionBus
import SessionKit
import TestSupport
import Testing

/// `sessionctl upload` and SessionKit's `Upload`: the daemon starts the plugin.
@Suite(.serialized) struct SessionctlUploadTests {
    private final class Stage {
        let daemon: DaemonStage
        let server: UploadServer
        let folder: PrivateFolder
        let environment: [String: String]

        init() throws {
            server = try UploadServer()
            folder = try PrivateFolder()
            try UploadPlugin.install(below: folder.path)
            let home = ["HOME": folder.path, "XDG_STATE_HOME": folder.path + "/state", "PATH": "/usr/bin:/bin"]
            daemon = try DaemonStage(environment: home)
            environment = try SessionctlStage.environment(on: daemon.bus).merging(home) { $1 }
        }

        func file(_ size: Int) throws -> (path: String, bytes: Data) {
            let bytes = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 8) })
            let path = folder.path + "/film.mp4"
            try bytes.write(to: URL(fileURLWithPath: path))
            return (path, bytes)
        }

        func start(_ arguments: [String]) throws -> Child {
            try Child(try builtProduct(named: "sessionctl"), ["upload"] + arguments, environment: environment)
        }

        func run(_ arguments: [String]) throws -> SessionctlStage.Outcome {
            try SessionctlStage.outcome(of: start(arguments), arguments, 60)
        }

        /// The plugin's process.
        func plugin() throws -> Int32 {
            let values = try daemon.observer.callAndWait(
                BusName.service, ObjectPath.root, BusName.plugins, "Open", [.string("uploads"), .string("https:")],
                timeout: 60)
            let answer = try daemon.observer.askBusAndWait(
                "GetConnectionUnixProcessID", [.string(values[0].stringValue ?? "")], timeout: 5)
            return Int32(answer.first?.uint32Value ?? 0)
        }
    }

    @Test func file_isUploadedAndSaid() throws {
        let stage = try Stage()
        let (path, bytes) = try stage.file(100_000)
        let outcome = try stage.run([path, stage.server.url("film")])
        #expect(outcome.code == 0, "\(outcome)")
        #expect(outcome.output == ["film.mp4  100 kB  \(stage.server.url("film"))"])
        #expect(outcome.errors == [])
        #expect(stage.server.stored("film") == bytes)
        let byTus = try stage.run(["--tus", "--checksum", path, stage.server.url("tus"), "--json"])
        #expect(byTus.code == 0, "\(byTus)")
        let object = try SessionctlStage.object(byTus.text)
        #expect(object["state"] as? String == "finished")
        #expect(object["total"] as? Int == 100_000)
        #expect(object["status"] as? Int == 204)
        #expect((object["location"] as? String)?.hasPrefix(stage.server.url("tus/")) == true)
    }

    @Test func headersAndFields_areSent() throws {
        let stage = try Stage()
        let (path, _) = try stage.file(1_000)
        let token = try stage.folder.file("token", "Authorization: Bearer abc\nX-Two: 2\n")
        let outcome = try stage.run([
            "--method", "post", "--header", "@" + token, "--header", "X-One: 1", "--field", "title=A=B", "--file-field",
            "upload", path, stage.server.url("form"),
        ])
        #expect(outcome.code == 0, "\(outcome)")
        let fields = try #require(stage.server.requests.first?.fields)
        #expect(fields["authorization"] == "Bearer abc" && fields["x-two"] == "2" && fields["x-one"] == "1")
        let body = try #require(stage.server.stored("form"))
        #expect(body.range(of: Data("name=\"title\"\r\n\r\nA=B\r\n".utf8)) != nil)
        #expect(body.range(of: Data("name=\"upload\"; filename=\"film.mp4\"".utf8)) != nil)
    }

    @Test func refused_isSaidOnOneLine() throws {
        let stage = try Stage()
        let (path, _) = try stage.file(1_000)
        try stage.server.tell("answer PUT 403 1")
        let refused = try stage.run(["--method", "put", path, stage.server.url("film")])
        #expect(refused.code == 1)
        #expect(
            refused.errors.count == 1
                && refused.complaint.hasPrefix("sessionctl: the server answered 403"))
        let missing = try stage.run(["/nowhere", stage.server.url("film")])
        #expect(missing.code == 1 && !missing.complaint.contains("NotFound"), "\(missing)")
        #expect(missing.complaint.contains("/nowhere"), "\(missing)")
        try stage.server.tell("answer PUT 403 1")
        let asJSON = try stage.run(["--method", "put", "--json", path, stage.server.url("film")])
        #expect(asJSON.code == 1)
        #expect(try SessionctlStage.object(asJSON.text)["error"] as? String == "NetworkFailed")
        for wrong in [
            ["--tus", "--method", "put"], ["--checksum"], ["--rate", "x"], ["--header", "x"], ["--field", "=x"],
        ] {
            #expect(try stage.run(wrong + [path, stage.server.url("film")]).code != 0, "\(wrong)")
        }
    }

    @Test func interrupted_cancelsAndLeavesNothing() throws {
        let stage = try Stage()
        let (path, _) = try stage.file(3_000_000)
        try stage.server.tell("hold 200000")
        let upload = try stage.start(["--tus", path, stage.server.url("tus")])
        #expect(eventually { stage.server.storedByTus?.count == 200_000 })
        upload.signal(SIGINT)
        #expect(upload.wait(timeout: 20) == .code(130))
        #expect(upload.errors == ["sessionctl: cancelled"])
        try stage.server.tell("go")
        #expect(eventually { stage.server.uploads.isEmpty })
    }

    @Test func detached_goesOnWithoutTheCommand() throws {
        let stage = try Stage()
        let (path, bytes) = try stage.file(1_000_000)
        try stage.server.tell("hold 200000")
        let outcome = try stage.run(["--detach", path, stage.server.url("film")])
        #expect(outcome.code == 0)
        #expect(outcome.text.hasPrefix("uploading film.mp4 as job uploads/"), "\(outcome)")
        #expect(eventually { stage.server.holds == 1 })
        try stage.server.tell("go")
        #expect(eventually(timeout: 30) { stage.server.stored("film") == bytes })
    }

    @Test func pluginIsKilled_theDaemonStartsItAndItGoesOn() throws {
        let stage = try Stage()
        let (path, bytes) = try stage.file(4_000_000)
        try stage.server.tell("hold 200000")
        let upload = try stage.start(["--tus", path, stage.server.url("tus")])
        #expect(eventually { stage.server.storedByTus?.count == 200_000 })
        let first = try stage.plugin()
        kill(first, SIGKILL)
        try stage.server.tell("go")
        #expect(upload.wait(timeout: 60) == .code(0), "\(upload.errors)")
        #expect(stage.server.stored(stage.server.uploads.first ?? "") == bytes)
        #expect(upload.errors.contains("sessionctl: the plugin for uploads ended; it is started again"))
        #expect(try stage.plugin() != first)
    }

    @Test func pluginIsKilledWhileNobodyWaits_theDaemonStartsItAndItGoesOn() throws {
        let stage = try Stage()
        let (path, bytes) = try stage.file(4_000_000)
        try stage.server.tell("hold 200000")
        #expect(try stage.run(["--detach", "--tus", path, stage.server.url("tus")]).code == 0)
        #expect(eventually { stage.server.storedByTus?.count == 200_000 })
        kill(try stage.plugin(), SIGKILL)
        try stage.server.tell("go")
        #expect(eventually(timeout: 60) { stage.server.stored(stage.server.uploads.first ?? "") == bytes })
    }

    // MARK: SessionKit

    @Test func upload_tellsItsProgressAndTheAnswer() async throws {
        let stage = try Stage()
        let (path, bytes) = try stage.file(2_000_000)
        try stage.server.tell("hold 500000")
        let upload = Upload(path, to: stage.server.url("film"), bus: .custom(stage.daemon.bus.address))
        let progress = upload.progress
        try await upload.start()
        var shares: [Double] = []
        for await now in progress {
            shares.append(now.fractionCompleted)
            if now.fractionCompleted >= 0.25 { try stage.server.tell("go") }
        }
        #expect(shares.last == 1 && shares == shares.sorted())
        #expect(shares.contains { (0.25..<0.5).contains($0) }, "\(shares)")
        let response = try await upload.response
        #expect(response.status == 201)
        #expect(response.location == stage.server.url("film"))
        #expect(stage.server.stored("film") == bytes)
        await #expect(throws: SessionError.self) { try await upload.start() }
    }

    @Test func uploadThatIsCancelledOrRefused_throws() async throws {
        let stage = try Stage()
        let (path, _) = try stage.file(2_000_000)
        try stage.server.tell("hold 0")
        let bus = BusAddress.custom(stage.daemon.bus.address)
        let upload = Upload(path, to: stage.server.url("film"), bus: bus)
        try await upload.start()
        await upload.cancel()
        do throws(SessionError) {
            _ = try await upload.response
            Issue.record("it has an answer")
        } catch {
            #expect(error.code == .cancelled)
        }
        let refused = Upload("/nowhere", to: stage.server.url("film"), bus: bus)
        do throws(SessionError) {
            try await refused.start()
            Issue.record("it has begun")
        } catch {
            #expect(error.code == .notFound)
        }
    }
}
