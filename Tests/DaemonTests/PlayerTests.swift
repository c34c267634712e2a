import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

private let silence = -60.0
private let loud = -25.0

@Suite(.serialized) struct PlayerTests {
    @Test(arguments: ServerKind.allCases)
    func secondPlayerPlays_firstIsInterruptedAndResumesWhereItWas(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try stage.player(["--name", "music"])
        let message = try stage.player(["--name", "message"])
        #expect(music.call("Load", [.string(try stage.sine(440, seconds: 60))]) == nil)
        #expect(music.call("Play") == nil)
        #expect(stage.ear.waitUntil(440, above: loud))
        #expect(message.call("Load", [.string(try stage.sine(1_000, seconds: 1.5))]) == nil)
        #expect(message.call("Play") == nil)
        #expect(music.comes(to: "interrupted"))
        #expect(stage.ear.waitUntil(440, below: silence))
        #expect(stage.ear.waitUntil(1_000, above: loud))
        let place = music.position
        #expect(place > 0)
        #expect(music.comes(to: "playing"))
        #expect(music.position >= place - 0.01)
        #expect(music.position < place + 2)
        #expect(stage.ear.waitUntil(440, above: loud))
        #expect(message.signals == ["Finished true"])
        #expect(message.state == "stopped")
        #expect(try stage.sessionState(of: message) == "inactive")
        #expect(try stage.sessionState(of: music) == "active")
        #expect(music.signals == [])
        let states = music.changes(of: "State").compactMap(\.stringValue)
        #expect(states == ["playing", "interrupted", "playing"])
    }

    @Test(arguments: ServerKind.allCases)
    func interrupterLeavesWithoutNotify_playerStaysPaused(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try playing(stage)
        let client = try stage.daemon.client()
        let other = try client.session("other")
        #expect(client.activate(other) == nil)
        #expect(music.comes(to: "interrupted"))
        #expect(client.deactivate(other) == nil)
        #expect(music.comes(to: "paused"))
        #expect(try stage.sessionState(of: music) == "inactive")
        #expect(stage.ear.waitUntil(440, below: silence))
        #expect(music.call("Play") == nil)
        #expect(stage.ear.waitUntil(440, above: loud))
    }

    @Test(arguments: ServerKind.allCases)
    func playerIsKilled_theOtherIsReleased(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try playing(stage)
        let other = try playing(stage, hertz: 1_000)
        #expect(music.comes(to: "interrupted"))
        other.child.signal(SIGKILL)
        #expect(music.comes(to: "paused"))
        #expect(stage.ear.waitUntil(1_000, below: silence))
    }

    @Test(arguments: ServerKind.allCases)
    func userPausesDuringAnInterruption_playerStaysPaused(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try playing(stage)
        let client = try stage.daemon.client()
        let other = try client.session("other")
        client.activate(other)
        #expect(music.comes(to: "interrupted"))
        #expect(music.call("Pause") == nil)
        #expect(music.state == "paused")
        client.deactivate(other, notify: true)
        #expect(eventually { (try? stage.sessionState(of: music)) == "inactive" })
        #expect(stage.ear.waitUntil(440, below: silence))
        #expect(music.state == "paused")
    }

    @Test(arguments: ServerKind.allCases)
    func playDuringACall_isRefusedAndHappensAfterIt(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try playing(stage, arguments: ["--category", "solo-ambient"])
        let client = try stage.daemon.client()
        let call = try client.beginCall("call")
        #expect(music.comes(to: "interrupted"))
        #expect(music.call("Pause") == nil)
        #expect(music.state == "paused")
        #expect(music.call("Play") == "org.sessiond1.Error.InsufficientPriority")
        #expect(music.state == "interrupted")
        #expect(stage.ear.waitUntil(440, below: silence))
        client.deactivate(call)
        #expect(music.comes(to: "playing"))
        #expect(stage.ear.waitUntil(440, above: loud))
    }

    @Test(arguments: ServerKind.allCases) func callIsActive_playIsRefusedAndNothingIsHeard(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let client = try stage.daemon.client()
        try client.beginCall("call")
        let music = try stage.player(["--category", "solo-ambient"])
        music.call("Load", [.string(try stage.sine(440, seconds: 60))])
        #expect(music.call("Play") == "org.sessiond1.Error.InsufficientPriority")
        #expect(music.call("Play", mpris: true) == "org.sessiond1.Error.InsufficientPriority")
        #expect(music.state == "stopped")
        #expect(stage.ear.waitUntil(440, below: silence))
        #expect(music.signals == [])
    }

    @Test(arguments: ServerKind.allCases)
    func userPlaysDuringAnInterruption_playerTakesTheSoundBack(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try playing(stage)
        let client = try stage.daemon.client()
        let other = try client.session("other")
        client.activate(other)
        #expect(music.comes(to: "interrupted"))
        #expect(music.call("Play") == nil)
        #expect(music.state == "playing")
        #expect(client.state(other) == "interrupted")
        #expect(music.call("Pause") == nil)
        #expect(eventually { (try? client.heard())?.contains("other ended resume") == true })
    }

    @Test(arguments: ServerKind.allCases)
    func promptPlays_playerIsDuckedWithARampAndRestoredExactly(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try playing(stage)
        let client = try stage.daemon.client()
        let prompt = try client.session("prompt", options: ["duck-others"])
        // Wait until the tone fills the whole window, because silence in the window lowers the level. PipeWire mixes
        // the two channels of the monitor to one with a factor of 0.7 each, which makes it 3 dB louder.
        #expect(stage.ear.waitUntil(440, above: -12.5, below: kind == .pipeWire ? -8.5 : -11.5, window: 0.3))
        let before = stage.ear.level(of: 440, last: 0.1)
        let start = monotonicNow()
        client.activate(prompt)
        #expect(stage.ear.waitUntil(440, above: before - 12.5, below: before - 11.5, window: 0.1))
        client.deactivate(prompt)
        #expect(stage.ear.waitUntil(440, above: before - 0.2, below: before + 0.2, window: 0.1))
        // On a busy machine PipeWire drops sound that comes late, which looks like a step. The player makes the ramp
        // itself, so PulseAudio is enough to test it.
        if kind == .pulseAudio {
            let levels = stage.ear.trace(440, window: 0.01, since: start).map(\.level)
            let steps = zip(levels, levels.dropFirst()).map { abs($0 - $1) }
            #expect(steps.max() ?? 100 < 2.5, "a step in the ramp")
        }
        #expect(music.state == "playing")
        #expect(music.changes(of: "Volume") == [])
    }

    @Test(arguments: ServerKind.allCases)
    func itemEnds_finishedIsSentOnceAndTheSessionDeactivated(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try stage.player()
        music.call("Load", [.string(try stage.sine(440, seconds: 0.5))])
        #expect(music.call("Play") == nil)
        #expect(eventually { music.signals.contains("Finished true") })
        #expect(eventually { (try? stage.sessionState(of: music)) == "inactive" })
        #expect(music.call("Play") == nil)
        #expect(eventually { music.signals.count > 1 })
        #expect(music.comes(to: "stopped"))
        #expect(music.signals == ["Finished true", "Finished true"])
    }

    @Test(arguments: ServerKind.allCases)
    func nextItemIsLoadedAndPlayed_othersAreNotResumedBetween(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let client = try stage.daemon.client()
        let other = try client.session("other")
        client.activate(other)
        let music = try playing(stage)
        #expect(music.call("Load", [.string(try stage.sine(1_000, seconds: 60))]) == nil)
        #expect(music.call("Play") == nil)
        #expect(stage.ear.waitUntil(1_000, above: loud))
        #expect(try client.heard().filter { $0.contains("ended") } == [])
        #expect(music.call("Load", [.string(try stage.sine(440, seconds: 60))]) == nil)
        var heard: [String] = []
        #expect(
            eventually {
                heard += (try? client.heard()) ?? []
                return heard.contains("other ended resume")
            }, "a loaded item that does not play must not keep the sound")
        #expect(music.signals == [])
    }

    @Test func unplayableFile_loadSucceedsAndFailedHasTheReason() throws {
        let stage = try PlayerStage()
        let music = try stage.player()
        #expect(music.call("Play") == "org.sessiond1.Error.CannotStartPlaying")
        #expect(music.call("Load", [.string("file:///nowhere/at/all.wav")]) == nil)
        #expect(eventually { music.signals.count == 1 })
        #expect(music.signals.first?.contains("No such file") == true)
        #expect(music.state == "failed")
        #expect(music.call("Play") == "org.sessiond1.Error.CannotStartPlaying")
        #expect(try stage.sessionState(of: music) == "inactive")
    }

    @Test func categoryWithoutPlayback_isRefused() throws {
        let stage = try PlayerStage()
        let uri = try stage.sine(440, seconds: 1)
        let record = try stage.player(["--category", "record"])
        #expect(record.call("Load", [.string(uri)]) == nil)
        #expect(record.call("Play") == "org.sessiond1.Error.CannotStartPlaying")
        let processing = try stage.player(["--category", "audio-processing"])
        #expect(processing.call("Load", [.string(uri)]) == "org.sessiond1.Error.IncompatibleCategory")
        #expect(processing.call("Play") == "org.sessiond1.Error.CannotStartPlaying")
    }

    /// Returns the number of the module of their sink, when they are the route.
    private static func plugHeadphones(into stage: PlayerStage) throws -> UInt32 {
        let module = try stage.pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(
            eventually {
                let outputs = (try? stage.daemon.property("CurrentRoute"))?.route?.outputs ?? []
                return outputs.first?.type == .headphones
            })
        return module
    }

    @Test(arguments: ServerKind.allCases)
    func headphonesAreUnplugged_playerPausesUntilTheUserPlays(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let module = try Self.plugHeadphones(into: stage)
        let music = try stage.player()
        music.call("Load", [.string(try stage.sine(440, seconds: 60))])
        #expect(music.call("Play") == nil)
        #expect(eventually { music.position > 0.2 })
        try stage.pulse.unloadModule(module)
        #expect(music.comes(to: "paused"))
        #expect(music.signals == [])
        #expect(music.call("Play") == nil)
        #expect(stage.ear.waitUntil(440, above: loud))
    }

    @Test(arguments: ServerKind.allCases)
    func headphonesAreUnplugged_alarmContinuesOnTheSpeaker(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let module = try Self.plugHeadphones(into: stage)
        let alarm = try stage.player(["--class", "alert"])
        alarm.call("Load", [.string(try stage.sine(440, seconds: 60))])
        #expect(alarm.call("Play") == nil)
        #expect(eventually { alarm.position > 0.2 })
        try stage.pulse.unloadModule(module)
        #expect(stage.ear.waitUntil(440, above: loud))
        #expect(alarm.state == "playing")
    }

    @Test(arguments: ServerKind.allCases)
    func soundServerIsKilled_playerPausesAndPlaysOnFromTheSamePlace(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try playing(stage)
        #expect(eventually { music.position > 0.5 })
        stage.pulse.kill()
        #expect(music.comes(to: "paused"))
        let place = music.position
        #expect(place > 0.4)
        #expect(eventually { (try? stage.daemon.property("ServerConnected"))?.boolValue == false })
        #expect(music.call("Play") == "org.sessiond1.Error.MediaServicesFailed")
        try stage.pulse.restart()
        #expect(stage.daemon.waitForServer())
        let ear = try Ear(stage.pulse, sink: "speaker")
        #expect(music.state == "paused")
        #expect(eventually { music.call("Play") == nil })
        #expect(ear.waitUntil(440, above: loud))
        #expect(music.position > place - 0.2)
        #expect(music.position < place + 5)
        #expect(music.signals == [])
    }

    @Test(arguments: ServerKind.allCases)
    func playerStartsWithoutASoundServer_playFailsUntilThereIsOne(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        stage.pulse.kill()
        #expect(eventually { (try? stage.daemon.property("ServerConnected"))?.boolValue == false })
        // This player starts after the loss of the server, so it does not know about it.
        let music = try stage.player()
        music.call("Load", [.string(try stage.sine(440, seconds: 60))])
        #expect(eventually { music.call("Play") == "org.sessiond1.Error.MediaServicesFailed" })
        #expect(music.state == "stopped")
        try stage.pulse.restart()
        #expect(stage.daemon.waitForServer())
        let ear = try Ear(stage.pulse, sink: "speaker")
        #expect(eventually { music.call("Play") == nil })
        #expect(ear.waitUntil(440, above: loud))
    }

    @Test func serverRestartsAndDaemonLosesItsState_playWorksAgain() throws {
        let stage = try PlayerStage()
        let music = try playing(stage)
        stage.pulse.kill()
        #expect(eventually { music.call("Play") == "org.sessiond1.Error.MediaServicesFailed" })
        stage.daemon.daemon.kill()
        try FileManager.default.removeItem(atPath: stage.daemon.stateFolder)
        try stage.pulse.restart()
        try stage.daemon.restart()
        #expect(stage.daemon.waitForServer())
        let ear = try Ear(stage.pulse, sink: "speaker")
        #expect(eventually { music.call("Play") == nil })
        #expect(ear.waitUntil(440, above: loud))
    }

    @Test(arguments: ServerKind.allCases)
    func daemonIsKilledAndRestarted_playerPlaysOnAndRegistersAgain(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try playing(stage, arguments: ["--id", "org.sessiond1.player"])
        stage.daemon.daemon.kill()
        let start = monotonicNow()
        let daemon = try stage.daemon.start()
        #expect(eventually { stage.daemon.isServing })
        #expect(eventually { (try? stage.sessionState(of: music)) == "active" })
        #expect(eventually { registered(stage) == ["org.sessiond1.player running"] })
        #expect(music.state == "playing")
        #expect(stage.ear.waitUntil(440, above: loud))
        // On a busy machine PipeWire drops sound that comes late.
        if kind == .pulseAudio {
            #expect(stage.ear.trace(440, window: 0.02, since: start).allSatisfy { $0.level > loud })
        }
        daemon.kill()
    }

    @Test(arguments: ServerKind.allCases)
    func terminatedPlayer_releasesTheOtherAndExitsWithZero(_ kind: ServerKind) throws {
        let stage = try PlayerStage(kind)
        let music = try playing(stage)
        let other = try playing(stage, hertz: 1_000)
        #expect(music.comes(to: "interrupted"))
        other.child.signal(SIGTERM)
        #expect(other.child.wait() == .code(0))
        #expect(music.comes(to: "playing"))
    }

    @Test func commandLine_playsToTheEndOrPrintsTheReason() throws {
        let stage = try PlayerStage()
        let uri = try stage.sine(440, seconds: 0.3)
        #expect(try stage.program("sessiond-player", [uri]).wait(timeout: 30) == .code(0))
        let missing = try stage.program("sessiond-player", ["/nowhere.wav"])
        #expect(missing.wait(timeout: 30) == .code(1))
        #expect(missing.errors.joined().contains("No such file"))
        #expect(try stage.program("sessiond-player", ["--category", "loud"]).wait() == .code(64))
    }

    @Test func parentEnds_programEnds() throws {
        let stage = try PlayerStage()
        let program = try builtProduct(named: "sessiond-player")
        let shell = try Child(
            "sh", ["-c", "'\(program)' --die-with-parent & echo $!; read -r line"],
            environment: stage.pulse.environment.merging(stage.daemon.bus.environment) { $1 })
        let processID = try #require(shell.line { Int32($0) != nil })
        let path = "/proc/\(processID)/comm"
        #expect(eventually { (try? String(contentsOfFile: path, encoding: .utf8)) == "sessiond-player\n" })
        #expect(
            eventually {
                let sessions = (try? stage.daemon.manager("ListSessions"))?.first?.arrayValue ?? []
                return sessions.count == 1
            })
        shell.signal(SIGKILL)
        #expect(
            eventually {
                let sessions = (try? stage.daemon.manager("ListSessions"))?.first?.arrayValue ?? []
                return sessions.isEmpty
            })
    }

    private func registered(_ stage: PlayerStage) -> [String] {
        let plugins =
            (try? stage.daemon.observer.callAndWait(
                BusName.service, ObjectPath.root, BusName.plugins, "List", [], timeout: 5))?.first?.arrayValue ?? []
        return plugins.compactMap(\.asProperties).map {
            "\($0["id"]?.stringValue ?? "") \($0["state"]?.stringValue ?? "")"
        }
    }

    private func playing(_ stage: PlayerStage, hertz: Double = 440, arguments: [String] = []) throws -> PluginProgram {
        let player = try stage.player(["--name", "music \(Int(hertz))"] + arguments)
        #expect(player.call("Load", [.string(try stage.sine(hertz, seconds: 60))]) == nil)
        #expect(player.call("Play") == nil)
        #expect(stage.ear.waitUntil(hertz, above: loud))
        return player
    }
}
