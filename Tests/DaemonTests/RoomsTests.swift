import DBus
import Foundation
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// The bridge to MQTT (`Examples/MQTT/rooms.py`) with a real broker, two rooms, and real music in one of them.
@Suite struct RoomsTests {
    /// A broker without a password.
    private final class Broker {
        private let folder: PrivateFolder
        private let port: Int
        private let broker: Child

        init() throws {
            folder = try PrivateFolder()
            port = try LoopbackPort.free()
            let settings = try folder.file(
                "mosquitto.conf", "listener \(port) 127.0.0.1\nallow_anonymous true\npersistence false\n")
            broker = try Child("mosquitto", ["-c", settings])
        }

        var address: String { "127.0.0.1:\(port)" }

        func publish(_ topic: String, _ value: String) throws {
            try Child.run("mosquitto_pub", ["-h", "127.0.0.1", "-p", "\(port)", "-q", "1", "-t", topic, "-m", value])
        }

        /// What the broker keeps of that topic; empty: nothing.
        func kept(_ topic: String) -> String {
            let words = ["-h", "127.0.0.1", "-p", "\(port)", "-t", topic, "-C", "1", "-W", "1"]
            return (try? Child.run("mosquitto_sub", words)) ?? ""
        }
    }

    private func room(_ name: String, _ broker: Broker, _ stage: SessionctlStage) throws -> Child {
        let room = try Child(
            "/usr/bin/python3", ["\(repository.path)/Examples/MQTT/rooms.py", name, broker.address],
            environment: stage.programs())
        guard room.line(where: { $0 == "connected" }) != nil else { throw SupportError("\(room.errors)") }
        return room
    }

    @Test func announcement_ducksEveryRoom_andTheBrokerKnowsWhoPlays() throws {
        let broker = try Broker()
        let pulse = try ServerKind.standard.server()
        let kitchen = try SessionctlStage(pulse: pulse)
        let bath = try SessionctlStage()
        #expect(kitchen.daemon.waitForServer())
        let rooms = [try room("Kitchen", broker, kitchen), try room("Bath 1", broker, bath)]
        #expect(eventually { broker.kept("sessiond/Kitchen/playing") == "OFF" })
        let tone = try Tone(pulse, hertz: 440, name: "Music")
        let ear = try Ear(pulse, sink: "speaker")
        #expect(ear.waitUntil(440, above: -20, window: 0.15))
        let before = ear.steadyLevel(of: 440)
        #expect(eventually { broker.kept("sessiond/Kitchen/now-playing") == "Music" })
        #expect(broker.kept("sessiond/Kitchen/sessions").contains(#""name": "Music", "state": "active""#))
        let client = try bath.daemon.client()
        let radio = try client.session("Radio", options: ["mix-with-others"])
        client.activate(radio)
        // Both rooms.
        try broker.publish("sessiond/announce/set", "ON")
        #expect(ear.waitUntil(440, above: before - 12.5, below: before - 11.5, window: 0.05))
        #expect(try eventually { try bath.daemon.property("Ducked", of: radio).boolValue == true })
        #expect(eventually { broker.kept("sessiond/Bath_1/announce") == "ON" })
        try broker.publish("sessiond/announce/set", "OFF")
        #expect(ear.waitUntil(440, above: before - 0.2, below: before + 0.2, window: 0.1))
        #expect(try eventually { try bath.daemon.property("Ducked", of: radio).boolValue == false })
        // One room, for a time.
        _ = try client.heard()
        try broker.publish("sessiond/Bath_1/announce/set", "0.2")
        #expect(client.heard(2, of: "Radio ducked").suffix(2) == ["Radio ducked -12.0", "Radio ducked 0.0"])
        #expect(try kitchen.session("Music")?["Ducked"]?.boolValue == false)
        try broker.publish("sessiond/Kitchen/silent/set", "ON")
        #expect(try eventually { try kitchen.daemon.property("SilentMode").boolValue == true })
        #expect(eventually { broker.kept("sessiond/Kitchen/silent") == "ON" })
        // What Home Assistant reads.
        let found = broker.kept("homeassistant/switch/sessiond_Bath_1/announce/config")
        let config = try JSONSerialization.jsonObject(with: Data(found.utf8)) as? [String: Any]
        #expect(config?["command_topic"] as? String == "sessiond/Bath_1/announce/set")
        #expect(config?["unique_id"] as? String == "sessiond_Bath_1_announce")
        // The room ends.
        rooms[0].kill()
        #expect(eventually { broker.kept("sessiond/Kitchen/available") == "offline" })
        withExtendedLifetime((tone, rooms)) {}
    }
}
