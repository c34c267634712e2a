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
        // During a call it may not be heard.
        try press("Play")
        #expect(await eventuallyAsync { await player.playbackState == .paused })
        #expect(stage.ear.waitUntil(440, below: -60, window: 0.3))
        _ = phone.deactivate(call, notify: true)
        try await player.play()
        #expect(stage.ear.waitUntil(440, above: -40))
        #expect(try eventually { try stage.sessions() == ["Notes active", "Phone inactive"] })
        await player.close()
        #expect(try eventually { try stage.sessions().contains("Notes inactive") })
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
