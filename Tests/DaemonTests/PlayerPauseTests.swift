import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Players of programs that never heard of us: paused with an interruption, and resumed where that is right.
@Suite struct PlayerPauseTests {
    /// A player that sounds, a call that can come, and the daemon between them.
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
            // Another process: what a session's process started would be that session's.
            phone = try stage.foreigner()
            call = phone.create("Phone", category: "play-and-record", class: "call")
            guard stage.waitForServer(), !isAdopted || eventually({ adopted == "active" }) else {
                throw SupportError("the player's sound is no session: \((try? stage.sessions()) ?? [:])")
            }
        }

        /// The state of the player's session.
        var adopted: String {
            let sessions = (try? stage.sessions())?.values.first { $0["Name"]?.stringValue == "pacat" }
            return sessions?["State"]?.stringValue ?? "none"
        }

        func ring() { #expect(phone.ask("activate \(call)") == "ok") }
        func hangUp() { #expect(phone.ask("deactivate \(call)") == "ok") }

        /// Everything that was decided has reached the player, and what it answered the daemon.
        func settle() {
            for _ in 0..<3 {
                _ = try? stage.manager("History", [.uint32(0)])
                _ = player.status
            }
        }
    }

    @Test(arguments: ServerKind.allCases) func aCall_pausesThePlayerAndItsEndResumesIt(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        #expect(scene.adopted == "interrupted")
        scene.hangUp()
        #expect(eventually { scene.player.status == "Playing" })
        #expect(scene.player.calls == ["Pause", "Play"])
        #expect(eventually { scene.adopted == "active" })
        // And once more.
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        scene.hangUp()
        #expect(eventually { scene.player.status == "Playing" })
        #expect(scene.player.calls == ["Pause", "Play", "Pause", "Play"])
    }

    /// What an earlier daemon paused is resumed by the next one, and only that.
    /// Who no longer wants players paused, or looked at, wants none left paused.
    @Test(arguments: ["[mpris]\npause = off\n", "[adoption]\nstreams = off\n"])
    func switchedOffMeanwhile_resumesWhatWasPaused(settings: String) throws {
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

    @Test(arguments: ServerKind.allCases, ["nothing", "track 2", "Stopped", "hung up"])
    func daemonKilledDuringACall_resumesWhatWasPaused(
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
            #expect(scene.player.calls == ["Pause"], "nothing starts by itself")
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

    /// Of a program that has a session and does not listen the daemon knows that, too, after a restart.
    @Test(arguments: ServerKind.allCases) func daemonKilledWhileASessionIsIgnored_resumesWhatItPaused(
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

    /// Killed between noting that it pauses a player and telling it, or between seeing it paused and anything else.
    @Test(arguments: ServerKind.allCases, [1, 2]) func daemonKilledAsItPauses_thePlayerIsPausedAndResumed(
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

    /// The pause was sent, and the daemon killed before the player did it.
    @Test(arguments: ServerKind.allCases, ["nothing", "track 2", "Stopped", "Playing", "not yet"])
    func daemonKilledBeforeThePauseIsSeen_resumesWhatItPaused(_ kind: ServerKind, _ meanwhile: String) throws {
        let scene = try Scene(kind, .late)
        scene.ring()
        #expect(eventually { scene.player.calls == ["Pause"] })
        scene.stage.daemon.kill()
        if meanwhile != "not yet" { scene.player.person("catch up") }
        if !["nothing", "not yet"].contains(meanwhile) { scene.player.person(meanwhile) }
        try scene.stage.restart()
        // What plays was not paused by us, or not yet.
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

    @Test(arguments: ServerKind.allCases) func pausedByHandBefore_isNeitherPausedNorResumed(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        scene.player.person("Paused")
        scene.ring()
        scene.settle()
        scene.hangUp()
        scene.settle()
        #expect(scene.player.calls.isEmpty && scene.player.status == "Paused")
    }

    @Test(arguments: ServerKind.allCases) func startedByHandDuringACall_playsOn(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        // Sooner, it could be the echo of a player that toggles.
        let paused = monotonicNow()
        #expect(eventually { monotonicNow() - paused > 1.05 })
        scene.player.person("Playing")
        #expect(eventually { scene.adopted == "active" })
        scene.player.person("Paused")
        scene.hangUp()
        scene.settle()
        #expect(scene.player.calls == ["Pause"] && scene.player.status == "Paused")
    }

    @Test(arguments: ServerKind.allCases, ["track 2", "Stopped"]) func touchedDuringACall_isNotResumed(
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

    @Test(arguments: ServerKind.allCases) func pausedAgainByTheMediaKeys_isNotResumed(_ kind: ServerKind) throws {
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
    func oddPlayers_areNeverMadeToPlayByMistake(
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

    @Test(arguments: ServerKind.allCases) func pausedTooLate_isResumedAllTheSame(_ kind: ServerKind) throws {
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

    @Test(arguments: ServerKind.allCases) func vanishedDuringACall_isForgotten(_ kind: ServerKind) throws {
        let scene = try Scene(kind)
        scene.ring()
        #expect(eventually { scene.player.status == "Paused" })
        scene.player.process.kill()
        scene.hangUp()
        #expect(eventually { scene.adopted == "none" })
        #expect(scene.stage.daemon.isRunning)
    }

    @Test(arguments: ServerKind.allCases) func switchedOff_noPlayerIsTold(_ kind: ServerKind) throws {
        let scene = try Scene(kind, settings: "[mpris]\npause = off\n")
        scene.ring()
        #expect(eventually { scene.adopted == "interrupted" })
        scene.settle()
        scene.hangUp()
        scene.settle()
        #expect(scene.player.calls.isEmpty)
    }
}
