import CPulse
import PluginAPI

/// A card as the server reports it, without C pointers. Needed for cards whose profile the daemon chooses.
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

    /// The headset's address; nil if the card is not a headset.
    var address: String? { Bluetooth.address(properties) }

    var isHandsFree: Bool { Bluetooth.isHandsFree(activeProfile) }

    /// The uid of the output that the active profile has; nil if the card is not a headset, or its profile has none.
    var output: String? { address.flatMap { Bluetooth.output($0, profile: activeProfile) } }

    /// The profile for calls: the best one that is available.
    var handsFreeProfile: String? { best(Bluetooth.isHandsFree) }
    /// The profile for music.
    var musicProfile: String? { best(Bluetooth.isMusic) }

    private func best(_ fits: (String) -> Bool) -> String? {
        profiles.filter { $0.isAvailable && fits($0.name) }.max { $0.priority < $1.priority }?.name
    }

    /// The input that represents the headset's microphone while the card uses its music profile, which has no input.
    var handsFreeInput: Port? {
        guard let address, !isHandsFree, handsFreeProfile != nil else { return nil }
        return Port(
            type: .bluetoothHFP, name: label, uid: Bluetooth.uid(address, .bluetoothHFP, isInput: true), channels: 1)
    }
}

/// How PulseAudio and PipeWire report Bluetooth headsets, and how their ports are named: by the headset, because its
/// sinks and sources change with its profiles.
enum Bluetooth {
    static func address(_ properties: [String: String]) -> String? {
        guard let api = properties["device.api"], api == "bluez" || api == "bluez5" else { return nil }
        return properties["api.bluez5.address"] ?? properties["device.string"]
    }

    static func uid(_ address: String, _ type: PortType, isInput: Bool) -> String {
        address + (type == .bluetoothA2DP ? "/a2dp" : isInput ? "/hfp-input" : "/hfp")
    }

    /// The uids of all outputs that a headset may have.
    static func outputs(_ address: String) -> [String] {
        [.bluetoothA2DP, .bluetoothHFP].map { uid(address, $0, isInput: false) }
    }

    /// The uid of the output that a headset has in that profile; nil: it has none.
    static func output(_ address: String, profile: String) -> String? {
        if isHandsFree(profile) { return uid(address, .bluetoothHFP, isInput: false) }
        return isMusic(profile) ? uid(address, .bluetoothA2DP, isInput: false) : nil
    }

    static func isHandsFree(_ profile: String) -> Bool {
        ["headset", "handsfree", "hfp", "hsp"].contains { profile.hasPrefix($0) } && !profile.hasSuffix("gateway")
            && !profile.hasSuffix("_ag")
    }

    static func isMusic(_ profile: String) -> Bool { profile.hasPrefix("a2dp") && !profile.hasSuffix("source") }
}
