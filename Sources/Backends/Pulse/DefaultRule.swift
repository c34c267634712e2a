/// The rule by which a server chooses its default devices: the one with the highest rank.
///
/// From `compare_sinks`, `compare_sources` and `pa_device_init_priority` of PulseAudio, `module-default-nodes.c` of
/// WirePlumber 0.4, and `default-nodes/*.lua` of later versions.
struct DefaultRule {
    enum Server: Equatable {
        case pulseAudio
        case wirePlumber4(ChosenDefaults)
        case wirePlumber5(ChosenDefaults)
    }

    /// What decides about one device.
    struct Device: Hashable {
        /// Its name at the server.
        var name: String
        var properties: [String: String]
        /// Whether it is the monitor of a sink. It has the properties of the sink.
        var isMonitor = false
    }

    var server: Server
    /// The devices that are known to be the configured ones; nil: not known, or none is.
    var configuredSink: String?
    var configuredSource: String?

    /// The device that the server chooses by such ranks; nil: not known, because several are equal.
    func choice(_ devices: [Device], _ rank: (Device) -> Int) -> String? {
        let ranked = devices.map { ($0.name, rank($0)) }
        let best = ranked.filter { $0.1 == ranked.map(\.1).max() }.map(\.0)
        // PulseAudio keeps the first; WirePlumber has them in no order.
        return server != .pulseAudio && best.count > 1 ? nil : best.first
    }

    func rank(ofSink sink: Device) -> Int {
        rank(of: sink.name, sink, \.sinks, configured: configuredSink)
    }

    func rank(ofSource source: Device) -> Int {
        // The session manager ranks the sink itself; PulseAudio ranks every other source before a monitor.
        if server == .pulseAudio, source.isMonitor { return -1 }
        let suffix = ".monitor"
        let isNamed = source.isMonitor && source.name.hasSuffix(suffix)
        let name = isNamed ? String(source.name.dropLast(suffix.count)) : source.name
        return rank(of: name, source, \.sources, configured: configuredSource)
    }

    private func rank(
        of name: String, _ device: Device, _ choices: KeyPath<ChosenDefaults, ChosenDefaults.Choices>,
        configured known: String?
    ) -> Int {
        switch server {
        case .pulseAudio:
            return DefaultRule.priority(device.properties) + (known == device.name ? DefaultRule.configured : 0)
        case .wirePlumber4(let chosen):
            let base = device.properties["priority.session"].map { Int($0) ?? 0 } ?? -1
            let choices = chosen[keyPath: choices]
            if known == device.name || choices.configured == name { return base + 340_000 }
            guard let place = choices.numbered.firstIndex(of: name), place < 16 else { return base }
            return base + (16 - place) * 20_000
        case .wirePlumber5(let chosen):
            let number = device.properties["priority.session"] ?? device.properties["priority.driver"]
            let base = number.flatMap { Int($0) } ?? 0
            let choices = chosen[keyPath: choices]
            if known == device.name || choices.configured == name { return base + 30_000 }
            guard let place = choices.numbered.firstIndex(of: name) else { return base }
            return base + 20_001 - (place + 2)
        }
    }

    /// More than any device of PulseAudio can have by its properties.
    private static let configured = 1_000_000

    /// PulseAudio's priority of a device with those properties.
    static func priority(_ properties: [String: String]) -> Int {
        terms(properties).reduce(0) { $0 + $1.points }
    }

    /// The same properties without what PulseAudio does not rank by.
    static func rankingProperties(_ properties: [String: String]) -> [String: String] {
        var result: [String: String] = [:]
        for term in terms(properties) { result[term.key] = term.value }
        return result
    }

    /// What PulseAudio ranks by, with a value for each that gives as many points as that of the device.
    private static func terms(_ properties: [String: String]) -> [(key: String, value: String, points: Int)] {
        var terms: [(key: String, value: String, points: Int)] = []
        func add(_ key: String, _ points: [String: Int]) {
            if let value = properties[key], let points = points[value] { terms.append((key, value, points)) }
        }
        add("device.api", ["jack": 10_000])
        switch properties["device.class"] {
        case "sound": terms.append(("device.class", "sound", 9_000))
        case "modem", nil: terms.append(("device.class", "modem", 0))
        default: terms.append(("device.class", "filter", 1_000))
        }
        add("device.form_factor", ["headphone": 900, "hifi": 600, "speaker": 500, "portable": 450])
        add("device.bus", ["bluetooth": 50, "usb": 40, "pci": 30])
        let profile = properties["device.profile.name"] ?? ""
        if profile.hasPrefix("analog-") {
            terms.append(("device.profile.name", "analog-stereo", 9))
            let roles = (properties["device.intended_roles"] ?? "").split(separator: " ")
            if roles.contains("phone") { terms.append(("device.intended_roles", "phone", -1)) }
        } else if profile.hasPrefix("iec958-") {
            terms.append(("device.profile.name", "iec958-stereo", 7))
        }
        return terms
    }
}
