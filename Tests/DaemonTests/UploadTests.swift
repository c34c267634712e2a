import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Uploads by the real plugin to a server that is well.
@Suite(.serialized) struct UploadTests {
    @Test(arguments: ["put", "tus", "auto"]) func file_arrivesUnchanged(_ method: String) throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(20_000_003)
        let target = method == "put" ? "film" : "tus"
        let job = try stage.upload(path, to: target, [("method", .string(method))])
        #expect(job.hasPrefix("/org/sessiond1/uploads/job/"))
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        let properties = stage.properties(job)
        #expect(properties["Progress"] == .double(1))
        #expect(properties["Done"] == .uint64(20_000_003))
        #expect(properties["Unit"] == .string("bytes"))
        #expect(properties["Name"] == .string("film.mp4"))
        #expect(properties["Kind"] == .string("upload"))
        let answer = try stage.answer(job)
        if method == "put" {
            #expect(stage.server.stored("film") == bytes)
            #expect(stage.server.requests.map(\.method) == ["PUT"])
            #expect(stage.server.requests[0].fields?["content-type"] == "video/mp4")
            #expect(answer.status == 201 && answer.location == stage.server.url("film"))
        } else {
            #expect(stage.storedByTus == bytes)
            let requests = stage.server.requests.map(\.method)
            #expect(requests == (method == "auto" ? ["OPTIONS"] : []) + ["POST", "PATCH", "PATCH", "PATCH"])
            let create = try #require(stage.server.requests.first { $0.method == "POST" }?.fields)
            #expect(create["upload-length"] == "20000003")
            // "film.mp4" and "video/mp4".
            #expect(create["upload-metadata"] == "filename ZmlsbS5tcDQ=,filetype dmlkZW8vbXA0")
            #expect(answer.status == 204)
            #expect(answer.location.hasPrefix(stage.server.url("tus/")))
        }
        #expect(stage.records.isEmpty)
    }

    @Test func serverWithoutTus_getsAPut() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(1_000)
        let job = try stage.upload(path, to: "film")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.server.requests.map(\.method) == ["OPTIONS", "PUT"])
        #expect(stage.server.stored("film") == bytes)
    }

    @Test func form_hasTheFileAndItsFields() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(100_000)
        let form = Value.dictionary(key: "s", value: "s", [.init(key: .string("title"), value: .string("A film"))])
        let job = try stage.upload(
            path, to: "form", [("method", .string("post")), ("field", .string("upload")), ("form", form)])
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        let body = try #require(stage.server.stored("form"))
        #expect(body.range(of: bytes) != nil)
        #expect(body.range(of: Data("name=\"title\"\r\n\r\nA film\r\n".utf8)) != nil)
        #expect(
            body.range(of: Data("name=\"upload\"; filename=\"film.mp4\"\r\nContent-Type: video/mp4\r\n".utf8)) != nil)
        #expect(try stage.answer(job).body == "<html>Thank you</html>")
    }

    @Test(arguments: ["put", "tus", "post"]) func emptyFile_isUploaded(_ method: String) throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(0)
        let job = try stage.upload(path, to: method == "tus" ? "tus" : "film", [("method", .string(method))])
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(method == "tus" ? stage.storedByTus == Data() : stage.server.stored("film") != nil)
    }

    @Test func checksums_areThoseOfThePieces() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(700_000)
        let job = try stage.upload(
            path, to: "tus",
            [("method", .string("tus")), ("checksum", .bool(true)), ("chunk-size", .uint64(300_000))])
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        let pieces = stage.server.requests.filter { $0.method == "PATCH" }
        #expect(pieces.map(\.status) == [204, 204, 204], "the server compares them")
        #expect(pieces.allSatisfy { $0.fields?["upload-checksum"]?.hasPrefix("sha1 ") == true })
        #expect(stage.storedByTus == bytes)
    }

    @Test func atMostThree_areSentAtOnce() throws {
        let stage = try UploadStage()
        try stage.server.tell("hold 0")
        let (path, _) = try stage.file(200_000)
        for number in 0..<7 { _ = try stage.upload(path, to: "film-\(number)", [("method", .string("put"))]) }
        // All at the same instant.
        func states() -> [String] { ((try? stage.list()) ?? []).compactMap { $0["state"]?.stringValue } }
        let begun = ["running", "running", "running", "waiting", "waiting", "waiting", "waiting"]
        #expect(stage.wait { states() == begun && stage.server.holds == 1 })
        #expect(states() == begun, "the oldest first")
        try stage.server.tell("go")
        var most = 0
        #expect(
            stage.wait(timeout: 60) {
                let now = states()
                most = max(most, now.count { $0 == "running" })
                return now.allSatisfy { $0 == "finished" }
            })
        #expect(most <= 3)
        #expect(Set(stage.server.requests.map(\.path)).count == 7)
    }

    @Test func pausedUpload_continuesAtItsPosition() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(3_000_000)
        let job = try stage.held(path, to: "tus", at: 500_000, [("method", .string("tus"))])
        try stage.job(job, "Pause")
        #expect(stage.state(job) == "paused")
        // What was on its way arrives, and then the connection is over.
        try stage.server.tell("go")
        #expect(stage.wait { stage.server.received > 0 })
        #expect((500_000..<3_000_000).contains(stage.storedByTus?.count ?? 0))
        let before = stage.server.requests.count
        try stage.job(job, "Resume")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.server.requests.dropFirst(before).first?.method == "HEAD")
        #expect(stage.storedByTus == bytes)
    }

    @Test(arguments: ["put", "tus"]) func cancelledUpload_leavesNothing(_ method: String) throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(3_000_000)
        let job = try stage.held(
            path, to: method == "tus" ? "tus" : "film", at: 100_000, [("method", .string(method))])
        #expect(stage.records.count == 1)
        try stage.job(job, "Cancel")
        #expect(stage.state(job) == "cancelled")
        #expect(stage.error(job) == "Cancelled")
        #expect(stage.records.isEmpty)
        try stage.server.tell("go")
        #expect(stage.wait { stage.server.uploads.isEmpty && stage.server.received > 0 })
        #expect(stage.server.stored("film") == nil)
    }

    @Test func deleteWhenDone_deletesTheFileThatWasUploaded() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(1_000)
        let job = try stage.upload(path, to: "film", [("method", .string("put")), ("delete-when-done", .bool(true))])
        #expect(stage.end(job) == "finished")
        #expect(!FileManager.default.fileExists(atPath: path))
        let (kept, _) = try stage.file(1_000)
        try stage.server.tell("answer PUT 403 1")
        let refused = try stage.upload(
            kept, to: "film", [("method", .string("put")), ("delete-when-done", .bool(true))])
        #expect(stage.end(refused) == "failed")
        #expect(FileManager.default.fileExists(atPath: kept))
    }

    @Test func wrongRequests_areRefusedWithTheReason() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(10)
        func refusal(_ path: String, _ url: String = "http://127.0.0.1:1/", _ options: [(String, Value)] = []) -> String
        {
            guard let failure = stage.refusal(path, to: url, options) else { return "none" }
            return failure.name.split(separator: ".").last.map { "\($0): \(failure.message)" } ?? ""
        }
        func pairs(_ name: String, _ value: String) -> Value {
            .dictionary(key: "s", value: "s", [.init(key: .string(name), value: .string(value))])
        }
        #expect(refusal("film.mp4").hasPrefix("BadParameter: 'path' must be absolute"))
        #expect(refusal("/nowhere/film.mp4").hasPrefix("NotFound: "))
        #expect(refusal(stage.folder.path).hasPrefix("InvalidSource: "))
        #expect(refusal("/dev/zero").hasPrefix("InvalidSource: "))
        for url in ["http:", "https://", "ftp://host/x"] {
            #expect(refusal(path, url).hasPrefix("BadParameter: 'url'"), "\(url)")
        }
        for options: (String, Value) in [
            ("method", .string("ftp")), ("metered", .string("maybe")), ("chunk-size", .uint64(1)),
            ("headers", pairs("X\nY", "a")), ("headers", pairs("X", "a\r\nHost: b")),
            ("headers", pairs("Content-Length", "1")),
            ("headers", pairs("upload-offset", "1")), ("form", pairs("a b", "c")), ("checksum", .bool(true)),
            ("nonsense", .bool(true)),
        ] { #expect(refusal(path, "http://127.0.0.1:1/", [options]).hasPrefix("BadParameter: "), "\(options)") }
        #expect(refusal(path, "http://127.0.0.1:1/", [("rate", .string("1"))]).hasPrefix("InvalidArgs: "))
        #expect(try stage.list().isEmpty)
        #expect(stage.records.isEmpty)
    }

    @Test(.enabled(if: getuid() == 0, "chroot is root's")) func sandbox_mayNotNameAFileToUpload() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(10)
        let call = UploadStage.call("Upload", "ssa{sv}", "('\(path)', 'http://127.0.0.1:1/', {})")
        #expect(try stage.stranger(call, isSandboxed: true) == "org.freedesktop.DBus.Error.AccessDenied")
        #expect(try stage.stranger(call, isSandboxed: false) == "ok")
    }

    // MARK: Secrets

    @Test func credentials_areSentOnlyToTheServer() throws {
        let stage = try UploadStage()
        let other = try UploadServer()
        let (path, bytes) = try stage.file(50_000)
        let secret = "Bearer s3cr3t-t0k3n"
        let headers = Value.dictionary(
            key: "s", value: "s", [.init(key: .string("Authorization"), value: .string(secret))])
        try stage.server.tell("redirect PUT 307 \(other.url("elsewhere", host: "127.0.0.1")) 1")
        let url = "http://user:passw0rd@127.0.0.1:\(stage.server.port)/film?key=s1gn4ture"
        let slow = try stage.upload(path, to: url, [("method", .string("tus")), ("headers", headers)])
        let redirected = try stage.upload(path, to: url, [("method", .string("put")), ("headers", headers)])
        #expect(stage.end(redirected) == "finished", "\(stage.message(redirected))")
        #expect(other.stored("elsewhere") == bytes)
        let first = try #require(stage.server.requests.first { $0.method == "PUT" }?.fields)
        #expect(first["authorization"] == secret)
        let second = try #require(other.requests.first { $0.method == "PUT" }?.fields)
        #expect(second["authorization"] == nil, "another server gets neither the header nor the password")
        try stage.server.tell("redirect POST 307 \(other.url("form", host: "127.0.0.1")) 1")
        let form = Value.dictionary(
            key: "s", value: "s", [.init(key: .string("token"), value: .string("f13ld"))])
        let posted = try stage.upload(path, to: url, [("method", .string("post")), ("form", form)])
        #expect(stage.end(posted) == "finished", "\(stage.message(posted))")
        let body = other.stored("form") ?? Data()
        #expect(body.range(of: bytes) != nil && body.range(of: Data("f13ld".utf8)) == nil, "nor the fields")
        _ = stage.end(slow)
        // What the plugin told, lists and logs has none of it.
        let listed = try stage.list().map { "\($0)" }.joined() + "\(stage.properties(slow))"
        let everything = (stage.told + stage.lines + [listed]).joined(separator: "\n")
        #expect(!stage.told.isEmpty)
        for word in ["s3cr3t", "passw0rd", "s1gn4ture"] { #expect(!everything.contains(word), "\(word)") }
    }

    @Test func record_isReadableOnlyForTheUser() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(500_000)
        let job = try stage.held(path, to: "tus", at: 100_000, [("method", .string("tus"))])
        let folder = stage.folder.path + "/state/sessiond/uploads"
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
            let mode = try FileManager.default.attributesOfItem(atPath: folder + "/" + name)[.posixPermissions] as? Int
            #expect(mode == 0o600, "\(name)")
        }
        let mode = try FileManager.default.attributesOfItem(atPath: folder)[.posixPermissions] as? Int
        #expect(mode == 0o700)
        try stage.job(job, "Cancel")
    }

    // MARK: The machine

    @Test func meteredNetwork_delaysUnlessAllowed() throws {
        let stage = try UploadStage(machine: true, metered: 1)
        let (path, bytes) = try stage.file(1_000)
        let waits = try stage.upload(path, to: "waits", [("method", .string("put"))])
        let sends = try stage.upload(path, to: "sends", [("method", .string("put")), ("metered", .string("send"))])
        #expect(stage.end(sends) == "finished")
        #expect(stage.state(waits) == "waiting")
        #expect(stage.message(waits) == "it waits for a network that is not metered")
        #expect(stage.server.stored("waits") == nil)
        try stage.machine?.tell("metered 2")
        #expect(stage.end(waits) == "finished")
        #expect(stage.server.stored("waits") == bytes)
    }

    @Test func networkBecomesMetered_stopsAndContinues() throws {
        let stage = try UploadStage(machine: true)
        let (path, bytes) = try stage.file(3_000_000)
        let job = try stage.held(path, to: "tus", at: 200_000, [("method", .string("tus"))])
        try stage.machine?.tell("metered 3")
        #expect(stage.wait { stage.state(job) == "waiting" })
        try stage.server.tell("go")
        try stage.machine?.tell("metered 4")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.storedByTus == bytes)
    }

    @Test func runningUpload_delaysSleep() throws {
        let stage = try UploadStage(machine: true)
        let machine = try #require(stage.machine)
        let (path, _) = try stage.file(500_000)
        #expect(machine.locks.isEmpty)
        let job = try stage.held(path, to: "film", at: 100_000, [("method", .string("put"))])
        #expect(stage.wait { machine.locks == ["lock sleep sessiond delay"] })
        try stage.server.tell("go")
        #expect(stage.end(job) == "finished")
        #expect(stage.wait { machine.locks == ["lock sleep sessiond delay", "unlock"] })
    }

    @Test func machineSleeps_uploadContinuesWhenItWakes() throws {
        let stage = try UploadStage(machine: true)
        let machine = try #require(stage.machine)
        let (path, bytes) = try stage.file(3_000_000)
        let job = try stage.held(path, to: "tus", at: 200_000, [("method", .string("tus"))])
        #expect(stage.wait { machine.locks.count == 1 })
        try machine.tell("sleep")
        #expect(stage.wait { machine.locks.last == "unlock" }, "the machine is not held up")
        #expect(stage.state(job) == "waiting")
        try stage.server.tell("go")
        try machine.tell("wake")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.storedByTus == bytes)
    }

    @Test func offlineTime_countsNoTryAndEndsAtOnce() throws {
        let stage = try UploadStage(machine: true)
        try stage.machine?.tell("state 20")
        stage.server.kill()
        let (path, bytes) = try stage.file(1_000)
        let job = try stage.upload(path, to: "film", [("method", .string("put")), ("tries", .uint32(1))])
        // Two tries and more: the second wait is 3 s, and up to a fifth longer, so that not all uploads come back at once.
        #expect(
            stage.wait { ["in 3 s", "in 4 s"].contains(where: stage.message(job).hasSuffix) },
            "\(stage.message(job))")
        #expect(try stage.list().first?["tries"] == .uint32(0))
        try stage.server.restart()
        try stage.machine?.tell("state 70")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.server.stored("film") == bytes)
    }

    @Test func largeFile_needsNoMemory() throws {
        let stage = try UploadStage()
        let path = stage.folder.path + "/large"
        _ = FileManager.default.createFile(atPath: path, contents: nil)
        truncate(path, amount(256, long: 10_000) << 20)
        // Everything that is loaded once is loaded.
        let (small, _) = try stage.file(1 << 20)
        #expect(stage.end(try stage.upload(small, to: "null", [("method", .string("put"))])) == "finished")
        let before = try stage.memory()
        let job = try stage.upload(path, to: "null", [("method", .string("put"))])
        #expect(stage.end(job, timeout: 600) == "finished", "\(stage.message(job))")
        let after = try stage.memory()
        #expect(after.most - before.most < 4_000, "\(before) \(after) kB")
    }
}
