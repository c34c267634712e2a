import DBus
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The daemon finds and shows neighbours: other software on the machine that mutes, ducks or pauses.
@Suite struct NeighbourTests {
    private func names(_ stage: DaemonStage) -> [String] {
        let list = (try? stage.property("Neighbours"))?.arrayValue ?? []
        return list.compactMap { $0.asProperties?["name"]?.stringValue }
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: its modules"))
    func modulesThatArbitrate_areShownWhileTheyAreLoaded() throws {
        let pulse = try PrivatePulse(modules: ["module-role-cork"])
        let stage = try SessionctlStage(pulse: pulse)
        #expect(eventually { names(stage.daemon) == ["module-role-cork"] })
        let ducking = try pulse.loadModule("module-role-ducking trigger_roles=phone ducking_roles=music")
        #expect(eventually { names(stage.daemon) == ["module-role-cork", "module-role-ducking"] })
        let status = try stage.run(["status"]).output
        #expect(status.contains { $0.hasPrefix("Neighbours") && $0.contains("module-role-cork: mutes") })
        #expect(status.contains { $0.contains("module-role-ducking: ducks") })
        try pulse.unloadModule(ducking)
        #expect(eventually { names(stage.daemon) == ["module-role-cork"] })
        pulse.kill()
        #expect(eventually { names(stage.daemon).isEmpty })
        #expect(try !stage.run(["status"]).text.contains("Neighbours"))
    }

    @Test func rolePolicyOfWirePlumber_isFoundByItsEndpoints() throws {
        // WirePlumber 0.4 makes such a sink for each role of the policy.
        let server = try PrivatePipeWire(sinks: ["speaker", "control.endpoint.multimedia"])
        let stage = try DaemonStage(pulse: server)
        #expect(eventually { names(stage) == ["wireplumber-roles"] })
        // These sinks are no outputs.
        #expect(try stage.property("AvailableOutputs").ports.map(\.uid) == ["speaker"])
    }

    @Test func wirePlumberThatPausesPlayers_isFoundByItsVersion() throws {
        let server = try PrivatePipeWire()
        func beside(_ version: String) throws -> [String] {
            let other = try PulseThread(
                server: server.serverString, name: "WirePlumber",
                properties: ["wireplumber.daemon": "true", "application.version": version])
            defer { withExtendedLifetime(other) {} }
            let stage = try DaemonStage(pulse: server)
            #expect(stage.waitForServer())
            return names(stage)
        }
        #expect(try beside("0.5.10") == [])
        #expect(try beside("0.5.11") == ["wireplumber-pause-playback"])
    }

    @Test func kdeConnect_isShownWhileItIsOnTheBus() throws {
        let stage = try DaemonStage()
        #expect(names(stage).isEmpty)
        let other = try Connection(.custom(stage.bus.address), loop: stage.loop)
        #expect(try other.requestName("org.kde.kdeconnect") == .owner)
        #expect(eventually { names(stage) == ["kdeconnect"] })
        other.close()
        #expect(eventually { names(stage).isEmpty })
    }
}
