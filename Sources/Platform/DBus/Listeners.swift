/// The connections that get the signals of a program that serves only some users of a shared bus: those that have called
/// it, and were not refused. All others would hear what they may not read.
final class Listeners {
    weak var connection: Connection?
    /// Each until it leaves the bus.
    private var departures: [String: Subscription] = [:]

    /// In the order of their names.
    var peers: [String] { departures.keys.sorted() }

    func add(_ peer: String) {
        guard departures[peer] == nil else { return }
        departures[peer] = connection?.watchName(peer) { [weak self] in self?.departures[peer] = nil }
    }

    func removeAll() { departures.removeAll() }
}
