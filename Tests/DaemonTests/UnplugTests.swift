import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The output is unplugged while a program plays. The sound must not come out of another output (rules §7).
@Suite struct UnplugTests {
    @Test(arguments: ServerKind.allCases)
    func headphonesUnplugged_sessiondPlayerIsPausedUntilReplug_speakerIsSilent(_ kind: ServerKind) throws {
        let stage = try UnplugStage(kind)
        let media = try PrivateFolder()
        let player = try stage.player(media)
        #expect(try player.call("Load", [.string(sine(440, seconds: 60, in: media))]) == nil)
        #expect(player.call("Play") == nil)
        let phones = try Ear(stage.pulse, sink: "phones")
        #expect(phones.waitUntil(440, above: -20))
        #expect(try eventually { try stage.isGuarded })
        let begun = monotonicNow()
        try stage.unplug()
        #expect(player.comes(to: "paused"))
        #expect(try eventually { try stage.output == "speaker" })
        #expect(try eventually { try !stage.isGuarded })
        // If the guard ended too early, the speaker would play the sound now.
        #expect(stage.speaker.waitUntil(440, below: -60, window: 0.1))
        let leak = stage.speaker.trace(440, since: begun).filter { $0.level > -60 }
        #expect(leak.isEmpty, "\(leak.count * 5) ms were heard from the speaker")
        try stage.plug()
        #expect(player.comes(to: "playing"), "\((try? stage.daemon.manager("ExportHistory"))?[0].stringValue ?? "")")
        let again = try Ear(stage.pulse, sink: "phones")
        #expect(again.waitUntil(440, above: -20))
    }

    @Test(arguments: ServerKind.allCases)
    func headphonesUnplugged_mprisPlayerIsPausedUntilTheUserPlays(_ kind: ServerKind) throws {
        let stage = try UnplugStage(kind)
        let media = try PrivateFolder()
        let sound = try #require(URL(string: sine(440, seconds: 60, in: media))).path
        let player = try ForeignPlayer(
            "music", on: stage.daemon, command: ["paplay", sound], environment: stage.pulse.environment)
        let phones = try Ear(stage.pulse, sink: "phones")
        #expect(phones.waitUntil(440, above: -20))
        #expect(try eventually { try stage.isGuarded })
        let begun = monotonicNow()
        try stage.unplug()
        #expect(eventually { player.calls == ["Pause"] })
        #expect(try eventually { try !stage.isGuarded })
        #expect(stage.speaker.waitUntil(440, below: -60, window: 0.1))
        let leak = stage.speaker.trace(440, since: begun).filter { $0.level > -60 }
        print("\(kind): the speaker played an MPRIS player for \(leak.count * 5) ms")
        // The user plays it on the speaker. In the first second the daemon would take this for a player that toggles.
        #expect(eventually { monotonicNow() - begun > 2 })
        player.person("Playing")
        #expect(stage.speaker.waitUntil(440, above: -20))
    }

    @Test(arguments: ServerKind.allCases)
    func headphonesUnplugged_programThatCannotBePausedPlaysOn(_ kind: ServerKind) throws {
        let stage = try UnplugStage(kind)
        let tone = try Tone(stage.pulse, hertz: 440)
        let phones = try Ear(stage.pulse, sink: "phones")
        #expect(phones.waitUntil(440, above: -20))
        try stage.unplug()
        #expect(stage.speaker.waitUntil(440, above: -20))
        withExtendedLifetime(tone) {}
    }

    /// With `streams = all`, a program that cannot be paused is held until the headphones are plugged in again or the
    /// user starts it again. On PipeWire the daemon cannot see that the user starts it, because a held stream looks
    /// paused there.
    @Test(arguments: [(ServerKind.pulseAudio, false), (.pulseAudio, true), (.pipeWire, false)].filter(\.0.isHere))
    func headphonesUnplugged_adoptedProgramIsHeldUntilReplugOrTheUserPlays(_ kind: ServerKind, byHand: Bool)
        throws
    {
        let stage = try UnplugStage(kind, settings: "[adoption]\nstreams = all\n")
        let tone = try Tone(stage.pulse, hertz: 440)
        let phones = try Ear(stage.pulse, sink: "phones")
        #expect(phones.waitUntil(440, above: -20))
        #expect(try eventually { try stage.isGuarded })
        let begun = monotonicNow()
        try stage.unplug()
        #expect(eventually { tone.sink == "sessiond.hold" })
        #expect(try eventually { try stage.output == "speaker" && !stage.isGuarded })
        if byHand {
            // In the first second the daemon would take this for a change by the server.
            #expect(eventually { monotonicNow() - begun > 2 })
            try tone.cork()
            // Wait between the two, because the daemon would not notice a short pause.
            let paused = monotonicNow()
            #expect(eventually { monotonicNow() - paused > 0.5 })
            try tone.uncork()
            #expect(stage.speaker.waitUntil(440, above: -20))
            // The server tells its program later.
            #expect(eventually { tone.sink == "speaker" })
        } else {
            #expect(stage.speaker.waitUntil(440, below: -80, window: 0.1))
            try stage.plug()
            #expect(eventually { tone.sink == "phones" })
            let again = try Ear(stage.pulse, sink: "phones")
            #expect(again.waitUntil(440, above: -20))
        }
    }

    /// On a server that switches to another port by itself, and on one that does not.
    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake card"), arguments: [true, false])
    func jackIsPulled_clientIsSilentAtOnce(_ switches: Bool) throws {
        let pulse = try PrivatePulse(sinks: [], modules: switches ? ["module-switch-on-port-available"] : [])
        let card = try FakeCard(pulse)
        try pulse.control.setDefaultSink(card.sink)
        let daemon = try DaemonStage(pulse: pulse)
        #expect(daemon.waitForServer())
        try card.plug(.headphones)
        #expect(
            try eventually { try daemon.property("CurrentRoute").route?.outputs.first?.uid == card.headphones })
        // A program that plays on and ignores its interruption.
        let tone = try Tone(pulse, hertz: 440)
        let client = try daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        let ear = try Ear(pulse, sink: card.sink, fragment: 0.002)
        #expect(ear.waitUntil(440, above: -20))
        #expect(try eventually { try pulse.control.has(sink: "sessiond.nowhere") })
        let begun = monotonicNow()
        try card.unplug(.headphones)
        #expect(eventually { client.state(music) == "interrupted" })
        let heard = ear.trace(440, since: begun).filter { $0.level > -60 }
        print("jack pulled: the sound continued for \(heard.count * 5) ms")
        #expect(try client.heard().contains { $0.hasPrefix("Music began route-disconnected") })
        // The card is the default again. The silenced stream is held.
        #expect(try eventually { try pulse.control.defaults().sink == card.sink })
        #expect(ear.waitUntil(440, below: -60, window: 0.1))
        withExtendedLifetime(tone) {}
    }

    /// Beside other outputs, also one that ranks before the card: the card was chosen, so its speaker plays. On a server that
    /// switches to another port by itself, and on one that does not.
    @Test(
        .enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake card"), arguments: [true, false],
        [["spare"], ["spare", "dock"]])
    func jackIsPulledBesideOtherOutputs_cardStaysTheDefault(_ switches: Bool, _ others: [String]) throws {
        let pulse = try PrivatePulse(
            sinks: [],
            modules: ["module-default-device-restore"] + (switches ? ["module-switch-on-port-available"] : []))
        for other in others {
            let usb = ["device.class": "sound", "device.api": "alsa", "device.bus": "usb"]
            try pulse.addSink(other, properties: other == "dock" ? usb : [:])
        }
        let card = try FakeCard(pulse)
        try pulse.control.setDefaultSink(card.sink)
        let stage = try RouteStage(pulse)
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        #expect(stage.goes(to: card.speaker))
        for _ in 0..<2 {
            try card.plug(.headphones)
            #expect(stage.goes(to: card.headphones))
            #expect(try eventually { try pulse.control.has(sink: "sessiond.nowhere") })
            stage.forget()
            try card.unplug(.headphones)
            #expect(eventually { client.state(music) == "interrupted" })
            #expect(try eventually { try !pulse.control.has(sink: "sessiond.nowhere") })
            #expect(try eventually { try pulse.control.defaults().sink == card.sink })
            #expect(stage.output == card.speaker)
            // Nothing comes later.
            let begun = monotonicNow()
            #expect(try !eventually(timeout: 0.5) { try pulse.control.defaults().sink != card.sink })
            #expect(monotonicNow() - begun > 0.4)
            #expect(stage.reasons == [.oldDeviceUnavailable], "\(stage.story)")
            client.activate(music)
        }
        pulse.stop()
        let files = try FileManager.default.contentsOfDirectory(atPath: pulse.folder.path + "/state")
        let file = try #require(files.first { $0.hasSuffix("default-sink") })
        let remembered = try String(contentsOfFile: pulse.folder.path + "/state/" + file, encoding: .utf8)
        #expect(remembered == card.sink + "\n")
    }

    @Test func jackIsPulledOnPipeWire_clientIsInterruptedUntilReplug() throws {
        let pulse = try PrivatePipeWire()
        let card = try FakePipeWireCard(pulse)
        try pulse.control.setDefaultSink(card.sink)
        card.plug()
        let daemon = try DaemonStage(pulse: pulse)
        #expect(daemon.waitForServer())
        func output() throws -> String { try daemon.property("CurrentRoute").route?.outputs.first?.uid ?? "" }
        #expect(try eventually { try output() == card.headphones })
        let client = try daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        let tone = try Tone(pulse, hertz: 440)
        let ear = try Ear(pulse, sink: card.sink, fragment: 0.002)
        #expect(ear.waitUntil(440, above: -20))
        #expect(try eventually { try pulse.control.has(sink: "sessiond.nowhere") })
        card.unplug()
        #expect(eventually { client.state(music) == "interrupted" })
        #expect(try client.heard().contains { $0.hasPrefix("Music began route-disconnected") })
        try tone.cork()
        #expect(try eventually { try pulse.control.defaults().sink != "sessiond.nowhere" })
        #expect(try eventually { try !pulse.control.has(sink: "sessiond.nowhere") })
        #expect(ear.waitUntil(440, below: -60, window: 0.1))
        card.plug()
        #expect(try eventually { try client.heard().contains("Music ended resume") })
        #expect(try eventually { try output() == card.headphones })
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake card"))
    func daemonIsKilledDuringAnUnplug_nextDaemonRemovesTheGuard() throws {
        let pulse = try PrivatePulse(sinks: [], modules: ["module-switch-on-port-available"])
        let card = try FakeCard(pulse)
        try pulse.control.setDefaultSink(card.sink)
        try card.plug(.headphones)
        let daemon = try DaemonStage(pulse: pulse)
        #expect(daemon.waitForServer())
        let client = try daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        #expect(try eventually { try pulse.control.has(sink: "sessiond.nowhere") })
        daemon.daemon.kill()
        try card.unplug(.headphones)
        // The last step that the killed daemon would have made.
        try pulse.control.setDefaultSink("sessiond.nowhere")
        try daemon.restart()
        #expect(try eventually { try pulse.control.defaults().sink == card.sink })
        client.deactivate(music)
        #expect(try eventually { try !pulse.control.has(sink: "sessiond.nowhere") })
    }

    @Test(arguments: ServerKind.allCases) func daemonEndsOrIsKilled_noGuardIsLeftBehind(_ kind: ServerKind) throws {
        let stage = try UnplugStage(kind)
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        #expect(try eventually { try stage.isGuarded })
        stage.daemon.daemon.kill()
        #expect(try stage.isGuarded)
        try stage.daemon.restart()
        #expect(stage.daemon.waitForServer())
        #expect(try stage.isGuarded, "the session is still active")
        #expect(client.deactivate(music) == nil)
        #expect(try eventually { try !stage.isGuarded })
        client.activate(music)
        #expect(try eventually { try stage.isGuarded })
        stage.daemon.daemon.signal(SIGTERM)
        #expect(stage.daemon.daemon.wait() == .code(0))
        // PipeWire removes the sink of a module a moment later.
        #expect(try kind == .pipeWire ? eventually { try !stage.isGuarded } : !stage.isGuarded)
        let isPhones = { try stage.output == "phones" }
        #expect(try kind == .pipeWire ? eventually(isPhones) : isPhones())
    }

    /// SIGTERM while the server creates the guard or the hold sink.
    @Test(arguments: ServerKind.allCases) func daemonEndsWhileItCreatesSinks_noneIsLeftBehind(_ kind: ServerKind) throws
    {
        let stage = try UnplugStage(kind)
        let tone = try Tone(stage.pulse, hertz: 440)
        for moment in [0, 1, 2, 4, 8, 16] {
            let client = try stage.daemon.client()
            let music = try client.session("Music")
            let phone = try client.session("Phone", category: "play-and-record", class: "call")
            #expect(stage.daemon.waitForServer())
            // The server is slow: the requests are on their way when the daemon is to end.
            stage.pulse.suspend()
            client.activate(music)
            client.activate(phone)
            usleep(5_000)
            stage.daemon.daemon.signal(SIGTERM)
            usleep(UInt32(moment) * 1_000)
            stage.pulse.resume()
            #expect(stage.daemon.daemon.wait() == .code(0))
            let isTidy = { try !stage.pulse.pactl(["list", "short", "sinks"]).contains("sessiond.") }
            #expect(try eventually(isTidy), "after \(moment) ms")
            // Nothing comes later.
            usleep(100_000)
            #expect(try isTidy(), "later, after \(moment) ms")
            try stage.daemon.restart()
        }
        withExtendedLifetime(tone) {}
    }

    @Test(arguments: ServerKind.allCases) func unplugOff_musicPlaysOnFromTheSpeaker(_ kind: ServerKind) throws {
        let stage = try UnplugStage(kind, settings: "[routes]\nunplug = off\n")
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        let tone = try Tone(stage.pulse, hertz: 440)
        try stage.unplug()
        #expect(stage.speaker.waitUntil(440, above: -20))
        #expect(client.state(music) == "active")
        #expect(try !stage.isGuarded)
        withExtendedLifetime(tone) {}
    }
}
