import CPulse
import PluginAPI

/// A sink or source as the server reports it, without C pointers.
struct PulseDevice: Hashable {
    struct DevicePort: Hashable {
        let name: String
        let label: String
        let type: UInt32
        let isAvailable: Bool
    }

    let index: UInt32
    let isInput: Bool
    let name: String
    let label: String
    let driver: String
    let channels: UInt32
    let rate: UInt32
    /// `noIndex` if it has none.
    let card: UInt32
    let isNetwork: Bool
    /// Whether a route cannot use it: a sink's monitor, the dummy sink of a server without sinks, the hold sink, the
    /// guard, or a sink of WirePlumber's roles.
    let isNoPort: Bool
    /// Whether it is the monitor of a sink.
    let isMonitor: Bool
    /// Whether it is a sink of sessiond's, or the monitor of one.
    var isOurs: Bool { PulseGuard.isName(name) || name.hasPrefix(PulseDevice.holdName) }
    /// Whether it is the guard.
    let isGuard: Bool
    /// Whether it is the hold sink.
    let isHold: Bool
    /// Whether nothing that is linked to it runs because of it (PipeWire, ``HoldModule``).
    var isPassive: Bool { properties["node.passive"] == "true" }
    /// Whether it is a sink of WirePlumber's role policy, which is linked to the devices.
    let isRole: Bool
    /// The module that created it; `noIndex`: none.
    let module: UInt32
    /// The client of PipeWire that created it; nil if a module did, or if unknown.
    var client: String? { module == noIndex ? properties["client.id"] : nil }
    let isMuted: Bool
    let volume: Double
    let latency: Double
    /// Running, idle or suspended.
    let state: Int32
    let properties: [String: String]
    let ports: [DevicePort]
    let activePort: String?

    init(_ info: pa_sink_info) {
        self.init(info, isInput: false, isNetwork: info.flags.rawValue & PA_SINK_NETWORK.rawValue != 0)
    }

    init(_ info: pa_source_info) {
        self.init(
            info, isInput: true, isNetwork: info.flags.rawValue & PA_SOURCE_NETWORK.rawValue != 0,
            isMonitor: info.monitor_of_sink != noIndex)
    }

    private init(_ info: some DeviceInfo, isInput: Bool, isNetwork: Bool, isMonitor: Bool = false) {
        index = info.index
        self.isInput = isInput
        name = String(orEmpty: info.name)
        label = String(orEmpty: info.description)
        driver = String(orEmpty: info.driver)
        channels = UInt32(max(1, info.sample_spec.channels))
        rate = info.sample_spec.rate
        card = info.card
        self.isNetwork = isNetwork
        self.isMonitor = isMonitor
        isGuard = !isInput && PulseGuard.isName(name)
        isHold = !isInput && name == PulseDevice.holdName
        properties = PulseDevice.read(info.proplist, prefixes: PulseDevice.prefixes)
        isRole = PulseDevice.isRole(name, properties)
        isNoPort = name == "auto_null" || isGuard || isHold || isRole || isMonitor
        module = info.owner_module
        isMuted = info.mute != 0
        volume = PulseDevice.linear(info.volume)
        latency = Double(info.configured_latency) / 1e6
        state = info.stateNumber
        ports = (0..<Int(clamping: info.n_ports)).compactMap { place in
            guard let port = info.ports?[place]?.pointee else { return nil }
            return DevicePort(
                name: String(orEmpty: port.name), label: String(orEmpty: port.description), type: port.type,
                isAvailable: UInt32(bitPattern: port.available) != PA_PORT_AVAILABLE_NO.rawValue)
        }
        activePort = (info.active_port?.pointee.name).map { String(cString: $0) }
    }

    /// Whether the server may choose it as a default.
    var isUsable: Bool { ports.isEmpty || ports.contains(where: \.isAvailable) }

    /// What decides whether the server chooses it as a default.
    var forRule: DefaultRule.Device { DefaultRule.Device(name: name, properties: properties, isMonitor: isMonitor) }

    /// The port in use.
    var active: Port? {
        if isNoPort { return nil }
        guard let activePort else { return port(nil) }
        return ports.first { $0.name == activePort }.map { port($0) } ?? port(nil)
    }

    /// The ports that can be selected: all that are plugged in, or may be.
    var available: [Port] {
        if isNoPort { return [] }
        if ports.isEmpty { return [port(nil)] }
        return ports.filter(\.isAvailable).map { port($0) }
    }

    /// The server's name of the port with that uid; nil if the device does not have it; "" for a device without ports.
    func portName(of uid: String) -> String? {
        if ports.isEmpty { return uid == self.uid(nil) ? "" : nil }
        return ports.first { self.uid($0) == uid }?.name
    }

    /// A virtual device that is only a filter in front of another one, on which it plays. PipeWire's own filters are a
    /// group of two nodes, of which this is one. EasyEffects asks with its priority never to be the default.
    var isFilter: Bool {
        let isLast = properties["node.virtual"] == "true" && properties["priority.session"] == "0"
        let isMarked = properties["device.class"] == "filter" || properties["node.link-group"] != nil || isLast
        return isMarked && active?.type == .virtual
    }

    private func uid(_ port: DevicePort?) -> String {
        let type = type(port)
        if type == .bluetoothA2DP || type == .bluetoothHFP, let address = Bluetooth.address(properties) {
            return Bluetooth.uid(address, type, isInput: isInput)
        }
        return port.map { name + "/" + $0.name } ?? name
    }

    private func type(_ port: DevicePort?) -> PortType {
        PortTypeRules.type(
            of: PortFacts(
                isInput: isInput, deviceName: name, portType: port?.type ?? 0, portName: port?.name ?? "",
                driver: driver, isNetwork: isNetwork, properties: properties))
    }

    private func port(_ port: DevicePort?) -> Port {
        let type = type(port)
        // The headset's own name is better than "Headset".
        let isRadio = type == .bluetoothA2DP || type == .bluetoothHFP
        let label = (isRadio ? nil : port?.label) ?? self.label
        return Port(
            type: type, name: label.isEmpty ? name : label, uid: uid(port), channels: channels, sampleRate: rate,
            isAvailable: port?.isAvailable ?? true)
    }

    /// The name of the hold sink, by which a later daemon finds it.
    static let holdName = "sessiond.hold"

    /// The names of WirePlumber 0.4 and 0.5. If a loopback of 0.5 has no name, PipeWire's module makes one from the
    /// common name.
    private static let rolePrefixes = ["control.endpoint.", "loopback.sink.role.", "input.loopback.sink.role."]

    /// Whether its name is one of the role sinks, or WirePlumber 0.5 is configured to link roles to it.
    private static func isRole(_ name: String, _ properties: [String: String]) -> Bool {
        rolePrefixes.contains(where: name.hasPrefix) || properties["policy.role-based.target"] == "true"
    }

    private static let prefixes = [
        "device.", "bluetooth.", "api.bluez5.", "node.virtual", "node.network", "node.passive", "node.link-group",
        "client.id", "policy.role-based.target", "priority.",
    ]

    static func read(_ list: OpaquePointer?, prefixes: [String]) -> [String: String] {
        guard let list else { return [:] }
        var result: [String: String] = [:]
        var state: UnsafeMutableRawPointer?
        while let key = pa_proplist_iterate(list, &state) {
            let name = String(cString: key)
            guard prefixes.contains(where: { name.hasPrefix($0) }), let value = pa_proplist_gets(list, key) else {
                continue
            }
            result[name] = String(cString: value)
        }
        return result
    }

    private static func linear(_ volume: pa_cvolume) -> Double {
        var volume = volume
        guard pa_cvolume_valid(&volume) != 0 else { return 1 }
        // The position of the slider that desktops show, not the amplitude.
        return Double(pa_cvolume_max(&volume)) / Double(normalVolume)
    }
}

/// PA_VOLUME_NORM and PA_INVALID_INDEX. Swift does not import macros with casts correctly.
private let normalVolume: UInt32 = 0x10000
let noIndex = UInt32.max

extension String {
    init(orEmpty text: UnsafePointer<CChar>?) { self = text.map { String(cString: $0) } ?? "" }
}

/// What libpulse's structures of sinks and sources have in common.
private protocol DeviceInfo {
    associatedtype PortInfo: DevicePortInfo
    var index: UInt32 { get }
    var name: UnsafePointer<CChar>! { get }
    var description: UnsafePointer<CChar>! { get }
    var driver: UnsafePointer<CChar>! { get }
    var sample_spec: pa_sample_spec { get }
    var card: UInt32 { get }
    var proplist: OpaquePointer! { get }
    var owner_module: UInt32 { get }
    var mute: Int32 { get }
    var volume: pa_cvolume { get }
    var configured_latency: pa_usec_t { get }
    var stateNumber: Int32 { get }
    var n_ports: UInt32 { get }
    var ports: UnsafeMutablePointer<UnsafeMutablePointer<PortInfo>?>! { get }
    var active_port: UnsafeMutablePointer<PortInfo>! { get }
}

private protocol DevicePortInfo {
    var name: UnsafePointer<CChar>! { get }
    var description: UnsafePointer<CChar>! { get }
    var type: UInt32 { get }
    var available: Int32 { get }
}

extension pa_sink_info: DeviceInfo {
    var stateNumber: Int32 { state.rawValue }
}
extension pa_source_info: DeviceInfo {
    var stateNumber: Int32 { state.rawValue }
}
extension pa_sink_port_info: DevicePortInfo {}
extension pa_source_port_info: DevicePortInfo {}
