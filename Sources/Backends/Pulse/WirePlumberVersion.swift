import CPulse

/// Which WirePlumber decides in a PipeWire server, as far as its client entry tells.
struct WirePlumberVersion: Comparable {
    let numbers: [Int]

    init(_ numbers: Int...) { self.numbers = numbers }

    /// Of "0.5.11"; what follows the numbers is left out. Nil where it does not begin with one.
    init?(_ text: String) {
        let parts = text.split(separator: ".").map { Int($0.prefix { $0.isNumber }) }
        numbers = parts.prefix { $0 != nil }.compactMap(\.self)
        if numbers.isEmpty { return nil }
    }

    /// Nil where that client is another program.
    init?(_ info: pa_client_info) {
        let properties = PulseDevice.read(info.proplist, prefixes: ["application.version", "wireplumber."])
        guard properties["wireplumber.daemon"] == "true" else { return nil }
        // Those that do not tell are older than 0.5.
        self = properties["application.version"].flatMap { WirePlumberVersion($0) } ?? WirePlumberVersion(0, 4)
    }

    static func < (one: Self, other: Self) -> Bool { one.numbers.lexicographicallyPrecedes(other.numbers) }
}
