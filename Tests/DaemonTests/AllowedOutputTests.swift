import DBus
import PluginAPI
import TestSupport
import Testing

/// Some outputs need an option before a session that records may use them (rules §2). Without the option, each
/// activation moves the sound to the speaker, and each deactivation moves it back.
@Suite struct AllowedOutputTests {
    enum Outlet: String, CaseIterable, Sendable {
        case music = "headset"
        case network = "raop_output.room"

        var properties: [String: String] {
            switch self {
            case .music: ["device.bus": "bluetooth", "bluetooth.protocol": "a2dp_sink"]
            case .network: [:]
            }
        }

        var option: String {
            switch self {
            case .music: "allow-bluetooth-a2dp"
            case .network: "allow-airplay"
            }
        }
    }

    @Test(arguments: ServerKind.allCases, Outlet.allCases) func callWithoutTheOption_movesTheSoundAway_everyTime(
        _ kind: ServerKind, _ outlet: Outlet
    ) throws {
        let stage = try RouteStage(kind.server())
        try stage.pulse.addSink(outlet.rawValue, properties: outlet.properties)
        #expect(stage.goes(to: outlet.rawValue))
        let client = try stage.daemon.client()
        let call = try client.session("Call", category: "play-and-record")
        // First the call alone, then with music that plays again before each call.
        try talk(call, through: outlet.rawValue, client, stage) {}
        let music = try client.session("Music")
        try talk(call, through: outlet.rawValue, client, stage) { #expect(client.activate(music) == nil) }
        stage.forget()
        let allowed = try client.session("Allowed", category: "play-and-record", options: [outlet.option])
        #expect(client.activate(allowed) == nil)
        client.deactivate(allowed)
        // With PipeWire, the guard was the default for a moment here, on a busy machine.
        #expect(eventually { stage.defaultSink == outlet.rawValue })
        #expect(stage.told.allSatisfy { $0.previous.outputs == $0.current.outputs })
    }

    @Test(.enabled(if: ServerKind.pulseAudio.isHere, "PulseAudio only: the fake headset"))
    func callWithoutTheOption_movesTheSoundOffARealHeadset_everyTime() throws {
        let radio = try FakeBluetooth()
        let stage = try RouteStage(radio)
        let client = try stage.daemon.client()
        let call = try client.session("Call", category: "play-and-record")
        try talk(call, through: stage.output, client, stage) {}
        #expect(!stage.daemon.daemon.errors.contains("stays"), "\(stage.daemon.daemon.errors)")
    }

    /// Activates and deactivates the call ten times. Each time the route changes exactly once.
    private func talk(
        _ call: String, through outlet: String, _ client: Client, _ stage: RouteStage, before: () -> Void
    ) throws {
        stage.forget()
        let times = 10
        for time in 0..<times {
            before()
            #expect(client.activate(call) == nil)
            #expect(stage.goes(to: "speaker"), "time \(time)")
            client.deactivate(call)
            #expect(stage.goes(to: outlet), "time \(time)")
        }
        let reasons = stage.reasons
        let moves = zip(reasons, stage.told).filter { $1.previous.outputs != $1.current.outputs }
        #expect(moves.map(\.0) == Array(repeating: .categoryChange, count: 2 * times))
    }
}
