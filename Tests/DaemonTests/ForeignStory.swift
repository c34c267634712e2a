import DBus
import Enforcement
import Foundation
import PluginAPI
import State
import TestSupport
import Testing

extension ForeignCrashTests {
    /// What the daemon does with the music.
    enum Deed: String, CaseIterable, CustomTestStringConvertible {
        case lowered
        case held
        var testDescription: String { rawValue }
    }

    struct Scenery: CustomTestStringConvertible {
        let kind: ServerKind
        let deed: Deed
        var testDescription: String { "\(deed) on \(kind)" }

        static let all = ServerKind.allCases.flatMap { kind in Deed.allCases.map { Scenery(kind: kind, deed: $0) } }
    }

    /// One run: a client ducks or holds the music and stops doing so. The daemon crashes at some point and is started
    /// again.
    final class Story {
        let house: House
        let stage: DaemonStage
        let deed: Deed
        private let other: Foreigner
        private var session = ""
        private(set) var deaths: Int

        private static let settings = "[ducking]\nattack = 0\nrelease = 0\nhold = 0\n"

        init(_ deed: Deed, in house: House, crash: String?) throws {
            self.deed = deed
            self.house = house
            let stage = try DaemonStage(pulse: house.pulse, settings: Story.settings, crash: crash)
            self.stage = stage
            // On PipeWire the daemon may write its journal, and so be killed, before any client comes: it repairs what
            // the server remembers of the story before.
            var client: Foreigner?
            var deaths = 0
            let isReady = try eventually(timeout: 20) {
                if try Story.revive(stage) { deaths += 1 }
                if stage.isServing { client = try? stage.foreigner() }
                return client != nil
            }
            guard isReady, let client else { throw SupportError("no daemon, or no client: \(stage.daemon.errors)") }
            other = client
            self.deaths = deaths
        }

        /// Waits until the condition is true. Restarts the daemon if it was killed.
        func holds(_ condition: () throws -> Bool) throws -> Bool {
            try eventually(timeout: 20) {
                try reviveIfDead()
                return try condition()
            }
        }

        private func reviveIfDead() throws { if try Story.revive(stage) { deaths += 1 } }

        /// Restarts the daemon if it was killed. Returns whether it was.
        private static func revive(_ stage: DaemonStage) throws -> Bool {
            guard !stage.daemon.isRunning else { return false }
            guard stage.daemon.wait() == .signal(SIGKILL) else {
                throw SupportError("the daemon ended by itself: \(stage.daemon.errors)")
            }
            try stage.restart()
            return true
        }

        private func ask(_ line: String) throws {
            var answer = ""
            guard
                try holds({
                    answer = other.ask(line)
                    return answer.hasPrefix("ok")
                })
            else { throw SupportError("\(line): \(answer)") }
            if line.hasPrefix("create") { session = String(answer.dropFirst(3)) }
        }

        func begin() throws { try begin(until: isDone) }

        func begin(until isBegun: () throws -> Bool) throws {
            // The music must be adopted before the client interrupts or ducks it.
            _ = try holds {
                try stage.sessions().values.contains {
                    $0["Name"] == .string("Music") && $0["State"] == .string("active")
                }
            }
            switch deed {
            case .lowered: try ask("create Prompt playback duck-others app")
            case .held: try ask("create Phone play-and-record - call")
            }
            try ask("activate \(session)")
            #expect(try holds(isBegun), "\(house.description)")
        }

        func end() throws {
            try leave()
            try expectUntouched()
        }

        /// The prompt or the call ends.
        func leave() throws { try ask("deactivate \(session)") }

        /// The volumes in the stream journal; empty if there is no journal.
        func journal() throws -> Set<Int> {
            let file = try FileManager.default.contentsOfDirectory(atPath: stage.stateFolder).first {
                $0.hasPrefix("streams-")
            }
            guard let file, let bytes = FileManager.default.contents(atPath: stage.stateFolder + "/" + file),
                let record = StreamRecord(Array(bytes))
            else { return [] }
            return Set(record.entries.flatMap { $0.kept.base.volume.map(Int.init) })
        }

        /// Ends the daemon by SIGTERM. It may crash while it ends; the next daemon continues.
        func terminate() throws {
            stage.daemon.signal(SIGTERM)
            switch stage.daemon.wait() {
            case .code(0): #expect(try house.isLeftUntouched(), "\(house.description)")
            case .signal(SIGKILL): deaths += 1
            case let exit: throw SupportError("ended with \(String(describing: exit)): \(stage.daemon.errors)")
            }
            try stage.restart()
            #expect(try holds(isDone), "\(house.description)")
        }

        func kill() throws {
            stage.daemon.kill()
            try stage.restart()
            #expect(try holds(isDone), "\(house.description)")
        }

        /// Kills the client, like a phone program that crashes.
        func die() throws {
            killClient()
            try expectUntouched()
        }

        func killClient() { other.process.kill() }

        func expectDone() throws { #expect(try holds(isDone), "\(house.description)") }

        func isDone() throws -> Bool { try deed == .lowered ? house.isLowered() : house.isHeld() }

        func expectUntouched() throws {
            #expect(try holds { try house.isUntouched() }, "\(house.description)")
            #expect(try holds(isTidy))
        }

        /// Whether no stream is left to restore: then there is no journal.
        func isTidy() throws -> Bool {
            try !FileManager.default.contentsOfDirectory(atPath: stage.stateFolder).contains {
                $0.hasPrefix("streams-")
            }
        }
    }
}
