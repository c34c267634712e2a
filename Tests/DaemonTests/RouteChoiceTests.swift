import DBus
import PluginAPI
import TestSupport
import Testing

/// What is told of ports that are chosen, and of those that come back (behaviour §7).
@Suite struct RouteChoiceTests {
    private static func microphone(_ name: String) -> String {
        "module-remap-source source_name=\(name) source_properties=device.form_factor=microphone master=speaker.monitor"
    }

    @Test func preferredInput_isOneReasonForAll() throws {
        let pulse = try PrivatePulse(modules: ["desk", "lapel"].map(RouteChoiceTests.microphone))
        try pulse.pactl(["set-default-source", "lapel"])
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

    @Test(arguments: ServerKind.allCases) func replugged_amongDevicesOfOneName_mayResume(_ kind: ServerKind) throws {
        let pulse = try kind.server(sinks: [])
        let properties = ["device.form_factor": "headphone", "device.description": "Headphones"]
        try pulse.addSink("desk", properties: properties)
        let phones = try pulse.addSink("phones", properties: properties)
        let stage = try RouteStage(pulse)
        try pulse.pactl(["set-default-sink", "phones"])
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
}
