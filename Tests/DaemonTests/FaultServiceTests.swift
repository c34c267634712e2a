import DBus
import EventLoop
import Foundation
import Fuzzing
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Faults of the daemon, of the bus and of the sound server (faults.md, B4, C2, C4, D1, D2).
@Suite struct FaultServiceTests {
    @Test func nameOwnedByAnotherProgram_printsOneLineAndExitsWith1() throws {
        let bus = try PrivateBus()
        let loop = EventLoop()
        let other = try Connection(.custom(bus.address), loop: loop)
        #expect(try other.requestName(BusName.service) == .owner)
        let daemon = try Child(try builtProduct(named: "sessiond"), ["--replace"], environment: bus.environment)
        #expect(daemon.wait() == .code(1))
        let lines = daemon.errors.filter { !$0.isEmpty }
        #expect(lines.count == 1)
        #expect(lines.first?.contains(other.uniqueName) == true, "\(lines)")
    }

    @Test(arguments: ["unix:path=/nowhere/bus", "nonsense", "", "tcp:host=127.0.0.1,port=1", "unix:path=/dev/null"])
    func badAddress_printsOneLineAndExitsWith69(address: String) throws {
        let folder = try PrivateFolder()
        var environment = ["PATH": "/nowhere", "HOME": folder.path, "XDG_RUNTIME_DIR": folder.path]
        environment["DBUS_SESSION_BUS_ADDRESS"] = address
        let daemon = try Child(try builtProduct(named: "sessiond"), [], environment: environment)
        #expect(daemon.wait() == .code(69))
        #expect(daemon.errors.filter { !$0.isEmpty }.count == 1, "\(daemon.errors)")
    }

    @Test func terminatedUnderLoad_exitsWithZero() throws {
        let stage = try DaemonStage()
        let peers = try (0..<4).map { _ in try DeafPeer(socket: stage.bus.folder.path + "/bus") }
        for index in 0..<2_000 {
            let call = try Message.methodCall(
                destination: BusName.service, path: ObjectPath.root, interface: BusName.manager,
                member: "ListSessions")
            peers[index % 4].send(call)
        }
        let begun = monotonicNow()
        stage.daemon.signal(SIGTERM)
        #expect(stage.daemon.wait() == .code(0))
        print("ended \(Int((monotonicNow() - begun) * 1_000)) ms after SIGTERM under load")
        withExtendedLifetime(peers) {}
    }

    @Test func busIsKilledUnderLoad_exitsWith69() throws {
        let pulse = try ServerKind.standard.server()
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        let (a, b) = (try stage.client(), try stage.client())
        a.activate(try a.session("A"))
        b.activate(try b.session("B", options: ["duck-others"]))
        stage.bus.kill()
        #expect(stage.daemon.wait() == .code(69))
        #expect(stage.daemon.errors.filter { $0.contains("bus connection was lost") }.count == 1)
    }

    @Test func badSettingsOfEveryKind_oldSettingsStay() throws {
        let stage = try DaemonStage(settings: "[ducking]\ngain = -6\n")
        let path = stage.bus.folder.path + "/sessiond.conf"
        try stage.surviving {
            let kinds: [(String, () throws -> Void)] = [
                (
                    "garbage",
                    {
                        try Data((0..<4_096).map { UInt8(truncatingIfNeeded: $0 &* 37) }).write(
                            to: URL(fileURLWithPath: path))
                    }
                ),
                (
                    "a folder",
                    { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false) }
                ),
                (
                    "endless",
                    { try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/zero") }
                ),
                (
                    "1 GB",
                    {
                        #expect(FileManager.default.createFile(atPath: path, contents: nil))
                        #expect(truncate(path, 1 << 30) == 0)
                    }
                ),
                ("a FIFO", { #expect(mkfifo(path, 0o600) == 0) }),
                ("a loop", { try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path) }),
                ("missing", {}),
            ]
            for (kind, make) in kinds {
                try? FileManager.default.removeItem(atPath: path)
                unlink(path)
                try make()
                #expect(stage.daemon.isRunning)
                let before = stage.daemon.errors.count
                stage.daemon.signal(SIGHUP)
                if kind == "a FIFO" {
                    // No program writes into the FIFO, so it reads as an empty file, and an empty file is valid.
                    #expect(eventually { stage.daemon.isRunning && stage.daemon.errors.count > before })
                    try? FileManager.default.removeItem(atPath: path)
                    try Data("[ducking]\ngain = -6\n".utf8).write(to: URL(fileURLWithPath: path))
                    stage.daemon.signal(SIGHUP)
                    #expect(try eventually { try stage.property("Ducking").asProperties?["gain"] == .double(-6) })
                    continue
                }
                #expect(
                    eventually {
                        stage.daemon.isRunning
                            && stage.daemon.errors.dropFirst(before).contains { $0.contains("old settings are kept") }
                    }, "\(kind)")
                #expect(stage.daemon.errors.dropFirst(before).filter { !$0.isEmpty }.count == 1, "\(kind)")
                #expect(try stage.property("Ducking").asProperties?["gain"] == .double(-6), "\(kind)")
            }
        }
    }

    @Test(arguments: ServerKind.allCases)
    func soundServerStartsLater_daemonArbitratesAndFindsIt(_ kind: ServerKind) throws {
        let pulse = try kind.server(start: false)
        let stage = try DaemonStage(pulse: pulse)
        let told = try ServerNews(stage)
        let client = try stage.client()
        let path = try client.session("A")
        #expect(client.activate(path) == nil)
        #expect(client.call(path, "OverrideOutput", [.string("speaker")]) == "org.sessiond1.Error.IncompatibleCategory")
        #expect(try stage.property("ServerConnected") == .bool(false))
        try pulse.restart()
        #expect(stage.waitForServer())
        #expect(client.state(path) == "active")
        try stage.expectInvariants()
        #expect(stage.loop.iterate(timeout: 10) { told.events == ["ServicesReset"] }, "\(told.events)")
    }

    @Test(arguments: ServerKind.allCases)
    func soundServerIsKilledWhileASessionIsDucked_duckingContinues(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        let (a, b) = (try stage.client(), try stage.client())
        let (music, prompt) = (try a.session("Music"), try b.session("Prompt", options: ["duck-others"]))
        a.activate(music)
        b.activate(prompt)
        #expect(try stage.property("Ducked", of: music) == .bool(true))
        let told = try ServerNews(stage)
        let rounds = kind == .pulseAudio ? 20 : amount(3, long: 20)
        for round in 1...rounds {
            pulse.kill()
            let begun = monotonicNow()
            try #require(
                stage.loop.iterate(timeout: 20) { told.events.count == 2 * round - 1 }, "\(round): \(told.events)")
            #expect(a.state(music) == "active")
            #expect(b.deactivate(prompt) == nil)
            #expect(try stage.property("Ducked", of: music) == .bool(false))
            #expect(b.activate(prompt) == nil)
            #expect(try stage.property("Ducked", of: music) == .bool(true))
            if round == 1 {
                print("server killed: told and arbitrated within \(Int((monotonicNow() - begun) * 1_000)) ms")
            }
            try stage.expectInvariants()
            try pulse.restart()
            try #require(stage.loop.iterate(timeout: 20) { told.events.count == 2 * round }, "\(round): \(told.events)")
            #expect(
                eventually { (try? stage.property("CurrentRoute"))?.route?.outputs.first?.uid == "speaker" },
                "\(round): the server shows \(String(describing: try? pulse.control.defaults()))")
        }
        #expect(told.events == (0..<rounds).flatMap { _ in ["ServicesLost", "ServicesReset"] })
        #expect(stage.waitForServer())
        try stage.expectInvariants()
    }

    @Test(arguments: ServerKind.allCases)
    func soundServerIsKilledAndRestarted_nothingIsLeftBehind(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        // The first loss of the server may allocate memory that stays allocated.
        try pulse.restart()
        #expect(eventually { (try? stage.property("ServerConnected")) == .bool(true) })
        try stage.surviving {
            for _ in 0..<amount(3, long: 20) {
                pulse.kill()
                #expect(eventually { (try? stage.property("ServerConnected")) == .bool(false) })
                try pulse.restart()
                #expect(stage.waitForServer())
            }
        }
    }

    @Test(arguments: ServerKind.allCases)
    func soundServerIsStopped_activationsAreStillAnswered(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        try stage.surviving {
            pulse.suspend()
            let (a, b) = (try stage.client(), try stage.client())
            let (first, second) = (try a.session("A"), try b.session("B", category: "play-and-record"))
            var slowest = 0.0
            for _ in 0..<amount(50, long: 1_000) {
                let begun = monotonicNow()
                #expect(a.activate(first) == nil)
                #expect(b.activate(second) == nil)
                slowest = max(slowest, (monotonicNow() - begun) / 2)
            }
            print("server stopped: the slowest activation took \(String(format: "%.2f", slowest * 1_000)) ms")
            try stage.expectInvariants()
            pulse.resume()
            #expect(stage.waitForServer())
            #expect(b.deactivate(second, notify: true) == nil)
            #expect(try a.heard().last == "A ended resume")
        }
    }
}

/// The manager's signals about the sound server, in order.
final class ServerNews {
    private(set) var events: [String] = []
    private var subscriptions: [Subscription] = []

    /// After this, no signal is missed.
    init(_ stage: DaemonStage) throws {
        for member in ["ServicesLost", "ServicesReset"] {
            subscriptions.append(
                stage.observer.subscribe(
                    path: ObjectPath.root, interface: BusName.manager, member: member, sender: BusName.service
                ) { [weak self] _ in self?.events.append(member) })
        }
        // The bus may handle a signal of the daemon before an earlier subscription of another connection, until it has
        // answered a later call of that connection.
        _ = try stage.property("ServerConnected")
    }
}
