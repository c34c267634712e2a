import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Uploads among programs, servers and files that mean no good.
@Suite(.serialized) struct UploadStrangerTests {
    private static func pairs(_ pairs: [(String, String)]) -> Value {
        .dictionary(key: "s", value: "s", pairs.map { .init(key: .string($0.0), value: .string($0.1)) })
    }

    private static let put: (String, Value) = ("method", .string("put"))
    private static let tus: (String, Value) = ("method", .string("tus"))

    // MARK: Other programs

    @Test func answer_isOnlyForItsOwner_andHasNoSecretsOfTheAddress() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(1_000)
        let url = "http://alice:passw0rd@127.0.0.1:\(stage.server.port)/film?sig=s1gn4ture#part"
        let detached = try stage.upload(path, to: url, [Self.put])
        let own = try stage.upload(path, to: url, [Self.put, ("detached", .bool(false))])
        #expect(stage.end(detached) == "finished", "\(stage.message(detached))")
        #expect(stage.end(own) == "finished", "\(stage.message(own))")
        for job in [detached, own] { #expect(try stage.answer(job).location == stage.server.url("film")) }
        // What the server names, relative to the address: without what the server did not name.
        let named = try stage.upload(path, to: url.replacingOccurrences(of: "film", with: "tus"), [Self.tus])
        #expect(stage.end(named) == "finished")
        #expect(try stage.answer(named).location.hasPrefix(stage.server.url("tus/")))
        func ask(_ job: String) throws -> String {
            try stage.stranger(UploadStage.call("Answer", "o", "(dbus.ObjectPath('\(job)'),)"), isSandboxed: false)
        }
        #expect(try ask(detached) == "ok")
        #expect(try ask(own) == "org.sessiond1.Error.NotOwner")
        #expect(try ask(own + "0") == "org.sessiond1.Error.NotFound")
        #expect(try ask("/job/1") == "org.sessiond1.Error.NotFound")
    }

    @Test(.enabled(if: getuid() == 0, "chroot is root's")) func sandbox_neitherReadsNorControlsUploadsOfOthers() throws
    {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(500_000)
        let job = try stage.held(path, to: "tus", at: 100_000, [Self.tus])
        let calls =
            [
                UploadStage.call("Answer", "o", "(dbus.ObjectPath('\(job)'),)"), UploadStage.call("List", "", "()"),
            ] + ["Pause", "Resume", "Cancel"].map { "'\(job)', '\(BusName.job)', '\($0)', '', ()" }
        for call in calls {
            #expect(try stage.stranger(call, isSandboxed: true) == "org.freedesktop.DBus.Error.AccessDenied", "\(call)")
        }
        #expect(stage.state(job) == "running")
        for call in calls.prefix(4) { #expect(try stage.stranger(call, isSandboxed: false) == "ok", "\(call)") }
        try stage.server.tell("go")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.storedByTus == bytes)
    }

    @Test(arguments: [
        ("sessiond-transfer", "org.sessiond1.Uploads"), ("sessiond-assets", "org.sessiond1.Assets"),
    ]) func systemBusNeverAnswers_pluginIsNotDelayed(_ program: String, _ name: String) throws {
        let folder = try PrivateFolder()
        let deaf = try DeafBus.start(in: folder)
        #expect(deaf.line { $0 == "ready" } != nil)
        let bus = try PrivateBus()
        let environment = [
            "PATH": "/usr/bin:/bin", "HOME": folder.path, "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(folder.path)/bus",
        ]
        let plugin = try Child(
            try builtProduct(named: program), [], environment: bus.environment.merging(environment) { $1 })
        #expect(deaf.line { $0 == "00415554" } != nil, "it must have connected")
        let client = try Connection(.custom(bus.address), loop: EventLoop())
        #expect(
            eventually(timeout: 20) {
                let names = try? client.askBusAndWait("ListNames", timeout: 5).first?.stringsValue
                return names?.contains { $0.hasPrefix(name + ".instance") } == true
            }, "\(plugin.errors)")
        deaf.kill()
        plugin.kill()
    }

    @Test func systemBusNeverAnswers_uploadsAreSent() throws {
        let folder = try PrivateFolder()
        let deaf = try DeafBus.start(in: folder)
        #expect(deaf.line { $0 == "ready" } != nil)
        let stage = try UploadStage(environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(folder.path)/bus"])
        let (path, bytes) = try stage.file(1_000)
        let job = try stage.upload(path, to: "film", [Self.put])
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.server.stored("film") == bytes)
        deaf.kill()
    }

    // MARK: Servers

    @Test func passwordsOfNetrc_areSentOnlyToTheNamedOrigin() throws {
        let stage = try UploadStage()
        let other = try UploadServer()
        let netrc = try stage.folder.file(
            ".netrc", "machine 127.0.0.1 login me password mine\ndefault login all password forAll\n")
        chmod(netrc, 0o600)
        let (path, bytes) = try stage.file(1_000)
        // The same host, of which there is an entry, and another one, for which the default would be.
        for host in ["127.0.0.1", "localhost"] {
            try stage.server.tell("redirect PUT 307 \(other.url(host, host: host)) 1")
            let job = try stage.upload(path, to: "film", [Self.put])
            #expect(stage.end(job) == "finished", "\(stage.message(job))")
            #expect(other.stored(host) == bytes)
        }
        #expect(stage.server.requests.allSatisfy { $0.fields?["authorization"] == "Basic bWU6bWluZQ==" })
        #expect(other.requests.count == 2)
        #expect(other.requests.allSatisfy { $0.fields?["authorization"] == nil })
    }

    enum Secret: String, CaseIterable {
        case none, header, field, query, user, netrc
    }

    @Test(arguments: Secret.allCases) func server_isQuotedOnlyIfItKnowsNoSecret(_ secret: Secret) throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(1_000)
        try stage.server.tell("answer PUT 403 1")
        var options = [Self.put]
        var url = stage.server.url("film")
        switch secret {
        case .none: break
        case .header: options.append(("headers", Self.pairs([("X-Key", "abc")])))
        case .field: options.append(("form", Self.pairs([("signature", "abc")])))
        case .query: url += "?token=abc"
        case .user: url = url.replacingOccurrences(of: "//", with: "//alice:abc@")
        case .netrc: try stage.folder.file(".netrc", "machine 127.0.0.1 login me password mine\n")
        }
        let job = try stage.upload(path, to: url, options)
        #expect(stage.end(job) == "failed")
        let isShown = secret == .none
        #expect(
            stage.message(job).hasPrefix(
                isShown ? "the server answered 403: as I was told: check" : "the server answered 403: check"),
            "\(stage.message(job))")
        #expect(stage.told.joined().contains("as I was told") == isShown)
        #expect(try stage.answer(job).body == "as I was told\n", "its owner may read it")
    }

    @Test func answerThatIsNotHTTP_isTriedAgain() throws {
        let stage = try UploadStage(machine: true)
        let (path, bytes) = try stage.file(1_000)
        try stage.server.tell("garbage PUT 1")
        let job = try stage.upload(path, to: "film", [Self.put])
        #expect(
            stage.wait { stage.message(job).hasPrefix("the answer of 127.0.0.1 is not HTTP") || stage.done(job) > 0 })
        stage.nudge(job)
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.server.stored("film") == bytes)
    }

    @Test func addressOf58kB_isNotFollowedAndNotStored() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(1_000)
        let address = "/" + String(repeating: "é", count: 29_000)
        try stage.server.tell("redirect POST 201 \(address) 1")
        let created = try stage.upload(path, to: "tus", [Self.tus])
        #expect(stage.end(created) == "failed")
        #expect(stage.message(created).contains("without a usable address (201)"), "\(stage.message(created))")
        try stage.server.tell("redirect PUT 307 \(address) 1")
        let redirected = try stage.upload(path, to: "film", [Self.put])
        #expect(stage.end(redirected) == "failed")
        #expect(stage.message(redirected).contains("cannot be used (307)"), "\(stage.message(redirected))")
        #expect(stage.server.requests.count == 2)
    }

    // MARK: What is asked for

    @Test func longTexts_areRefusedWithTheLimit() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(10)
        func long(_ count: Int) -> String { String(repeating: "a", count: count) }
        let many = (0..<65).map { ("X-\($0)", "1") }
        for (options, limit): ([(String, Value)], String) in [
            ([("content-type", .string(long(4_097)))], "4096"), ([("field", .string(long(4_097)))], "4096"),
            ([("method", .string(long(4_097)))], "4096"), ([("metered", .string(long(4_097)))], "4096"),
            ([("headers", Self.pairs(many))], "64 entries"),
            ([("headers", Self.pairs([("X", long(33_000))]))], "32 KiB"), ([("form", Self.pairs(many))], "64 entries"),
        ] {
            let failure = stage.refusal(path, to: "film", options)
            #expect(failure?.name == "org.freedesktop.DBus.Error.InvalidArgs", "\(options[0].0)")
            #expect(failure?.message.contains(limit) == true, "\(failure?.message ?? "")")
        }
        let far = stage.refusal(path, to: "http://127.0.0.1:1/" + long(8_192))
        #expect(far?.name == "org.freedesktop.DBus.Error.InvalidArgs")
        #expect(far?.message.contains("8192") == true)
        let deep = stage.refusal("/" + long(4_096), to: "film")
        #expect(deep?.name == "org.freedesktop.DBus.Error.InvalidArgs")
        #expect(deep?.message.contains("4096") == true)
        #expect(try stage.list().isEmpty)
    }

    @Test func longestTexts_surviveARestart() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(500_000)
        // Each of these bytes needs an escape in the record.
        let headers = (0..<63).map { ("X-\($0)", String(repeating: "%", count: 500)) }
        let form = (0..<63).map { ("f\($0)", String(repeating: "%", count: 500)) }
        try stage.server.tell("hold 0")
        let job = try stage.upload(
            path, to: stage.server.url("tus?") + String(repeating: "%", count: 8_100),
            [
                Self.tus, ("headers", Self.pairs(headers)), ("form", Self.pairs(form)),
                ("field", .string(String(repeating: "%", count: 4_096))),
                ("content-type", .string(String(repeating: "%", count: 4_096))),
            ])
        #expect(stage.records.count == 1)
        #expect(!stage.lines.contains { $0.contains("KiB") }, "\(stage.lines)")
        try stage.restart()
        #expect(try stage.list().count == 1, "\(stage.lines)")
        try stage.job(job, "Cancel")
    }

    @Test func manyLongAddresses_areRefusedAtTheLimitAndListed() throws {
        let stage = try UploadStage()
        try stage.server.tell("hold 0")
        // More than the kernel takes of a body: what was sent whole is not tried again.
        let (path, _) = try stage.file(20_000_000)
        let client = try Connection(.custom(stage.bus.address), loop: stage.loop)
        let url = stage.server.url(String(repeating: "u", count: 8_100))
        let form = Self.pairs((0..<31).map { ("f\($0)", String(repeating: "f", count: 1_000)) })
        var count = 0
        var refusal: Failure?
        while refusal == nil, count < 1_000 {
            do throws(Failure) {
                _ = try client.callAndWait(
                    stage.place, PluginKind.uploads.objectPath, PluginKind.uploads.interface, "Upload",
                    [
                        .string(path), .string(url),
                        .properties([Self.put, ("form", form), ("detached", .bool(false))]),
                    ], timeout: 30)
                count += 1
            } catch {
                refusal = error
            }
        }
        #expect(refusal?.name == "org.freedesktop.DBus.Error.LimitsExceeded")
        #expect(refusal?.message.contains("16 MiB") == true)
        #expect(try stage.list().count == count)
        // Those that have ended do not count.
        client.close()
        #expect(stage.wait(timeout: 30) { (try? stage.upload(path, to: "film", [Self.put])) != nil })
    }

    // MARK: What is kept

    @Test func impossibleNumbers_recordIsRenamedAndOthersContinue() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(500_000)
        let job = try stage.held(path, to: "tus", at: 100_000, [Self.tus])
        stage.plugin.kill()
        let number = try #require(stage.records.first)
        let text = try String(contentsOfFile: stage.recordFolder + number, encoding: .utf8)
        let large = ["18446744073709551615", "18446744073709551616", "9007199254740993", "007"]
        for name in large {
            try text.replacingOccurrences(of: "number \(number)\n", with: "number \(name)\n")
                .write(toFile: stage.recordFolder + name, atomically: false, encoding: .utf8)
        }
        try "18446744073709551615\n".write(toFile: stage.recordFolder + "last", atomically: false, encoding: .utf8)
        try stage.restart()
        try stage.server.tell("go")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.storedByTus == bytes)
        for name in large + ["last"] {
            #expect(stage.lines.contains { $0.contains("/\(name) is damaged") }, "\(name) \(stage.lines)")
        }
        for name in large {
            #expect(FileManager.default.fileExists(atPath: stage.recordFolder + name + ".damaged"), "\(name)")
        }
        #expect(stage.records.isEmpty)
        let next = try stage.upload(path, to: "film", [Self.put])
        #expect(stage.end(next) == "finished")
    }

    @Test func storedRecord_isNotWrittenAgainAtTheStart() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(500_000)
        let job = try stage.held(path, to: "tus", at: 100_000, [Self.tus])
        try stage.job(job, "Pause")
        let record = stage.recordFolder + (try #require(stage.records.first))
        func file() throws -> UInt64? {
            try FileManager.default.attributesOfItem(atPath: record)[.systemFileNumber] as? UInt64
        }
        stage.plugin.kill()
        let before = try #require(try file())
        try stage.restart()
        #expect(stage.state(job) == "paused")
        #expect(try file() == before)
    }

    @Test func recordWithoutAWebAddress_isAFailedJob() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(500_000)
        let job = try stage.held(path, to: "tus", at: 100_000, [Self.tus])
        stage.plugin.kill()
        let file = stage.recordFolder + (try #require(stage.records.first))
        let text = try String(contentsOfFile: file, encoding: .utf8)
        try text.replacingOccurrences(of: "address \(stage.server.url("tus"))", with: "address file:///etc/passwd")
            .write(toFile: file, atomically: false, encoding: .utf8)
        try stage.restart()
        #expect(stage.end(job) == "failed")
        #expect(stage.error(job) == "BadParameter")
        #expect(stage.records.isEmpty)
    }
}
