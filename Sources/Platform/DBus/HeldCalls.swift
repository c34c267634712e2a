/// Calls of peers about which the bus is being asked, in the order of each peer.
///
/// They are not kept as messages of libdbus: it reads nothing while too many bytes of messages are kept, so the answer of
/// the bus would not arrive.
struct HeldCalls<Call> {
    /// Bytes of all calls together. Above it, the peer with the most loses its calls.
    static var limit: Int { 4 << 20 }
    /// What a call needs besides its bytes.
    private static var overhead: Int { 256 }

    private var held: [String: (calls: [Call], bytes: Int)] = [:]
    private(set) var bytes = 0

    init() {}

    func has(_ peer: String) -> Bool { held[peer] != nil }

    mutating func add(_ call: Call, bytes size: Int, of peer: String) {
        let size = size + Self.overhead
        held[peer, default: ([], 0)].calls.append(call)
        held[peer]?.bytes += size
        bytes += size
    }

    mutating func take(_ peer: String) -> [Call] {
        guard let taken = held.removeValue(forKey: peer) else { return [] }
        bytes -= taken.bytes
        return taken.calls
    }

    /// The peer with the most, while there are too many bytes.
    var excessive: String? { bytes > Self.limit ? held.max { $0.value.bytes < $1.value.bytes }?.key : nil }

    mutating func removeAll() { self = HeldCalls() }
}
