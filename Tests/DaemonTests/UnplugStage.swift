import DBus
import Foundation
import SessionBus
import TestSupport

/// Headphones and a speaker. The test records the speaker's monitor.
final class UnplugStage {
    let pulse: any PrivateServer
    let daemon: DaemonStage
    let speaker: Ear
    private var phones: UInt32

    init(_ kind: ServerKind, settings: String? = nil) throws {
        pulse = try kind.server()
        phones = try UnplugStage.plug(pulse)
        speaker = try Ear(pulse, sink: "speaker", fragment: 0.002)
        daemon = try DaemonStage(pulse: pulse, settings: settings)
        guard daemon.waitForServer() else { throw SupportError("sessiond does not find the sound server") }
    }

    func unplug() throws { try pulse.unloadModule(phones) }

    func plug() throws { phones = try UnplugStage.plug(pulse) }

    private static func plug(_ pulse: any PrivateServer) throws -> UInt32 {
        let module = try pulse.addSink(
            "phones", properties: ["device.form_factor": "headphone", "device.description": "Headphones"])
        try pulse.control.setDefaultSink("phones")
        return module
    }

    var isGuarded: Bool {
        get throws { try pulse.control.has(sink: "sessiond.nowhere") }
    }

    var output: String {
        get throws { try pulse.control.defaults().sink }
    }

    func state(_ name: String) throws -> String? { try daemon.state(named: name) }

    /// Starts `sessiond-player` on this server.
    func player(_ media: PrivateFolder) throws -> PluginProgram {
        let environment = pulse.environment.merging(daemon.bus.environment) { $1 }
            .merging(["GST_REGISTRY": PlayerStage.registry]) { $1 }
        let child = try Child(try builtProduct(named: "sessiond-player"), environment: environment)
        return try PluginProgram(
            child, "org.mpris.MediaPlayer2.sessiond_player.instance\(child.processID)", "/org/sessiond1/player",
            "org.sessiond1.Player", daemon)
    }
}
