import DBus
import SessionBus
import TestSupport
import Testing
import Workers

@testable import Library

/// Covers for clients, with workers that answer as the test says.
@Suite struct CoversTests {
    private final class Stage {
        let folder: PrivateFolder
        private var covers: Covers?
        private(set) var asked: [(request: LibraryRequest.Art, caller: String)] = []
        private var replies: [(Result<WorkerMessage, Workers.Failure>) -> Void] = []
        private(set) var answers: [String] = []

        init(cache: String = "covers") throws {
            folder = try PrivateFolder()
            try folder.file("a.mp3", "song")
            covers = Covers(ArtworkCache(in: folder.path + "/" + cache)) { [unowned self] request, caller, reply in
                asked.append((request, caller))
                replies.append(reply)
            }
        }

        /// The refusal; nil: it was asked for.
        @discardableResult
        func ask(_ size: Int = 0, for caller: String = ":1.1") -> String? {
            do throws(Failure) {
                try covers?.cover(of: Array((folder.path + "/a.mp3").utf8), item: 7, size: size, for: caller) {
                    [unowned self] in
                    switch $0 {
                    case .success(let uri): answers.append(uri.split(separator: "/").last.map(String.init) ?? "")
                    case .failure(let failure): answers.append(failure.message)
                    }
                }
                return nil
            } catch {
                return error.message
            }
        }

        func reply(_ result: Result<WorkerMessage, Workers.Failure>) { replies.removeFirst()(result) }

        func reply(_ fields: [String: WorkerMessage.Field]) { reply(.success(WorkerMessage("done", fields))) }
    }

    @Test func cover_isReadOnce_andThenInTheCache() throws {
        let stage = try Stage()
        stage.ask(100)
        #expect(stage.asked.first?.request.size == 100 && stage.asked.first?.caller == ":1.1")
        stage.reply(["data": .bytes([1]), "ending": .text("png")])
        stage.ask(100)
        #expect(stage.asked.count == 1 && stage.answers.count == 2 && stage.answers[0] == stage.answers[1])
        #expect(stage.answers[0].hasSuffix(".png"))
    }

    @Test func oddSize_isMadeInAUsualOne() throws {
        let stage = try Stage()
        stage.ask(299)
        #expect(stage.asked.first?.request.size == 256)
    }

    @Test func fileWithoutACover_isNotReadAgain() throws {
        let stage = try Stage()
        stage.ask()
        stage.reply([:])
        stage.ask(64)
        #expect(stage.asked.count == 1 && stage.answers == ["", ""])
    }

    @Test func fileThatCannotBeRead_isNotReadAgain() throws {
        let stage = try Stage()
        stage.ask()
        stage.reply(.failure(.ended))
        stage.ask()
        #expect(stage.asked.count == 1 && stage.answers.allSatisfy { $0.contains("item 7 cannot be read") })
        #expect(stage.answers.count == 2)
    }

    @Test func workerThatCannotBeStarted_isTriedAgain() throws {
        let stage = try Stage()
        stage.ask()
        stage.reply(.failure(.notStarted))
        stage.ask()
        #expect(stage.asked.count == 2)
    }

    @Test func callerThatWaitsForManyCovers_isRefused_andOthersAreNot() throws {
        let stage = try Stage()
        for _ in 0..<256 { #expect(stage.ask() == nil) }
        #expect(stage.ask()?.contains("256 covers") == true)
        #expect(stage.ask(for: ":1.2") == nil)
        stage.reply(.failure(.notStarted))
        #expect(stage.ask() == nil)
        #expect(stage.ask()?.contains("256 covers") == true)
    }

    @Test func coverThatCannotBeStored_isAnError() throws {
        // A file is where the folder of the cache would be.
        let stage = try Stage(cache: "a.mp3")
        stage.ask()
        stage.reply(["data": .bytes([1]), "ending": .text("png")])
        #expect(stage.answers.first?.contains("cannot be written") == true)
    }
}
