import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport

/// Where the scene plays: a bus, a sound server with two virtual sinks, and the daemon. What is there already is used;
/// what is missing is brought up privately and taken down again.
final class Stage {
    let loop = EventLoop()
    /// What a program needs to take part.
    private(set) var environment = ProcessInfo.processInfo.environment
    private(set) var connection: Connection
    let speaker: Sink
    private(set) var headphones: Sink
    /// The outputs somebody can hear: an unplugged one has no monitor to listen at.
    private(set) var audible: [Sink]
    /// What was brought up here, for a person to read.
    private(set) var notes: [String] = []
    private let bus: PrivateBus?
    private let pulse: (any PrivateServer)?
    private let daemon: Child?
    private let previousDefault: String?

    /// A virtual sink of the scene, and the ear on its monitor.
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
            notes.append("no session bus here: a private dbus-daemon at \(private_.address)")
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
            notes.append("no sound server here: a private \(name) with virtual sinks at \(private_.serverString)")
        }
        speaker = try Stage.addSink("demo_speaker", "Speaker", formFactor: "speaker", environment)
        headphones = try Stage.addSink("demo_headphones", "Headphones", formFactor: "headphone", environment)
        audible = [speaker, headphones]
        try Child.run("pactl", ["set-default-sink", headphones.name], environment: environment)
        if (try? connection.callAndWait(BusName.service, ObjectPath.root, "org.freedesktop.DBus.Peer", "Ping", []))
            != nil
        {
            daemon = nil
            notes.append("a sessiond is running on this bus: it is used")
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
        else { throw SupportError("sessiond did not come up on \(headphones.name): \(daemon?.errors ?? [])") }
    }

    /// Pulls the plug.
    func unplugHeadphones() throws {
        audible = [speaker]
        try Child.run("pactl", ["unload-module", headphones.module], environment: environment)
    }

    /// And back again, for a person to look around.
    func plugHeadphonesIn() throws {
        headphones = try Stage.addSink("demo_headphones", "Headphones", formFactor: "headphone", environment)
        try Child.run("pactl", ["set-default-sink", headphones.name], environment: environment)
    }

    /// Takes down what was brought up on somebody else's server; private servers go with this object.
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
