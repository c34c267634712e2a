import Foundation
import PluginAPI
import SessionKit
import TestSupport
import Testing

/// `SessionKit.AudioPlayer` as an app uses it: the real daemon, the real player, a real sound server. The sound is
/// measured at the monitor.
@Suite(.serialized) struct AudioPlayerTests {
    @Test func player_soundsInTheSessionOfTheApp_andStopsAtTheEnd() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = try await stage.player(try stage.sine(440, seconds: 1.5), in: session)
        #expect(abs(player.duration - 1.5) < 0.01)
        #expect(player.numberOfChannels >= 1)
        #expect(!player.isPlaying)
        let finishes = player.finishes
        try await player.play()
        #expect(player.isPlaying)
        #expect(stage.ear.waitUntil(440, above: -20))
        #expect(try stage.sessions() == ["Notes active"])
        #expect(await firstElement(of: finishes) == true)
        #expect(!player.isPlaying)
        #expect(player.currentTime == 0)
        // The app did not activate its session, so it does not keep others silent.
        #expect(try eventually { try stage.sessions() == ["Notes inactive"] })
        #expect(stage.ear.waitUntil(440, below: -80))
    }

    @Test func settings_areHeard() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = try await stage.player(try stage.sine(440, seconds: 60), in: session)
        player.isMeteringEnabled = true
        player.volume = 0.5
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -25))
        let half = stage.ear.steadyLevel(of: 440)
        player.volume = 1
        #expect(stage.ear.waitUntil(440, above: half + 4))
        #expect(abs(stage.ear.steadyLevel(of: 440) - half - 6.02) < 0.3)
        #expect(
            await eventuallyAsync {
                await player.updateMeters()
                return abs(player.peakPower(forChannel: 0) + 12) < 1
            })
        #expect(player.peakPower(forChannel: 99) == -160)
        player.volume = 7
        #expect(player.volume == 1)
        player.currentTime = 30
        #expect(player.currentTime >= 30)
        #expect(await eventuallyAsync { player.currentTime > 30.3 && player.currentTime < 50 })
        (player.enableRate, player.rate) = (true, 2)
        #expect(await eventuallyAsync { player.currentTime > 34 })
        await player.pause()
        #expect(stage.ear.waitUntil(440, below: -80))
        let place = player.currentTime
        #expect(place > 34 && place < 60)
        await player.stop()
        #expect(player.currentTime == 0)
    }

    @Test func call_silencesThePlayer_andTheAppPlaysOn() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let interruptions = session.interruptions
        try await session.setActive(true)
        let player = try await stage.player(try stage.sine(440, seconds: 60), in: session)
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -20))
        let client = try stage.daemon.client()
        let call = try client.beginCall("Phone")
        #expect(await firstElement(of: interruptions) == .began(reason: .default, by: "Phone"))
        #expect(!player.isPlaying)
        #expect(stage.ear.waitUntil(440, below: -80))
        let ends = session.interruptions
        client.deactivate(call, notify: true)
        #expect(await firstElement(of: ends) == .ended(options: .shouldResume))
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -20))
        // Deactivating the session ends its sound.
        try await session.setActive(false)
        #expect(stage.ear.waitUntil(440, below: -80))
        #expect(!player.isPlaying)
    }

    /// The matrix: whoever may not sound beside a call or an alert is refused, and the others sound beside it.
    @Test(arguments: [
        ("call", AudioSession.Category.playback, nil), ("call", .ambient, nil),
        ("call", .soloAmbient, SessionError.Code.insufficientPriority), ("alert", .ambient, nil),
        ("alert", .playback, .insufficientPriority), ("alert", .soloAmbient, .insufficientPriority),
    ])
    func playingDuringACallOrAnAlert_followsTheRules(
        word: String, category: AudioSession.Category, refusal: SessionError.Code?
    ) async throws {
        let stage = try KitStage()
        let session = try await stage.session(category)
        let player = try await stage.player(try stage.sine(440, seconds: 60), in: session)
        let client = try stage.daemon.client()
        let other = try client.session("Other", category: word == "call" ? "play-and-record" : "playback", class: word)
        #expect(client.activate(other) == nil)
        do throws(SessionError) {
            try await player.play()
            #expect(refusal == nil)
            #expect(stage.ear.waitUntil(440, above: -20))
            #expect(player.isPlaying)
        } catch {
            #expect(error.code == refusal, "\(error)")
            #expect(!player.isPlaying)
            #expect(try stage.sessions() == ["Notes inactive", "Other active"])
        }
    }

    /// The prompt is in another program: no session ducks the streams of its own program.
    @Test func prompt_lowersThePlayer() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = try await stage.player(try stage.sine(440, seconds: 60), in: session)
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -20))
        let before = stage.ear.steadyLevel(of: 440)
        let voice = try stage.daemon.foreigner()
        let prompt = voice.create("Prompt", option: "duck-others")
        #expect(voice.ask("activate \(prompt)") == "ok")
        #expect(stage.ear.waitUntil(440, above: before - 12.5, below: before - 11.5, window: 0.05))
        #expect(player.isPlaying)
        #expect(voice.ask("deactivate \(prompt)") == "ok")
        #expect(stage.ear.waitUntil(440, above: before - 0.2, below: before + 0.2, window: 0.1))
    }

    @Test func badFiles_throwAReason() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        try Data("no sound".utf8).write(to: URL(fileURLWithPath: stage.media.path + "/bad.wav"))
        for name in ["bad.wav", "missing.wav"] {
            do {
                _ = try await stage.player(stage.media.path + "/" + name, in: session)
                Issue.record("\(name) was opened")
            } catch {
                #expect(error.code == .decodeFailed && error.message.contains(name), "\(error)")
            }
        }
    }

    @Test func killedPlayer_isReportedAndPlaysAgain() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = try await stage.player(try stage.sine(440, seconds: 60), in: session)
        let errors = player.decodeErrors
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -20))
        kill(try stage.process("org.sessiond1.Hosted"), SIGKILL)
        #expect(await firstElement(of: errors)?.code == .mediaServicesFailed)
        #expect(!player.isPlaying)
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -20))
    }

    @Test func releasedPlayer_endsItsProcess() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        var player: AudioPlayer? = try await stage.player(try stage.sine(440, seconds: 60), in: session)
        try await player?.play()
        #expect(stage.ear.waitUntil(440, above: -20))
        let process = try stage.process("org.sessiond1.Hosted")
        player = nil
        #expect(eventually { kill(process, 0) != 0 })
        #expect(stage.ear.waitUntil(440, below: -80))
    }
}
