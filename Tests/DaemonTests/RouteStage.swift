import DBus
import EventLoop
import Foundation
import PluginAPI
import SessionBus
import TestSupport

/// A daemon on a sound server whose devices come and go, with all its announcements about the route.
final class RouteStage {
    let daemon: DaemonStage
    let pulse: any PrivateServer
    private(set) var told: [(reason: RouteChangeReason?, previous: Route, current: Route)] = []
    private var subscription: Subscription?

    /// `running` is a daemon that runs already.
    init(_ pulse: any PrivateServer, _ running: DaemonStage? = nil) throws {
        self.pulse = pulse
        daemon = try running ?? DaemonStage(pulse: pulse)
        guard daemon.waitForServer() else { throw SupportError("no sound server: \(pulse.log)") }
        subscription = daemon.observer.subscribe(
            path: ObjectPath.root, interface: BusName.manager, member: "RouteChanged", sender: BusName.service
        ) { [unowned self] message in
            guard let values = try? message.arguments(), values.count == 3, let previous = values[1].route,
                let current = values[2].route
            else { return }
            told.append((values[0].uint32Value.flatMap(RouteChangeReason.init), previous, current))
        }
    }

    /// The same with a Bluetooth headset, connected in its music profile.
    convenience init(_ radio: FakeBluetooth, modules: [String] = []) throws {
        let pulse = try PrivatePulse(modules: modules, environment: radio.environment)
        try radio.attach(to: pulse)
        try self.init(pulse)
        try radio.connect(.hfp)
        try radio.connect(.a2dp)
        guard eventually({ self.output.hasSuffix("/a2dp") }) else { throw SupportError("no headset: \(pulse.log)") }
    }

    /// Why the route changed, in order.
    var reasons: [RouteChangeReason?] {
        daemon.loop.iterate(timeout: 0.004) { false }
        daemon.handleWhatWasRead(by: daemon.observer)
        return told.map(\.reason)
    }

    /// All announcements as text, for messages of failed tests.
    var story: String {
        func ports(_ route: Route) -> String { (route.inputs + route.outputs).map(\.uid).joined(separator: " + ") }
        return told.map {
            "\($0.reason.map { String($0.rawValue) } ?? "?"): \(ports($0.previous)) → \(ports($0.current))"
        }
        .joined(separator: "; ")
    }

    func forget() {
        daemon.loop.iterate(timeout: 0.004) { false }
        daemon.handleWhatWasRead(by: daemon.observer)
        told = []
    }

    /// The output according to the daemon; "" if there is none.
    var output: String { route?.outputs.first?.uid ?? "" }
    var input: String { route?.inputs.first?.uid ?? "" }
    private var route: Route? { (try? daemon.property("CurrentRoute"))?.route }

    /// Waits until that port is the output of the daemon's route.
    func goes(to uid: String) -> Bool { eventually { self.output == uid } }
    func records(from uid: String) -> Bool { eventually { self.input == uid } }

    /// The default sink according to the server.
    var defaultSink: String { (try? pulse.control.defaults().sink) ?? "" }

    func activeProfile(of card: String) throws -> String {
        let lines = try pulse.pactl(["list", "cards"]).split(separator: "\n").map(String.init)
        guard let start = lines.firstIndex(where: { $0.contains("Name: " + card) }) else { return "" }
        let line = lines[start...].first { $0.contains("Active Profile: ") } ?? ""
        return line.split(separator: " ").last.map(String.init) ?? ""
    }

    /// The source of each recording, in the order of the recordings.
    func recordedSources() throws -> [String] {
        func table(_ what: String) throws -> [[String]] {
            try pulse.pactl(["list", "short", what]).split(separator: "\n").map {
                $0.split(separator: "\t").map(String.init)
            }
        }
        let sources = try table("sources")
        // The microphones of these tests record a monitor themselves.
        return try table("source-outputs").compactMap { row in
            sources.first { $0[0] == row[1] }?[1]
        }
        .filter { !$0.hasSuffix(".monitor") }
    }

    /// The value of a session's property.
    func reads(_ name: String, _ session: String) throws -> Value { try daemon.property(name, of: session) }
}
