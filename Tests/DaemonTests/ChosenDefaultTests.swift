import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The default output that the user chose stays the default. The sound server never remembers a sink of sessiond in its
/// place, and sinks that appear one by one at a start do not replace it (rules §7).
@Suite struct ChosenDefaultTests {
    /// A card with a jack on a PipeWire server, and music that plays through it.
    private final class Jack {
        let pulse: PrivatePipeWire
        private(set) var card: FakePipeWireCard
        let daemon: DaemonStage
        let client: Client
        let music: String
        private var tone: Tone?

        init(remembered: [String] = []) throws {
            pulse = try PrivatePipeWire(sinks: [], start: false)
            if !remembered.isEmpty { try pulse.remember(defaultSinks: remembered) }
            try pulse.restart()
            card = try FakePipeWireCard(pulse)
            if remembered.isEmpty { try pulse.control.setDefaultSink(card.sink) }
            card.plug()
            daemon = try DaemonStage(pulse: pulse)
            guard daemon.waitForServer() else { throw SupportError("no sound server: \(pulse.log)") }
            client = try daemon.client()
            music = try client.session("Music")
        }

        var output: String { (try? daemon.property("CurrentRoute"))?.route?.outputs.first?.uid ?? "" }

        var isGuarded: Bool {
            get throws {
                try pulse.control.sinks().contains { $0.name.hasPrefix("sessiond.nowhere") }
            }
        }

        /// Plays, and waits until the daemon has made the guard for the moment when the jack is pulled.
        func play() throws {
            try #require(eventually { output == card.headphones })
            try #require(client.activate(music) == nil)
            tone = try Tone(pulse, hertz: 440)
            try #require(try eventually { try isGuarded })
        }

        func isHeard() throws -> Bool {
            let ear = try Ear(pulse, sink: card.sink)
            return ear.waitUntil(440, above: -20)
        }

        /// Pulls the jack, and waits until the guard is gone and the card is the default sink again.
        func unplug() throws {
            card.unplug()
            try #require(eventually { client.state(music) == "interrupted" })
            try tone?.cork()
            #expect(try eventually { try !isGuarded })
            #expect(try eventually { try pulse.control.defaults().sink == card.sink })
            tone = nil
        }

        func plug() throws {
            card.plug()
            try #require(eventually { output == card.headphones })
        }

        func restartServer() throws {
            tone = nil
            // WirePlumber writes its file one second after the last change.
            let name = card.sink
            try #require(eventually { pulse.rememberedDefaults.contains { $0.hasSuffix("=" + name) } })
            pulse.stop()
            try pulse.restart()
            card = try FakePipeWireCard(pulse)
            card.plug()
        }
    }

    @Test func jackIsPulledAndPluggedAgain_musicIsHeard_alsoAfterAServerRestart() throws {
        let jack = try Jack()
        try jack.play()
        #expect(try jack.isHeard())
        try jack.unplug()
        try jack.plug()
        try jack.play()
        #expect(try jack.isHeard())
        #expect(!jack.pulse.rememberedDefaults.contains { $0.contains("sessiond") })
        try jack.restartServer()
        try jack.play()
        #expect(try jack.isHeard())
        #expect(!jack.pulse.rememberedDefaults.contains { $0.contains("sessiond") })
    }

    /// An earlier version of the daemon made the guard the configured default, and WirePlumber remembered it.
    @Test(arguments: [["card_output", "sessiond.guard"], ["sessiond.guard", "card_output"], ["sessiond.guard"]])
    func guardRememberedByAnEarlierVersion_musicIsHeard(_ remembered: [String]) throws {
        let jack = try Jack(remembered: remembered)
        try jack.play()
        #expect(try jack.isHeard())
        try jack.unplug()
        try jack.plug()
        try jack.play()
        #expect(try jack.isHeard())
    }

    /// On a busy machine, PipeWire shows that the guard is the default before it shows the pulled jack. That is no guard
    /// that has taken the place of an output.
    @Test func guardIsShownAsTheDefaultBeforeTheJack_itIsStillAnUnplug() throws {
        let jack = try Jack()
        try jack.play()
        try jack.pulse.control.setDefaultSink("sessiond.nowhere")
        #expect(try eventually { try jack.pulse.control.defaults().sink == "sessiond.nowhere" })
        try jack.unplug()
        try jack.plug()
        try jack.play()
        #expect(try jack.isHeard())
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: its card"))
    func jackIsPulledAndPulseAudioEnds_serverRemembersTheUsersChoice() throws {
        let pulse = try PrivatePulse(
            sinks: ["speaker"], modules: ["module-switch-on-port-available", "module-default-device-restore"])
        let card = try FakeCard(pulse)
        try pulse.control.setDefaultSink(card.sink)
        try card.plug(.headphones)
        let daemon = try DaemonStage(pulse: pulse)
        #expect(daemon.waitForServer())
        let client = try daemon.client()
        let music = try client.session("Music")
        client.activate(music)
        let tone = try Tone(pulse, hertz: 440)
        #expect(try eventually { try pulse.control.sinks().contains { $0.name.hasPrefix("sessiond.nowhere") } })
        try card.unplug(.headphones)
        #expect(try eventually { try pulse.control.defaults().sink.hasPrefix("sessiond.") })
        daemon.daemon.suspend()
        try #require(try pulse.control.defaults().sink.hasPrefix("sessiond."), "the unplug ended too early")
        pulse.stop()
        let files = try FileManager.default.contentsOfDirectory(atPath: pulse.folder.path + "/state")
        let file = try #require(files.first { $0.hasSuffix("default-sink") })
        let remembered = try String(contentsOfFile: pulse.folder.path + "/state/" + file, encoding: .utf8)
        #expect(remembered == card.sink + "\n")
        daemon.daemon.resume()
        withExtendedLifetime(tone) {}
    }

    // MARK: Enumeration

    private static let sinks = ["first", "second", "third"]

    private func outputs(_ stage: RouteStage) -> Set<String> {
        Set((try? stage.daemon.property("AvailableOutputs"))?.ports.map(\.uid) ?? [])
    }

    /// A server that is not started yet. Its session manager makes three sinks, and the user chose the second.
    private func chosen() throws -> PrivatePipeWire {
        let pulse = try PrivatePipeWire(sinks: [], start: false)
        try pulse.addManagedSinks(ChosenDefaultTests.sinks)
        try pulse.remember(defaultSinks: ["second"])
        return pulse
    }

    /// The same server, started, with all three sinks.
    private func chosenAndThere() throws -> PrivatePipeWire {
        let pulse = try chosen()
        try pulse.restart()
        let isThere = try eventually {
            let sinks = Set(try pulse.control.sinks().map(\.name))
            return try sinks.isSuperset(of: ChosenDefaultTests.sinks)
                && pulse.control.defaults().sink == "second"
        }
        try #require(isThere, "\(pulse.log)")
        return pulse
    }

    /// The daemon starts before the sound server, as at a login.
    @Test func serverStarts_itsSinksComeOneByOne_theChosenDefaultStays() throws {
        let pulse = try chosen()
        let daemon = try DaemonStage(pulse: pulse)
        try pulse.restart()
        let stage = try RouteStage(pulse, daemon)
        #expect(eventually { outputs(stage) == Set(ChosenDefaultTests.sinks) })
        #expect(stage.goes(to: "second"))
        // A daemon that has ended has sent all its requests.
        stage.daemon.daemon.signal(SIGTERM)
        #expect(stage.daemon.daemon.wait() == .code(0))
        // The session manager carries them out a moment later.
        #expect(eventually { stage.defaultSink == "second" })
        #expect(eventually { pulse.rememberedDefaults.contains("default.configured.audio.sink=second") })
        #expect(stage.defaultSink == "second")
    }

    /// Once with an output that outlives the session manager, once without.
    @Test(arguments: [false, true])
    func sessionManagerRestarts_theChosenDefaultStays_andALaterDeviceWins(_ withAnother: Bool) throws {
        let pulse = try chosenAndThere()
        let stage = try RouteStage(pulse)
        if withAnother {
            try pulse.addSink("another")
            #expect(stage.goes(to: "another"))
            try pulse.control.setDefaultSink("second")
        }
        #expect(eventually { pulse.rememberedDefaults.contains("default.configured.audio.sink=second") })
        let all = Set(ChosenDefaultTests.sinks + (withAnother ? ["another"] : []))
        #expect(eventually { outputs(stage) == all })
        #expect(stage.goes(to: "second"))
        for _ in 0..<3 {
            // The sinks may be back before the test looks. Then only their new numbers show the restart.
            let sinks = try pulse.control.sinks()
            try pulse.restartSessionManager()
            #expect(
                try eventually {
                    let now = try pulse.control.sinks()
                    return now != sinks && Set(now.map(\.name)).isSuperset(of: ChosenDefaultTests.sinks)
                })
            #expect(eventually { outputs(stage) == all })
            #expect(stage.goes(to: "second"))
            #expect(eventually { stage.defaultSink == "second" }, "\(stage.reasons.count) changes: \(stage.story)")
        }
        if withAnother {
            let card = try FakePipeWireCard(pulse)
            #expect(stage.goes(to: card.speaker), "\(stage.reasons.count) changes: \(stage.story)")
            card.remove()
            #expect(stage.goes(to: "second"), "\(stage.reasons.count) changes: \(stage.story)")
        }
        stage.daemon.daemon.signal(SIGTERM)
        #expect(stage.daemon.daemon.wait() == .code(0))
        #expect(eventually { stage.defaultSink == "second" })
    }

    @Test func sessionManagerRestarts_chosenOutputThatOutlivesIt_stays() throws {
        let pulse = try chosenAndThere()
        let stage = try RouteStage(pulse)
        try pulse.addSink("another")
        #expect(stage.goes(to: "another"))
        // WirePlumber writes its file one second after the last change, but not when it ends.
        #expect(eventually { pulse.rememberedDefaults.contains("default.configured.audio.sink=another") })
        try pulse.restartSessionManager()
        #expect(eventually { outputs(stage) == Set(ChosenDefaultTests.sinks + ["another"]) })
        stage.daemon.daemon.signal(SIGTERM)
        #expect(stage.daemon.daemon.wait() == .code(0))
        #expect(eventually { stage.defaultSink == "another" })
    }

    // MARK: Sinks that are no devices

    /// Once with the default priority, once with a priority that the program sets.
    @Test(arguments: [
        ["--capture-props={ media.class = Audio/Sink node.name = equalizer }"],
        ["--capture-props={ media.class = Audio/Sink node.name = equalizer priority.session = 500 }"],
    ])
    func pipeWireFilterAppears_isSelectedOnlyWhenTheUserChoosesIt(_ arguments: [String]) throws {
        let pulse = try PrivatePipeWire()
        let stage = try RouteStage(pulse)
        let filter = try Child("pw-loopback", arguments, environment: pulse.environment)
        #expect(eventually { outputs(stage) == ["speaker", "equalizer"] }, "\(filter.errors)")
        #expect(stage.output == "speaker" && stage.defaultSink == "speaker")
        // The sound does not move to the filter when a device goes away, either.
        let phones = try pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(stage.goes(to: "phones"))
        try pulse.unloadModule(phones)
        #expect(stage.goes(to: "speaker"))
        try pulse.control.setDefaultSink("equalizer")
        #expect(stage.goes(to: "equalizer"))
        #expect(stage.defaultSink == "equalizer")
    }

    @Test func easyEffectsStarts_itsDeviceIsSelectedOnlyWhenTheUserChoosesIt() throws {
        let pulse = try PrivatePipeWire()
        let stage = try RouteStage(pulse)
        let properties = [
            "factory.name = support.null-audio-sink", "node.name = easyeffects_sink", "media.class = Audio/Sink",
            "audio.position = [ FL FR ]", "node.virtual = true", "priority.session = 0", "object.linger = true",
        ]
        let arguments = ["create-node", "adapter", "{ \(properties.joined(separator: " ")) }"]
        try Child.run("pw-cli", arguments, environment: pulse.environment)
        #expect(eventually { outputs(stage) == ["speaker", "easyeffects_sink"] })
        let phones = try pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(stage.goes(to: "phones"))
        try pulse.unloadModule(phones)
        #expect(stage.goes(to: "speaker"))
        try pulse.control.setDefaultSink("easyeffects_sink")
        #expect(stage.goes(to: "easyeffects_sink"))
    }

    @Test func roleLoopbacks_areListedAsANeighbour_andAreNoOutputs() throws {
        let pulse = try PrivatePipeWire()
        let stage = try RouteStage(pulse)
        // As in WirePlumber's own example: the module puts "input." in front of the name.
        let roles = try ["multimedia", "alert"].map {
            try Child(
                "pw-loopback",
                [
                    "--name", "loopback.sink.role." + $0,
                    "--capture-props={ media.class = Audio/Sink device.intended-roles = [ \"\($0)\" ] }",
                ], environment: pulse.environment)
        }
        #expect(
            try eventually {
                try stage.daemon.property("Neighbours").arrayValue?.compactMap { $0.asProperties?["name"]?.stringValue }
                    == ["wireplumber-roles"]
            })
        #expect(try eventually { try pulse.control.sinks().contains { $0.name.contains("role.alert") } })
        let phones = try pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(stage.goes(to: "phones"))
        #expect(outputs(stage) == ["speaker", "phones"])
        try pulse.unloadModule(phones)
        #expect(stage.goes(to: "speaker"))
        withExtendedLifetime(roles) {}
    }
}
