import DBus
import PluginAPI
import PluginKitTesting
import SessionKit
import TestSupport
import Testing

@testable import PluginKit

/// The player with an engine without sound, and with a daemon that does what the test says.
@Suite struct PlayerPluginTests {
    private let bus: PrivateBus
    private let daemon: FakeDaemon
    private let engine = FakePlayer()
    private let player: PlayerPlugin

    init() throws {
        bus = try PrivateBus()
        daemon = try FakeDaemon(on: .custom(bus.address))
        player = PlayerPlugin(engine, .init(name: "Music", category: .playback), on: daemon.client, daemon.loop)
        player.serve()
        try player.load(["a", "b", "c"].map { PlaylistEntry(uri: "file:///\($0)") })
        player.play { _ in }
        guard daemon.comes({ engine.state == .playing }) else { throw SupportError("it does not play") }
    }

    @Test func nextItemBeginsWhileItWinds_windingEnds() throws {
        try player.beginSeeking(.forward)
        #expect(daemon.comes { engine.seeks.count >= 2 } && engine.isMuted)
        engine.advance()
        #expect(engine.uri == "file:///b" && player.seeking == nil && !engine.isMuted)
        let count = engine.seeks.count
        daemon.pass(0.6)
        #expect(engine.seeks.count == count, "\(engine.seeks)")
    }

    /// The engine reports from within a seek that it has continued with the next item.
    @Test func nextItemBeginsDuringASeek_windingEnds() throws {
        engine.whenSeeked = { [engine] in if engine.following != nil { engine.advance() } }
        try player.beginSeeking(.forward)
        #expect(daemon.comes { engine.uri == "file:///b" })
        daemon.pass(0.6)
        #expect(engine.seeks.count == 1 && player.seeking == nil && !engine.isMuted)
    }

    @Test func silentSwitchChangesWhileItWinds_isKeptAfterwards() throws {
        try player.beginSeeking(.forward)
        #expect(engine.isMuted)
        daemon.mute(true)
        #expect(daemon.comes { player.session.isMuted })
        player.endSeeking()
        #expect(engine.isMuted)
        try player.beginSeeking(.backward)
        daemon.mute(false)
        #expect(daemon.comes { !player.session.isMuted })
        #expect(engine.isMuted, "it is silent while it winds")
        player.endSeeking()
        #expect(!engine.isMuted)
    }

    @Test func itemEndsWithoutADaemon_nextOnePlaysAndTheLastOneDeactivates() throws {
        daemon.stop()
        #expect(daemon.comes { player.session.state == .inactive })
        engine.finish()
        #expect(engine.uri == "file:///b" && engine.state == .playing)
        #expect(player.next() && engine.uri == "file:///c" && engine.state == .playing)
        engine.finish()
        #expect(engine.state == .stopped)
        try daemon.start()
        #expect(daemon.comes { daemon.state == .inactive })
    }

    @Test func userPausesWithoutADaemon_nextOneDeactivates() throws {
        daemon.stop()
        #expect(daemon.comes { player.session.state == .inactive })
        player.pause()
        try daemon.start()
        #expect(daemon.comes { daemon.state == .inactive })
        player.play { _ in }
        #expect(daemon.comes { daemon.state == .active && engine.state == .playing })
    }

    @Test func userPausesAndPlaysWithoutADaemon_nextOneStaysActive() throws {
        daemon.stop()
        #expect(daemon.comes { player.session.state == .inactive })
        player.pause()
        player.play { _ in }
        try daemon.start()
        daemon.pass(0.3)
        player.play { _ in }
        #expect(daemon.comes { engine.state == .playing })
        daemon.pass(0.3)
        #expect(daemon.state == .active && player.session.state == .active)
    }

    /// A daemon that was away returns with the same interruption.
    @Test func daemonReturnsDuringAnInterruption_requestOfTheUserWaitsForItsEnd() throws {
        daemon.begin()
        #expect(daemon.comes { player.state == .interrupted })
        daemon.stop()
        #expect(daemon.comes { player.state == .paused })
        try daemon.start()
        #expect(daemon.comes { player.grant.interruption != nil })
        #expect(player.state == .paused, "it does not resume automatically")
        daemon.end(resume: true)
        #expect(daemon.comes { player.grant.interruption == nil })
        #expect(engine.state == .paused)
    }
}
