import Foundation
import PluginAPI
import SessionKit
import Synchronization
import TestSupport
import Testing

/// `SessionKit.Player`, `PlayerItem` and `QueuePlayer` as an app uses them: the real daemon, the real player, a real
/// sound server.
@Suite(.serialized) struct QueuePlayerTests {
    private func player(_ stage: KitStage, _ url: String, _ session: AudioSession) -> Player {
        Player([PlayerItem(url: url)], session, removesPlayed: false, environment: stage.environment)
    }

    @Test func item_becomesReadyByItself_andIsPlayedToItsEnd() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = player(stage, try stage.sine(440, seconds: 1.5), session)
        let item = try #require(player.currentItem)
        #expect(await firstElement(of: item.statuses) { $0 == .readyToPlay } != nil)
        #expect(abs(item.duration.seconds - 1.5) < 0.01)
        #expect(player.timeControlStatus == .paused && player.rate == 0)
        let (ends, statuses) = (item.ends, player.timeControlStatuses)
        try await player.play()
        #expect(await firstElement(of: statuses) == .playing)
        #expect(stage.ear.waitUntil(440, above: -20))
        #expect(await firstElement(of: ends) == true)
        #expect(player.currentItem == item)
        #expect(try eventually { try stage.sessions() == ["Notes inactive"] })
    }

    @Test func replacedItem_isHeardInsteadAtOnce() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let client = try stage.daemon.client()
        let radio = try client.session("Radio")
        client.activate(radio)
        let player = player(stage, try stage.sine(440, seconds: 60), session)
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -20))
        _ = try client.heard()
        let other = PlayerItem(url: try stage.sine(1_000, seconds: 60))
        player.replaceCurrentItem(with: other)
        #expect(player.currentItem == other)
        #expect(stage.ear.waitUntil(1_000, above: -20))
        #expect(stage.ear.waitUntil(440, below: -60))
        #expect(other.status == .readyToPlay)
        // The app had the sound all the time.
        #expect(try client.heard() == [])
        player.isMuted = true
        #expect(stage.ear.waitUntil(1_000, below: -80))
        player.isMuted = false
        #expect(stage.ear.waitUntil(1_000, above: -20))
        player.replaceCurrentItem(with: nil)
        #expect(stage.ear.waitUntil(1_000, below: -80))
        #expect(player.currentItem == nil)
        do throws(SessionError) {
            try await player.play()
            Issue.record("nothing was played")
        } catch {
            #expect(error.code == .cannotStartPlaying)
        }
    }

    @Test func observer_getsTimesWhileItPlays_andAfterAJump() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = player(stage, try stage.sine(440, seconds: 60), session)
        let times = Mutex<[Double]>([])
        let observer = player.addPeriodicTimeObserver(forInterval: MediaTime(seconds: 0.1)) { time in
            times.withLock { $0.append(time.seconds) }
        }
        try await player.play()
        #expect(await eventuallyAsync { times.withLock { $0.count { $0 > 0 } } >= 5 })
        #expect(times.withLock { $0 == $0.sorted() })
        #expect(await player.seek(to: MediaTime(seconds: 40)))
        #expect(await eventuallyAsync { times.withLock { $0.last ?? 0 } > 40.2 })
        await player.pause()
        #expect(player.timeControlStatus == .paused)
        player.removeTimeObserver(observer)
        let count = times.withLock(\.count)
        await player.seek(to: .zero)
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -20))
        // The call in progress at the time of the removal may have ended later.
        #expect(times.withLock(\.count) <= count + 1)
    }

    @Test func queue_playsInOrder_andItemsLeaveIt() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let tones: [(Double, Double)] = [(440, 1), (1_000, 60), (2_000, 60)]
        let player = stage.queue(try tones.map { try stage.sine($0.0, seconds: $0.1) }, in: session)
        let items = player.items()
        try await player.play()
        #expect(stage.ear.waitUntil(1_000, above: -20))
        #expect(await eventuallyAsync { player.items() == Array(items.dropFirst()) })
        player.advanceToNextItem()
        #expect(stage.ear.waitUntil(2_000, above: -20))
        #expect(player.items() == [items[2]] && player.currentItem == items[2])
        #expect(!player.canInsert(items[2], after: nil))
        // A change of what follows does not disturb what is heard.
        let next = PlayerItem(url: try stage.sine(600, seconds: 60))
        player.insert(next, after: items[2])
        player.remove(next)
        player.insert(next, after: nil)
        #expect(player.items() == [items[2], next])
        player.remove(items[2])
        #expect(stage.ear.waitUntil(600, above: -20))
        player.advanceToNextItem()
        #expect(stage.ear.waitUntil(600, below: -80))
        #expect(player.items().isEmpty)
        #expect(try eventually { try stage.sessions() == ["Notes inactive"] })
    }

    @Test func badItem_failsWithAReason() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = player(stage, stage.media.path + "/missing.wav", session)
        let item = try #require(player.currentItem)
        #expect(await firstElement(of: item.statuses) { $0 == .failed } != nil)
        #expect(item.error?.code == .decodeFailed && item.error?.message.contains("missing.wav") == true)
        await #expect(throws: SessionError.self) { try await player.play() }
        #expect(try stage.sessions() == ["Notes inactive"])
    }

    @Test func killedProcess_isReplacedByTheNextPlay() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = player(stage, try stage.sine(440, seconds: 60), session)
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -20))
        let statuses = player.timeControlStatuses
        kill(try stage.process("org.sessiond1.Hosted"), SIGKILL)
        #expect(await firstElement(of: statuses) { $0 == .paused } != nil)
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -20))
    }
}
