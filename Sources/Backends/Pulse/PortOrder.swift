import PluginAPI

/// The order in which ports appeared or were chosen by the user: the last one wins.
struct PortOrder {
    private var places: [String: Place] = [:]
    /// The places of ports that have gone. Those that come back together with others, because the session manager was
    /// restarted, get them again. The oldest are forgotten.
    private var gone: [(key: String, order: Int)] = []
    private static let goneLimit = 64
    private var next = 0
    /// Below all ports that appeared separately: of ports found together, none has priority over another.
    private var nextEarly = -1
    /// Below these: a filter in front of a device wins only if the user chooses it.
    private var nextFilter = Int.min / 2
    /// Nothing was seen so far.
    private var isFirst = true

    private struct Place {
        var order: Int
        /// When it appeared, in microseconds.
        var time: UInt64
        /// Whether it has appeared separately, or was chosen since it appeared.
        var hasWon: Bool
    }

    /// A headset keeps its position whichever profile it uses.
    private static func key(_ port: Port, isInput: Bool) -> String {
        let isHeadset = port.type == .bluetoothA2DP || port.type == .bluetoothHFP
        return key(isHeadset ? String(port.device) : port.uid, isInput: isInput)
    }

    private static func key(_ name: String, isInput: Bool) -> String { (isInput ? "<" : ">") + name }

    /// Processes the ports at time `now`, in microseconds. Missing ones lose their place. The first ports existed before,
    /// for an unknown time. `filters` and `early` have the uids of ports that do not win by appearing: filters, and
    /// devices that were found together. `changing` has the addresses of headsets whose ports are missing because they
    /// change their profile: these keep their places.
    mutating func update(
        _ inputs: [Port], _ outputs: [Port], filters: Set<String>, early: Set<String> = [], changing: [String] = [],
        now: UInt64
    ) {
        let now = isFirst ? 0 : now
        isFirst = false
        var present: [String: Place] = [:]
        for (ports, isInput) in [(outputs, false), (inputs, true)] {
            for port in ports {
                let key = PortOrder.key(port, isInput: isInput)
                if let place = places[key] ?? present[key] {
                    present[key] = place
                } else if filters.contains(port.uid) {
                    present[key] = Place(order: nextFilter, time: now, hasWon: false)
                    nextFilter -= 1
                } else if early.contains(port.uid) {
                    let known = gone.last { $0.key == key }?.order
                    present[key] = Place(order: known ?? nextEarly, time: now, hasWon: false)
                    nextEarly -= 1
                } else {
                    present[key] = Place(order: next, time: now, hasWon: true)
                    next += 1
                }
            }
        }
        for address in changing {
            for key in [false, true].map({ PortOrder.key(address, isInput: $0) }) where present[key] == nil {
                present[key] = places[key]
            }
        }
        gone.removeAll { present[$0.key] != nil }
        gone += places.filter { present[$0.key] == nil }.map { ($0.key, $0.value.order) }
        gone.removeFirst(max(0, gone.count - PortOrder.goneLimit))
        places = present
    }

    /// The user chose it: it becomes the newest.
    mutating func prefer(_ port: Port, isInput: Bool) {
        let key = PortOrder.key(port, isInput: isInput)
        guard let place = places[key] else { return }
        places[key]?.hasWon = true
        guard place.order < next - 1 else { return }
        places[key]?.order = next
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
    func losers(_ ports: [Port], isInput: Bool) -> [Port] {
        ports.filter { places[PortOrder.key($0, isInput: isInput)]?.hasWon == false }
    }
}
