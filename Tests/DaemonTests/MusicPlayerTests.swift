import DBus
import Foundation
import PluginAPI
import SessionKit
import TestSupport
import Testing

/// `SessionKit.MusicPlayer` as an app uses it: the real player, the real library, a real sound server.
@Suite(.serialized) struct MusicPlayerTests {
    @Test func systemPlayer_playsAQueryAndTellsWhatHappens() async throws {
        let stage = try await MusicStage()
        let player = stage.player(.system)
        #expect(try await player.nowPlayingItem == nil)
        #expect(try await player.indexOfNowPlayingItem == nil)
        #expect(try await player.playbackState == .stopped)
        let states = player.changes
        let items = player.changes
        try await player.setQueue(with: .albums.filter(.albumTitle, is: "homogenic"))
        #expect(try await player.prepareToPlay())
        #expect(try await player.isPreparedToPlay)
        let hunter = try #require(try await player.nowPlayingItem)
        #expect((hunter.title, hunter.albumTrackNumber, hunter.playbackDuration) == ("Hunter", 1, 60))
        #expect(await firstElement(of: items) { $0 == .nowPlayingItem(persistentID: hunter.persistentID) } != nil)
        #expect(try await player.currentPlaybackRate == 0)
        try await player.play()
        #expect(await firstElement(of: states) { $0 == .playbackState(.playing) } != nil)
        #expect(try await player.playbackState == .playing)
        #expect(try await player.currentPlaybackRate == 1)
        try await player.skipToNextItem()
        let joga = try #require(try await player.nowPlayingItem)
        #expect(joga.title == "Jóga")
        #expect(await firstElement(of: items) { $0 == .nowPlayingItem(persistentID: joga.persistentID) } != nil)
        #expect(try await player.indexOfNowPlayingItem == 1)
        #expect(try await player.playbackState == .playing)
        // Winding is possible as soon as its length is known.
        #expect(try await player.prepareToPlay())
        try await player.beginSeekingForward()
        #expect(await firstElement(of: states) { $0 == .playbackState(.seekingForward) } != nil)
        #expect(try await player.currentPlaybackRate == 8)
        try await player.beginSeekingBackward()
        #expect(try await player.playbackState == .seekingBackward)
        try await player.endSeeking()
        #expect(try await player.playbackState == .playing)
        try await player.setCurrentPlaybackTime(30)
        #expect(try await player.currentPlaybackTime >= 30)
        try await player.skipToBeginning()
        #expect(try await player.currentPlaybackTime < 20)
        try await player.skipToPreviousItem()
        #expect(try await player.nowPlayingItem?.title == "Hunter")
        try await player.setCurrentPlaybackRate(0)
        #expect(await firstElement(of: states) { $0 == .playbackState(.paused) } != nil)
        try await player.setCurrentPlaybackRate(1.5)
        #expect(try await player.currentPlaybackRate == 1.5)
        try await player.stop()
        #expect(await firstElement(of: states) { $0 == .playbackState(.stopped) } != nil)
        try await player.setVolume(0.5)
        #expect(await firstElement(of: items) { $0 == .volume } != nil)
        #expect(try await player.volume == 0.5)
    }

    @Test func interruption_isAStateAndPlaybackGoesOn() async throws {
        let stage = try await MusicStage()
        let player = stage.player(.system)
        let changes = player.changes
        try await player.setQueue(with: MediaQuery.songs)
        try await player.play()
        let client = try stage.daemon.client()
        let call = try client.beginCall("Phone")
        #expect(await firstElement(of: changes) { $0 == .playbackState(.interrupted) } != nil)
        #expect(try await player.playbackState == .interrupted)
        client.deactivate(call, notify: true)
        #expect(await firstElement(of: changes) { $0 == .playbackState(.playing) } != nil)
    }

    @Test func queue_isOfACollectionOrOfItems() async throws {
        let stage = try await MusicStage()
        let player = stage.player(.system)
        let albums = try await stage.library.collections(.albums)
        let edge = try #require(albums.first { $0.title == "The Razors Edge" })
        try await player.setQueue(with: edge)
        #expect(try await player.nowPlayingItem?.title == "Thunderstruck")
        let songs = try await stage.library.items(.songs).all
        #expect(songs.map(\.title) == ["Hunter", "Jóga", "Thunderstruck", "Unravel"])
        try await player.setQueue(with: songs.reversed(), startingAt: 2)
        #expect(try await player.nowPlayingItem == songs[1])
        #expect(try await player.indexOfNowPlayingItem == 2)
        try await player.setNowPlayingItem(songs[3])
        #expect(try await player.indexOfNowPlayingItem == 0)
        try await player.setQueue(with: MediaItemCollection(items: [songs[0], songs[2]]))
        try await player.skipToNextItem()
        #expect(try await player.nowPlayingItem?.title == "Thunderstruck")
        await #expect(throws: SessionError.self) { try await player.setNowPlayingItem(songs[1]) }
        do {
            try await player.setQueue(with: .songs.filter(.artist, is: "Nobody"))
            Issue.record("an empty queue")
        } catch {
            #expect(error.code == .notFound)
        }
        #expect(try await player.nowPlayingItem?.title == "Thunderstruck")
    }

    @Test func modes_areThoseOfTheSystemPlayerByDefault() async throws {
        let stage = try await MusicStage()
        let (system, own) = (stage.player(.system), stage.player(.application, name: "Kiosk"))
        #expect(try await system.repeatMode == .none)
        #expect(try await system.shuffleMode == .off)
        try await system.setRepeatMode(.all)
        try await system.setShuffleMode(.albums)
        try await system.setRepeatMode(.default)
        #expect(try await system.repeatMode == .all)
        #expect(try await own.repeatMode == .none)
        try await own.setRepeatMode(.default)
        try await own.setShuffleMode(.default)
        #expect(try await own.repeatMode == .all)
        #expect(try await own.shuffleMode == .albums)
        for mode in [MusicPlayer.ShuffleMode.off, .songs] {
            try await own.setShuffleMode(mode)
            #expect(try await own.shuffleMode == mode)
        }
        #expect(try await system.shuffleMode == .albums)
        await own.close()
    }

    @Test func playerInTheSessionOfTheApp_doesNotInterruptIt() async throws {
        let stage = try await MusicStage()
        let session = try await AudioSession(name: "App", category: .playback, bus: stage.bus)
        let interruptions = session.interruptions
        try await session.setActive(true)
        let player = stage.player(in: session)
        let changes = player.changes
        let files = ["Hunter", "Unravel"].map { "\(stage.music)/\($0).flac" }
        try await player.setQueue(with: files, startingAt: 1)
        try await player.play()
        #expect(await firstElement(of: changes) { $0 == .playbackState(.playing) } != nil)
        #expect(try stage.daemon.sessions().count == 1)
        #expect(try stage.session("App")?["State"]?.stringValue == "active")
        // Its title is known when its tags have been read.
        #expect(await eventuallyAsync { (try? await player.nowPlayingItem)??.title == "Unravel" })
        #expect(try await player.indexOfNowPlayingItem == 1)
        let item = MediaItem(url: files[0], title: "First")
        #expect(item.persistentID == 0 && item.assetURL == "file://" + files[0])
        try await player.setQueue(with: [item])
        // The title that was given, until the tags of the file say another one.
        #expect(["First", "Hunter"].contains(try await player.nowPlayingItem?.title))
        try await player.play()
        let states = player.changes
        let client = try stage.daemon.client()
        let call = try client.beginCall("Phone")
        // The first interruption is the call: the player was none.
        #expect(await firstElement(of: interruptions) == .began(reason: .default, by: "Phone"))
        #expect(await firstElement(of: states) { $0 == .playbackState(.paused) } != nil)
        client.deactivate(call, notify: true)
        try await player.play()
        #expect(try await player.playbackState == .playing)
        await player.close()
        #expect(try await player.nowPlayingItem == nil)
    }

    @Test func applicationPlayer_isSilentInTheBackground_andEndsWhenClosed() async throws {
        let stage = try await MusicStage()
        let player = stage.player(.application, name: "Kiosk")
        try await player.setQueue(with: MediaQuery.songs)
        try await player.play()
        let session = try #require(try stage.session("Kiosk"))
        #expect(session["State"]?.stringValue == "active" && session["Category"]?.stringValue == "solo-ambient")
        try await player.pause()
        let path = session["path"] ?? .objectPath("/")
        try stage.daemon.manager("SetForeground", [path, .bool(false)])
        do {
            try await player.play()
            Issue.record("it plays in the background")
        } catch {
            #expect(error.code == .cannotStartPlaying)
        }
        try stage.daemon.manager("SetForeground", [path, .bool(true)])
        try await player.play()
        let process = Int32(session["ProcessId"]?.uint32Value ?? 0)
        await player.close()
        #expect(try eventually { try stage.session("Kiosk") == nil })
        // It has been waited for.
        #expect(eventually { kill(process, 0) != 0 })
        // Another one, with an empty queue.
        #expect(try await player.nowPlayingItem == nil)
    }

    @Test func app_isKilled_itsPlayerEndsAndTheSystemPlayerPlaysOn() async throws {
        let stage = try await MusicStage()
        let system = stage.player(.system)
        try await system.setQueue(with: MediaQuery.songs)
        let list = try Child(try builtProduct(named: "example-jukebox"), environment: stage.environment)
        #expect(list.wait(timeout: 60) == .code(0), "\(list.errors)")
        #expect(list.output == ["The Razors Edge, AC/DC: 1 songs", "Homogenic, Björk: 3 songs"])
        let jukebox = try Child(
            try builtProduct(named: "example-jukebox"), ["Homogenic"], environment: stage.environment)
        #expect(jukebox.line { $0 == "1. Hunter (60 s)" } != nil, "\(jukebox.errors)")
        #expect(jukebox.line { $0 == "playing" } != nil)
        #expect(try stage.session("example-jukebox")?["State"]?.stringValue == "active")
        jukebox.kill()
        #expect(try eventually { try stage.session("example-jukebox") == nil })
        #expect(try await system.nowPlayingItem?.title == "Hunter")
    }

    @Test func killedSystemPlayer_isToldAndFoundAgainWithItsQueue() async throws {
        let stage = try await MusicStage()
        let player = stage.player(.system)
        let changes = player.changes
        try await player.setQueue(with: MediaQuery.songs)
        try await player.play()
        #expect(await firstElement(of: changes) { $0 == .playbackState(.playing) } != nil)
        // What is kept is on the disk a second after a change.
        #expect(eventually { FileManager.default.fileExists(atPath: stage.home.path + "/state/sessiond/queue") })
        kill(try stage.process(of: .player), SIGKILL)
        #expect(await firstElement(of: changes) { $0 == .playbackState(.stopped) } != nil)
        #expect(await firstElement(of: changes) { $0 == .playbackState(.paused) } != nil)
        #expect(try await player.nowPlayingItem?.title == "Hunter")
    }
}
