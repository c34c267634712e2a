import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Sessions on several outputs of which one is unplugged (rules §7, "Whose output went", "Unplugged while interrupted").
@Suite struct OwnOutputTests {
    /// Headphones, which are the default; a speaker; a screen.
    private final class Stage {
        let pulse: any PrivateServer
        let daemon: DaemonStage
        private var modules: [String: UInt32] = [:]

        init(_ kind: ServerKind, settings: String? = nil) throws {
            pulse = try kind.server()
            for name in ["screen", "phones"] { modules[name] = try pulse.addSink(name) }
            try pulse.control.setDefaultSink("phones")
            daemon = try DaemonStage(pulse: pulse, settings: settings)
            guard daemon.waitForServer() else { throw SupportError("sessiond does not find the sound server") }
        }

        /// All sinks have the same type, and the names of the screen and the headphones are the same, too.
        func plug(_ name: String) throws { modules[name] = try pulse.addSink(name) }

        func unplug(_ name: String) throws {
            if let module = modules.removeValue(forKey: name) { try pulse.unloadModule(module) }
        }

        /// An MPRIS player whose sound is on that sink; "": the default.
        func player(_ name: String, _ hertz: Double, on sink: String) throws -> ForeignPlayer {
            let file = try Tone.file(pulse, hertz: hertz)
            let command = ["pacat", "--raw", "--format=s16le", "--rate=48000", "--channels=1", "--client-name=" + name]
            let place = sink.isEmpty ? [] : ["--device=" + sink]
            return try ForeignPlayer(
                name, on: daemon, command: command + place + [file], environment: pulse.environment)
        }

        func hears(_ hertz: Double, on sink: String) throws -> Bool {
            try Ear(pulse, sink: sink).waitUntil(hertz, above: -20)
        }

        func sink(of name: String) throws -> String? {
            try pulse.control.streams().first { $0.properties["application.name"] == name }?.sink
        }

        /// Waits until the daemon knows that the player can be paused when its output is unplugged.
        var isSettled: Bool {
            get throws {
                try eventually {
                    let sessions = try daemon.listedSessions()
                    return !sessions.isEmpty && sessions.allSatisfy { $0["State"]?.stringValue == "active" }
                }
            }
        }

        func call() throws -> (client: Foreigner, path: String) {
            let phone = try daemon.foreigner()
            let call = phone.create("Phone", category: "play-and-record", class: "call")
            guard phone.ask("activate \(call)") == "ok" else { throw SupportError("no call") }
            return (phone, call)
        }
    }

    @Test(arguments: ServerKind.allCases) func otherOutputIsUnplugged_onlyItsPlayerIsPaused(_ kind: ServerKind) throws {
        let stage = try Stage(kind)
        let music = try stage.player("music", 440, on: "phones")
        let film = try stage.player("film", 660, on: "screen")
        #expect(try stage.hears(440, on: "phones") && stage.hears(660, on: "screen"))
        #expect(try stage.isSettled)
        try stage.unplug("screen")
        #expect(eventually { film.calls == ["Pause"] })
        let text = (try? stage.daemon.manager("ExportHistory"))?[0].stringValue ?? ""
        #expect(eventually { film.status == "Paused" }, "\(text)")
        #expect(music.calls.isEmpty)
        #expect(try stage.hears(440, on: "phones"))
        // The default goes, and the film has no part in it.
        try stage.unplug("phones")
        #expect(eventually { music.calls == ["Pause"] })
        #expect(film.calls == ["Pause"])
    }

    @Test(arguments: ServerKind.allCases) func userMovesAStream_itsNewOutputCounts(_ kind: ServerKind) throws {
        let stage = try Stage(kind)
        let music = try stage.player("music", 440, on: "phones")
        #expect(try stage.hears(440, on: "phones"))
        #expect(try stage.isSettled)
        let index = try #require(
            stage.pulse.control.streams().first { $0.properties["application.name"] == "music" }?.index)
        try stage.pulse.moveStream(index, to: "screen")
        #expect(try stage.hears(440, on: "screen"))
        // For half a second a moved stream also counts where it was.
        let moved = monotonicNow()
        #expect(eventually { monotonicNow() - moved > 0.6 })
        try stage.unplug("phones")
        #expect(try eventually { try stage.daemon.property("CurrentRoute").route?.outputs.first?.uid != "phones" })
        #expect(try stage.hears(440, on: "screen"))
        #expect(music.calls.isEmpty)
        try stage.unplug("screen")
        #expect(eventually { music.calls == ["Pause"] })
    }

    /// An effects sink in front of the headphones, chosen for the player, while the headphones are the default; and as the
    /// default itself.
    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: module-virtual-sink"), arguments: [false, true])
    func headphonesBehindAnEffectAreUnplugged_playerIsPaused(_ isDefault: Bool) throws {
        let stage = try Stage(.pulseAudio)
        try stage.pulse.loadModule("module-virtual-sink sink_name=effect master=phones use_volume_sharing=no")
        #expect(try eventually { try stage.pulse.control.has(sink: "effect") })
        if isDefault { try stage.pulse.control.setDefaultSink("effect") }
        let music = try stage.player("music", 440, on: "effect")
        #expect(try stage.hears(440, on: "phones"))
        #expect(try stage.isSettled)
        try stage.unplug("phones")
        #expect(eventually { music.calls == ["Pause"] })
    }

    /// Its player stays paused, and a program that cannot be paused is let go.
    @Test(arguments: ServerKind.allCases) func unpluggedDuringACall_nothingStartsOnTheSpeakerAfterIt(_ kind: ServerKind)
        throws
    {
        let stage = try Stage(kind)
        let music = try stage.player("music", 440, on: "")
        let plain = try Tone.program(stage.pulse, hertz: 660, name: "plain")
        #expect(try stage.hears(440, on: "phones") && stage.hears(660, on: "phones"))
        #expect(try stage.isSettled)
        let client = try stage.daemon.client()
        let own = try client.session("Own")
        client.activate(own)
        let (phone, call) = try stage.call()
        #expect(eventually { music.calls == ["Pause"] })
        try stage.unplug("phones")
        #expect(try eventually { try client.heard().contains { $0.hasPrefix("Own route 2") } })
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(try eventually { try client.heard().contains("Own ended stay") })
        #expect(try eventually { try stage.sink(of: "plain") != "sessiond.hold" })
        #expect(music.status == "Paused" && music.calls == ["Pause"])
        // No replug says more.
        try stage.plug("phones")
        #expect(try eventually { try stage.daemon.property("CurrentRoute").route?.outputs.first?.uid == "phones" })
        #expect(try client.heard().allSatisfy { $0 != "Own ended resume" })
        withExtendedLifetime(plain) {}
    }

    @Test(arguments: ServerKind.allCases) func unpluggedAndBackDuringACall_resumes(_ kind: ServerKind) throws {
        let stage = try Stage(kind)
        let music = try stage.player("music", 440, on: "")
        #expect(try stage.hears(440, on: "phones"))
        #expect(try stage.isSettled)
        let (phone, call) = try stage.call()
        #expect(eventually { music.calls == ["Pause"] })
        func route() throws -> String { try stage.daemon.property("CurrentRoute").route?.outputs.first?.uid ?? "" }
        try stage.unplug("phones")
        #expect(try eventually { try route() != "phones" })
        try stage.plug("phones")
        #expect(try eventually { try route() == "phones" })
        #expect(phone.ask("deactivate \(call)") == "ok")
        #expect(eventually { music.calls == ["Pause", "Play"] })
    }

    /// The stored outputs outlive the daemon: the stream is held, and its place at the server says nothing.
    @Test(arguments: ServerKind.allCases) func daemonIsKilledDuringTheCall_outputIsRemembered(_ kind: ServerKind) throws
    {
        let stage = try Stage(kind)
        let film = try stage.player("film", 660, on: "screen")
        #expect(try stage.hears(660, on: "screen"))
        #expect(try stage.isSettled)
        let (phone, call) = try stage.call()
        #expect(eventually { film.calls == ["Pause"] })
        stage.daemon.daemon.kill()
        try stage.daemon.restart()
        #expect(stage.daemon.waitForServer())
        try stage.unplug("screen")
        #expect(
            try eventually {
                try !stage.daemon.property("AvailableOutputs").ports.contains { $0.uid == "screen" }
            })
        #expect(phone.ask("deactivate \(call)") == "ok")
        // The sound of this player plays on while it is paused, and is let go.
        #expect(
            try eventually {
                try stage.daemon.listedSessions().allSatisfy { $0["State"]?.stringValue != "interrupted" }
            })
        #expect(film.status == "Paused" && film.calls == ["Pause"])
    }
}
