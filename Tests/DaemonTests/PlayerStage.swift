import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport

/// A sound server, a recording of its speaker's monitor, the real daemon, and real plugin programs.
final class PlayerStage {
    let pulse: any PrivateServer
    let daemon: DaemonStage
    let ear: Ear
    let media: PrivateFolder

    init(
        _ kind: ServerKind = .standard, sinks: [String] = ["speaker"], modules: [String] = [], settings: String? = nil
    ) throws {
        pulse = try kind.server(sinks: sinks, modules: modules)
        ear = try Ear(pulse, sink: sinks[0])
        media = try PrivateFolder()
        daemon = try DaemonStage(pulse: pulse, settings: settings)
        guard daemon.waitForServer() else { throw SupportError("sessiond does not find the sound server") }
    }

    /// A shared registry, so that GStreamer examines its plugins only once for all tests.
    static let registry = TestMedia.registry

    func program(
        _ name: String, _ arguments: [String] = [], registry: String = PlayerStage.registry,
        environment more: [String: String] = [:]
    ) throws -> Child {
        var environment = pulse.environment.merging(daemon.bus.environment) { $1 }.merging(more) { $1 }
        environment["GST_REGISTRY"] = registry
        environment["XDG_CACHE_HOME"] = media.path + "/cache"
        return try Child(try builtProduct(named: name), arguments, environment: environment)
    }

    func player(
        _ arguments: [String] = [], registry: String = PlayerStage.registry, environment: [String: String] = [:]
    ) throws -> PluginProgram {
        let child = try program("sessiond-player", arguments, registry: registry, environment: environment)
        return try PluginProgram(
            child, "org.mpris.MediaPlayer2.sessiond_player.instance\(child.processID)", ObjectPath.player,
            BusName.player,
            daemon)
    }

    func recorder(_ arguments: [String] = []) throws -> PluginProgram {
        let child = try program("sessiond-recorder", arguments)
        return try PluginProgram(
            child, "org.sessiond1.Recorder.instance\(child.processID)", ObjectPath.recorder, BusName.recorder, daemon)
    }

    /// The URI of a new WAV with a sine at −12 dBFS.
    func sine(_ hertz: Double, seconds: Double) throws -> String {
        try DaemonTests.sine(hertz, seconds: seconds, in: media)
    }

    /// The path of the program's session. Waits until there is one.
    func session(of program: PluginProgram) throws -> String {
        var path = ""
        _ = eventually {
            let sessions = (try? daemon.manager("ListSessions"))?.first?.arrayValue ?? []
            let mine = sessions.compactMap(\.asProperties).first {
                $0["ProcessId"]?.uint32Value == UInt32(program.child.processID)
            }
            path = mine?["path"]?.objectPathValue ?? ""
            return !path.isEmpty
        }
        return path
    }

    func sessionState(of program: PluginProgram) throws -> String {
        try daemon.property("State", of: session(of: program)).stringValue ?? ""
    }
}

/// The URI of a new WAV with a sine at −12 dBFS.
func sine(_ hertz: Double, seconds: Double, in media: PrivateFolder) throws -> String {
    let path = media.path + "/\(Int(hertz))-\(seconds).wav"
    return "file://" + (try WaveFile.write(WaveFile.sines([(hertz, seconds)]), to: path))
}

/// A plugin program that the tests use only over D-Bus.
final class PluginProgram {
    let child: Child
    let busName: String
    private let path: String
    private let interface: String
    private let stage: DaemonStage
    private let connection: Connection
    private var subscriptions: [Subscription] = []
    private var told: [String] = []
    private var tellings: [Double] = []
    private var listTellings: [String] = []
    private var changes: [String: [Value]] = [:]
    private var staleNames: [String] = []

    /// Waits until the plugin serves its interface.
    init(_ child: Child, _ busName: String, _ path: String, _ interface: String, _ stage: DaemonStage) throws {
        (self.child, self.busName, self.path, self.interface) = (child, busName, path, interface)
        self.stage = stage
        connection = try Connection(.custom(stage.bus.address), loop: stage.loop)
        subscriptions = [
            connection.subscribe(path: path, interface: interface, sender: busName) { [weak self] message in
                let value = (try? message.arguments())?.first
                if message.member == "PositionChanged" {
                    self?.tellings.append(value?.doubleValue ?? -1)
                    return
                }
                let text = value?.boolValue.map(String.init) ?? value?.stringValue ?? value?.objectPathValue ?? ""
                self?.told.append("\(message.member ?? "") \(text)")
            },
            connection.subscribe(
                interface: StandardName.properties, member: "PropertiesChanged", sender: busName
            ) { [weak self] message in
                guard let values = try? message.arguments(), let properties = values[1].asProperties else { return }
                for (name, value) in properties { self?.changes[name, default: []].append(value) }
                self?.staleNames += values[2].stringsValue ?? []
            },
            connection.subscribe(interface: "org.mpris.MediaPlayer2.TrackList", sender: busName) { [weak self] in
                self?.listTellings.append($0.member ?? "")
            },
        ]
        guard eventually(timeout: 30, { (try? get("State")) != nil || !child.isRunning }), child.isRunning else {
            throw SupportError("\(child.name) does not serve: \(child.errors)")
        }
    }

    /// Returns nil on success, otherwise the error's name.
    @discardableResult
    func call(_ member: String, _ arguments: [Value] = [], mpris: Bool = false) -> String? {
        do throws(Failure) {
            _ = try connection.callAndWait(
                busName, mpris ? "/org/mpris/MediaPlayer2" : path, mpris ? "org.mpris.MediaPlayer2.Player" : interface,
                member, arguments, timeout: 10)
            return nil
        } catch {
            return error.name
        }
    }

    /// Calls a method and returns its results.
    func answer(_ member: String, _ arguments: [Value] = []) throws -> [Value] {
        try connection.callAndWait(busName, path, interface, member, arguments, timeout: 30)
    }

    /// Calls a method of another object of the plugin.
    func ask(_ path: String, _ interface: String, _ member: String, _ arguments: [Value]) throws -> [Value] {
        try connection.callAndWait(busName, path, interface, member, arguments, timeout: 10)
    }

    func get(_ name: String, mpris: Bool = false) throws -> Value {
        try connection.callAndWait(
            busName, mpris ? "/org/mpris/MediaPlayer2" : path, StandardName.properties, "Get",
            [.string(mpris ? "org.mpris.MediaPlayer2.Player" : interface), .string(name)], timeout: 10)[0].unwrapped
    }

    /// Returns nil on success, otherwise the error's name.
    @discardableResult
    func set(_ name: String, _ value: Value, mpris: Bool = false) -> String? {
        do throws(Failure) {
            _ = try connection.callAndWait(
                busName, mpris ? "/org/mpris/MediaPlayer2" : path, StandardName.properties, "Set",
                [.string(mpris ? "org.mpris.MediaPlayer2.Player" : interface), .string(name), .variant(value)],
                timeout: 10)
            return nil
        } catch {
            return error.name
        }
    }

    var state: String { (try? get("State"))?.stringValue ?? "gone" }
    var position: Double { (try? get("Position"))?.doubleValue ?? -1 }

    func comes(to state: String) -> Bool { eventually { self.state == state } }

    /// The signals so far, such as "Finished true", without those about the queue.
    var signals: [String] { allSignals.filter { !$0.hasPrefix("QueueChanged") && !$0.hasPrefix("ItemFinished") } }

    var allSignals: [String] {
        stage.loop.iterate(timeout: 0.05) { false }
        return told
    }

    /// The names of the track list's signals so far.
    var trackListSignals: [String] {
        stage.loop.iterate(timeout: 0.05) { false }
        return listTellings
    }

    /// The properties that were announced as changed without a value, in order.
    var invalidated: [String] {
        stage.loop.iterate(timeout: 0.05) { false }
        return staleNames
    }

    /// The positions that were reported so far.
    var positions: [Double] {
        stage.loop.iterate(timeout: 0.05) { false }
        return tellings
    }

    /// The announced values of a property, in order.
    func changes(of name: String) -> [Value] {
        stage.loop.iterate(timeout: 0.05) { false }
        return changes[name] ?? []
    }
}
