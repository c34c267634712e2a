import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport

/// The bus, the sound server with two virtual sinks, and the daemon for the scene. It uses those that already run, and
/// starts the others privately and ends them afterwards.
final class Stage {
    let loop = EventLoop()
    /// The environment of the programs.
    private(set) var environment = ProcessInfo.processInfo.environment
    private(set) var connection: Connection
    let speaker: Sink
    private(set) var headphones: Sink
    /// The outputs with a monitor: an unplugged one has none.
    private(set) var audible: [Sink]
    /// Lines for the user about what was started here.
    private(set) var notes: [String] = []
    private let bus: PrivateBus?
    private let pulse: (any PrivateServer)?
    private let daemon: Child?
    private let previousDefault: String?

    /// A virtual sink of the scene, and the recorder of its monitor.
    struct Sink {
        let name: String
        let module: String
        let ear: Ear
    }

    init() throws {
        if let loop = try? Connection(.session, loop: loop), environment["DBUS_SESSION_BUS_ADDRESS"] != nil {
            connection = loop
            bus = nil
        } else {
            let private_ = try PrivateBus()
            bus = private_
            environment.merge(private_.environment) { $1 }
            connection = try Connection(.custom(private_.address), loop: loop)
            notes.append("there is no session bus: started a private dbus-daemon at \(private_.address)")
        }
        if (try? Child.run("pactl", ["info"], environment: environment, timeout: 5)) != nil {
            pulse = nil
            previousDefault = try? Child.run("pactl", ["get-default-sink"], environment: environment)
        } else {
            let kind = ServerKind.installed
            let private_ = try kind.server(sinks: [])
            pulse = private_
            previousDefault = nil
            environment.merge(private_.environment) { $1 }
            if let bus { environment.merge(bus.environment.filter { $0.key.hasPrefix("DBUS") }) { $1 } }
            let name = kind == .pulseAudio ? "PulseAudio" : "PipeWire"
            notes.append(
                "there is no sound server: started a private \(name) with virtual sinks at \(private_.serverString)")
        }
        speaker = try Stage.addSink("demo_speaker", "Speaker", formFactor: "speaker", environment)
        headphones = try Stage.addSink("demo_headphones", "Headphones", formFactor: "headphone", environment)
        audible = [speaker, headphones]
        try Child.run("pactl", ["set-default-sink", headphones.name], environment: environment)
        if (try? connection.callAndWait(BusName.service, ObjectPath.root, "org.freedesktop.DBus.Peer", "Ping", []))
            != nil
        {
            daemon = nil
            notes.append("using the sessiond that runs on this bus")
        } else {
            daemon = try Child(try builtProduct(named: "sessiond"), [], environment: environment)
        }
        guard
            eventually(
                timeout: 10,
                { [connection] in
                    let answer = try? connection.callAndWait(
                        BusName.service, ObjectPath.root, "org.freedesktop.DBus.Properties", "Get",
                        [.string(BusName.manager), .string("CurrentRoute")])
                    return answer?.first?.unwrapped.route?.outputs.first?.uid.hasPrefix("demo_headphones") == true
                })
        else { throw SupportError("sessiond did not start on \(headphones.name): \(daemon?.errors ?? [])") }
    }

    /// Unplugs the headphones.
    func unplugHeadphones() throws {
        audible = [speaker]
        try Child.run("pactl", ["unload-module", headphones.module], environment: environment)
    }

    /// Plugs the headphones in again, so that the user can try things.
    func plugHeadphonesIn() throws {
        headphones = try Stage.addSink("demo_headphones", "Headphones", formFactor: "headphone", environment)
        try Child.run("pactl", ["set-default-sink", headphones.name], environment: environment)
    }

    /// Removes the sinks from a server that ran before. Private servers end with this object.
    func strike() {
        guard pulse == nil else { return }
        _ = try? Child.run("pactl", ["unload-module", headphones.module], environment: environment)
        _ = try? Child.run("pactl", ["unload-module", speaker.module], environment: environment)
        if let previousDefault {
            let name = previousDefault.trimmingCharacters(in: .whitespacesAndNewlines)
            _ = try? Child.run("pactl", ["set-default-sink", name], environment: environment)
        }
    }

    private static func addSink(
        _ name: String, _ description: String, formFactor: String, _ environment: [String: String]
    ) throws -> Sink {
        let properties = "sink_properties=\"device.description='\(description)' device.form_factor='\(formFactor)'\""
        let module = try Child.run(
            "pactl", ["load-module", "module-null-sink", "sink_name=\(name)", "rate=48000", properties],
            environment: environment
        ).trimmingCharacters(in: .whitespacesAndNewlines)
        let server = environment["PULSE_SERVER"] ?? ""
        return Sink(name: name, module: module, ear: try Ear(server: server, sink: name))
    }
}
