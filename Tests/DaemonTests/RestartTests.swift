import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import SessionManager
import State
import TestSupport
import Testing

/// The daemon is killed at any moment and started again (rules §8).
@Suite struct RestartTests {
    /// Three clients that carry out steps one after the other. If the daemon is killed before it answers a step, the
    /// step is repeated.
    private struct History {
        let stage: DaemonStage
        let clients: [Client]
        var paths: [String]
        private(set) var told: [[String]] = [[], [], []]
        /// How often the daemon was killed.
        private(set) var deaths = 0
        /// Where the next daemon is killed.
        private var next: String?

        init(_ stage: DaemonStage, next: String? = nil) throws {
            (self.stage, self.next) = (stage, next)
            clients = [try stage.client(), try stage.client(), try stage.client()]
            paths = []
        }

        static let names = ["Music", "Message", "Phone"]

        mutating func create() throws {
            for (index, name) in History.names.enumerated() {
                let isPhone = index == 2
                var path: String?
                while path == nil {
                    do {
                        path = try clients[index].session(
                            name, category: isPhone ? "play-and-record" : "playback", class: isPhone ? "call" : "app",
                            hears: false)
                    } catch {
                        try revive(after: "CreateSession: \(error)")
                    }
                }
                paths.append(path ?? "")
                clients[index].hear(name, paths[index])
            }
        }

        mutating func run(_ steps: [(client: Int, member: String, notify: Bool)]) throws {
            for step in steps {
                let arguments: [Value] = [
                    .properties(step.member == "Deactivate" ? [("notify-others", .bool(step.notify))] : [])
                ]
                while let error = clients[step.client].call(paths[step.client], step.member, arguments) {
                    try revive(after: "\(step.member): \(error)")
                }
                try listen()
            }
        }

        private mutating func revive(after failure: String) throws {
            guard stage.daemon.wait(timeout: 5) == .signal(SIGKILL) else {
                throw SupportError("\(failure): the daemon refused, or ended by itself: \(stage.daemon.errors)")
            }
            deaths += 1
            try stage.restart(crash: next)
            next = nil
        }

        mutating func listen() throws {
            for index in clients.indices {
                while true {
                    if let events = try? clients[index].heard() {
                        told[index] += events
                        break
                    }
                    try revive(after: "signals")
                }
            }
        }
    }

    private static let steps: [(client: Int, member: String, notify: Bool)] = [
        (0, "Activate", false), (1, "Activate", false), (2, "Activate", false), (1, "Deactivate", true),
        (2, "Deactivate", false), (0, "Activate", false), (1, "Activate", false), (0, "Activate", false),
        (2, "Activate", false),
    ]

    private static let points: [(name: String, count: Int)] =
        [("name-taken", 1), ("restored", 1), ("state-rename", 1)]
        + ["before-state", "state-written", "told-noted", "told", "before-reply", "replied"].flatMap { name in
            [1, 2, 3, 4, 5, 7, 9, 12].map { (name, $0) }
        }

    @Test func daemonIsKilledAtEveryStep_clientsNoticeNothing() throws {
        var calm = try History(try DaemonStage())
        try calm.create()
        try calm.run(RestartTests.steps)
        let expected = try calm.stage.sessions()

        for point in RestartTests.points {
            let label = "\(point.name):\(point.count)"
            let stage = try DaemonStage(crash: label)
            if !eventually({ stage.isServing || !stage.daemon.isRunning }) || !stage.daemon.isRunning {
                try stage.restart()
            }
            var history = try History(stage)
            try history.create()
            try history.run(RestartTests.steps)
            // If the daemon is killed between noting and sending a signal, that signal is lost. No signal is sent twice.
            let losses = ["state-written", "told-noted"].contains(point.name) ? history.deaths : 0
            try expectSame(history, as: calm, expected, losses: losses, label)
        }
    }

    /// A daemon is killed while it sends the signals that the one before did not send.
    @Test func nextDaemonIsKilledWhileItContinues_noSignalIsSentTwice() throws {
        var calm = try History(try DaemonStage())
        try calm.create()
        try calm.run(RestartTests.steps)
        let expected = try calm.stage.sessions()
        var deaths = 0
        for first in ["state-written:5", "state-written:6", "told-noted:2", "told:2", "told:3", "told:5"] {
            for second in ["restored:1", "state-rename:1", "told-noted:1", "told:1", "told:2"] {
                let stage = try DaemonStage(crash: first)
                #expect(eventually { stage.isServing })
                var history = try History(stage, next: second)
                try history.create()
                try history.run(RestartTests.steps)
                let losses = [first, second].filter { $0.hasPrefix("state-written") || $0.hasPrefix("told-noted") }
                    .count
                try expectSame(history, as: calm, expected, losses: losses, "\(first), \(second)")
                deaths = max(deaths, history.deaths)
            }
        }
        #expect(deaths == 2)
    }

    /// - Parameter losses: how many signals may be missing in all.
    private func expectSame(
        _ history: History, as calm: History, _ expected: [String: [String: Value]], losses: Int, _ label: String
    ) throws {
        let sessions = try history.stage.sessions()
        // A session that was created but not answered remains inactive, with its owner.
        let others = sessions.filter { !history.paths.contains($0.key) }
        #expect(
            others.count <= history.deaths && others.allSatisfy { $0.value["State"] == .string("inactive") },
            "\(label)")
        for (index, path) in history.paths.enumerated() {
            let (seen, wanted) = (sessions[path] ?? [:], expected[calm.paths[index]] ?? [:])
            for key in ["State", "Category", "Ducked", "InterruptionReason", "Class", "Foreground"] {
                #expect(seen[key] == wanted[key], "\(label): \(key) of \(History.names[index])")
            }
            let waiting = { (fields: [String: Value], paths: [String]) in
                (fields["WaitingFor"]?.objectPathsValue ?? []).map { paths.firstIndex(of: $0) }
            }
            #expect(waiting(seen, history.paths) == waiting(wanted, calm.paths), "\(label)")
            #expect(isSubsequence(history.told[index], of: calm.told[index]), "\(label): \(history.told[index])")
        }
        let missing = calm.told.joined().count - history.told.joined().count
        #expect((0...losses).contains(missing), "\(label): \(history.told)")
    }

    @Test func clientDisconnectsWithoutADaemon_isNoticedAfterTheRestart() throws {
        let stage = try DaemonStage()
        let music = try stage.client()
        let path = try music.session("Music")
        var phone: Client? = try stage.client()
        let call = try #require(try phone?.session("Phone", category: "play-and-record", class: "call"))
        music.activate(path)
        phone?.activate(call)
        #expect(try music.heard() == ["Music began default by Phone"])
        var listed: [String] = []
        let subscription = music.connection.subscribe(
            path: ObjectPath.root, interface: "org.freedesktop.DBus.ObjectManager", sender: BusName.service
        ) { message in
            listed.append("\(message.member ?? "") \((try? message.arguments())?[0].objectPathValue ?? "")")
        }
        defer { withExtendedLifetime(subscription) {} }
        stage.daemon.kill()
        phone?.connection.close()
        phone = nil
        try stage.restart()
        // A call whose client disconnected has ended, with the should-resume hint (R5, R11).
        #expect(try music.heard() == ["Music ended resume"])
        #expect(listed == ["InterfacesRemoved \(call)"])
        #expect(music.state(call) == "gone")
        #expect(music.call(call, "Close") == "org.sessiond1.Error.ExpiredSession")
        let next = try music.session("Next")
        #expect(next != path && next != call, "a number is never used again")
    }

    @Test func allOtherState_isTheSameAfterARestart() throws {
        let stage = try DaemonStage(settings: "[interruption]\ngrace = 60\n")
        let (a, b, c) = (try stage.client(), try stage.client(), try stage.client())
        let first = try a.session("A", category: "solo-ambient")
        let second = try b.session("B", category: "playback", mode: "spoken-audio")
        let third = try c.session(
            "C", category: "ambient", options: ["duck-others"],
            more: [("desktop-entry", .string("org.example.C")), ("notify-on-exit", .bool(true))])
        a.activate(first)
        b.activate(second)
        c.activate(third)
        try stage.manager("SetSilentMode", [.bool(true)])
        try stage.manager("SetForeground", [.objectPath(first), .bool(false)])
        a.call(first, "SetPreferences", [.properties([("io-buffer-duration", .double(0.02))])])
        let before = try stage.sessions()
        let sequence = try stage.property("Sequence").uint64Value ?? 0
        for client in [a, b, c] { _ = try client.heard() }
        for _ in 0..<3 {
            stage.daemon.kill()
            try stage.restart()
            #expect(try stage.sessions() == before)
        }
        for client in [a, b, c] { #expect(try client.heard() == []) }
        #expect(try stage.property("SilentMode") == .bool(true))
        #expect(try stage.property("Sequence").uint64Value ?? 0 >= sequence)
        c.connection.close()
        #expect(eventually { b.state(third) == "gone" })
        #expect(try b.heard().contains("B ducked 0.0"))
    }

    @Test(arguments: [
        "empty", "short", "garbage", "version", "huge", "link", "two names", "a FIFO", "a folder", "no folder",
    ])
    func damagedStateFile_isReportedByOneWarning(kind: String) throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let path = try client.session("A")
        client.activate(path)
        stage.daemon.kill()
        let files = try FileManager.default.contentsOfDirectory(atPath: stage.stateFolder)
        #expect(files.count == 1)
        let file = stage.stateFolder + "/" + (files.first ?? "")
        let bytes = try Data(contentsOf: URL(fileURLWithPath: file))
        let manager = FileManager.default
        switch kind {
        case "empty": try Data().write(to: URL(fileURLWithPath: file))
        case "short": try bytes.dropLast(3).write(to: URL(fileURLWithPath: file))
        case "garbage":
            try Data((0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 7) }).write(to: URL(fileURLWithPath: file))
        case "version":
            let other = Data("sessiond state 0\n".utf8) + bytes.dropFirst(StateLog.magic.count)
            try other.write(to: URL(fileURLWithPath: file))
        case "huge":
            let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
            try handle.truncate(atOffset: 1 << 30)
        case "link":
            try manager.moveItem(atPath: file, toPath: file + ".real")
            try manager.createSymbolicLink(atPath: file, withDestinationPath: file + ".real")
        case "two names": try manager.linkItem(atPath: file, toPath: file + ".other")
        case "a FIFO":
            try manager.removeItem(atPath: file)
            #expect(mkfifo(file, 0o600) == 0)
        case "a folder":
            try manager.removeItem(atPath: file)
            try manager.createDirectory(atPath: file, withIntermediateDirectories: false)
        default:
            try manager.removeItem(atPath: stage.stateFolder)
            try Data().write(to: URL(fileURLWithPath: stage.stateFolder))
        }
        try stage.restart()
        let warnings = { stage.daemon.isRunning ? stage.daemon.errors.filter { $0.contains("state-") } : [] }
        #expect(eventually { !warnings().isEmpty } && warnings().count == 1)
        // The daemon serves. A truncated state file is used up to its last complete record.
        if kind != "short" { #expect(client.state(path) == "gone") }
        let next = try client.session("B")
        #expect(client.activate(next) == nil)
    }

    /// A client has the bus name and process id of the state file, but is another process. The daemon discards that
    /// state.
    @Test func stateOfAnotherProcess_isDiscarded() throws {
        let stage = try DaemonStage()
        let (music, other) = (try stage.client(), try stage.client())
        let (path, phone) = (
            try music.session("Music"), try other.session("Phone", category: "play-and-record", class: "call")
        )
        music.activate(path)
        other.activate(phone)
        _ = try music.heard()
        stage.daemon.kill()
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: stage.stateFolder).first)
        let file = URL(fileURLWithPath: stage.stateFolder + "/" + name)
        let state = try #require(StateLog([UInt8](Data(contentsOf: file)))?.summary)
        var entries = state.entries
        entries[1].client.start += 1
        var core = state.core
        core.members = []
        let record = StateRecord(core: core, changed: entries, closed: [], told: [])
        try Data(StateLog.magic + StateLog.bytes(of: record)).write(to: file)
        try stage.restart()
        #expect(eventually { music.state(phone) == "gone" })
        #expect(try music.heard() == ["Music ended resume"])
        #expect(
            eventually { stage.daemon.isRunning && stage.daemon.errors.contains { $0.contains("another client") } })
        #expect(music.activate(path) == nil)
    }

    /// Every kind of cause has the same rule, time and text after a restart.
    @Test(arguments: [60, 0.05]) func explanations_areIdenticalAfterARestart(grace: Double) throws {
        let stage = try DaemonStage(settings: "[interruption]\ngrace = \(grace)\n")
        let clients = try (0..<8).map { _ in try stage.client() }
        let (podcast, music, phone) = (
            try clients[0].session("Podcast", mode: "spoken-audio"), try clients[1].session("Music"),
            try clients[2].session("Phone", category: "play-and-record", class: "call")
        )
        let memo = try clients[3].session("Memo", category: "record")
        let game = try clients[4].session("Game", category: "ambient")
        let ducker = try clients[5].session("Directions", options: ["duck-others"])
        let (gone, given) = (try clients[6].session("Gone"), try clients[7].session("Given up"))
        var seen: Set<String> = []

        func expectTheSame(_ when: String) throws {
            let paths = [podcast, music, phone, memo, game, ducker, gone, given]
            func explain() -> [[Value]] {
                paths.map { (try? stage.manager("Explain", [.objectPath($0)])[0].arrayValue) ?? [] }
            }
            let before = explain()
            stage.daemon.kill()
            try stage.restart()
            let after = explain()
            for (one, other) in zip(before, after) where one != other {
                Issue.record("\(when): before \(one.map(\.asProperties)), after \(other.map(\.asProperties))")
            }
            seen.formUnion(before.joined().compactMap { $0.asProperties?["cause"]?.stringValue })
        }

        clients[0].activate(podcast)
        clients[6].activate(gone)
        clients[1].activate(music)
        clients[7].activate(given)
        clients[1].activate(music)
        clients[7].deactivate(given)
        clients[4].activate(game)
        clients[5].activate(ducker)
        try stage.manager("SetSilentMode", [.bool(true)])
        try expectTheSame("ducked, muted, taken back, given up")
        clients[2].activate(phone)
        #expect(clients[3].activate(memo) == "org.sessiond1.Error.InsufficientPriority")
        #expect(clients[2].call(phone, "OverrideOutput", [.string("speaker")]) != nil)
        try expectTheSame("interrupted, waiting, refused")
        clients[6].connection.close()
        #expect(eventually { clients[0].state(gone) == "gone" })
        clients[1].deactivate(music)
        try expectTheSame("will not resume")
        clients[2].deactivate(phone)
        if grace < 1 {
            #expect(
                eventually {
                    (try? stage.manager("Explain", [.objectPath(podcast)])[0].arrayValue?.first)?.asProperties?["cause"]
                        == .string("inactive")
                })
        }
        try expectTheSame("a claim, or an expired claim")
        #expect(clients[3].activate(memo) == nil)
        try expectTheSame("no longer refused")
        let kinds = [
            "active", "inactive", "interrupted", "waits-for", "will-not-resume", "ducked", "muted", "refused",
        ]
        #expect(seen.isSuperset(of: kinds + (grace < 1 ? [] : ["claim"])), "\(seen)")
    }

    private func isSubsequence(_ part: [String], of whole: [String]) -> Bool {
        var rest = whole[...]
        for event in part {
            guard let index = rest.firstIndex(of: event) else { return false }
            rest = rest[(index + 1)...]
        }
        return true
    }
}
