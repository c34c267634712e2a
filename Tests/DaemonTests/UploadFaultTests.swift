import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

@testable import ReferenceModel

/// Uploads to a server that is not well, of files that change, by a plugin that is killed.
@Suite(.serialized) struct UploadFaultTests {
    private static let tus: [(String, Value)] = [("method", .string("tus"))]
    private static let put: [(String, Value)] = [("method", .string("put"))]

    @Test func fiveCutsAtRandom_nothingIsSentTwice() throws {
        let stage = try UploadStage()
        let size = 64 << 20
        let (path, bytes) = try stage.file(size)
        for place in (0..<5).map({ _ in Int.random(in: 1..<size) }) { try stage.server.tell("cutat \(place)") }
        let job = try stage.upload(path, to: "tus", Self.tus)
        #expect(stage.end(job, timeout: 120) == "finished", "\(stage.message(job))")
        #expect(stage.storedByTus == bytes)
        // The last connection is still open: when the plugin is gone, all are counted.
        stage.plugin.kill()
        #expect(eventually { stage.server.received >= UInt64(size) })
        let ratio = Double(stage.server.received) / Double(size)
        #expect(ratio <= 1.02, "\(ratio)")
        let told = stage.progress[job] ?? []
        #expect(told == told.sorted())
    }

    @Test func pluginIsKilledRepeatedly_theFileArrivesUnchanged() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(12_000_000)
        try stage.server.tell("slow 6000000")
        let job = try stage.upload(path, to: "tus", Self.tus + [("chunk-size", .uint64(1 << 20))])
        #expect(stage.wait { stage.done(job) > 0 })
        for _ in 0..<amount(8, long: 20) {
            usleep(.random(in: 0..<200_000))
            try stage.restart()
        }
        try stage.server.tell("slow 0")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.storedByTus == bytes)
        #expect(stage.records.isEmpty)
        let next = try stage.upload(path, to: "film", Self.put)
        let number = { (path: String) in path.split(separator: "/").last.flatMap { UInt64($0) } ?? 0 }
        #expect(number(next) > number(job), "no number is used again")
    }

    @Test func serverIsKilledRepeatedly_theFileArrivesUnchanged() throws {
        let stage = try UploadStage(machine: true)
        let (path, bytes) = try stage.file(12_000_000)
        try stage.server.tell("slow 6000000")
        let job = try stage.upload(path, to: "tus", Self.tus + [("tries", .uint32(0))])
        for _ in 0..<amount(6, long: 20) {
            let before = stage.storedByTus?.count ?? 0
            #expect(stage.wait { (stage.storedByTus?.count ?? 0) > before })
            try stage.server.restart()
            try stage.server.tell("slow 6000000")
            // Waiting is not what is tested here.
            try stage.machine?.tell("state 70")
        }
        try stage.server.tell("slow 0")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.storedByTus == bytes)
    }

    @Test func temporaryFailures_areOvercome() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(600_000)
        // Side by side: each of them waits for a second or more.
        let troubles = [
            "answer PATCH 423 2", "answer PATCH 503 1 2", "answer PATCH 429 2 1", "answer PATCH 409 1",
            "after PATCH 500 1", "lose", "cut 1000", "page PATCH 1", "answer HEAD 423 1", "answer POST 500 1",
            "answer PATCH 460 1", "max 100000",
        ]
        let uploads = try troubles.map { trouble in
            let server = try UploadServer()
            try server.tell(trouble)
            if trouble.hasPrefix("answer HEAD") { try server.tell("cut 100000") }
            let job = try stage.upload(path, to: server.url("tus"), Self.tus + [("chunk-size", .uint64(400_000))])
            return (trouble, server, job)
        }
        for (trouble, server, job) in uploads {
            #expect(stage.end(job) == "finished", "\(trouble): \(stage.message(job))")
            #expect(server.storedByTus == bytes, "\(trouble)")
        }
    }

    /// What may happen at any moment, in an order and at places that the seed decides.
    @Test(arguments: 0..<UInt64(amount(3, long: 30))) func randomFaults_theFileArrivesUnchanged(
        _ seed: UInt64
    ) throws {
        var chance = SplitMix64(seed: seed)
        let stage = try UploadStage(machine: true)
        let machine = try #require(stage.machine)
        let size = 16 << 20
        let (path, bytes) = try stage.file(size, seed: seed)
        try stage.server.tell("hold 0")
        let job = try stage.upload(
            path, to: "tus", Self.tus + [("tries", .uint32(0)), ("chunk-size", .uint64(4 << 20))])
        var story: [String] = []
        for _ in 0..<6 where stage.state(job) != "finished" {
            let before = stage.server.holds
            try stage.server.tell("hold \(Int.random(in: 1..<size / 8, using: &chance))")
            #expect(
                stage.wait {
                    stage.nudge(job)
                    return stage.server.holds > before || stage.state(job) == "finished"
                }, "\(story)")
            let event = ["plugin", "server", "network", "sleep"].randomElement(using: &chance) ?? ""
            story.append("\(event) at \(stage.done(job))")
            switch event {
            case "plugin": try stage.restart()
            case "server": try stage.server.restart()
            case "network":
                try machine.tell("state 20")
                try stage.server.tell("drop")
            default:
                try machine.tell("sleep")
                try machine.tell("wake")
            }
        }
        try stage.server.tell("go")
        _ = stage.wait {
            stage.nudge(job)
            return stage.state(job) == "finished"
        }
        #expect(stage.end(job) == "finished", "\(story) \(stage.message(job))")
        #expect(stage.storedByTus == bytes, "\(story)")
        #expect(stage.records.isEmpty)
    }

    private static let uncertain = "it may be there; check before you upload it again"

    /// The server has the file, but it answers after the limit, or never.
    @Test(arguments: ["PUT", "POST"], ["5", "-1"]) func wholeFileWithoutAnAnswer_isNeverSentAgain(
        _ method: String, _ seconds: String
    ) throws {
        let stage = try UploadStage(machine: true)
        let (path, bytes) = try stage.file(300_000)
        try stage.server.tell("late \(method) \(seconds) 9")
        let job = try stage.upload(
            path, to: "film", [("method", .string(method.lowercased())), ("answer-timeout", .uint32(1))])
        #expect(
            stage.wait {
                stage.nudge(job)
                return stage.state(job) == "failed"
            }, "\(stage.message(job))")
        #expect(stage.message(job).contains(Self.uncertain), "\(stage.message(job))")
        #expect(stage.server.requests.filter { $0.status == 0 }.count == 1)
        #expect(stage.server.stored("film")?.range(of: bytes) != nil)
        #expect(stage.records.isEmpty)
    }

    @Test func pluginEndsBeforeTheAnswer_fileIsNotSentAgain() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(300_000)
        try stage.server.tell("late PUT 600 9")
        let job = try stage.upload(path, to: "film", [("method", .string("put"))])
        #expect(
            stage.wait {
                let name = stage.records.first
                let record = name.flatMap { FileManager.default.contents(atPath: stage.recordFolder + $0) }
                return record.map { String(decoding: $0, as: UTF8.self).contains("\nsent true\n") } ?? false
                    && stage.server.requests.contains { $0.status == 0 }
            })
        try stage.restart()
        #expect(stage.end(job) == "failed")
        #expect(stage.message(job).contains(Self.uncertain), "\(stage.message(job))")
        #expect(stage.server.requests.filter { $0.status == 0 }.count == 1)
        #expect(stage.server.stored("film") == bytes)
    }

    @Test func serverLosesTheUpload_itStartsAgain() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(600_000)
        try stage.server.tell("cut 300000")
        let job = try stage.upload(path, to: "tus", Self.tus)
        #expect(stage.wait { stage.message(job).contains("ended the connection") })
        try stage.server.tell("forget")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.storedByTus == bytes)
    }

    @Test func serverLosesAPart_itIsSentAgain() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(600_000)
        try stage.server.tell("cut 300000")
        let job = try stage.upload(path, to: "tus", Self.tus)
        #expect(stage.wait { stage.message(job).contains("ended the connection") })
        try stage.server.tell("rewind 1000")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.storedByTus == bytes)
    }

    @Test func lockedUpload_waitsAndReportsIt() throws {
        let stage = try UploadStage(machine: true)
        let (path, bytes) = try stage.file(1_000)
        try stage.server.tell("answer PATCH 423 1 60")
        let job = try stage.upload(path, to: "tus", Self.tus)
        #expect(
            stage.wait { stage.state(job) == "waiting" && stage.message(job).contains("in 60 s") },
            "\(stage.message(job))")
        try stage.machine?.tell("state 70")
        #expect(stage.end(job) == "finished")
        #expect(stage.storedByTus == bytes)
    }

    @Test func webPageAsAnswer_isNoSuccess() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(1_000)
        try stage.server.tell("page PUT 1")
        let job = try stage.upload(path, to: "film", Self.put)
        #expect(stage.end(job) == "failed")
        #expect(stage.error(job) == "NetworkFailed")
        #expect(stage.message(job).contains("with a web page"), "\(stage.message(job))")
        #expect(stage.server.stored("film") == nil)
    }

    @Test(arguments: [401, 403, 404, 413]) func refusal_isReportedWithTheStatusAndAdvice(_ status: Int) throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(1_000)
        try stage.server.tell("answer PUT \(status) 1")
        let job = try stage.upload(path, to: "film", Self.put)
        #expect(stage.end(job) == "failed")
        #expect(stage.error(job) == "NetworkFailed")
        #expect(stage.message(job).hasPrefix("the server answered \(status): as I was told: "), "\(stage.message(job))")
        #expect(try stage.answer(job).status == UInt32(status))
        #expect(stage.server.requests.count == 1, "it is not asked again")
    }

    @Test func noAnswer_failsAfterItsTries() throws {
        let stage = try UploadStage(machine: true)
        stage.server.kill()
        let (path, _) = try stage.file(1_000)
        let job = try stage.upload(path, to: "film", Self.put + [("tries", .uint32(2))])
        for _ in 0..<3 {
            let before = try stage.list().first?["tries"]?.uint32Value ?? 0
            #expect(
                stage.wait {
                    ((try? stage.list().first?["tries"]?.uint32Value) ?? 0) > before || stage.state(job) == "failed"
                })
            try stage.machine?.tell("state 70")
        }
        #expect(stage.end(job) == "failed")
        #expect(stage.message(job).contains("tried 3 times without progress"), "\(stage.message(job))")
        #expect(stage.records.isEmpty)
    }

    enum Change: String, CaseIterable {
        case grows, shrinks, isReplaced, isRewritten, isDeleted
    }

    @Test(arguments: Change.allCases, ["put", "tus"]) func fileChanges_noMixtureIsSent(
        _ change: Change, _ method: String
    ) throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(6_000_000)
        let job = try stage.held(
            path, to: method == "tus" ? "tus" : "film", at: 500_000,
            [("method", .string(method)), ("chunk-size", .uint64(1 << 20))])
        switch change {
        case .grows:
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try file.seekToEnd()
            try file.write(contentsOf: Data([1, 2, 3]))
        case .shrinks: truncate(path, 5_000_000)
        case .isReplaced: try Data(count: 6_000_000).write(to: URL(fileURLWithPath: path), options: .atomic)
        case .isRewritten:
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try file.write(contentsOf: Data(count: 6_000_000))
        case .isDeleted: unlink(path)
        }
        try stage.server.tell("go")
        let end = stage.end(job)
        let stored = method == "tus" ? stage.storedByTus : stage.server.stored("film")
        if end == "finished" {
            // What was opened before is one file still, whole.
            #expect(method == "put" && (change == .isReplaced || change == .isDeleted))
            #expect(stored == bytes)
        } else {
            #expect(end == "failed")
            #expect(stage.error(job) == (change == .isDeleted ? "NotFound" : "InvalidSource"), "\(stage.message(job))")
            #expect(stage.wait { stage.server.uploads.isEmpty }, "nothing of it stays at the server")
            #expect(stage.server.stored("film") == nil)
        }
    }

    @Test func fileChangesWhilePluginIsStopped_fails() throws {
        let stage = try UploadStage()
        let (path, _) = try stage.file(3_000_000)
        let job = try stage.held(path, to: "tus", at: 100_000, Self.tus)
        stage.plugin.kill()
        try Data(count: 3_000_000).write(to: URL(fileURLWithPath: path))
        try stage.restart()
        #expect(stage.end(job) == "failed")
        #expect(stage.error(job) == "InvalidSource")
    }

    @Test func damagedRecord_isReportedAndOtherUploadsContinue() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(500_000)
        let job = try stage.held(path, to: "tus", at: 100_000, Self.tus)
        stage.plugin.kill()
        let folder = stage.folder.path + "/state/sessiond/uploads/"
        try "sessiond upload 1\nnumber 77\n".write(toFile: folder + "77", atomically: false, encoding: .utf8)
        try Data([0xFF, 0xFE]).write(to: URL(fileURLWithPath: folder + "78"))
        try stage.restart()
        try stage.server.tell("go")
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.storedByTus == bytes)
        #expect(stage.lines.count { $0.contains("is damaged") } == 2, "\(stage.lines)")
        #expect(stage.records.isEmpty)
    }

    @Test func stateFolderIsFull_uploadSucceeds() throws {
        let stage = try UploadStage()
        let (path, bytes) = try stage.file(500_000)
        let folder = stage.folder.path + "/state/sessiond/uploads"
        // The plugin runs already, and nobody can create a file with the name of a record.
        for number in 1..<3_000 {
            try? FileManager.default.createDirectory(atPath: folder + "/\(number)", withIntermediateDirectories: true)
        }
        let job = try stage.upload(path, to: "tus", Self.tus)
        #expect(stage.end(job) == "finished", "\(stage.message(job))")
        #expect(stage.storedByTus == bytes)
        #expect(stage.lines.contains { $0.contains("may not be continued") }, "\(stage.lines)")
    }

    @Test func ownerLeavesWithTenThousand_allAreCancelled() throws {
        let stage = try UploadStage()
        try stage.server.tell("hold 0")
        let (path, _) = try stage.file(100_000)
        let kept = try stage.upload(path, to: "kept", Self.put)
        let owner = try Connection(.custom(stage.bus.address), loop: stage.loop)
        let count = 10_000
        var answered = 0
        for number in 1...count {
            // A client that does not read is refused.
            if number % 500 == 0 { #expect(stage.loop.iterate(timeout: 60) { answered == number - 1 }) }
            owner.call(
                stage.place, PluginKind.uploads.objectPath, PluginKind.uploads.interface, "Upload",
                [
                    .string(path), .string(stage.server.url("film")),
                    .properties([("method", .string("put")), ("detached", .bool(false))]),
                ]
            ) { answer in if case .success = answer { answered += 1 } }
        }
        #expect(stage.loop.iterate(timeout: 60) { answered == count })
        #expect(stage.records.count == 1, "only what outlives its owner is kept")
        func live() throws -> Int {
            let values = try stage.connection.callAndWait(
                stage.place, PluginKind.uploads.objectPath, StandardName.properties, "GetAll",
                [.string(PluginKind.uploads.interface)], timeout: 30)
            let properties = values.first?.asProperties ?? [:]
            return Int((properties["Sending"]?.uint32Value ?? 0) + (properties["Waiting"]?.uint32Value ?? 0))
        }
        #expect(try live() == count + 1)
        owner.close()
        #expect(stage.wait(timeout: 30) { (try? live()) == 1 })
        #expect(["running", "waiting"].contains(stage.state(kept)))
        try stage.job(kept, "Cancel")
        #expect(stage.state(kept) == "cancelled")
    }
}
