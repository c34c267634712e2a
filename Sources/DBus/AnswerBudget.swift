/// Counts the answers that callers have not read yet, as far as known.
///
/// If a peer does not read messages, the bus stores them and counts them for the sender. It stops reading from a sender
/// with too many of them. So one peer that calls and never reads would stop the service for all. Therefore answers are
/// counted, and sometimes the bus is asked how many still wait. Calls of a peer with too many waiting answers are
/// refused, and later not answered at all.
struct AnswerBudget {
    /// Bytes for one peer, after which the bus is asked.
    static let asked = 1 << 20
    /// Bytes for one peer, after which its calls are refused. One answer may exceed this.
    static let limit = 8 << 20
    /// Bytes of refusals, after which it gets no answer.
    static let refusals = 64 << 10
    /// Bytes for all peers together, after which those are refused that have more than ``asked`` / 8 waiting.
    static let ofAll = 64 << 20
    /// Bytes of a peer that are forgotten when too many peers are counted.
    private static let small = asked / 64
    /// The minimum number of counted peers; above it, peers with little waiting data are forgotten.
    private static let peers = 512

    enum Verdict {
        case answer, refuse, silence
    }

    private struct Peer {
        var unread = 0
        /// The value of ``unread`` when the bus was asked; nil: it is not being asked.
        var question: Int?
        /// The value of ``unread`` up to which the bus need not be asked.
        var settled = 0
    }

    private var peers: [String: Peer] = [:]
    private var total = 0
    private var capacity = peers

    init() {}

    /// Whether so much is counted that somebody could be refused.
    var isLarge: Bool { total > Self.asked }

    /// Whether so much of that peer is counted that it must be forgotten when the peer leaves.
    func remembers(_ peer: String) -> Bool { isLarge && (peers[peer]?.unread ?? 0) >= Self.small }

    /// How to treat the next call of that peer.
    func verdict(_ peer: String) -> Verdict {
        guard isLarge, let known = peers[peer] else { return .answer }
        let limit = total > Self.ofAll ? Self.asked / 8 : Self.limit
        guard known.unread > limit else { return .answer }
        return known.unread > max(limit, known.settled) + Self.refusals ? .silence : .refuse
    }

    /// Counts an answer.
    mutating func add(_ bytes: Int, to peer: String) {
        total += bytes
        if peers.count >= capacity, peers[peer] == nil { forgetSmall() }
        peers[peer, default: Peer()].unread += bytes
    }

    /// Whether the bus must be asked about that peer now; then call ``settle(_:_:)``.
    mutating func asks(_ peer: String) -> Bool {
        guard isLarge, let known = peers[peer], known.question == nil else { return false }
        let mayBeRefused = known.unread > Self.limit || total > Self.ofAll && known.unread > Self.asked / 8
        guard mayBeRefused || known.unread > known.settled + Self.asked else { return false }
        peers[peer]?.question = known.unread
        return true
    }

    /// How much of the answers sent before ``asks(_:)`` still waits; nil: the peer is gone, asked for or not.
    mutating func settle(_ peer: String, _ unread: Int?) {
        guard let known = peers[peer] else { return }
        guard let unread else {
            total -= known.unread
            peers[peer] = nil
            return
        }
        guard let question = known.question else { return }
        let now = min(known.unread, unread + known.unread - question)
        total += now - known.unread
        peers[peer] = Peer(unread: now, question: nil, settled: now)
    }

    private mutating func forgetSmall() {
        for (peer, known) in peers where known.unread < Self.small && known.question == nil {
            total -= known.unread
            peers[peer] = nil
        }
        capacity = max(Self.peers, 2 * peers.count)
    }
}
