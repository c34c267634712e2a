/// The type of a port (AVAudioSession.Port). The raw value is the name on the wire.
public enum PortType: String, CaseIterable, Sendable, Hashable, Codable {
    case lineIn = "LineIn"
    case microphoneBuiltIn = "MicrophoneBuiltIn"
    case microphoneWired = "MicrophoneWired"
    case lineOut = "LineOut"
    case headphones = "Headphones"
    case bluetoothA2DP = "BluetoothA2DP"
    case receiver = "Receiver"
    case speaker = "Speaker"
    case hdmi = "HDMI"
    case airPlay = "AirPlay"
    case displayPort = "DisplayPort"
    case bluetoothHFP = "BluetoothHFP"
    case usbAudio = "USBAudio"
    case carAudio = "CarAudio"
    case virtual = "Virtual"
    case pci = "PCI"
}

/// One input or output that a route can use (AVAudioSessionPortDescription).
public struct Port: Sendable, Hashable, Codable {
    public let type: PortType
    /// For display, as the server describes it.
    public let name: String
    /// Stable while the device exists: the server's device name, then a slash and the port's name if it has ports; for
    /// a Bluetooth headset its address and `/a2dp`, `/hfp` or `/hfp-input`.
    public let uid: String
    /// At least 1.
    public let channels: UInt32
    /// The current sample rate of the device, in hertz; 0 if unknown.
    public let sampleRate: UInt32
    /// False if the server knows that nothing is plugged in (`PA_PORT_AVAILABLE_NO`).
    public let isAvailable: Bool

    public init(
        type: PortType, name: String, uid: String, channels: UInt32, sampleRate: UInt32 = 0, isAvailable: Bool = true
    ) {
        self.type = type
        self.name = name
        self.uid = uid
        self.channels = channels
        self.sampleRate = sampleRate
        self.isAvailable = isAvailable
    }

    /// The common part of the ports of one device: the uid up to its last slash, or all of it.
    public var device: Substring { Port.device(of: uid) }

    /// The same part of any port's uid.
    public static func device(of uid: String) -> Substring { uid.lastIndex(of: "/").map { uid[..<$0] } ?? uid[...] }
}

/// The inputs and outputs in use (AVAudioSessionRouteDescription); empty if there are none.
public struct Route: Sendable, Hashable, Codable {
    public var inputs: [Port]
    public var outputs: [Port]

    /// No server, or no device.
    public static let none = Route(inputs: [], outputs: [])

    public init(inputs: [Port], outputs: [Port]) {
        self.inputs = inputs
        self.outputs = outputs
    }

    /// The part of the route that a session of that category uses.
    public func limited(to category: Category) -> Route {
        Route(inputs: category.hasInput ? inputs : [], outputs: category.hasOutput ? outputs : [])
    }
}

/// Why a route changed (AVAudioSession.RouteChangeReason). The raw value is the number on the wire; 5 is unused there.
public enum RouteChangeReason: UInt32, CaseIterable, Sendable, Hashable, Codable {
    case unknown = 0
    /// A device or port appeared and became the route, or could.
    case newDeviceAvailable = 1
    /// A device or port of the route was removed.
    case oldDeviceUnavailable = 2
    /// A change of the session's category, mode or options changed the ports that it may use.
    case categoryChange = 3
    /// An override of the output was set or removed.
    case override = 4
    /// The machine slept, and the devices were read again.
    case wakeFromSleep = 6
    /// The category needs an input, or an output, and there is none.
    case noSuitableRouteForCategory = 7
    /// The same ports with other settings: profile, channels, rate.
    case routeConfigurationChange = 8

    /// For display and logs: the name as in rules §7.
    public var name: String {
        switch self {
        case .unknown: "unknown"
        case .newDeviceAvailable: "new-device-available"
        case .oldDeviceUnavailable: "old-device-unavailable"
        case .categoryChange: "category-change"
        case .override: "override"
        case .wakeFromSleep: "wake-from-sleep"
        case .noSuitableRouteForCategory: "no-suitable-route-for-category"
        case .routeConfigurationChange: "route-configuration-change"
        }
    }
}
