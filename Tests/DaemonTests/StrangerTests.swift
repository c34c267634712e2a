import DBus
import EventLoop
import Foundation
import Fuzzing
import PluginAPI
import SessionBus
import SessionManager
import State
import TestSupport
import Testing

/// Hostile clients on the session bus (faults.md, F).
@Suite(.serialized) struct StrangerTests {
    private static let missing = "org.sessiond1.Error.MissingEntitlement"

    @Test func callsWithDescriptors_areRefusedAndDoNotEndTheDaemon() throws {
        let stage = try DaemonStage()
        try stage.surviving {
            // The daemon may now have far fewer descriptors open than the client sends.
            _ = try Child.run("prlimit", ["--pid=\(stage.daemon.processID)", "--nofile=128:128"])
            let stranger = try stage.foreigner()
            // More than libdbus takes in one message by itself.
            for each in ["2000 16", "200 60"] { #expect(stranger.ask("descriptors \(each)") == "ok") }
            #expect(stranger.ask("create-with-descriptor") == "org.freedesktop.DBus.Error.InvalidArgs")
            #expect(stranger.ask("list") == "ok 0", "such a call is not carried out")
            #expect(stranger.create("A").hasPrefix("/org/"))
            stranger.process.kill()
        }
    }

    @Test func limitOfOpenFiles_isRaisedForTheDaemonButNotForPlugins() throws {
        let folder = try PluginFolder("sleep", script: "exec sleep 60")
        let stage = try DaemonStage(environment: folder.environment)
        func limits(_ process: Int32) throws -> [Substring] {
            let text = try String(contentsOfFile: "/proc/\(process)/limits", encoding: .utf8)
            let line = text.split(separator: "\n").first { $0.hasPrefix("Max open files") } ?? ""
            return Array(line.split(separator: " ").dropFirst(3).prefix(2))
        }
        var own = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &own)
        #expect(try limits(stage.daemon.processID) == ["\(own.rlim_max)", "\(own.rlim_max)"])
        let plugin = try folder.start(on: stage)
        #expect(try limits(plugin) == ["\(own.rlim_cur)", "\(own.rlim_max)"])
    }

    /// The names are also those under which the server remembers the streams.
    @Test func streamsWithLongNames_doNotKeepOthersFromBeingSilenced() throws {
        let pulse = try ServerKind.standard.server()
        let music = try Tone(pulse, hertz: 440, name: "Music")
        let long = try (0..<12).map { number in
            try Tone.program(
                pulse, hertz: 880, amplitude: number == 0 ? 0.2 : 0.002,
                name: "\(number)" + String(repeating: "x", count: 60_000))
        }
        let stage = try DaemonStage(pulse: pulse)
        let ear = try Ear(pulse, sink: "speaker")
        #expect(ear.waitUntil(440, above: -30, timeout: 20))
        #expect(ear.waitUntil(880, above: -30, timeout: 20))
        // A program that starts to play during the call would be heard.
        #expect(
            try eventually(timeout: 20) {
                try stage.sessions().values.filter { $0["State"] == .string("active") }.count > long.count
            })
        // Another process: streams of the tests are not its own.
        let caller = try stage.foreigner()
        let call = caller.create("Call", category: "play-and-record", class: "call")
        #expect(caller.ask("activate \(call)") == "ok")
        #expect(ear.waitUntil(440, below: -60, timeout: 20))
        #expect(ear.waitUntil(880, below: -60, timeout: 20))
        stage.daemon.kill()
        #expect(!stage.daemon.errors.contains { $0.contains("will not be changed") }, "\(stage.daemon.errors)")
        caller.process.kill()
        try stage.restart()
        #expect(ear.waitUntil(440, above: -30, timeout: 20))
        #expect(ear.waitUntil(880, above: -30, timeout: 20))
        withExtendedLifetime((music, long)) {}
    }

    @Test func foreignTextInALogLine_isEscaped() throws {
        let folder = try PrivateFolder()
        let plugins = try folder.folder("sessiond/plugins")
        try "nothing".write(
            toFile: plugins + "/a\nnotice sessiond: forged\u{1B}[2J.plugin", atomically: true, encoding: .utf8)
        let stage = try DaemonStage(environment: ["XDG_DATA_HOME": folder.path, "XDG_DATA_DIRS": "/nowhere"])
        _ = try stage.pluginStates()
        #expect(eventually { stage.daemon.isRunning && stage.daemon.errors.contains { $0.contains("plugin ignored") } })
        let lines = stage.daemon.errors
        #expect(lines.contains { $0.contains("a\\u{a}notice sessiond: forged\\u{1b}[2J.plugin") }, "\(lines)")
        #expect(!lines.contains { $0.hasPrefix("notice") })
    }

    /// Many combining marks on a letter would overwrite the lines above.
    @Test func manyMarksInALogLine_areEscaped() throws {
        let folder = try PrivateFolder()
        let plugins = try folder.folder("sessiond/plugins")
        let marks = String(repeating: "\u{301}", count: 80)
        try "nothing".write(toFile: plugins + "/a\(marks).plugin", atomically: true, encoding: .utf8)
        let stage = try DaemonStage(environment: ["XDG_DATA_HOME": folder.path, "XDG_DATA_DIRS": "/nowhere"])
        _ = try stage.pluginStates()
        #expect(eventually { stage.daemon.isRunning && stage.daemon.errors.contains { $0.contains("plugin ignored") } })
        #expect(stage.daemon.errors.contains { $0.contains("\\u{301}") })
        #expect(!stage.daemon.errors.contains { $0.unicodeScalars.filter { $0.value == 0x301 }.count > 4 })
    }

    @Test func pluginIsStarting_anotherClientCannotTakeItsPlace() throws {
        let folder = try PluginFolder("sleep", script: "exec sleep 60")
        let stage = try DaemonStage(environment: folder.environment)
        let plugin = try folder.start(on: stage)
        let stranger = try stage.foreigner()
        #expect(stranger.ask("register sleep") == Self.missing)
        #expect(stranger.ask("register sleep 7") == Self.missing, "the version is the plugin's to state")
        #expect(kill(plugin, 0) == 0)
        #expect(try stage.pluginStates()["sleep"] == "starting")
    }

    /// systemd stops the daemon and its plugins at the same time. What a plugin says to the service at its end must not
    /// start the service again: systemd would give up stopping it.
    @Test func pluginEndsAfterTheService_doesNotStartItAgain() throws {
        let folder = try PrivateFolder()
        let mark = folder.path + "/started"
        let script = try folder.file("start", "#!/bin/sh\ntouch \(mark)\n")
        chmod(script, 0o755)
        let services = try folder.folder("services")
        try "[D-BUS Service]\nName=org.sessiond1\nExec=\(script)\n".write(
            toFile: services + "/org.sessiond1.service", atomically: true, encoding: .utf8)
        let pulse = try ServerKind.standard.server()
        let stage = try DaemonStage(pulse: pulse, services: [services])
        let music = try CountedMusic.file(in: folder)
        let player = try Child(
            try builtProduct(named: "sessiond-player"), [music],
            environment: pulse.environment.merging(stage.bus.environment) { $1 })
        #expect(
            try eventually(timeout: 20) { try stage.sessions().values.contains { $0["State"] == .string("active") } })
        // The stage has asked for the service before it was there.
        unlink(mark)
        stage.daemon.suspend()
        player.signal(SIGTERM)
        stage.daemon.kill()
        #expect(player.wait() != nil)
        #expect(!eventually(timeout: 1) { access(mark, F_OK) == 0 })
    }

    @Test func oneClient_mayRegisterOnlySomePlugins() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        var answers: [String: Int] = [:]
        for index in 0..<20 {
            answers[client.register("guest-\(index)", object: "/x") ?? "done", default: 0] += 1
        }
        #expect(answers == ["done": 16, "org.sessiond1.Error.ResourceNotAvailable": 4])
        let long = "/" + String(repeating: "x", count: 1 << 20)
        #expect(try stage.client().register("long", object: long) == "org.sessiond1.Error.BadParameter")
    }

    @Test(.enabled(if: getuid() == 0, "only root can use chroot"))
    func sandboxedProgram_mayNotChangeSwitchesActForOthersOrBeAPlugin() throws {
        let root = try PrivateFolder()
        try root.file(".flatpak-info", "[Application]\nname=org.example.Game\nruntime=runtime/x\n")
        let stage = try DaemonStage(environment: ["XDG_DATA_HOME": "/nowhere", "XDG_DATA_DIRS": "/nowhere"])
        let other = try stage.foreigner()
        let game = try stage.foreigner()
        #expect(game.ask("chroot \(root.path)") == "ok")
        let denied = "org.freedesktop.DBus.Error.AccessDenied"
        #expect(game.ask("silent on") == denied)
        #expect(game.ask("locked on") == denied)
        #expect(game.ask("bare SetSilentMode b true") == denied)
        #expect(game.ask("create A playback - app \(other.process.processID)") == Self.missing)
        #expect(game.ask("register guest") == Self.missing)
        #expect(game.ask("open player file:///etc/hostname") == denied, "the plugin would read the file for the game")
        #expect(game.create("A").hasPrefix("/org/"))
        #expect(other.ask("silent on") == "ok")
        #expect(other.ask("open player file:///x") == "org.sessiond1.Error.ResourceNotAvailable", "it has no plugin")
    }

    @Test func systemBusNeverAnswers_clientsAreNotDelayed() throws {
        let folder = try PrivateFolder()
        let deaf = try DeafBus.start(in: folder)
        #expect(deaf.line { $0 == "ready" } != nil)
        let stage = try DaemonStage(environment: ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(folder.path)/bus"])
        #expect(deaf.line { $0 == "00415554" } != nil, "the daemon must have connected")
        let client = try stage.client()
        #expect(client.activate(try client.session("Music")) == nil)
        deaf.kill()
    }

    @Test func folderWritableByOthers_isNotUsed() throws {
        let runtime = try PrivateFolder()
        let folder = try runtime.folder("sessiond")
        chmod(folder, 0o777)
        let stage = try DaemonStage(environment: ["XDG_RUNTIME_DIR": runtime.path])
        let client = try stage.client()
        #expect(client.activate(try client.session("Music")) == nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        #expect(stage.daemon.line { $0.contains("cannot be written") } != nil)
    }

    @Test func stateFileMayNotGrow_isReportedByOneWarning() throws {
        let stage = try DaemonStage()
        try Child.run("prlimit", ["--fsize=4096", "--pid=\(stage.daemon.processID)"])
        let client = try stage.client()
        let paths = try (0..<32).map { index in
            try client.session("\(index) " + String(repeating: "x", count: 200), hears: false)
        }
        #expect(stage.daemon.line { $0.contains("cannot be written (File too large)") } != nil)
        for path in paths.suffix(2) { #expect(client.activate(path) == nil) }
        #expect(stage.daemon.isRunning)
        #expect(stage.daemon.errors.filter { $0.contains("cannot be written") }.count <= 1)
        // What fitted is not the state of later: the next daemon believes none of it.
        stage.daemon.kill()
        try stage.restart()
        #expect(try stage.listedSessions().isEmpty)
    }

    /// libdbus stops reading while it keeps so large a message, so the daemon must not keep it until the bus has answered.
    @Test func hugeCallAnsweredLater_doesNotDelayOthers() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let other = try stage.client()
        let path = try other.session("Music")
        let huge = String(repeating: "x", count: 10 << 20)
        #expect(client.register("huge", object: "/" + huge) == "org.sessiond1.Error.BadParameter")
        #expect(throws: Failure.self) { try client.session(huge, more: [("pid", .uint32(1))], hears: false) }
        #expect(other.activate(path) == nil)
    }

    @Test func playerThatNeverAnswers_isNotAskedAgainForEachSignal() throws {
        let stage = try DaemonStage()
        let player = try RawPeer(stage.bus.address)
        let name = try Message.methodCall(
            destination: StandardName.bus, path: StandardName.busPath, interface: StandardName.bus,
            member: "RequestName")
        name.append([.string("org.mpris.MediaPlayer2.noisy"), .uint32(4)])
        player.send(name)
        while let message = player.receive(timeout: 10), message.member != "GetAll" {}
        for _ in 0..<500 {
            let signal = try Message.signal(
                path: "/org/mpris/MediaPlayer2", interface: StandardName.properties, member: "PropertiesChanged")
            signal.append([
                .string("org.mpris.MediaPlayer2.Player"), .properties([("PlaybackStatus", .string("Playing"))]),
                .strings([]),
            ])
            player.send(signal)
        }
        let call = try Message.methodCall(
            destination: BusName.service, path: ObjectPath.root, interface: BusName.manager, member: "ListSessions")
        let serial = player.send(call)
        var asked = 0
        while let message = player.receive(timeout: 10), message.replySerial != serial {
            if message.member == "GetAll" { asked += 1 }
        }
        #expect(asked <= 1)
    }

    /// A program with many connections uses up only its own places.
    @Test func playersOfOneProcess_leavePlacesForOthers() throws {
        let stage = try DaemonStage()
        let crowd = try Child(
            "/usr/bin/python3", ["-u", "-c", Self.crowdOfPlayers], environment: stage.bus.environment)
        defer { crowd.kill() }
        #expect(crowd.line { $0 == "ready" } != nil, "\(crowd.errors)")
        #expect(try stage.daemon.waitUntilIdle())
        let player = try RawPeer(stage.bus.address)
        let name = try Message.methodCall(
            destination: StandardName.bus, path: StandardName.busPath, interface: StandardName.bus,
            member: "RequestName")
        name.append([.string("org.mpris.MediaPlayer2.late"), .uint32(4)])
        player.send(name)
        var isAsked = false
        while !isAsked, let message = player.receive(timeout: 10) { isAsked = message.member == "GetAll" }
        #expect(isAsked)
    }

    /// 300 connections of one process, each with the name of a player.
    private static let crowdOfPlayers = """
        import dbus, os, sys
        connections = [dbus.bus.BusConnection(os.environ['DBUS_SESSION_BUS_ADDRESS']) for _ in range(300)]
        for number, connection in enumerate(connections):
            connection.request_name(f'org.mpris.MediaPlayer2.crowd{number}')
        print('ready')
        sys.stdin.read()
        """

    @Test func processOfASession_isForgottenWhenItEnds_andNotConfusedWithALaterOne() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let acting = try Child("/bin/sleep", ["60"])
        let path = try client.session("Music", more: [("pid", .uint32(UInt32(acting.processID)))])
        #expect(try stage.property("ProcessId", of: path).uint32Value == UInt32(acting.processID))
        try stage.rewriteState { _ in }
        #expect(try stage.property("ProcessId", of: path).uint32Value == UInt32(acting.processID))
        // Now the process id seems to belong to another process.
        try stage.rewriteState { entries in for index in entries.indices { entries[index].client.actingStart += 1 } }
        #expect(try stage.property("ProcessId", of: path).uint32Value == 0)
        let other = try client.session("Other", more: [("pid", .uint32(UInt32(acting.processID)))])
        acting.kill()
        #expect(eventually { (try? stage.property("ProcessId", of: other))?.uint32Value == 0 })
    }

    @Test func history_isReadPageByPage() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let (music, memo) = (try client.session("Music"), try client.session("Memo"))
        for _ in 0..<4 {
            client.activate(music)
            client.activate(memo)
        }
        func numbers(_ member: String, _ arguments: [Value]) throws -> [UInt64] {
            try stage.manager(member, arguments)[0].arrayValue?.compactMap { $0.asProperties?["sequence"]?.uint64Value }
                ?? []
        }
        let all = try numbers("History", [.uint32(100)])
        #expect(all.count > 6)
        var pages: [UInt64] = []
        var end = UInt64.max
        while true {
            let page = try numbers("HistoryBefore", [.uint64(end), .uint32(3)])
            guard let first = page.first else { break }
            pages = page + pages
            end = first
        }
        #expect(pages == all)
    }

    @Test func invalidSessionInTheStateFile_isDiscardedAlone() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let (music, call) = (try client.session("Music"), try client.session("Call", class: "call"))
        let ambient = try client.session("Game", category: "ambient")
        client.activate(music)
        client.activate(call)
        client.activate(ambient)
        _ = try client.heard()
        try stage.rewriteState { entries in
            for index in entries.indices where entries[index].session.new.name == "Call" {
                entries[index].session.state = .interrupted
                entries[index].client.name = "no name 'of' anybody"
            }
        }
        #expect(stage.daemon.line { $0.contains("invalid sessions") } != nil)
        #expect(client.state(call) == "gone")
        #expect(client.state(ambient) == "active")
        #expect(client.heard(1, of: "Music ended") == ["Music ended stay"])
        #expect(client.activate(music) == nil)
    }

    @Test func timesInTheFuture_countAsNow() throws {
        let stage = try DaemonStage()
        let client = try stage.client()
        let (music, call) = (try client.session("Music"), try client.session("Call", class: "call"))
        client.activate(music)
        client.activate(call)
        let paused = StateRecord.PausedPlayer(
            name: client.connection.uniqueName, trackID: "", url: "", title: "", since: .max, isSeen: true)
        try stage.rewriteState(paused: [paused]) { entries in
            for index in entries.indices {
                entries[index].session.since = Instant(microseconds: .max - 1)
                entries[index].session.interruption?.since = Instant(microseconds: .max)
            }
        }
        #expect(client.state(music) == "interrupted")
        #expect(client.state(call) == "active")
        let explanation = try stage.manager("Explain", [.objectPath(music)])
        #expect(explanation[0].arrayValue?.isEmpty == false)
        #expect(client.deactivate(call, notify: true) == nil)
        #expect(client.activate(music) == nil)
    }
}

extension DaemonStage {
    /// Ends the daemon, changes its state file, and starts it again.
    fileprivate func rewriteState(
        paused: [StateRecord.PausedPlayer] = [], _ change: (inout [StateRecord.Entry]) -> Void
    ) throws {
        daemon.kill()
        _ = daemon.wait()
        let files = try FileManager.default.contentsOfDirectory(atPath: stateFolder)
        let path = stateFolder + "/" + (try #require(files.first { $0.hasPrefix("state-") }))
        let log = try #require(StateLog([UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))))
        let summary = try #require(log.summary)
        var entries = summary.entries
        change(&entries)
        let record = StateRecord(core: summary.core, changed: entries, paused: paused)
        let file = try #require(FileHandle(forWritingAtPath: path))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: Data(StateLog.magic + StateLog.bytes(of: record)))
        try file.close()
        try restart()
    }

    fileprivate func pluginStates() throws -> [String: String] {
        let plugins = try observer.callAndWait(
            BusName.service, ObjectPath.root, BusName.plugins, "List", [], timeout: 5)
        let fields = plugins[0].arrayValue?.compactMap(\.asProperties) ?? []
        return Dictionary(
            fields.map { ($0["id"]?.stringValue ?? "", $0["state"]?.stringValue ?? "") }, uniquingKeysWith: { $1 })
    }
}

extension Client {
    /// Returns nil on success, otherwise the error's name.
    fileprivate func register(_ id: String, object: String) -> String? {
        do throws(Failure) {
            _ = try connection.callAndWait(
                BusName.service, ObjectPath.root, BusName.plugins, "Register",
                [.string(id), .properties([("object", .objectPath(object))])], timeout: 5)
            return nil
        } catch {
            return error.name
        }
    }
}
