import DBus
import Foundation
import PluginAPI
import SessionBus
import SessionKit
import TestSupport
import Testing

/// `MoviePlayer` of SessionKit with the real player, without a screen.
@Suite(.serialized) struct MovieKitTests {
    @Test func film_isHeardInTheSessionOfTheApp_andSaysWhatItIs() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = MoviePlayer(
            contentURL: try TestMedia.named("tracks.mkv").path(), output: .none, session: session,
            environment: stage.environment)
        let notices = player.notices
        try await player.prepareToPlay()
        #expect(await eventuallyAsync { await player.readyForDisplay })
        #expect(await player.naturalSize == PictureSize(width: 320, height: 180))
        #expect(await player.movieMediaTypes == [.audio, .video])
        #expect(await player.movieSourceType == .file)
        #expect(await eventuallyAsync { await player.isPreparedToPlay })
        #expect(await abs(player.duration - 12) < 0.2)
        #expect(await eventuallyAsync { await player.loadState.contains(.playthroughOK) })
        #expect(await player.tracks.map(\.number) == [0, 0, 1, 0, 1])
        #expect(await player.playbackState == .stopped)
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -40))
        #expect(try stage.sessions() == ["Notes active"])
        try await player.select(.audio, 1)
        #expect(stage.ear.waitUntil(880, above: -40))
        await #expect(throws: SessionError.self) { try await player.select(.audio, 7) }
        await #expect(throws: SessionError.self) { try await player.setFullscreen(true) }
        try await player.setCurrentPlaybackTime(11.5)
        #expect(await firstElement(of: notices) { $0 == .playbackDidFinish(.playbackEnded) } != nil)
        #expect(try eventually { try stage.sessions() == ["Notes inactive"] })
        #expect(await player.playbackState == .paused)
        await player.close()
    }

    @Test func pauseAndPlayInItsWindow_areInTheSessionOfTheApp_andACallPauses() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = MoviePlayer(
            contentURL: try TestMedia.named("short-gop.mp4").path(), output: .none, session: session,
            environment: stage.environment)
        // Both wait for the film.
        async let prepared: Void = player.prepareToPlay()
        async let played: Void = player.play()
        _ = try await (prepared, played)
        #expect(stage.ear.waitUntil(440, above: -40))
        let names = try stage.daemon.observer.askBusAndWait("ListNames", timeout: 5).first?.stringsValue ?? []
        let movie = try #require(names.first { $0.hasPrefix("org.sessiond1.Hosted.") })
        // What a key in the window does.
        func press(_ member: String) throws {
            _ = try stage.daemon.observer.callAndWait(
                movie, PluginKind.moviePlayer.objectPath, BusName.player, member, [], timeout: 5)
        }
        try press("Pause")
        #expect(try eventually { try stage.sessions() == ["Notes inactive"] })
        try press("Play")
        #expect(try eventually { try stage.sessions() == ["Notes active"] })
        #expect(stage.ear.waitUntil(440, above: -40))
        let phone = try stage.daemon.client()
        let call = try phone.beginCall("Phone")
        #expect(await eventuallyAsync { await player.playbackState == .paused })
        #expect(stage.ear.waitUntil(440, below: -60))
        // During a call it may not be heard: it is paused again.
        let notices = player.notices
        try press("Play")
        #expect(await firstElement(of: notices) { $0 == .playbackStateDidChange(.playing) } != nil)
        #expect(await eventuallyAsync { await player.playbackState == .paused })
        #expect(stage.ear.waitUntil(440, below: -60))
        _ = phone.deactivate(call, notify: true)
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -40))
        #expect(try eventually { try stage.sessions() == ["Notes active", "Phone inactive"] })
        await player.close()
        #expect(try eventually { try stage.sessions().contains("Notes inactive") })
    }

    @Test func beginningAndEnd_areThoseOfTheApp() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = MoviePlayer(
            contentURL: try TestMedia.named("short-gop.mp4").path(), output: .none, session: session,
            environment: stage.environment)
        try await player.setInitialPlaybackTime(2)
        try await player.setEndPlaybackTime(5)
        let notices = player.notices
        try await player.play()
        #expect(await eventuallyAsync { await player.currentPlaybackTime >= 2 })
        #expect(await firstElement(of: notices) { $0 == .playbackDidFinish(.playbackEnded) } != nil)
        #expect(await abs(player.currentPlaybackTime - 5) < 0.05)
        await #expect(throws: SessionError.self) { try await player.requestThumbnailImages(atTimes: []) }
        await #expect(throws: SessionError.self) { try await player.setEndPlaybackTime(-3) }
        try await player.setEndPlaybackTime(nil)
        try await player.setCurrentPlaybackTime(6)
        #expect(await eventuallyAsync { await abs(player.currentPlaybackTime - 6) < 0.1 })
        await player.close()
    }

    @Test func playerWithAnOutput_playsFilmsOneAfterTheOther() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let items = try ["short-gop.mp4", "tracks.mkv"].map { PlayerItem(url: try TestMedia.named($0).path()) }
        let player = QueuePlayer(
            items, output: MoviePlayer.Output.none, session, removesPlayed: true, environment: stage.environment)
        #expect(await firstElement(of: items[0].statuses) { $0 == .readyToPlay } != nil)
        #expect(abs(items[0].duration.seconds - 12) < 0.1)
        #expect(try stage.process("org.sessiond1.Hosted") > 0)
        let ends = items[0].ends
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -40))
        #expect(await player.seek(to: MediaTime(seconds: 11.5)))
        #expect(await firstElement(of: ends) == true)
        #expect(await eventuallyAsync { player.currentItem == items[1] })
        #expect(await firstElement(of: items[1].statuses) { $0 == .readyToPlay } != nil)
        #expect(await eventuallyAsync { player.timeControlStatus == .playing })
        #expect(try stage.sessions() == ["Notes active"])
        // Another film, in the same process.
        let last = PlayerItem(url: try TestMedia.named("short-gop.mp4").path())
        player.insert(last, after: nil)
        player.advanceToNextItem()
        #expect(await firstElement(of: last.statuses) { $0 == .readyToPlay } != nil)
        await player.pause()
        #expect(try eventually { try stage.sessions() == ["Notes inactive"] })
        player.removeAllItems()
    }

    @Test func badFilm_isRefusedWithTheReason() async throws {
        let stage = try KitStage()
        let session = try await stage.session()
        let player = MoviePlayer(
            contentURL: stage.media.path + "/missing.mp4", output: .none, session: session,
            environment: stage.environment)
        await #expect(throws: SessionError.self) { try await player.prepareToPlay() }
        await #expect(throws: SessionError.self) { try await player.play() }
        #expect(try stage.sessions() == ["Notes inactive"])
        await player.close()
    }
}
