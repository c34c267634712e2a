import CPulse
import PluginAPI

/// The data of a device and one of its ports that determine the port's type.
struct PortFacts {
    var isInput = false
    var deviceName = ""
    /// `pa_device_port_type`; 0 if the device has no ports or the server does not report it.
    var portType: UInt32 = 0
    var portName = ""
    var driver = ""
    /// PA_SINK_NETWORK, PA_SOURCE_NETWORK.
    var isNetwork = false
    /// `device.*`, `bluetooth.*`, `api.*`, `node.*`.
    var properties: [String: String] = [:]
}

/// Finds a port's type from what the server reports, with a table that is read from top to bottom: the first row that
/// matches decides.
///
/// First comes the connection, if people name the device after it (Bluetooth, AirPlay, HDMI), then what the device is
/// (the port's type, the form factor), then the bus. A device without hardware is virtual.
enum PortTypeRules {
    static func type(of facts: PortFacts) -> PortType {
        for row in table where row.matches(facts) {
            return facts.isInput ? row.input : row.output
        }
        return facts.isInput ? .lineIn : .lineOut
    }

    private enum Test {
        case property(String, [String])
        case propertyContains(String, [String])
        case port([pa_device_port_type])
        case portNameContains([String])
        case deviceNameContains([String])
        case driverContains([String])
        case network
        case input
        case output

        func holds(_ facts: PortFacts) -> Bool {
            switch self {
            case .property(let key, let values): facts.properties[key].map { values.contains($0.lowercased()) } ?? false
            case .propertyContains(let key, let parts): facts.properties[key].map { $0.has(parts) } ?? false
            case .port(let types): types.contains { $0.rawValue == facts.portType }
            case .portNameContains(let parts): facts.portName.has(parts)
            case .deviceNameContains(let parts): facts.deviceName.has(parts)
            case .driverContains(let parts): facts.driver.has(parts)
            case .network: facts.isNetwork
            case .input: facts.isInput
            case .output: !facts.isInput
            }
        }
    }

    private struct Row {
        let tests: [Test]
        let input: PortType
        let output: PortType

        init(_ tests: Test..., is type: PortType) {
            self.init(tests, input: type, output: type)
        }

        init(_ tests: Test..., input: PortType, output: PortType) {
            self.init(tests, input: input, output: output)
        }

        private init(_ tests: [Test], input: PortType, output: PortType) {
            self.tests = tests
            self.input = input
            self.output = output
        }

        func matches(_ facts: PortFacts) -> Bool { tests.allSatisfy { $0.holds(facts) } }
    }

    private static let handsFree = ["headset", "handsfree", "hands_free", "hfp", "hsp"]
    private static let advanced = ["a2dp"]

    private static let table: [Row] = [
        // Bluetooth: the profile decides; PulseAudio and PipeWire name it in different places.
        Row(.propertyContains("bluetooth.protocol", handsFree), is: .bluetoothHFP),
        Row(.propertyContains("api.bluez5.profile", handsFree), is: .bluetoothHFP),
        Row(.propertyContains("bluetooth.protocol", advanced), input: .lineIn, output: .bluetoothA2DP),
        Row(.propertyContains("api.bluez5.profile", advanced), input: .lineIn, output: .bluetoothA2DP),
        Row(
            .propertyContains("device.profile.name", handsFree), .property("device.api", ["bluez", "bluez5"]),
            is: .bluetoothHFP),
        Row(.property("device.api", ["bluez", "bluez5"]), input: .bluetoothHFP, output: .bluetoothA2DP),
        Row(.property("device.bus", ["bluetooth"]), input: .bluetoothHFP, output: .bluetoothA2DP),
        Row(
            .port([PA_DEVICE_PORT_TYPE_BLUETOOTH, PA_DEVICE_PORT_TYPE_HANDSFREE]), input: .bluetoothHFP,
            output: .bluetoothA2DP),
        // The network. A microphone of another machine is not an input of this one.
        Row(.output, .driverContains(["raop"]), is: .airPlay),
        Row(.output, .deviceNameContains(["raop"]), is: .airPlay),
        Row(.output, .network, is: .airPlay),
        Row(.output, .property("node.network", ["true"]), is: .airPlay),
        Row(.output, .port([PA_DEVICE_PORT_TYPE_NETWORK]), is: .airPlay),
        Row(.network, is: .virtual),
        // The type that the port reports.
        Row(.portNameContains(["displayport"]), is: .displayPort),
        Row(
            .port([PA_DEVICE_PORT_TYPE_HDMI, PA_DEVICE_PORT_TYPE_TV, PA_DEVICE_PORT_TYPE_VIDEO]), input: .lineIn,
            output: .hdmi),
        Row(.port([PA_DEVICE_PORT_TYPE_CAR]), is: .carAudio),
        Row(
            .port([PA_DEVICE_PORT_TYPE_HEADPHONES, PA_DEVICE_PORT_TYPE_HEADSET]), input: .microphoneWired,
            output: .headphones),
        Row(
            .port([PA_DEVICE_PORT_TYPE_EARPIECE, PA_DEVICE_PORT_TYPE_HANDSET]), input: .microphoneBuiltIn,
            output: .receiver),
        Row(
            .port([PA_DEVICE_PORT_TYPE_SPEAKER, PA_DEVICE_PORT_TYPE_PORTABLE]), input: .microphoneBuiltIn,
            output: .speaker),
        Row(
            .input, .portNameContains(["internal-mic", "internal mic", "builtin", "built-in", "dmic", "digital-mic"]),
            is: .microphoneBuiltIn),
        Row(
            .input, .port([PA_DEVICE_PORT_TYPE_MIC]), .property("device.form_factor", ["internal"]),
            .portNameContains(["-mic", "mic1", "microphone"]),
            .portNameContains(["front", "rear", "dock", "headset", "headphone", "external"]), is: .microphoneWired),
        Row(
            .input, .port([PA_DEVICE_PORT_TYPE_MIC]),
            .property("device.form_factor", ["internal", "handset", "portable"]), is: .microphoneBuiltIn),
        Row(.input, .port([PA_DEVICE_PORT_TYPE_MIC, PA_DEVICE_PORT_TYPE_PHONE]), is: .microphoneWired),
        Row(
            .port([
                PA_DEVICE_PORT_TYPE_LINE, PA_DEVICE_PORT_TYPE_AUX, PA_DEVICE_PORT_TYPE_HIFI, PA_DEVICE_PORT_TYPE_SPDIF,
                PA_DEVICE_PORT_TYPE_RADIO, PA_DEVICE_PORT_TYPE_PHONE,
            ]), input: .lineIn, output: .lineOut),
        Row(.port([PA_DEVICE_PORT_TYPE_USB]), is: .usbAudio),
        // Servers before version 14 report only the port's name.
        Row(.portNameContains(["headphone", "headset"]), input: .microphoneWired, output: .headphones),
        Row(.portNameContains(["earpiece", "handset"]), input: .microphoneBuiltIn, output: .receiver),
        Row(.output, .portNameContains(["speaker"]), is: .speaker),
        Row(.portNameContains(["hdmi"]), input: .lineIn, output: .hdmi),
        Row(.portNameContains(["line", "iec958"]), input: .lineIn, output: .lineOut),
        Row(.input, .portNameContains(["mic"]), is: .microphoneWired),
        // The form factor that the device reports.
        Row(
            .property("device.form_factor", ["headphone", "headset", "hands-free"]), input: .microphoneWired,
            output: .headphones),
        Row(.property("device.form_factor", ["handset"]), input: .microphoneBuiltIn, output: .receiver),
        Row(.property("device.form_factor", ["car"]), is: .carAudio),
        Row(.property("device.form_factor", ["tv"]), input: .lineIn, output: .hdmi),
        Row(.property("device.form_factor", ["hifi"]), input: .lineIn, output: .lineOut),
        Row(.property("device.form_factor", ["speaker", "portable"]), input: .microphoneBuiltIn, output: .speaker),
        Row(.property("device.form_factor", ["microphone"]), input: .microphoneWired, output: .lineOut),
        Row(.deviceNameContains(["hdmi"]), input: .lineIn, output: .hdmi),
        Row(.deviceNameContains(["iec958"]), input: .lineIn, output: .lineOut),
        Row(.property("device.form_factor", ["internal", "computer"]), input: .microphoneBuiltIn, output: .speaker),
        // How it is connected to the machine.
        Row(.property("device.form_factor", ["webcam"]), is: .usbAudio),
        Row(.property("device.bus", ["usb"]), is: .usbAudio),
        Row(.property("device.bus", ["pci", "firewire"]), is: .pci),
        // It has no hardware.
        Row(.property("device.class", ["abstract", "filter", "monitor"]), is: .virtual),
        Row(.property("node.virtual", ["true"]), is: .virtual),
        Row(
            .driverContains(["null", "pipe-", "remap", "combine", "virtual", "loopback", "tunnel", "echo-cancel"]),
            is: .virtual),
        Row(.property("device.api", ["alsa", "oss", "v4l2"]), input: .lineIn, output: .lineOut),
        Row(.property("device.class", ["sound"]), input: .lineIn, output: .lineOut),
        Row(is: .virtual),
    ]
}

extension String {
    /// Whether the text contains one of those, in any letter case.
    fileprivate func has(_ parts: [String]) -> Bool {
        let text = Array(lowercased().utf8)
        return parts.contains { part in
            let part = Array(part.utf8)
            guard text.count >= part.count else { return false }
            return (0...(text.count - part.count)).contains { text[$0..<($0 + part.count)].elementsEqual(part) }
        }
    }
}
