import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// `[routes] unplug` and `no-unplug`: what falls silent when headphones are unplugged.
@Suite struct UnplugSettingTests {
    /// mpv as Debian ships it has no MPRIS.
    @Test(arguments: ServerKind.allCases) func unplugAll_programWithoutMPRISIsHeldUntilReplug(_ kind: ServerKind) throws
    {
        let stage = try UnplugStage(kind, settings: "[routes]\nunplug = all\nreplug = 0\n")
        let tone = try Tone(stage.pulse, hertz: 440, name: "Music")
        let phones = try Ear(stage.pulse, sink: "phones")
        #expect(phones.waitUntil(440, above: -20))
        #expect(try eventually { try stage.isGuarded })
        let begun = monotonicNow()
        try stage.unplug()
        #expect(eventually { tone.sink == "sessiond.hold" })
        #expect(try stage.state("Music") == "interrupted")
        #expect(try eventually { try !stage.isGuarded })
        #expect(stage.speaker.waitUntil(440, below: -60, window: 0.1))
        let leak = stage.speaker.trace(440, since: begun).filter { $0.level > -60 }
        #expect(leak.isEmpty, "\(leak.count * 5) ms were heard from the speaker")
        // With `replug = 0` a player would stay paused.
        try stage.plug()
        #expect(eventually { tone.sink == "phones" })
        let again = try Ear(stage.pulse, sink: "phones")
        #expect(again.waitUntil(440, above: -20))
    }

    /// Another file, or another page.
    @Test(arguments: ServerKind.allCases) func unplugAll_newStreamOfTheProgramIsHeard(_ kind: ServerKind) throws {
        let stage = try UnplugStage(kind, settings: "[routes]\nunplug = all\n")
        let process = try Child("sleep", ["60"])
        var tone: Tone? = try Tone(stage.pulse, hertz: 440, name: "Music", processID: process.processID)
        let phones = try Ear(stage.pulse, sink: "phones")
        #expect(phones.waitUntil(440, above: -20))
        #expect(try eventually { try stage.isGuarded })
        try stage.unplug()
        #expect(eventually { tone?.sink == "sessiond.hold" })
        tone = nil
        let silent = monotonicNow()
        #expect(eventually { monotonicNow() - silent > 1 })
        tone = try Tone(stage.pulse, hertz: 440, name: "Music", processID: process.processID)
        #expect(stage.speaker.waitUntil(440, above: -20))
        withExtendedLifetime(tone) {}
    }

    @Test(arguments: ServerKind.allCases) func unplugAll_gamesAndListedProgramsPlayOn(_ kind: ServerKind) throws {
        let stage = try UnplugStage(kind, settings: "[routes]\nunplug = all\nno-unplug = Baby monitor\n")
        let game = try Tone(stage.pulse, hertz: 440, name: "Game", properties: ["media.role": "game"])
        // Another process, or both would be one program.
        let process = try Child("sleep", ["60"])
        let monitor = try Tone(stage.pulse, hertz: 880, name: "Baby monitor", processID: process.processID)
        #expect(try eventually { try stage.state("Baby monitor") == "active" && stage.state("Game") == "active" })
        try stage.unplug()
        #expect(stage.speaker.waitUntil(440, above: -20))
        #expect(stage.speaker.waitUntil(880, above: -20))
        withExtendedLifetime((game, monitor)) {}
    }

    @Test(arguments: ["off", "players"]) func playerOnTheBus_isPausedUnlessTheSettingIsOff(setting: String) throws {
        let stage = try UnplugStage(.standard, settings: "[routes]\nunplug = \(setting)\n")
        let media = try PrivateFolder()
        let sound = try #require(URL(string: sine(440, seconds: 60, in: media))).path
        let player = try ForeignPlayer(
            "music", on: stage.daemon, command: ["paplay", sound], environment: stage.pulse.environment)
        let phones = try Ear(stage.pulse, sink: "phones")
        #expect(phones.waitUntil(440, above: -20))
        if setting == "players" { #expect(try eventually { try stage.isGuarded }) }
        try stage.unplug()
        if setting == "players" {
            #expect(eventually { player.calls == ["Pause"] })
        } else {
            #expect(stage.speaker.waitUntil(440, above: -20) && player.calls.isEmpty)
        }
    }
}
