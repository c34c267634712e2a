import PluginAPI

/// The order in which ports appeared or were chosen by the user: the last one wins.
struct PortOrder {
    private var places: [String: (order: Int, time: UInt64)] = [:]
    private var next = 0
    /// Below all ports that appeared separately: of ports found together, none has priority over another.
    private var nextEarly = -1
    /// Below these: a filter in front of a device wins only if the user chooses it.
    private var nextFilter = Int.min / 2
    /// Nothing was seen so far.
    private var isFirst = true

    /// A headset keeps its position whichever profile it uses.
    private static func key(_ port: Port, isInput: Bool) -> String {
        let isHeadset = port.type == .bluetoothA2DP || port.type == .bluetoothHFP
        return (isInput ? "<" : ">") + (isHeadset ? String(port.device) : port.uid)
    }

    /// Processes the ports at time `now`, in microseconds, and removes missing ones. The first ports existed before,
    /// for an unknown time. `filters` and `early` have the uids of ports that do not win by appearing: filters, and
    /// devices that were found together.
    mutating func update(
        _ inputs: [Port], _ outputs: [Port], filters: Set<String>, early: Set<String> = [], now: UInt64
    ) {
        let now = isFirst ? 0 : now
        isFirst = false
        var present: [String: (order: Int, time: UInt64)] = [:]
        for (ports, isInput) in [(outputs, false), (inputs, true)] {
            for port in ports {
                let key = PortOrder.key(port, isInput: isInput)
                if let place = places[key] ?? present[key] {
                    present[key] = place
                } else if filters.contains(port.uid) {
                    present[key] = (nextFilter, now)
                    nextFilter -= 1
                } else if early.contains(port.uid) {
                    present[key] = (nextEarly, now)
                    nextEarly -= 1
                } else {
                    present[key] = (next, now)
                    next += 1
                }
            }
        }
        places = present
    }

    /// The user chose it: it becomes the newest.
    mutating func prefer(_ port: Port, isInput: Bool) {
        let key = PortOrder.key(port, isInput: isInput)
        guard let place = places[key], place.order < next - 1 else { return }
        places[key] = (next, place.time)
        next += 1
    }

    func sorted(_ ports: [Port], isInput: Bool) -> [Port] {
        // Ports of one headset keep their order.
        ports.enumerated().sorted { one, two in
            let (a, b) = (order(one.element, isInput), order(two.element, isInput))
            return a == b ? one.offset < two.offset : a < b
        }
        .map(\.element)
    }

    private func order(_ port: Port, _ isInput: Bool) -> Int {
        places[PortOrder.key(port, isInput: isInput)]?.order ?? 0
    }

    /// The ports that appeared less than that many microseconds before `now`.
    func recent(_ ports: [Port], isInput: Bool, _ now: UInt64, within span: UInt64) -> [String] {
        ports.filter { port in
            places[PortOrder.key(port, isInput: isInput)].map { now &- $0.time < span } ?? false
        }
        .map(\.uid)
    }

    /// The ports that neither won by appearing nor were chosen since.
    func losers(_ ports: [Port], isInput: Bool) -> [Port] { ports.filter { order($0, isInput) < 0 } }
}
