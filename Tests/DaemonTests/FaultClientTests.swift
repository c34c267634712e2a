import DBus
import EventLoop
import Foundation
import Fuzzing
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Clients that crash, use sessions of others, send floods of calls, or do not read (faults.md, A).
@Suite struct FaultClientTests {
    @Test(arguments: ["active", "interrupted", "ducking", "recording", "in a call"])
    func clientIsKilled_othersContinueAtOnce(state: String) throws {
        let stage = try DaemonStage()
        try stage.surviving {
            let music = try stage.client()
            let path = try music.session("Music")
            let other = try stage.foreigner()
            let theirs =
                switch state {
                case "ducking": other.create("Other", option: "duck-others")
                case "recording": other.create("Other", category: "record")
                case "in a call": other.create("Other", category: "play-and-record", class: "call")
                default: other.create("Other")
                }
            #expect(music.activate(path) == nil)
            #expect(other.ask("activate \(theirs)") == "ok")
            if state == "interrupted" { #expect(music.activate(path) == nil) }
            _ = try music.heard()
            let begun = monotonicNow()
            other.process.kill()
            #expect(eventually { music.state(theirs) == "gone" })
            print("killed while \(state): gone after \(Int((monotonicNow() - begun) * 1_000)) ms")
            switch state {
            case "ducking": #expect(try music.heard() == ["Music ducked 0.0"])
            case "interrupted": #expect(try music.heard() == [])
            // Any end of a call gives the music its should-resume hint (R5).
            case "in a call": #expect(try music.heard() == ["Music ended resume"])
            default: #expect(try music.heard() == ["Music ended stay"])
            }
            #expect(music.activate(path) == nil)
            try stage.expectInvariants()
        }
    }

    @Test func killedBeforeTheAnswer_noSessionStaysInterrupted() throws {
        let stage = try DaemonStage()
        try stage.surviving {
            let music = try stage.client()
            let path = try music.session("Music")
            music.activate(path)
            for _ in 0..<amount(3, long: 30) {
                let other = try stage.foreigner()
                let theirs = other.create("Other")
                other.tell("activate-and-die \(theirs)")
                #expect(other.process.wait() == .signal(SIGKILL))
                #expect(eventually { music.state(theirs) == "gone" })
                let heard = try music.heard()
                #expect(heard == [] || heard == ["Music began default by Other", "Music ended stay"], "\(heard)")
                #expect(music.state(path) != "interrupted")
                #expect(music.activate(path) == nil)
            }
        }
    }

    @Test func clientReconnects_itsOldSessionIsRefused() throws {
        let stage = try DaemonStage()
        try stage.surviving {
            var old = ""
            do {
                let client = try stage.client()
                old = try client.session("A")
                client.activate(old)
                client.connection.close()
            }
            let again = try stage.client()
            let refusals = ["org.sessiond1.Error.NotOwner", "org.sessiond1.Error.ExpiredSession"]
            #expect(refusals.contains(again.activate(old) ?? ""))
            let new = try again.session("A")
            #expect(new != old)
            #expect(again.activate(new) == nil)
            #expect(eventually { again.activate(old) == "org.sessiond1.Error.ExpiredSession" })
        }
    }

    @Test func sameCallTwice_sendsNoSecondSignal() throws {
        let stage = try DaemonStage()
        let (a, b) = (try stage.client(), try stage.client())
        let (first, second) = (try a.session("A"), try b.session("B"))
        a.activate(first)
        for _ in 0..<2 { #expect(b.activate(second) == nil) }
        #expect(try a.heard() == ["A began default by B"])
        for _ in 0..<2 { #expect(b.deactivate(second, notify: true) == nil) }
        #expect(try a.heard() == ["A ended resume"])
        for _ in 0..<2 { #expect(a.deactivate(first) == nil) }
        #expect(try b.heard().filter { !$0.contains("hint") } == [])
    }

    @Test func sessionActivatesInItsEndedHandler_isActive() throws {
        let stage = try DaemonStage()
        let (a, b) = (try stage.client(), try stage.client())
        let (first, second) = (try a.session("A"), try b.session("B"))
        var answers: [Bool] = []
        let subscription = a.connection.subscribe(
            path: first, interface: BusName.session, member: "InterruptionEnded", sender: BusName.service
        ) { [unowned a] _ in
            guard
                let call = try? Message.methodCall(
                    destination: BusName.service, path: first, interface: BusName.session, member: "Activate")
            else { return }
            call.append([.properties([])])
            a.connection.call(call) { result in answers.append((try? result.get()) != nil) }
        }
        for round in 1...amount(20, long: 1_000) {
            a.activate(first)
            b.activate(second)
            b.deactivate(second, notify: true)
            #expect(stage.loop.iterate(timeout: 10) { answers.count == round })
            #expect(a.state(first) == "active")
        }
        #expect(!answers.contains(false))
        withExtendedLifetime(subscription) {}
    }

    @Test func twoClientsInterruptEachOther_beganComesBeforeTheGrant() throws {
        let stage = try DaemonStage()
        try stage.surviving {
            let (a, b) = (try stage.client(), try stage.client())
            let (first, second) = (try a.session("A"), try b.session("B"))
            // All signals of the daemon about the two sessions, in the order of the bus.
            var told: [String] = []
            let watcher = try Connection(.custom(stage.bus.address), loop: stage.loop)
            let subscription = watcher.subscribe(sender: BusName.service) { message in
                let who = message.path == first ? "A" : "B"
                if message.member == "InterruptionBegan" { told.append(who + " lost") }
                guard message.member == "PropertiesChanged", let values = try? message.arguments(),
                    values[1].asProperties?["State"] == .string("active")
                else { return }
                told.append(who + " has")
            }
            let rounds = 1_000
            for _ in 0..<rounds {
                #expect(a.activate(first) == nil)
                #expect(b.activate(second) == nil)
            }
            #expect(stage.loop.iterate(timeout: 20) { told.filter { $0 == "B has" }.count == rounds })
            let expected = ["B lost", "A has", "A lost", "B has"]
            let usual = ["A has", "A lost", "B has"] + (1..<rounds).flatMap { _ in expected }
            #expect(told == usual)
            withExtendedLifetime(subscription) {}
        }
    }

    @Test func guessedSessionPaths_areRefused_withoutDelayingOthers() throws {
        let stage = try DaemonStage()
        try stage.surviving {
            let owner = try stage.client()
            let session = try owner.session("Mine")
            owner.activate(session)
            let guesser = try stage.client()
            let closed = try guesser.session("Closed")
            guesser.call(closed, "Close")
            let allowed = ["NotOwner", "ExpiredSession", "UnknownObject"]
            var dice = Dice(seed: 5)
            var answers = 0
            var wrong: [String] = []
            let guesses = amount(20_000, long: 100_000)
            for index in 0..<guesses {
                let path = [session, closed, "/org/sessiond1/session/\(dice.next() >> UInt64(dice.below(64)))"][
                    index % 3]
                let member = dice.pick(["Activate", "Deactivate", "Close", "SetCategory", "SetPreferences"])
                let call = try Message.methodCall(
                    destination: BusName.service, path: path, interface: BusName.session, member: member)
                call.append(
                    member == "Close"
                        ? []
                        : member == "SetCategory"
                            ? [.string("ambient"), .string("default"), .strings([])] : [.properties([])])
                guesser.connection.call(call) { result in
                    answers += 1
                    guard case .failure(let failure) = result, allowed.contains(where: failure.name.hasSuffix) else {
                        wrong.append("\(path) \(member): \(result)")
                        return
                    }
                }
                if index % 50 == 49 { #expect(stage.loop.iterate(timeout: 20) { answers > index - 50 }) }
            }
            #expect(stage.loop.iterate(timeout: 20) { answers == guesses })
            #expect(wrong == [])
            #expect(owner.state(session) == "active")
            #expect(try owner.heard() == [])
        }
    }

    /// A client with an active session that plays and does not read its signals.
    private struct DeafPlayer {
        let stage: DaemonStage
        let client: Foreigner
        /// Its session.
        let path: String
        private let pulse: any PrivateServer
        private let music: Child

        init(_ kind: ServerKind) throws {
            pulse = try kind.server()
            stage = try DaemonStage(pulse: pulse, settings: "[enforcement]\ndeadline = 0.05\n")
            #expect(stage.waitForServer())
            music = try Child(
                "pacat", ["--playback", "--raw", "--latency-msec=200", "--client-name=Music", "/dev/zero"],
                environment: pulse.environment)
            client = try stage.foreigner()
            path = String(client.ask("create Music playback - app \(music.processID)").dropFirst(3))
            #expect(try eventually { try sink() == "speaker" })
            #expect(client.ask("activate \(path)") == "ok")
        }

        /// The sink of its stream; empty: it has none.
        func sink() throws -> String { try pulse.control.streams().first?.sink ?? "" }
    }

    /// A client plays on after it was interrupted, because it ignores the signal or because its process is stopped (A7,
    /// A8). The daemon silences its stream and marks the session. The call does not wait.
    @Test(arguments: ServerKind.allCases, [false, true])
    func clientPlaysOnDuringACall_isSilencedAndMarked(_ kind: ServerKind, standsStill: Bool) throws {
        let player = try DeafPlayer(kind)
        let (stage, deaf, path) = (player.stage, player.client, player.path)
        if standsStill { deaf.process.suspend() }
        // The call comes from another connection and another process.
        let phone = try stage.client()
        let call = try phone.session(
            "Phone", category: "play-and-record", class: "call", more: [("pid", .uint32(UInt32(stage.bus.processID)))])
        #expect(phone.activate(call) == nil)
        #expect(try stage.property("State", of: path) == .string("interrupted"))
        #expect(try eventually { try player.sink() == "sessiond.hold" })
        #expect(try stage.property("IgnoredInterruption", of: path) == .bool(true))
        let events = try stage.manager("History", [.uint32(20)])[0].arrayValue?.compactMap(\.asProperties) ?? []
        #expect(
            events.contains { $0["event"] == .string("interruption-ignored") && $0["session"] == .objectPath(path) })
        let status = try Child.run(
            try builtProduct(named: "sessionctl"), ["status"], environment: SessionctlStage.environment(on: stage.bus))
        #expect(
            status.split(separator: "\n").contains {
                $0.contains("interrupted") && $0.contains("Music") && $0.contains("played on although")
            }, "\(status)")
        #expect(phone.deactivate(call) == nil)
        if standsStill { deaf.process.resume() }
        #expect(deaf.ask("list") == "ok 2", "the client answers again")
        #expect(deaf.ask("activate \(path)") == "ok")
        #expect(try eventually { try player.sink() == "speaker" })
        #expect(try stage.property("IgnoredInterruption", of: path) == .bool(false))
    }

    /// Neither the end of the interruption starts its sound (R2), nor the next daemon.
    @Test(arguments: ServerKind.allCases) func clientPlaysOnAfterAnInterruption_isStillSilentWithTheNextDaemon(
        _ kind: ServerKind
    ) throws {
        let player = try DeafPlayer(kind)
        let (stage, deaf, path) = (player.stage, player.client, player.path)
        let other = try stage.client()
        let session = try other.session("Other", more: [("pid", .uint32(UInt32(stage.bus.processID)))])
        #expect(other.activate(session) == nil)
        #expect(try eventually { try player.sink() == "sessiond.hold" })
        #expect(other.deactivate(session) == nil)
        #expect(try stage.property("State", of: path) == .string("inactive"))
        stage.daemon.kill()
        try stage.restart()
        #expect(try eventually { try !stage.explanation("stream-silenced", of: path).isEmpty })
        #expect(try player.sink() == "sessiond.hold")
        #expect(deaf.ask("activate \(path)") == "ok")
        #expect(try eventually { try player.sink() == "speaker" })
    }

    @Test func clientNeverReads_othersAreNotDelayed() throws {
        let stage = try DaemonStage()
        try stage.surviving {
            let deaf = try DeafPeer(socket: stage.bus.folder.path + "/bus")
            let rule = try Message.methodCall(
                destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus",
                interface: "org.freedesktop.DBus", member: "AddMatch")
            rule.append([.string("type='signal',sender='org.sessiond1'")])
            deaf.send(rule)
            let (a, b) = (try stage.client(), try stage.client())
            let (first, second) = (try a.session("A"), try b.session("B"))
            let calls = amount(5_000, long: 50_000)
            let before = try stage.footprint
            for index in 0..<calls {
                let call = try Message.methodCall(
                    destination: BusName.service, path: ObjectPath.root, interface: BusName.manager,
                    member: index % 2 == 0 ? "ListSessions" : "History")
                if index % 2 == 1 { call.append([.uint32(16)]) }
                deaf.send(call)
            }
            var times: [Double] = []
            for _ in 0..<amount(300, long: 1_000) {
                let begun = monotonicNow()
                #expect(a.activate(first) == nil)
                times.append(monotonicNow() - begun)
                #expect(b.activate(second) == nil)
            }
            times.sort()
            let worst = times[times.count * 99 / 100] * 1_000
            print(
                "beside a client that never reads: median \(times[times.count / 2] * 1_000) ms, p99 \(worst) ms, "
                    + "the slowest, behind all of its calls, \((times.last ?? 0) * 1_000) ms")
            let after = try stage.footprint
            #expect(isSanitized || after.memory <= before.memory + 8_192, "\(before.memory) → \(after.memory) kB")
            withExtendedLifetime(deaf) {}
        }
    }

    @Test func floodOfCalls_doesNotDelayOthers() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let path = try client.session("A")
        for index in 0..<20 { _ = try client.session("Session \(index)") }
        // This peer receives its replies and the signals about others on one connection, in order.
        let flood = try RawPeer(stage.bus.address)
        let rule = try Message.methodCall(
            destination: "org.freedesktop.DBus", path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus",
            member: "AddMatch")
        rule.append([.string("type='signal',sender='org.sessiond1',member='PropertiesChanged'")])
        flood.send(rule)
        let total = 3_000
        for _ in 0..<total {
            flood.send(
                try Message.methodCall(
                    destination: BusName.service, path: ObjectPath.root, interface: BusName.manager,
                    member: "ListSessions"))
        }
        // After the first reply the flood is in progress.
        while let message = flood.receive(timeout: 10), message.signature != "aa{sv}" {}
        #expect(client.activate(path) == nil)
        var (returnsBefore, returns, refusals) = (0, 1, 0)
        while returns + refusals < total, let message = flood.receive(timeout: 20) {
            if message.member == "PropertiesChanged" { returnsBefore = returns }
            if message.signature == "aa{sv}" { returns += 1 }
            if message.errorName == "org.freedesktop.DBus.Error.LimitsExceeded" { refusals += 1 }
        }
        print("\(total) calls at once: \(returns) answered, \(refusals) refused; activated after \(returnsBefore)")
        #expect(returns + refusals == total)
        #expect(returns >= 1_024)
        #expect(returnsBefore > 0 && returnsBefore < returns / 2)
    }

    /// All of it waits for the daemon before it sees the first.
    @Test func manyClientsNeverRead_smallCallsAreAnsweredFirst() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let path = try client.session("A")
        for _ in 0..<100 {
            client.activate(path)
            client.deactivate(path)
        }
        let peers = try (0..<64).map { _ in try RawPeer(stage.bus.address) }
        for peer in peers {
            try peer.ask("AddMatch", "type='signal',sender='org.sessiond1',path='/org/sessiond1'")
        }
        stage.daemon.suspend()
        for peer in peers {
            for _ in 0..<20 { try peer.send("History", [.uint32(512)]) }
            try peer.ask("GetId")
        }
        let other = try RawPeer(stage.bus.address)
        try other.send("SetSilentMode", [.bool(true)])
        try other.ask("GetId")
        stage.daemon.resume()
        var before = 0
        for peer in peers {
            while let message = peer.receive(timeout: 20), message.member != "PropertiesChanged" {
                if message.signature == "aa{sv}" { before += 1 }
            }
        }
        print("\(before) of \(64 * 20) large answers were made before a small one")
        // Where each had its first four: 260 to 390.
        #expect(before < peers.count)
    }

    /// Programs ask for a list of very many sessions again and again. It is made from what was encoded before.
    @Test func largeLists_areEncodedOnlyAfterChanges() throws {
        let stage = try DaemonStage()
        let clients = try (0..<32).map { _ in try stage.client() }
        var paths: [String] = []
        for client in clients {
            for number in 0..<31 { paths.append(try client.session(String(repeating: "n", count: 240) + "\(number)")) }
        }
        let peer = try RawPeer(stage.bus.address)
        // The daemon's processor time for a call, in nanoseconds, because the time of the answer depends on its reader.
        func cost(_ call: () throws -> Void) throws -> Int {
            func used() throws -> Int {
                let text = try String(contentsOfFile: "/proc/\(stage.daemon.processID)/schedstat", encoding: .utf8)
                return text.split(separator: " ").first.flatMap { Int($0) } ?? 0
            }
            #expect(try stage.daemon.waitUntilIdle())
            let before = try used()
            try call()
            #expect(peer.receive(timeout: 20) { $0.replySerial != 0 && $0.errorName == nil && !$0.signature.isEmpty })
            #expect(try stage.daemon.waitUntilIdle())
            return try used() - before
        }
        func list() throws { try peer.send("ListSessions", []) }
        // Each session was encoded when it was announced.
        let listed = try (0..<5).map { _ in try cost(list) }.sorted()[2]
        let objects = try cost {
            peer.send(
                try Message.methodCall(
                    destination: BusName.service, path: ObjectPath.root,
                    interface: "org.freedesktop.DBus.ObjectManager", member: "GetManagedObjects"))
        }
        #expect(clients[0].activate(paths[0]) == nil)
        let changed = try stage.listedSessions().first { $0["path"] == .objectPath(paths[0]) }
        #expect(changed?["State"] == .string("active"), "a change is in the next list")
        print("a list of 992 sessions: \(listed / 1_000) µs of processor, as objects \(objects / 1_000)")
        // Read property by property, the objects would take three times as long as an encoded list.
        #expect(objects < 2 * listed)
    }

    /// More is unread than all clients may leave unread together, but not by the one that calls.
    @Test func readerBesideDeafClients_losesNoCall() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let path = try client.session("A")
        for _ in 0..<300 {
            client.activate(path)
            client.deactivate(path)
        }
        let reader = try RawPeer(stage.bus.address)
        try reader.send("History", [.uint32(512)])
        #expect(reader.receive(timeout: 10) { $0.signature == "aa{sv}" })
        let deaf = try (0..<10).map { _ in try DeafPeer(socket: stage.bus.folder.path + "/bus") }
        for peer in deaf {
            for _ in 0..<60 {
                let call = try Message.methodCall(
                    destination: BusName.service, path: ObjectPath.root, interface: BusName.manager, member: "History")
                call.append([.uint32(512)])
                peer.send(call)
            }
        }
        #expect(try stage.daemon.waitUntilIdle())
        for _ in 0..<3 {
            for _ in 0..<20 { try reader.send("History", [.uint32(512)]) }
            try reader.send("SetSilentMode", [.bool(false)])
            for index in 0..<20 {
                #expect(reader.receive(timeout: 20) { $0.replySerial != 0 && $0.signature == "aa{sv}" }, "\(index)")
            }
            #expect(reader.receive(timeout: 20) { $0.replySerial != 0 && $0.errorName == nil })
        }
        #expect(try stage.daemon.waitUntilIdle(), "the bus is not asked for ever")
        withExtendedLifetime(deaf) {}
    }

    @Test func manyClients_areServedAndLeaveNothingBehind() throws {
        let stage = try DaemonStage()
        try stage.surviving {
            var crowd: [Client] = []
            var paths: [String] = []
            for index in 0..<amount(100, long: 1_000) {
                let client = try stage.client()
                paths.append(try client.session("Client \(index)"))
                #expect(client.activate(paths[index]) == nil)
                crowd.append(client)
            }
            try stage.expectInvariants()
            #expect(try stage.listedSessions().count == crowd.count)
            crowd = []
            #expect(try eventually(timeout: 60) { try stage.listedSessions().isEmpty })
        }
    }

    @Test func sessionBeyondTheLimit_isRefused() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        for index in 1...32 { _ = try client.session("Session \(index)") }
        #expect(throws: Failure.self) { try client.session("Session 33") }
        #expect(try stage.listedSessions().count == 32)
        let other = try stage.client()
        _ = try other.session("Other")
    }

    @Test func floodOfActivations_isAnsweredCompletely() throws {
        let stage = try DaemonStage()
        try stage.surviving {
            let (a, b) = (try stage.client(), try stage.client())
            let paths = [try a.session("A"), try b.session("B")]
            let total = amount(5_000, long: 600_000)
            var (answers, failures) = (0, 0)
            let begun = monotonicNow()
            for index in 0..<total {
                let call = try Message.methodCall(
                    destination: BusName.service, path: paths[index % 2], interface: BusName.session,
                    member: "Activate")
                call.append([.properties([])])
                [a, b][index % 2].connection.call(call, timeout: 120) { result in
                    answers += 1
                    if case .failure = result { failures += 1 }
                }
                if index % 100 == 99 { #expect(stage.loop.iterate(timeout: 60) { answers > index - 1_000 }) }
            }
            #expect(stage.loop.iterate(timeout: 120) { answers == total })
            #expect(failures == 0)
            print("\(Int(Double(total) / (monotonicNow() - begun))) activations a second, each an interruption")
        }
    }
}

extension RawPeer {
    /// Calls the service's manager.
    fileprivate func send(_ member: String, _ arguments: [Value]) throws {
        let call = try Message.methodCall(
            destination: BusName.service, path: ObjectPath.root, interface: BusName.manager, member: member)
        call.append(arguments)
        send(call)
    }

    /// Waits for the next message for which that is true.
    fileprivate func receive(timeout: Double, _ isMeant: (Message) -> Bool) -> Bool {
        while let message = receive(timeout: timeout) { if isMeant(message) { return true } }
        return false
    }

    /// Asks the bus and waits for its answer, so that it has taken everything that was sent before.
    fileprivate func ask(_ member: String, _ text: String? = nil) throws {
        let call = try Message.methodCall(
            destination: StandardName.bus, path: StandardName.busPath, interface: StandardName.bus, member: member)
        if let text { call.append([.string(text)]) }
        let serial = send(call)
        while let answer = receive(timeout: 10), answer.replySerial != serial {}
    }
}
