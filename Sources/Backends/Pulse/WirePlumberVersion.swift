import CPulse

/// The version of WirePlumber, from its entry among PipeWire's clients.
struct WirePlumberVersion: Comparable {
    let numbers: [Int]

    init(_ numbers: Int...) { self.numbers = numbers }

    /// From text such as "0.5.11"; anything after the numbers is ignored. Nil if it does not begin with a number.
    init?(_ text: String) {
        let parts = text.split(separator: ".").map { Int($0.prefix { $0.isNumber }) }
        numbers = parts.prefix { $0 != nil }.compactMap(\.self)
        if numbers.isEmpty { return nil }
    }

    /// Nil if that client is another program.
    init?(_ info: pa_client_info) {
        let properties = PulseDevice.read(info.proplist, prefixes: ["application.version", "wireplumber."])
        guard properties["wireplumber.daemon"] == "true" else { return nil }
        // WirePlumber before 0.5 does not report its version.
        self = properties["application.version"].flatMap { WirePlumberVersion($0) } ?? WirePlumberVersion(0, 4)
    }

    static func < (one: Self, other: Self) -> Bool { one.numbers.lexicographicallyPrecedes(other.numbers) }
}
