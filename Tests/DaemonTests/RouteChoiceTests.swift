import DBus
import PluginAPI
import TestSupport
import Testing

/// The signals when a port is chosen, goes away, or comes back (rules §7).
@Suite struct RouteChoiceTests {
    private static func microphone(_ name: String) -> String {
        "module-remap-source source_name=\(name) source_properties=device.form_factor=microphone master=speaker.monitor"
    }

    @Test func preferredInput_givesAllSessionsTheSameReason() throws {
        let pulse = try ServerKind.standard.server(modules: ["desk", "lapel"].map(RouteChoiceTests.microphone))
        try pulse.control.setDefaultSource("lapel")
        let stage = try RouteStage(pulse)
        let client = try stage.daemon.client()
        let memo = try client.session("Memo", category: "record")
        let call = try client.session("Call", category: "play-and-record", options: ["mix-with-others"])
        #expect(client.activate(call) == nil && client.activate(memo) == nil)
        #expect(stage.records(from: "lapel"))
        _ = try client.heard()
        stage.forget()
        #expect(client.call(memo, "SetPreferredInput", [.string("desk")]) == nil)
        #expect(stage.records(from: "desk"))
        #expect(client.heard(2, of: " route ") == ["Memo route 4", "Call route 4"])
        #expect(stage.reasons == [.override])
    }

    @Test(arguments: ServerKind.allCases)
    func replugAmongDevicesOfTheSameName_endsTheInterruption(_ kind: ServerKind) throws {
        let pulse = try kind.server(sinks: [])
        let properties = ["device.form_factor": "headphone", "device.description": "Headphones"]
        try pulse.addSink("desk", properties: properties)
        let phones = try pulse.addSink("phones", properties: properties)
        let stage = try RouteStage(pulse)
        try pulse.control.setDefaultSink("phones")
        #expect(stage.goes(to: "phones"))
        let client = try stage.daemon.client()
        let music = try client.session("Music")
        #expect(client.activate(music) == nil)
        try pulse.unloadModule(phones)
        #expect(stage.goes(to: "desk"))
        #expect(eventually { client.state(music) == "interrupted" })
        _ = try client.heard()
        try pulse.addSink("phones", properties: properties)
        #expect(try eventually { try client.heard().contains { $0.hasPrefix("Music ended") } })
        #expect(client.state(music) == "inactive")
    }

    @Test(arguments: ServerKind.allCases)
    func serverSelectsAnotherOutputThanTheDaemon_oneRouteChangeIsSent(_ kind: ServerKind) throws {
        let stage = try RouteStage(kind.server())
        let client = try stage.daemon.client()
        let music = try client.session("Music", options: ["mix-with-others"])
        #expect(client.activate(music) == nil)
        // The server prefers the older one of the two.
        try stage.pulse.addSink("car", properties: ["device.form_factor": "car"])
        #expect(stage.goes(to: "car"))
        try stage.pulse.addSink("screen", properties: ["device.form_factor": "tv"])
        #expect(stage.goes(to: "screen"))
        let phones = try stage.pulse.addSink("phones", properties: ["device.form_factor": "headphone"])
        #expect(stage.goes(to: "phones"))
        stage.forget()
        _ = try client.heard()
        try stage.pulse.unloadModule(phones)
        #expect(stage.goes(to: "screen"))
        #expect(eventually { stage.defaultSink == "screen" })
        #expect(stage.reasons == [.oldDeviceUnavailable])
        #expect(stage.told.first?.previous.outputs.map(\.uid) == ["phones"])
        #expect(stage.told.first?.current.outputs.map(\.uid) == ["screen"])
        #expect(try client.heard() == ["Music route 2"])
    }
}
