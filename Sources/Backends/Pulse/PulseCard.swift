import CPulse
import PluginAPI

/// A card as the server told of it, free of C pointers: of interest where its profile is ours to choose.
struct PulseCard: Hashable {
    struct Profile: Hashable {
        let name: String
        let priority: UInt32
        let isAvailable: Bool
    }

    let index: UInt32
    let name: String
    let label: String
    let properties: [String: String]
    let profiles: [Profile]
    let activeProfile: String

    init(_ info: pa_card_info) {
        index = info.index
        name = String(orEmpty: info.name)
        properties = PulseDevice.read(info.proplist, prefixes: ["device.", "api.bluez5."])
        label = properties["device.description"] ?? name
        profiles = (0..<Int(clamping: info.n_profiles)).compactMap { place in
            guard let profile = info.profiles2?[place]?.pointee else { return nil }
            return Profile(
                name: String(orEmpty: profile.name), priority: profile.priority, isAvailable: profile.available != 0)
        }
        activeProfile = String(orEmpty: info.active_profile2?.pointee.name)
    }

    /// The headset's address; nil for a card that is none.
    var address: String? { Bluetooth.address(properties) }

    var isHandsFree: Bool { Bluetooth.isHandsFree(activeProfile) }

    /// The profile to talk through: the best that the headset has connected.
    var handsFreeProfile: String? { best(Bluetooth.isHandsFree) }
    /// The profile for music.
    var musicProfile: String? { best(Bluetooth.isMusic) }

    private func best(_ fits: (String) -> Bool) -> String? {
        profiles.filter { $0.isAvailable && fits($0.name) }.max { $0.priority < $1.priority }?.name
    }

    /// What stands for the headset's microphone while the card shows its music profile, which has none.
    var handsFreeInput: Port? {
        guard let address, !isHandsFree, handsFreeProfile != nil else { return nil }
        return Port(
            type: .bluetoothHFP, name: label, uid: Bluetooth.uid(address, .bluetoothHFP, isInput: true), channels: 1)
    }
}

/// How PulseAudio and PipeWire tell of Bluetooth headsets, and how we name their ports: by the headset, as its sinks
/// and sources come and go with its profiles.
enum Bluetooth {
    static func address(_ properties: [String: String]) -> String? {
        guard let api = properties["device.api"], api == "bluez" || api == "bluez5" else { return nil }
        return properties["api.bluez5.address"] ?? properties["device.string"]
    }

    static func uid(_ address: String, _ type: PortType, isInput: Bool) -> String {
        address + (type == .bluetoothA2DP ? "/a2dp" : isInput ? "/hfp-input" : "/hfp")
    }

    static func isHandsFree(_ profile: String) -> Bool {
        ["headset", "handsfree", "hfp", "hsp"].contains { profile.hasPrefix($0) } && !profile.hasSuffix("gateway")
            && !profile.hasSuffix("_ag")
    }

    static func isMusic(_ profile: String) -> Bool { profile.hasPrefix("a2dp") && !profile.hasSuffix("source") }
}
