import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The machine sleeps and wakes up: a mock of logind on the bus that stands for the system bus.
@Suite struct SleepTests {
    private static let lock = "lock sleep sessiond delay"

    @Test func appsAreInterrupted_whileTheMachineWaits_andReleasedAfterWaking() throws {
        let stage = try DaemonStage()
        let machine = try FakeMachine(on: stage.bus)
        let client = try stage.client()
        let music = try client.session("Music")
        client.activate(music)
        #expect(eventually { machine.locks == [Self.lock] })
        _ = try client.heard()
        try machine.tell("sleep")
        #expect(client.heard(1, of: "began") == ["Music began app-was-suspended by "])
        #expect(client.state(music) == "interrupted")
        #expect(try stage.explanation("interrupted", of: music).contains("the machine went to sleep"))
        // Nothing plays: the machine need not wait any longer.
        #expect(eventually { machine.locks == [Self.lock, "unlock"] })
        try machine.tell("wake")
        #expect(client.heard(1, of: "Music ended") == ["Music ended stay"])
        #expect(machine.locks.count == 2)
        client.activate(music)
        #expect(eventually { machine.locks.count == 3 })
        client.deactivate(music)
        #expect(eventually { machine.locks.count == 4 })
    }

    @Test func resumeIsOn_appsGetTheHint() throws {
        let stage = try DaemonStage(settings: "[sleep]\nresume = on\n")
        let machine = try FakeMachine(on: stage.bus)
        let client = try stage.client()
        let music = try client.session("Music")
        client.activate(music)
        #expect(eventually { machine.locks == [Self.lock] })
        try machine.tell("sleep")
        try machine.tell("wake")
        #expect(client.heard(1, of: "Music ended") == ["Music ended resume"])
    }

    @Test func pauseIsOff_orOnlyACallIsActive_nothingHappens() throws {
        for settings in ["[sleep]\npause = off\n", ""] {
            let stage = try DaemonStage(settings: settings)
            let machine = try FakeMachine(on: stage.bus)
            let client = try stage.client()
            let session =
                settings.isEmpty ? try client.beginCall("Phone") : try client.session("Music")
            client.activate(session)
            _ = try client.heard()
            try machine.tell("sleep")
            try machine.tell("wake")
            #expect(try client.heard().isEmpty && client.state(session) == "active" && machine.locks.isEmpty)
        }
    }

    /// The daemon is killed while the machine sleeps.
    @Test func daemonRestartsDuringSleep_whatSleptIsReleased() throws {
        let stage = try DaemonStage()
        let machine = try FakeMachine(on: stage.bus)
        let client = try stage.client()
        let music = try client.session("Music")
        client.activate(music)
        #expect(eventually { machine.locks == [Self.lock] })
        try machine.tell("sleep")
        #expect(client.heard(1, of: "began").count == 1)
        stage.daemon.kill()
        try stage.restart()
        #expect(client.heard(1, of: "Music ended") == ["Music ended stay"])
    }

    /// The machine waits until the program is silent, and not much longer.
    @Test(arguments: ServerKind.allCases) func player_isPausedBeforeTheMachineSleeps(_ kind: ServerKind) throws {
        let pulse = try kind.server()
        let stage = try DaemonStage(pulse: pulse)
        #expect(stage.waitForServer())
        let machine = try FakeMachine(on: stage.bus)
        let media = try PrivateFolder()
        let sound = try #require(URL(string: sine(440, seconds: 60, in: media))).path
        let ear = try Ear(pulse, sink: "speaker", fragment: 0.002)
        let player = try ForeignPlayer(
            "music", on: stage, command: ["paplay", sound], environment: pulse.environment)
        #expect(ear.waitUntil(440, above: -20))
        #expect(eventually { machine.locks == [Self.lock] })
        let begun = monotonicNow()
        try machine.tell("sleep")
        #expect(eventually { machine.locks == [Self.lock, "unlock"] })
        let waited = monotonicNow() - begun
        #expect(ear.waitUntil(440, below: -60))
        print("\(kind): the machine waited for \(Int(waited * 1_000)) ms")
        #expect(player.calls == ["Pause"])
        try machine.tell("wake")
        #expect(try eventually { try stage.state(named: "paplay") == "inactive" })
        #expect(ear.level(of: 440, last: 0.1) < -60)
        // The user plays it.
        #expect(eventually { monotonicNow() - begun > 2 })
        player.person("Playing")
        #expect(ear.waitUntil(440, above: -20))
    }
}
