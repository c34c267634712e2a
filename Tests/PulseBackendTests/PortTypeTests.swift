import CPulse
import PluginAPI
import Testing

@testable import PulseBackend

@Suite struct PortTypeTests {
    struct Case: CustomTestStringConvertible {
        let input: Bool
        var port: pa_device_port_type = PA_DEVICE_PORT_TYPE_UNKNOWN
        var portName = ""
        var device = ""
        var driver = ""
        var network = false
        var properties: [String: String] = [:]
        let type: PortType
        var testDescription: String { "\(type) \(portName) \(device) \(driver) \(properties)" }
    }

    static let cases: [Case] = [
        // A laptop's card.
        Case(input: false, port: PA_DEVICE_PORT_TYPE_SPEAKER, portName: "analog-output-speaker", type: .speaker),
        Case(
            input: false, port: PA_DEVICE_PORT_TYPE_HEADPHONES, portName: "analog-output-headphones", type: .headphones),
        Case(input: false, port: PA_DEVICE_PORT_TYPE_LINE, portName: "analog-output-lineout", type: .lineOut),
        Case(
            input: true, port: PA_DEVICE_PORT_TYPE_MIC, portName: "analog-input-internal-mic", type: .microphoneBuiltIn),
        Case(
            input: true, port: PA_DEVICE_PORT_TYPE_MIC, portName: "analog-input-mic",
            properties: ["device.form_factor": "internal", "device.bus": "pci"], type: .microphoneBuiltIn),
        Case(
            input: true, port: PA_DEVICE_PORT_TYPE_MIC, portName: "analog-input-rear-mic",
            properties: ["device.form_factor": "internal", "device.bus": "pci"], type: .microphoneWired),
        Case(
            input: true, port: PA_DEVICE_PORT_TYPE_HEADSET, portName: "analog-input-headset-mic", type: .microphoneWired
        ),
        Case(input: true, port: PA_DEVICE_PORT_TYPE_LINE, portName: "analog-input-linein", type: .lineIn),
        Case(input: false, port: PA_DEVICE_PORT_TYPE_HDMI, portName: "hdmi-output-0", type: .hdmi),
        Case(input: false, portName: "[Out] DisplayPort1", type: .displayPort),
        Case(input: false, port: PA_DEVICE_PORT_TYPE_EARPIECE, portName: "[Out] Earpiece", type: .receiver),
        Case(
            input: false, port: PA_DEVICE_PORT_TYPE_ANALOG, portName: "analog-output",
            properties: ["device.bus": "pci", "device.api": "alsa"], type: .pci),
        // Bluetooth on PulseAudio and on PipeWire.
        Case(
            input: false, port: PA_DEVICE_PORT_TYPE_HEADSET, portName: "headset-output",
            properties: ["device.api": "bluez", "bluetooth.protocol": "a2dp_sink", "device.form_factor": "headset"],
            type: .bluetoothA2DP),
        Case(
            input: false, port: PA_DEVICE_PORT_TYPE_HEADSET, portName: "headset-output",
            properties: ["device.api": "bluez", "bluetooth.protocol": "handsfree_head_unit"], type: .bluetoothHFP),
        Case(
            input: true, port: PA_DEVICE_PORT_TYPE_HEADSET, portName: "headset-input",
            properties: ["device.api": "bluez5", "api.bluez5.profile": "headset-head-unit"], type: .bluetoothHFP),
        Case(
            input: false, properties: ["device.api": "bluez5", "api.bluez5.profile": "a2dp-sink"], type: .bluetoothA2DP),
        Case(
            input: false, properties: ["device.bus": "bluetooth", "device.form_factor": "headset"], type: .bluetoothA2DP
        ),
        // The network.
        Case(input: false, device: "raop_output.Kitchen.local", driver: "module-raop-sink.c", type: .airPlay),
        Case(input: false, device: "tunnel.den", driver: "module-tunnel.c", network: true, type: .airPlay),
        Case(input: true, device: "tunnel.den", driver: "module-tunnel.c", network: true, type: .virtual),
        // By form factor and bus.
        Case(
            input: false, driver: "module-null-sink.c",
            properties: ["device.form_factor": "headphone", "device.class": "abstract"], type: .headphones),
        Case(
            input: false, driver: "module-null-sink.c", properties: ["device.form_factor": "speaker"], type: .speaker),
        Case(input: false, properties: ["device.form_factor": "handset"], type: .receiver),
        Case(input: false, properties: ["device.form_factor": "car"], type: .carAudio),
        Case(input: false, properties: ["device.form_factor": "tv"], type: .hdmi),
        Case(
            input: true, properties: ["device.form_factor": "microphone", "device.bus": "usb"], type: .microphoneWired),
        Case(input: true, properties: ["device.form_factor": "webcam", "device.bus": "usb"], type: .usbAudio),
        Case(input: false, properties: ["device.bus": "usb", "device.api": "alsa"], type: .usbAudio),
        Case(input: false, properties: ["device.bus": "pci", "device.api": "alsa"], type: .pci),
        Case(
            input: false, device: "alsa_output.pci-0000_01_00.1.hdmi-stereo", properties: ["device.bus": "pci"],
            type: .hdmi),
        // Virtual devices.
        Case(input: false, driver: "module-null-sink.c", properties: ["device.class": "abstract"], type: .virtual),
        Case(input: true, driver: "module-pipe-source.c", type: .virtual),
        Case(input: true, driver: "module-remap-source.c", properties: ["device.class": "filter"], type: .virtual),
        Case(input: false, properties: ["node.virtual": "true"], type: .virtual),
        Case(input: false, type: .virtual),
    ]

    @Test(arguments: cases) func factsOfAPort_giveItsType(_ one: Case) {
        let facts = PortFacts(
            isInput: one.input, deviceName: one.device, portType: one.port.rawValue, portName: one.portName,
            driver: one.driver, isNetwork: one.network, properties: one.properties)
        #expect(PortTypeRules.type(of: facts) == one.type)
    }
}
