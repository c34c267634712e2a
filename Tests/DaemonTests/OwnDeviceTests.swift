import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// No sink of sessiond takes part in a choice: none is the default source, none is remembered, and no default is
/// configured that the user did not choose (rules §7).
@Suite struct OwnDeviceTests {
    /// What the user has chosen before the daemon starts, the last one last.
    enum Choice: CaseIterable, CustomStringConvertible {
        case nothing, headphones, bothOutputs, everything

        var sinks: [String] {
            switch self {
            case .nothing: []
            case .headphones: ["headphones"]
            case .bothOutputs, .everything: ["speaker", "headphones"]
            }
        }
        var source: String? { self == .everything ? "microphone" : nil }
        var description: String { (sinks + [source].compactMap { $0 }).joined(separator: ", ") }
    }

    /// The names of the default devices.
    private struct Defaults: Equatable {
        let sink: String
        let source: String

        init(_ sink: String, _ source: String) { (self.sink, self.source) = (sink, source) }

        init(of pulse: any PrivateServer) throws {
            let defaults = try pulse.control.defaults()
            self.init(defaults.sink, defaults.source)
        }
    }

    /// Devices with the ranks that those of ALSA have, and a daemon that has just started.
    private final class Desk {
        let kind: ServerKind
        let pulse: any PrivateServer
        let daemon: DaemonStage
        let client: Client
        let music: String
        private let headphones: UInt32
        /// The default sources that were seen.
        private(set) var sources: Set<String> = []

        init(_ kind: ServerKind, _ choice: Choice, microphone: Int? = 2_009) throws {
            self.kind = kind
            switch kind {
            case .pulseAudio: pulse = try PrivatePulse(sinks: [], modules: ["module-default-device-restore"])
            case .pipeWire:
                let server = try PrivatePipeWire(sinks: [], start: false)
                try server.remember(defaultSinks: choice.sinks.reversed(), defaultSource: choice.source)
                try server.restart()
                pulse = server
            }
            try pulse.addSink("speaker", properties: ["priority.session": "1000"])
            headphones = try pulse.addSink(
                "headphones", properties: ["priority.session": "1009", "device.form_factor": "headphone"])
            if let microphone { try Desk.addMicrophone(pulse, microphone) }
            let pulse = pulse
            if kind == .pulseAudio {
                for sink in choice.sinks { try pulse.control.setDefaultSink(sink) }
                if let source = choice.source { try pulse.control.setDefaultSource(source) }
            }
            let source = microphone == nil ? "headphones.monitor" : "microphone"
            #expect(
                try eventually { try Defaults(of: pulse) == Defaults("headphones", source) },
                "\(pulse.log)")
            daemon = try DaemonStage(pulse: pulse)
            guard daemon.waitForServer() else { throw SupportError("no sound server: \(pulse.log)") }
            client = try daemon.client()
            music = try client.session("Music")
        }

        static func addMicrophone(_ pulse: any PrivateServer, _ rank: Int) throws {
            try pulse.loadModule(
                pulse is PrivatePulse
                    ? "module-null-source source_name=microphone"
                    : "module-null-sink media.class=Audio/Source sink_name=microphone "
                        + "sink_properties=\"priority.session=\(rank)\"")
        }

        var ownSinks: [String] {
            get throws { try pulse.control.sinks().map(\.name).filter { $0.hasPrefix("sessiond.") } }
        }

        func defaults() throws -> Defaults {
            let defaults = try Defaults(of: pulse)
            sources.insert(defaults.source)
            return defaults
        }

        /// Reads the defaults again and again, for that time.
        func watch(for seconds: Double) throws -> Defaults {
            let begun = monotonicNow()
            _ = try eventually {
                _ = try defaults()
                return monotonicNow() - begun > seconds
            }
            return try defaults()
        }

        func unplug() throws { try pulse.unloadModule(headphones) }

        /// The configured default sink and source that the server restores after a restart; empty: none.
        func remembered() throws -> [String] {
            if let pulse = pulse as? PrivatePipeWire {
                return ["sink", "source"].map { direction in
                    let prefix = "default.configured.audio.\(direction)="
                    let line = pulse.rememberedDefaults.first { $0.hasPrefix(prefix) }
                    return line.map { String($0.dropFirst(prefix.count)) } ?? ""
                }
            }
            pulse.stop()
            let folder = pulse.folder.path + "/state"
            let files = try FileManager.default.contentsOfDirectory(atPath: folder)
            return try ["default-sink", "default-source"].map { name in
                guard let file = files.first(where: { $0.hasSuffix(name) }) else { return "" }
                return try String(contentsOfFile: folder + "/" + file, encoding: .utf8)
                    .trimmingCharacters(in: .whitespacesAndNewlines)
            }
        }
    }

    @Test(arguments: ServerKind.allCases, Choice.allCases)
    func musicOnHeadphones_thenACall_thenUnplugged_defaultsAreTheUsers(_ kind: ServerKind, _ choice: Choice) throws {
        let desk = try Desk(kind, choice)
        let before = try desk.defaults()
        #expect(desk.client.activate(desk.music) == nil)
        let tone = try Tone(desk.pulse, hertz: 440)
        // A microphone that was not chosen ranks behind an output that was: no guard can rank between them.
        let isGuarded = kind == .pulseAudio || choice != .bothOutputs
        if isGuarded { #expect(try eventually { try desk.ownSinks == ["sessiond.nowhere"] }) }
        #expect(try desk.watch(for: 0.5) == before, "while music plays")
        #expect(try !desk.ownSinks.isEmpty == isGuarded)

        let call = try desk.client.session("Phone", category: "play-and-record", class: "call")
        #expect(desk.client.activate(call) == nil)
        #expect(try desk.watch(for: 0.5) == before, "in a call")
        #expect(desk.client.deactivate(call) == nil)
        #expect(desk.client.activate(desk.music) == nil)
        if isGuarded { #expect(try eventually { try desk.ownSinks.contains("sessiond.nowhere") }) }
        #expect(try desk.watch(for: 0.5) == before, "after the call")

        try desk.unplug()
        #expect(eventually { desk.client.state(desk.music) == "interrupted" })
        try tone.cork()
        #expect(try eventually { try desk.defaults().sink == "speaker" })
        #expect(try eventually { try !desk.ownSinks.contains("sessiond.nowhere") })
        // WirePlumber writes its file one second after a change.
        #expect(try desk.watch(for: 1.5) == Defaults("speaker", before.source), "after the unplug")
        #expect(desk.sources == [before.source])
        #expect(try desk.remembered() == [choice.sinks.last ?? "", choice.source ?? ""])
    }

    /// A device that is chosen while the guard exists moves it.
    @Test(arguments: ServerKind.allCases) func outputsAreChosenWhileMusicPlays_choicesStay(_ kind: ServerKind) throws {
        let desk = try Desk(kind, .nothing)
        let before = try desk.defaults()
        #expect(desk.client.activate(desk.music) == nil)
        #expect(try eventually { try desk.ownSinks == ["sessiond.nowhere"] })
        for sink in ["speaker", "headphones"] {
            #expect(
                try eventually {
                    try desk.pulse.control.setDefaultSink(sink)
                    return try desk.defaults().sink == sink
                })
            #expect(try desk.watch(for: 2) == Defaults(sink, before.source))
        }
        #expect(desk.client.deactivate(desk.music) == nil)
        #expect(try eventually { try desk.ownSinks.isEmpty })
        #expect(try desk.watch(for: 0.2) == before)
        #expect(desk.sources == [before.source])
    }

    @Test(arguments: ServerKind.allCases) func microphoneAppearsWhileMusicPlays_isTheDefault(_ kind: ServerKind) throws
    {
        let desk = try Desk(kind, .nothing, microphone: nil)
        let before = try desk.defaults()
        #expect(desk.client.activate(desk.music) == nil)
        #expect(try eventually { try desk.ownSinks == ["sessiond.nowhere"] })
        #expect(try desk.watch(for: 0.3) == before)
        try Desk.addMicrophone(desk.pulse, 2_009)
        #expect(try eventually { try desk.defaults().source == "microphone" })
        #expect(try desk.watch(for: 0.3) == Defaults(before.sink, "microphone"))
        #expect(desk.sources == [before.source, "microphone"])
        #expect(try desk.remembered() == ["", ""])
    }

    /// It ranks behind every output, so it is the default only because the user chose it.
    @Test(.enabled(if: ServerKind.pipeWire.isHere, "PipeWire only: its ranks"))
    func lowMicrophone_isNotDisplaced() throws {
        let desk = try Desk(.pipeWire, .everything, microphone: 500)
        let before = try desk.defaults()
        #expect(desk.client.activate(desk.music) == nil)
        #expect(try eventually { try desk.ownSinks == ["sessiond.nowhere"] })
        #expect(try desk.watch(for: 0.5) == before)
    }

    /// Whoever sees them in a list of outputs learns what they are.
    @Test(arguments: ServerKind.allCases) func ownSinks_sayThatTheyAreNoOutputs(_ kind: ServerKind) throws {
        let desk = try Desk(kind, .nothing)
        #expect(desk.client.activate(desk.music) == nil)
        #expect(try eventually { try desk.ownSinks == ["sessiond.nowhere"] })
        let list = try desk.pulse.pactl(["list", "sinks"]).split(separator: "\n").map {
            $0.trimmingCharacters(in: .whitespaces)
        }
        let own = list.indices.filter { list[$0].hasPrefix("Name: sessiond.") }
        #expect(!own.isEmpty)
        for line in own { #expect(list[line + 1].hasSuffix("(not an output)"), "\(list[line...(line + 1)])") }
    }
}
