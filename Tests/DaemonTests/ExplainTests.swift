import DBus
import EventLoop
import Foundation
import PluginAPI
import Scenario
import SessionBus
import TestSupport
import Testing

/// `Explain` and `History` of the real daemon, and the sessionctl commands that use them.
@Suite struct ExplainTests {
    private func sessionctl(_ stage: DaemonStage, _ arguments: [String]) throws -> (
        code: Child.Exit, out: [String], err: String
    ) {
        var environment = stage.bus.environment
        environment["TZ"] = "UTC"
        let child = try Child(try builtProduct(named: "sessionctl"), arguments, environment: environment)
        // This thread blocks while it waits. The daemon does not need the test's loop to answer.
        let code = try #require(child.wait(timeout: 20))
        return (code, child.output, child.errors.joined(separator: "\n"))
    }

    @Test func explain_answersInWords() throws {
        let stage = try DaemonStage()
        let (a, b, c) = (try stage.client(), try stage.client(), try stage.client())
        let vlc = try a.session("VLC media player")
        let message = try b.session("Message")
        let phone = try c.session("Phone", category: "play-and-record", class: "call")
        a.activate(vlc)
        b.activate(message)
        c.activate(phone)
        for name in ["vlc", vlc, "1"] {
            let (code, out, err) = try sessionctl(stage, ["explain", name])
            #expect(code == .code(0), "\(err)")
            #expect(out.first == "VLC media player")
            let text = out.joined(separator: "\n")
            #expect(
                text.firstMatch(of: /silent since \d\d:\d\d:\d\d: interrupted by Message/) != nil, "\(text)")
            #expect(text.contains("waits also for Phone (call)"), "\(text)")
        }
        let (_, json, _) = try sessionctl(stage, ["explain", "--json", "vlc"])
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data((json.first ?? "").utf8)) as? [String: Any])
        let causes = try #require(object["causes"] as? [[String: Any]])
        #expect(causes.first?["cause"] as? String == "interrupted")
        #expect(causes.first?["by"] as? String == message)
        #expect(causes.allSatisfy { $0["rule"] is String && $0["since-usec"] is NSNumber && $0["text"] is String })
    }

    @Test func history_hasRuleAndStepOfEveryDecision() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let music = try client.session("Music \"1\"", more: [("notify-on-exit", .bool(true))])
        client.activate(music)
        let decisions = try stage.manager("History", [.uint32(10)])[0].arrayValue?.compactMap(\.asProperties) ?? []
        let steps = decisions.compactMap { $0["step"]?.stringValue }
        #expect(steps.contains(#"session s1 "Music \"1\"" playback client=c1 notify-on-exit"#))
        #expect(steps.contains("activate s1"))
        for decision in decisions {
            #expect(decision["rule"]?.stringValue != nil)
            for effect in decision["effects"]?.arrayValue?.compactMap(\.asProperties) ?? [] {
                #expect(effect["rule"]?.stringValue?.isEmpty == false)
            }
        }
    }

    /// Random clients use the real daemon. The exported history, simulated and exported again, is identical.
    @Test(arguments: [512, 20]) func exportedHistory_isIdenticalAfterASimulation(limit: Int) throws {
        let stage = try DaemonStage(
            settings: "[interruption]\ngrace = 0.05\n[limits]\nhistory = \(limit)\n")
        var random = SystemRandomNumberGenerator()
        var clients = try (0..<4).map { _ in try stage.client() }
        var sessions: [(client: Int, path: String)] = []
        for number in 0..<300 {
            let choice = Int.random(in: 0..<20, using: &random)
            if sessions.count < 5 || choice == 0 {
                let client = Int.random(in: 0..<clients.count, using: &random)
                let path = try? clients[client].session(
                    "Name \(number) \u{202E}\"",
                    category: ["playback", "ambient", "play-and-record", "record"][number % 4],
                    options: number % 4 == 0 && number % 8 == 0 ? ["duck-others"] : [],
                    class: number % 7 == 6 ? "call" : "app")
                if let path { sessions.append((client, path)) }
                continue
            }
            let session = sessions.randomElement(using: &random)!
            let client = clients[session.client]
            switch choice {
            case 1...8: client.activate(session.path)
            case 9...12: client.deactivate(session.path, notify: Bool.random(using: &random))
            case 13:
                client.call(
                    session.path, "SetCategory",
                    [.string("playback"), .string("default"), .strings(["mix-with-others"])])
            case 14: _ = try? stage.manager("SetSilentMode", [.bool(Bool.random(using: &random))])
            case 15:
                _ = try? stage.manager(
                    "SetForeground", [.objectPath(session.path), .bool(Bool.random(using: &random))])
            case 16:
                client.call(
                    session.path, "SetPreferences",
                    [.properties([("no-interruptions-from-alerts", .bool(Bool.random(using: &random)))])])
            case 17: client.call(session.path, "OverrideOutput", [.string("speaker")])
            case 18:
                client.call(session.path, "Close")
                sessions.removeAll { $0.path == session.path }
            default:
                // The client disconnects, and its sessions close.
                sessions.removeAll { $0.client == session.client }
                clients[session.client] = try stage.client()
            }
        }
        let (code, lines, errors) = try sessionctl(stage, ["history", "--export"])
        #expect(code == .code(0), "\(errors)")
        let exported = lines.joined(separator: "\n") + "\n"
        #expect(lines.filter { $0.hasPrefix("= #") }.count > min(100, limit / 2))
        let file = try stage.bus.folder.file("history.scenario", exported)
        let (simulated, _, complaints) = try sessionctl(stage, ["simulate", file])
        #expect(simulated == .code(0), "\(complaints.prefix(2000))")
        let again = try sessionctl(stage, ["simulate", "--export", file])
        #expect(again.out.joined(separator: "\n") + "\n" == exported)
    }

    /// Each decision concerns 128 sessions, so the export exceeds its size limit. It then begins later, and still
    /// replays exactly.
    @Test func largeHistory_isExportedFromALaterStart() throws {
        let stage = try DaemonStage(settings: "[limits]\nhistory = 320\n")
        let clients = try (0..<4).map { _ in try stage.client() }
        for client in clients {
            for index in 0..<32 { _ = try client.session("Ambient \(index)", category: "ambient", hears: false) }
        }
        for index in 0..<320 { try stage.manager("SetSilentMode", [.bool(index % 2 == 0)]) }
        let (code, lines, errors) = try sessionctl(stage, ["history", "--export"])
        #expect(code == .code(0), "\(errors)")
        let exported = lines.joined(separator: "\n") + "\n"
        #expect(exported.utf8.count < 3 << 20)
        let count = lines.filter { $0.hasPrefix("= #") }.count
        #expect(count > 80 && count < 320, "\(count)")
        let file = try stage.bus.folder.file("history.scenario", exported)
        #expect(try sessionctl(stage, ["simulate", file]).code == .code(0))
        #expect(stage.isServing)
    }

    /// A person whose program was wrongly taken for a call sends one file: everything is decided again from it, down to what
    /// was held and restored at the sound server.
    @Test(arguments: ServerKind.allCases)
    func exportOfAGuessedCall_isDecidedAgainFromItsStreams(_ kind: ServerKind) throws {
        let scene = try RealCallTests.Scene(kind, settings: "[adoption]\ncall-programs = gst-launch-1.0\n")
        let music = try Tone.program(scene.server, hertz: 440, name: "Music")
        #expect(try eventually { try scene.session("Music")?["State"] == .string("active") })
        let phone = try Child(
            "gst-launch-1.0",
            ["-q", "pulsesrc", "!", "fakesink", "audiotestsrc", "wave=silence", "!", "pulsesink"],
            environment: scene.server.environment)
        #expect(try eventually(timeout: 30) { try scene.call() != nil }, "\(phone.errors)")
        func export(_ more: [String] = []) throws -> [String] {
            let (code, lines, errors) = try sessionctl(scene.stage, ["history", "--export"] + more)
            #expect(code == .code(0), "\(errors)")
            return lines
        }
        func requests(_ name: String) throws -> [String] { try export().filter { $0.hasPrefix("= request \(name) ") } }
        #expect(try eventually(timeout: 20) { try requests("hold-stream").count == 1 })
        phone.kill()
        #expect(try eventually(timeout: 30) { try requests("restore-stream").count == 1 })
        #expect(try eventually { try scene.session("Music")?["State"] == .string("active") })
        let lines = try export()
        #expect(lines.contains { $0.hasPrefix("= > session ") && $0.contains(" evidence=") }, "\(lines)")
        let exported = lines.joined(separator: "\n") + "\n"
        let file = try scene.stage.bus.folder.file("history.scenario", exported)
        let simulated = try sessionctl(scene.stage, ["simulate", file])
        #expect(simulated.code == .code(0), "\(simulated.err.prefix(4_000))")
        let again = try sessionctl(scene.stage, ["simulate", "--export", file])
        #expect(again.out.joined(separator: "\n") + "\n" == exported)
        // Without the microphone there is no call, and the file shows which results differ.
        let silent = try scene.stage.bus.folder.file(
            "silent.scenario", exported.replacingOccurrences(of: "/stream/portUID=", with: "/stream/portName="))
        let other = try sessionctl(scene.stage, ["simulate", silent])
        #expect(other.code == .code(1) && other.err.contains("hold-stream"), "\(other.err.prefix(4_000))")
        // Titles are in it only if that is asked for.
        func titles(_ lines: [String]) -> [Substring] {
            lines.flatMap { $0.split(separator: " ").filter { $0.contains("/media.name=") } }
        }
        #expect(!titles(lines).isEmpty)
        #expect(titles(lines).allSatisfy { $0.contains("/media.name=text") }, "\(titles(lines))")
        let open = try export(["--private"])
        #expect(titles(open).contains { !$0.contains("/media.name=text") }, "\(titles(open))")
        let whole = try scene.stage.bus.folder.file("private.scenario", open.joined(separator: "\n") + "\n")
        #expect(try sessionctl(scene.stage, ["simulate", whole]).code == .code(0))
        withExtendedLifetime(music) {}
    }

    @Test func simulate_exitsWithItsResult() throws {
        let stage = try DaemonStage()
        func run(_ text: String, _ more: [String] = []) throws -> (code: Child.Exit, out: [String], err: String) {
            try sessionctl(stage, ["simulate", try stage.bus.folder.file("a.scenario", text)] + more)
        }
        let good = try run("session a playback\nactivate a\nexpect a active\n")
        #expect(good.code == .code(0) && good.out.last?.contains("a activated (§4)") == true)
        let failing = try run("session a playback\nexpect a active\n")
        #expect(failing.code == .code(1))
        #expect(failing.err.contains("a.scenario:2: expected: expect a active"))
        #expect(failing.err.contains("a.scenario:2: seen:     a is inactive"))
        let wrong = try run("session a playback\n  actvate a\n")
        #expect(wrong.code == .code(64) && wrong.err.contains("a.scenario:2:3: unknown step 'actvate'"))
        #expect(try sessionctl(stage, ["simulate", "/nowhere"]).code == .code(64))
        #expect(try sessionctl(stage, ["simulate", "/dev/zero"]).code == .code(64))
        #expect(try sessionctl(stage, ["simulate", try builtProduct(named: "sessionctl")]).code == .code(64))
        let json = try run("session a playback\nexpect a active\n", ["--json"])
        #expect(json.code == .code(1))
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data((json.out.first ?? "").utf8)) as? [String: Any])
        #expect((object["failures"] as? [[String: Any]])?.first?["line"] as? Int == 2)
        #expect((object["steps"] as? [[String: Any]])?.count == 1)
    }
}
