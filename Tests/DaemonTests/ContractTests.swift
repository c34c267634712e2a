import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Checks over D-Bus that the daemon keeps its contract.
@Suite struct ContractTests {
    @Test func musicMessageCall_unwindsInOrder() throws {
        let stage = try DaemonStage()
        let (a, b, c) = (try stage.client(), try stage.client(), try stage.client())
        let music = try a.session("Music")
        let message = try b.session("Message")
        let phone = try c.session("Phone", category: "play-and-record", class: "call")

        #expect(a.activate(music) == nil)
        #expect(b.activate(message) == nil)
        #expect(try a.heard() == ["Music began default by Message"])
        #expect(try stage.property("WaitingFor", of: music) == .objectPaths([message]))
        #expect(c.activate(phone) == nil)
        #expect(try a.heard() == [])
        #expect(try b.heard() == ["Message hint false", "Message began default by Phone"])
        #expect(try stage.property("WaitingFor", of: music) == .objectPaths([message, phone]))
        #expect(b.deactivate(message, notify: true) == nil)
        #expect(c.deactivate(phone) == nil)
        #expect(try a.heard() == ["Music ended resume"])
        #expect(try b.heard() == [])
        #expect(a.state(music) == "inactive")
        #expect(a.activate(music) == nil)
        #expect(a.state(music) == "active")
        #expect(try stage.property("NowPlaying") == .objectPath(music))
    }

    @Test func everyRefusal_hasItsErrorName() throws {
        let stage = try DaemonStage()
        let (a, b) = (try stage.client(), try stage.client())
        let session = try a.session("A")
        #expect(b.activate(session) == "org.sessiond1.Error.NotOwner")
        #expect(
            a.call(session, "SetCategory", [.string("ambient"), .string("voice-chat"), .strings([])])
                == "org.sessiond1.Error.BadParameter")
        #expect(
            a.call(session, "SetCategory", [.string("ambient"), .string("default"), .strings(["mix-with-others"])])
                == "org.sessiond1.Error.BadParameter")
        #expect(a.call(session, "OverrideOutput", [.string("speaker")]) == "org.sessiond1.Error.IncompatibleCategory")
        #expect(
            a.call(session, "SetCategory", [.string("play-and-record"), .string("default"), .strings([])]) == nil)
        #expect(a.call(session, "OverrideOutput", [.string("speaker")]) == "org.sessiond1.Error.MediaServicesFailed")
        #expect(a.call(session, "OverrideOutput", [.string("roof")]) == "org.sessiond1.Error.BadParameter")
        #expect(
            a.call(session, "Deactivate", [.properties([("notify-others", .string("yes"))])])
                == "org.freedesktop.DBus.Error.InvalidArgs")
        #expect(
            a.call(session, "Activate", [.properties([("loudly", .bool(true))])])
                == "org.sessiond1.Error.BadParameter")
        #expect(a.call(session, "Activate", []) == "org.freedesktop.DBus.Error.InvalidArgs")
        #expect(a.call(session, "Dance") == "org.freedesktop.DBus.Error.UnknownMethod")
        #expect(a.call("/org/sessiond1/session/999", "Close") == "org.freedesktop.DBus.Error.UnknownObject")
        #expect(a.call(session, "Close") == nil)
        #expect(a.call(session, "Close") == "org.sessiond1.Error.ExpiredSession")
        #expect(b.activate(session) == "org.sessiond1.Error.ExpiredSession")
        let next = try a.session("B")
        #expect(next != session, "a number is never used again")
    }

    @Test func createSession_refusesInvalidArguments() throws {
        let stage = try DaemonStage(
            settings: "[privileges]\ncall = /nowhere/phone\n[limits]\nsessions-per-client = 2\n")
        let client = try stage.client()
        func error(_ name: String, _ options: [(String, Value)]) -> String? {
            do throws(Failure) {
                _ = try client.connection.callAndWait(
                    BusName.service, ObjectPath.root, BusName.manager, "CreateSession",
                    [.string(name), .properties(options)])
                return nil
            } catch {
                return error.name.split(separator: ".").last.map(String.init)
            }
        }
        #expect(error("", []) == "BadParameter")
        #expect(error(String(repeating: "x", count: 256), []) == "BadParameter")
        #expect(error("A", [("category", .string("loud"))]) == "BadParameter")
        #expect(error("A", [("category", .uint32(3))]) == "InvalidArgs")
        #expect(error("A", [("colour", .string("red"))]) == "BadParameter")
        #expect(error("A", [("class", .string("king"))]) == "BadParameter")
        #expect(error("A", [("class", .string("call"))]) == "MissingEntitlement")
        #expect(error("A", [("pid", .uint32(4_000_000_000))]) == "BadParameter")
        #expect(error("A", [("options", .array(of: "u", [.uint32(1)]))]) == "InvalidArgs")
        #expect(error("A", []) == nil)
        #expect(error("B", [("class", .string("alert"))]) == nil)
        #expect(error("C", []) == "ResourceNotAvailable")
    }

    @Test(arguments: ["active", "interrupted", "ducking"]) func ownerKilled_releasesTheOthers(state: String) throws {
        let stage = try DaemonStage()
        let music = try stage.client()
        let path = try music.session("Music")
        let python = try Child("/usr/bin/python3", ["-u", "-c", pythonClient], environment: stage.bus.environment)
        let options = state == "ducking" ? "duck-others" : "none"
        python.send(options)
        let other = try #require(python.line { $0.hasPrefix("/org/sessiond1/session/") })
        music.activate(path)
        python.send("activate")
        #expect(python.line { $0 == "active" } != nil)
        if state == "interrupted" { music.activate(path) }
        _ = try music.heard()
        python.kill()
        #expect(eventually { music.state(other) == "gone" })
        switch state {
        case "active": #expect(try music.heard() == ["Music ended stay"])
        case "ducking": #expect(try music.heard() == ["Music ducked 0.0"])
        default: #expect(try music.heard() == [])
        }
        #expect(music.activate(path) == nil)
        #expect(music.state(path) == "active")
    }

    @Test func unusedClaim_passesToTheNextSessionAfterTheGracePeriod() throws {
        let stage = try DaemonStage(settings: "[interruption]\ngrace = 0.2\n")
        let (a, b, c) = (try stage.client(), try stage.client(), try stage.client())
        let (first, second, third) = (try a.session("A"), try b.session("B"), try c.session("C"))
        a.activate(first)
        b.activate(second)
        c.activate(third)
        c.deactivate(third, notify: true)
        #expect(try b.heard().last == "B ended resume")
        var told: [String] = []
        #expect(
            try eventually {
                told += try a.heard()
                return told.last == "A ended stay"
            })
        #expect(told == ["A began default by B", "A ended stay"])
    }

    @Test func properties_areAnnouncedAsTheyChange() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let path = try client.session("A", category: "solo-ambient")
        var changed: [String: Value] = [:]
        let subscription = client.connection.subscribe(
            path: path, interface: StandardName.properties, member: "PropertiesChanged",
            sender: BusName.service
        ) { message in
            guard let values = try? message.arguments() else { return }
            changed.merge(values[1].asProperties ?? [:]) { $1 }
        }
        client.activate(path)
        try stage.manager("SetSilentMode", [.bool(true)])
        try stage.manager("SetForeground", [.objectPath(path), .bool(false)])
        client.call(path, "SetCategory", [.string("playback"), .string("default"), .strings(["duck-others"])])
        _ = try client.heard()
        #expect(changed["State"] == .string("active"))
        #expect(changed["Foreground"] == .bool(false))
        #expect(changed["Muted"] == .bool(false), "playback does not obey the silent switch")
        #expect(changed["Category"] == .string("playback"))
        #expect(changed["Options"] == .strings(["mix-with-others", "duck-others"]))
        #expect(try stage.property("SilentMode") == .bool(true))
        withExtendedLifetime(subscription) {}
    }

    @Test func properties_areAnnouncedOnlyWhenTheirValuesChange() throws {
        let stage = try DaemonStage(settings: "[ducking]\ngain = -6\n")
        let (musician, listener) = (try stage.client(), try stage.client())
        var told: [String] = []
        let music = try musician.session("Music", hears: false)
        let prompt = try musician.session("Prompt", options: ["duck-others"], hears: false)
        let subscriptions = [music, prompt, ObjectPath.root].map { path in
            listener.connection.subscribe(
                path: path, interface: StandardName.properties, member: "PropertiesChanged", sender: BusName.service
            ) { message in
                told += (try? message.arguments())?[1].asProperties?.keys.sorted() ?? []
            }
        }
        defer { withExtendedLifetime(subscriptions) {} }
        func heard() throws -> [String] {
            _ = try listener.heard()
            defer { told = [] }
            return told
        }
        musician.call(music, "SetCategory", [.string("playback"), .string("spoken-audio"), .strings([])])
        #expect(try heard() == ["Mode"])
        musician.call(music, "SetPreferences", [.properties([("no-interruptions-from-alerts", .bool(true))])])
        #expect(try heard() == [])
        musician.call(music, "SetPreferences", [.properties([("io-buffer-duration", .double(0.02))])])
        #expect(try heard() == ["IOBufferDuration"])
        musician.activate(music)
        musician.activate(prompt)
        _ = try heard()
        let path = stage.bus.folder.path + "/sessiond.conf"
        try Data("[ducking]\ngain = -20\n".utf8).write(to: URL(fileURLWithPath: path))
        stage.daemon.signal(SIGHUP)
        #expect(
            eventually {
                told += (try? heard()) ?? []
                return told.contains("DuckGain")
            })
        #expect(try heard() == ["Ducking", "DuckGain"])
        try Data("[ducking]\ngain = -20\n[limits]\nsessions = 1\n".utf8).write(to: URL(fileURLWithPath: path))
        stage.daemon.signal(SIGHUP)
        #expect(eventually { (try? musician.session("Another", hears: false)) == nil })
        #expect(try heard() == [])
    }

    @Test func history_namesTheEventsInOrder() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let (a, b) = (try client.session("A"), try client.session("B"))
        client.activate(a)
        client.activate(a)
        client.activate(b)
        let decisions = try stage.manager("History", [.uint32(100)])[0].arrayValue?.compactMap(\.asProperties) ?? []
        #expect(decisions.compactMap { $0["event"]?.stringValue } == ["create", "create", "activate", "activate"])
        let sequences = decisions.compactMap { $0["sequence"]?.uint64Value }
        #expect(sequences == Array(sequences[0]..<sequences[0] + 4))
        #expect(try stage.property("Sequence").uint64Value == sequences.last)
        let effects = decisions.last?["effects"]?.arrayValue?.compactMap { $0.asProperties?["effect"]?.stringValue }
        #expect(effects == ["interruption-began", "activated", "silence-secondary-audio-hint"])
        let causes = try stage.manager("Explain", [.objectPath(a)])[0].arrayValue?.compactMap(\.asProperties) ?? []
        #expect(causes.first?["text"]?.stringValue?.contains("B") == true)
    }

    @Test func secondDaemon_printsTheOwnerOfTheName() throws {
        let stage = try DaemonStage()
        let second = try stage.start()
        #expect(second.wait() == .code(1))
        #expect(second.errors.joined().contains("is already owned by"))
        #expect(stage.isServing)
    }

    @Test func replace_takesTheNameOver() throws {
        let stage = try DaemonStage()
        let second = try stage.start(["--replace"])
        #expect(stage.daemon.wait() == .code(0))
        #expect(second.isRunning && eventually { stage.isServing })
    }

    @Test func noBus_printsOneLineAndExitsWith69() throws {
        var environment = ProcessInfo.processInfo.environment
        environment["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/nowhere/bus"
        let daemon = try Child(try builtProduct(named: "sessiond"), [], environment: environment)
        #expect(daemon.wait() == .code(69))
        #expect(daemon.errors.filter { !$0.isEmpty }.count == 1)
    }

    @Test func busGone_exitsWith69() throws {
        let stage = try DaemonStage()
        stage.bus.kill()
        #expect(stage.daemon.wait() == .code(69))
    }

    @Test func terminated_exitsWithZero() throws {
        let stage = try DaemonStage()
        stage.daemon.signal(SIGTERM)
        #expect(stage.daemon.wait() == .code(0))
    }

    @Test func badSettings_areRefusedAtStartAndIgnoredLater() throws {
        #expect(throws: (any Error).self) { try DaemonStage(settings: "[interruption]\ngrace = soon\n") }
        let stage = try DaemonStage(settings: "[ducking]\ngain = -6\n")
        let path = stage.bus.folder.path + "/sessiond.conf"
        try Data("[ducking]\ngain = loud\n".utf8).write(to: URL(fileURLWithPath: path))
        stage.daemon.signal(SIGHUP)
        #expect(eventually { stage.daemon.isRunning && stage.daemon.errors.contains { $0.contains(":2:8") } })
        #expect(try stage.property("Ducking").asProperties?["gain"] == .double(-6))
        #expect(try eventually { try stage.property("SettingsError").stringValue?.contains(":2:8") == true })
        try Data("[ducking]\ngain = -20\n".utf8).write(to: URL(fileURLWithPath: path))
        stage.daemon.signal(SIGHUP)
        #expect(try eventually { try stage.property("Ducking").asProperties?["gain"] == .double(-20) })
        #expect(try stage.property("SettingsError") == .string(""))
    }

    /// A client in another language. It uses no code of this project, and the test can kill it.
    private var pythonClient: String {
        """
        import dbus, os, sys
        bus = dbus.SessionBus()
        options = [o for o in [sys.stdin.readline().strip()] if o != 'none']
        manager = dbus.Interface(bus.get_object('org.sessiond1', '/org/sessiond1'), 'org.sessiond1.Manager')
        path = manager.CreateSession('Python', {'category': 'playback',
                                                'options': dbus.Array(options, signature='s')})
        print(path)
        session = dbus.Interface(bus.get_object('org.sessiond1', path), 'org.sessiond1.Session')
        sys.stdin.readline()
        session.Activate(dbus.Dictionary({}, signature='sv'))
        print('active')
        sys.stdin.readline()
        """
    }
}
