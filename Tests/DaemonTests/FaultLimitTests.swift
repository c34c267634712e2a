import DBus
import EventLoop
import Foundation
import Fuzzing
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Limits and switches, tested over D-Bus (rules §1, §4, §6).
@Suite struct FaultLimitTests {
    private func refusal(_ body: () throws -> Void) -> String? {
        do { try body() } catch let failure as Failure { return failure.name } catch { return "\(error)" }
        return nil
    }

    @Test func sessionsOfAllClients_areLimitedTogether() throws {
        let stage = try DaemonStage(settings: "[limits]\nsessions = 3\n")
        let (a, b) = (try stage.client(), try stage.client())
        let paths = [try a.session("1"), try a.session("2"), try b.session("3")]
        #expect(refusal { _ = try b.session("4") } == "org.sessiond1.Error.ResourceNotAvailable")
        #expect(a.call(paths[0], "Close") == nil)
        _ = try b.session("4")
        a.connection.close()
        #expect(eventually { (try? b.session("5")) != nil })
    }

    @Test func sessionsOfAClient_areLimitedForEachClient() throws {
        let stage = try DaemonStage(settings: "[limits]\nsessions-per-client = 1\n")
        let (a, b) = (try stage.client(), try stage.client())
        let first = try a.session("1")
        #expect(refusal { _ = try a.session("2") } == "org.sessiond1.Error.ResourceNotAvailable")
        _ = try b.session("2")
        #expect(a.call(first, "Close") == nil)
        _ = try a.session("3")
    }

    @Test func history_keepsAtMostTheLimit() throws {
        let stage = try DaemonStage(settings: "[limits]\nhistory = 4\n")
        let client = try stage.client()
        let path = try client.session("A")
        for _ in 0..<5 {
            client.activate(path)
            client.deactivate(path)
        }
        let all = try stage.manager("History", [.uint32(.max)])[0].arrayValue ?? []
        #expect(all.count == 4)
        let sequences = all.compactMap { $0.asProperties?["sequence"]?.uint64Value }
        #expect(sequences == sequences.sorted() && Set(sequences).count == 4)
        #expect(try stage.property("Sequence").uint64Value == sequences.last)
        #expect(try stage.manager("History", [.uint32(2)])[0].arrayValue?.count == 2)
        #expect(try stage.manager("History", [.uint32(0)])[0].arrayValue?.isEmpty == true)
    }

    @Test func texts_longerThanTheLimitAreRefused() throws {
        let stage = try DaemonStage(settings: "[limits]\nstring-length = 16\n")
        let client = try stage.client()
        let path = try client.session(String(repeating: "x", count: 16))
        #expect(
            refusal { _ = try client.session(String(repeating: "x", count: 17)) } == "org.sessiond1.Error.BadParameter")
        #expect(refusal { _ = try client.session("ééééééééé") } == "org.sessiond1.Error.BadParameter", "counts bytes")
        let entry = [("desktop-entry", Value.string(String(repeating: "x", count: 17)))]
        #expect(refusal { _ = try client.session("A", more: entry) } == "org.sessiond1.Error.BadParameter")
        #expect(
            client.call(path, "SetPreferredInput", [.string(String(repeating: "x", count: 17))])
                == "org.sessiond1.Error.BadParameter")
    }

    @Test func sessionResumesWithinTheGracePeriod_theNextWaitsOn() throws {
        let stage = try DaemonStage(settings: "[interruption]\ngrace = 3600\n")
        let (a, b, c) = (try stage.client(), try stage.client(), try stage.client())
        let (first, second, third) = (try a.session("A"), try b.session("B"), try c.session("C"))
        a.activate(first)
        b.activate(second)
        c.activate(third)
        c.deactivate(third, notify: true)
        #expect(try b.heard().last == "B ended resume")
        #expect(try stage.property("WaitingFor", of: first) == .objectPaths([second]))
        #expect(b.activate(second) == nil)
        #expect(try a.heard() == ["A began default by B"])
        // A deactivation gives the claim up at once, without the grace period.
        #expect(b.deactivate(second) == nil)
        #expect(try a.heard() == ["A ended stay"])
    }

    @Test func interruptedLongerThanMaxAge_getsNoResumeHint() throws {
        let stage = try DaemonStage(settings: "[interruption]\nmax-age = 0.05\n")
        let (a, b) = (try stage.client(), try stage.client())
        let (first, second) = (try a.session("A"), try b.session("B"))
        a.activate(first)
        let begun = monotonicNow()
        b.activate(second)
        #expect(eventually { monotonicNow() > begun + 0.1 })
        b.deactivate(second, notify: true)
        #expect(try a.heard() == ["A began default by B", "A ended stay"])
    }

    @Test func backgroundSession_startsOnlyIfItInterruptsNoOther() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        func start(_ category: String, _ options: [String] = [], class sessionClass: String = "app") throws -> String? {
            let path = try client.session("A", category: category, options: options, class: sessionClass)
            try stage.manager("SetForeground", [.objectPath(path), .bool(false)])
            #expect(try stage.property("Foreground", of: path) == .bool(false))
            defer { client.call(path, "Close") }
            return client.activate(path)?.split(separator: ".").last.map(String.init)
        }
        #expect(try start("ambient") == "CannotStartPlaying")
        #expect(try start("solo-ambient") == "CannotStartPlaying")
        #expect(try start("play-and-record", ["mix-with-others"]) == "CannotStartRecording")
        #expect(try start("playback") == "CannotInterruptOthers")
        #expect(try start("record") == "CannotInterruptOthers")
        #expect(try start("playback", ["mix-with-others"]) == nil)
        #expect(try start("play-and-record", class: "call") == nil)
        #expect(try start("playback", class: "alert") == nil)
    }

    @Test func nowPlayingInTheBackground_mayTakeTheSoundBack() throws {
        let stage = try DaemonStage()
        let (a, b) = (try stage.client(), try stage.client())
        let (music, phone) = (
            try a.session("Music"), try b.session("Phone", category: "play-and-record", class: "call")
        )
        a.activate(music)
        try stage.manager("SetForeground", [.objectPath(music), .bool(false)])
        #expect(a.state(music) == "active", "an active session stays active in the background")
        b.activate(phone)
        b.deactivate(phone)
        #expect(try a.heard().last == "Music ended resume")
        #expect(a.activate(music) == nil)
        #expect(try stage.property("NowPlaying") == .objectPath(music))
    }

    @Test(arguments: ["SetSilentMode", "SetScreenLocked"]) func switchIsOn_mutesObeyingSessions_andInterruptsNone(
        method: String
    ) throws {
        let stage = try DaemonStage()
        let property = method == "SetSilentMode" ? "SilentMode" : "ScreenLocked"
        let clients = try (0..<3).map { _ in try stage.client() }
        let ambient = try clients[0].session("Ambient", category: "ambient")
        let mixing = try clients[1].session("Mixing", options: ["mix-with-others"])
        let game = try clients[2].session("Game", category: "solo-ambient")
        clients[0].activate(ambient)
        clients[1].activate(mixing)
        clients[2].activate(game)
        try stage.manager(method, [.bool(true)])
        try stage.manager(method, [.bool(true)])
        #expect(try stage.property(property) == .bool(true))
        for (path, muted) in [(ambient, true), (mixing, false), (game, true)] {
            #expect(try stage.property("Muted", of: path) == .bool(muted))
            #expect(try stage.property("State", of: path) == .string("active"))
        }
        #expect(try clients[0].heard().filter { $0.contains("began") } == [])
        try stage.manager(method, [.bool(false)])
        for path in [ambient, mixing, game] { #expect(try stage.property("Muted", of: path) == .bool(false)) }
    }

    @Test func bothSwitchesOn_muteUntilBothAreOff() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let path = try client.session("A", category: "ambient")
        client.activate(path)
        try stage.manager("SetSilentMode", [.bool(true)])
        try stage.manager("SetScreenLocked", [.bool(true)])
        try stage.manager("SetSilentMode", [.bool(false)])
        #expect(try stage.property("Muted", of: path) == .bool(true))
        try stage.manager("SetScreenLocked", [.bool(false)])
        #expect(try stage.property("Muted", of: path) == .bool(false))
        #expect(
            refusal { try stage.manager("SetForeground", [.objectPath("/org/sessiond1/session/77"), .bool(true)]) }
                == "org.sessiond1.Error.BadParameter")
    }
}
