/// Whether the default device of one direction is known to be configured: it was requested, or it has replaced another one
/// that is still there, and was there before.
struct ConfiguredDefault {
    /// The name of the device; nil: not known.
    private(set) var name: String?
    private var requested: String?
    private var last: String?
    /// The devices that the server may choose, and since when.
    private var usable: [String: UInt64] = [:]

    /// Microseconds in which the server may choose a new device by itself.
    private static let newTime: UInt64 = 2_000_000

    /// `name` nil: none shall be configured.
    mutating func request(_ name: String?) {
        requested = name
        if name == nil || name == last { self.name = name }
    }

    /// The server shows that default. `usable`: the devices that it may choose, without ours.
    mutating func show(_ shown: String, of usable: some Sequence<String>, at now: UInt64) {
        var since: [String: UInt64] = [:]
        for name in usable { since[name] = self.usable[name] ?? now }
        self.usable = since
        // While the guard replaces the default, nothing is chosen.
        guard shown != last, let age = since[shown].map({ now &- $0 }) else { return }
        let isReplaced = last.map { since[$0] != nil } ?? false && age > ConfiguredDefault.newTime
        name = shown == requested || isReplaced ? shown : nil
        last = shown
        requested = nil
    }
}
