import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Players of adopted programs. The daemon pauses them when they are interrupted, and resumes them unless the user
/// changed something meanwhile.
@Suite struct PlayerPauseTests {
    /// A player that plays, a phone that can call, and the daemon.
    private final class Scene {
        let pulse: any PrivateServer
        let stage: DaemonStage
        let player: ForeignPlayer
        let phone: Foreigner
        let call: String

        init(
            _ kind: ServerKind, _ manner: ForeignPlayer.Manner = .correct, status: String = "Playing",
            settings: String? = nil, crash: String? = nil, isAdopted: Bool = true
        ) throws {
            pulse = try kind.server()
            let stage = try DaemonStage(pulse: pulse, settings: settings, crash: crash)
            guard eventually({ stage.isServing }) else { throw SupportError("no daemon: \(stage.daemon.errors)") }
            self.stage = stage
            player = try ForeignPlayer(
                "music", manner, status: status, on: stage, command: ["pacat", "--raw", "/dev/zero"],
                environment: pulse.environment)
            // The phone is another process. If the test had the session, the player's sound would belong to it too.
            phone = try stage.foreigner()
            call = phone.create("Phone", category: "play-and-record", class: "call")
            guard stage.waitForServer(), !isAdopted || eventually({ adopted == "active" }) else {
                throw SupportError("the player's sound was not adopted: \((try? stage.sessions()) ?? [:])")
            }
        }

        /// The state of the player's session.
        var adopted: String {
            let sessions = (try? stage.sessions())?.values.first { $0["Name"]?.stringValue == "pacat" }
            return sessions?["State"]?.stringValue ?? "none"
        }

        func ring() { #expect(phone.ask("activate \(call)") == "ok") }
        func hangUp() { #expect(phone.ask("deactivate \(call)") == "ok") }

        /// Waits until all calls of the daemon have reached the player, and the player's replies have reached the
        /// daemon.
        func settle() {
            for _ in 0..<3 {
                _ = try? stage.manager("History", [.uint32(0)])
                _ = player.status
            }
        }
    }

    @Test(arguments: ServerKind.allCases) func call_pausesThePlayerAndItsEndResumesIt(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        #expect(scene.adopted == "interrupted")
        scene.hangUp()
        #expect(eventually { scene.player.status == "Playing" })
        #expect(scene.player.calls == ["Pause", "Play"])
        #expect(eventually { scene.adopted == "active" })
        // A second call does the same.
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        scene.hangUp()
        #expect(eventually { scene.player.status == "Playing" })
        #expect(scene.player.calls == ["Pause", "Play", "Pause", "Play"])
    }

    /// If a setting turns pausing or adoption off, the daemon resumes the players that it paused.
    @Test(arguments: ["[mpris]\npause = off\n", "[adoption]\nstreams = off\n"])
    func pausingTurnedOffDuringACall_resumesThePlayer(settings: String) throws {
        let scene = try Scene(.standard, settings: "")
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        _ = try scene.stage.bus.folder.file("sessiond.conf", settings)
        scene.stage.daemon.signal(SIGHUP)
        #expect(eventually { scene.player.status == "Playing" })
        scene.hangUp()
        scene.settle()
        #expect(scene.player.calls == ["Pause", "Play"])
    }

    /// The next daemon resumes the players that the killed one paused, and no others.
    @Test(arguments: ServerKind.allCases, ["nothing", "track 2", "Stopped", "hung up"])
    func daemonIsKilledDuringACall_resumesThePlayerUnlessTheUserChangedIt(
        _ kind: ServerKind, _ meanwhile: String
    ) throws {
        let scene = try Scene(kind)
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        scene.settle()
        scene.stage.daemon.kill()
        switch meanwhile {
        case "nothing": break
        case "hung up": scene.phone.process.kill()
        default: scene.player.person(meanwhile)
        }
        try scene.stage.restart()
        if meanwhile != "hung up" {
            scene.settle()
            #expect(scene.player.calls == ["Pause"], "the player must not start by itself")
            scene.hangUp()
        }
        if ["nothing", "hung up"].contains(meanwhile) {
            #expect(eventually { scene.player.status == "Playing" })
            #expect(scene.player.calls == ["Pause", "Play"])
        } else {
            scene.settle()
            #expect(scene.player.calls == ["Pause"])
        }
    }

    /// A program has a session but ignores its interruption. The daemon still knows this after a restart.
    @Test(arguments: ServerKind.allCases) func daemonIsKilledWhileAnInterruptionIsIgnored_resumesThePlayer(
        _ kind: ServerKind
    ) throws {
        let scene = try Scene(
            kind, settings: "[enforcement]\ndeadline = 0.05\n[adoption]\nstreams = off\n", isAdopted: false)
        let deaf = try scene.stage.foreigner()
        let session = String(deaf.ask("create Music playback - app \(scene.player.processID)").dropFirst(3))
        #expect(deaf.ask("activate \(session)") == "ok")
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        scene.settle()
        #expect(try scene.stage.property("IgnoredInterruption", of: session) == .bool(true))
        scene.stage.daemon.kill()
        try scene.stage.restart()
        #expect(try scene.stage.property("IgnoredInterruption", of: session) == .bool(true))
        scene.settle()
        scene.hangUp()
        #expect(eventually { scene.player.status == "Playing" })
        #expect(scene.player.calls == ["Pause", "Play"])
    }

    /// The daemon is killed after it has written down the pause and before it sends it, or right after it saw the
    /// player paused.
    @Test(arguments: ServerKind.allCases, [1, 2]) func daemonIsKilledWhileItPauses_playerIsPausedAndResumed(
        _ kind: ServerKind, _ step: Int
    ) throws {
        let scene = try Scene(kind, crash: "pause-noted:\(step)")
        scene.ring()
        #expect(scene.stage.daemon.wait() == .signal(SIGKILL))
        #expect(scene.player.calls == (step == 1 ? [] : ["Pause"]))
        try scene.stage.restart()
        #expect(eventually { scene.player.status == "Paused" })
        scene.settle()
        scene.hangUp()
        #expect(eventually { scene.player.status == "Playing" })
        #expect(scene.player.calls == ["Pause", "Play"])
    }

    /// The daemon is killed after it sent the pause and before the player paused.
    @Test(arguments: ServerKind.allCases, ["nothing", "track 2", "Stopped", "Playing", "not yet"])
    func daemonIsKilledBeforeThePlayerPauses_resumesThePlayer(_ kind: ServerKind, _ meanwhile: String) throws {
        let scene = try Scene(kind, .late)
        scene.ring()
        #expect(eventually { scene.player.calls == ["Pause"] })
        scene.stage.daemon.kill()
        if meanwhile != "not yet" { scene.player.person("catch up") }
        if !["nothing", "not yet"].contains(meanwhile) { scene.player.person(meanwhile) }
        try scene.stage.restart()
        // A player that still plays is paused again.
        let isToldAgain = ["Playing", "not yet"].contains(meanwhile)
        let pauses = isToldAgain ? ["Pause", "Pause"] : ["Pause"]
        #expect(eventually { scene.player.calls == pauses })
        if isToldAgain {
            scene.player.person("catch up")
            #expect(scene.player.status == "Paused")
        }
        scene.settle()
        scene.hangUp()
        if ["track 2", "Stopped"].contains(meanwhile) {
            scene.settle()
        } else {
            #expect(eventually { scene.player.calls == pauses + ["Play"] })
            scene.player.person("catch up")
            #expect(scene.player.status == "Playing")
        }
        #expect(scene.player.calls.filter { $0 == "Play" }.count == (scene.player.status == "Playing" ? 1 : 0))
    }

    @Test(arguments: ServerKind.allCases)
    func userPausedBefore_playerIsNeitherPausedNorResumed(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        scene.player.person("Paused")
        scene.ring()
        scene.settle()
        scene.hangUp()
        scene.settle()
        #expect(scene.player.calls.isEmpty && scene.player.status == "Paused")
    }

    @Test(arguments: ServerKind.allCases) func userStartsThePlayerDuringACall_itPlaysOn(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        // In the first second the daemon would take this for a player that toggles.
        let paused = monotonicNow()
        #expect(eventually { monotonicNow() - paused > 1.05 })
        scene.player.person("Playing")
        #expect(eventually { scene.adopted == "active" })
        scene.player.person("Paused")
        scene.hangUp()
        scene.settle()
        #expect(scene.player.calls == ["Pause"] && scene.player.status == "Paused")
    }

    @Test(arguments: ServerKind.allCases, ["track 2", "Stopped"]) func userChangesThePlayerDuringACall_itIsNotResumed(
        _ kind: ServerKind, _ deed: String
    ) throws {
        let scene = try Scene(kind)
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        scene.player.person(deed)
        scene.hangUp()
        scene.settle()
        #expect(scene.player.calls == ["Pause"])
    }

    @Test(arguments: ServerKind.allCases)
    func mediaKeysPauseThePlayerDuringACall_itIsNotResumed(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        scene.settle()
        _ = try Child.run("playerctl", ["-p", "sessiond", "pause"], environment: scene.stage.bus.environment)
        scene.hangUp()
        scene.settle()
        #expect(scene.player.calls == ["Pause", "Pause"] && scene.player.status == "Paused")
    }

    @Test(
        arguments: ServerKind.allCases,
        [
            (.toggles, ["Pause", "Play"], "Playing"), (.quiet, ["Pause", "Play"], "Playing"),
            (.ignores, ["Pause"], "Playing"), (.refuses, ["Pause"], "Playing"), (.stops, ["Pause"], "Stopped"),
        ] as [(ForeignPlayer.Manner, [String], String)])
    func oddPlayers_areNeverResumedByMistake(
        _ kind: ServerKind, _ odd: (manner: ForeignPlayer.Manner, calls: [String], status: String)
    ) throws {
        let (manner, calls, status) = odd
        let scene = try Scene(kind, manner)
        scene.ring()
        #expect(eventually { scene.player.calls == ["Pause"] })
        scene.settle()
        scene.hangUp()
        #expect(eventually { scene.player.calls == calls })
        scene.settle()
        #expect(scene.player.calls == calls && scene.player.status == status)
    }

    @Test(arguments: ServerKind.allCases) func playerPausesAfterTheCall_itIsResumed(_ kind: ServerKind) throws {
        let scene = try Scene(kind, .late)
        scene.ring()
        #expect(eventually { scene.player.calls == ["Pause"] })
        scene.hangUp()
        scene.settle()
        #expect(scene.player.calls == ["Pause"])
        scene.player.person("catch up")
        #expect(eventually { scene.player.calls == ["Pause", "Play"] })
        scene.player.person("catch up")
        #expect(scene.player.status == "Playing")
    }

    @Test(arguments: ServerKind.allCases) func playerEndsDuringACall_itIsForgotten(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        scene.player.process.kill()
        scene.hangUp()
        #expect(eventually { scene.adopted == "none" })
        #expect(scene.stage.daemon.isRunning)
    }

    @Test(arguments: ServerKind.allCases) func pauseOff_noPlayerIsPaused(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "[mpris]\npause = off\n")
        scene.ring()
        #expect(eventually { scene.adopted == "interrupted" })
        scene.settle()
        scene.hangUp()
        scene.settle()
        #expect(scene.player.calls.isEmpty)
    }
}
