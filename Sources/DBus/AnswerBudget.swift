/// How much of what callers were answered they have not read yet, as far as is known.
///
/// A bus keeps what a peer does not read in the sender's name, and stops reading from a sender of whom it keeps too much:
/// one peer that asks and never reads would end the service for everybody. So answers are counted, and now and then the
/// bus is asked how many of them still wait with it; who has too many waiting is refused, then not answered at all.
struct AnswerBudget {
    /// Bytes of one peer, after which the bus is asked.
    static let asked = 1 << 20
    /// Bytes of one peer, after which its calls are refused. One answer may go beyond it.
    static let limit = 8 << 20
    /// Bytes of refusals, after which it hears nothing.
    static let refusals = 64 << 10
    /// Bytes of all peers together, after which those are refused who have more than ``asked`` / 8 waiting.
    static let ofAll = 64 << 20
    /// Peers that are counted, at the least; whoever has little waiting is forgotten beyond it.
    private static let peers = 512

    enum Verdict {
        case answer, refuse, silence
    }

    private struct Peer {
        var unread = 0
        /// What ``unread`` was when the bus was asked; nil: it is not being asked.
        var question: Int?
        /// ``unread`` up to which the bus need not be asked.
        var settled = 0
    }

    private var peers: [String: Peer] = [:]
    private var total = 0
    private var capacity = peers

    init() {}

    /// How the next call of that peer is met.
    func verdict(_ peer: String) -> Verdict {
        guard total > Self.asked, let known = peers[peer] else { return .answer }
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

    /// Whether the bus is to be asked about that peer now; ``settle(_:_:)`` is to follow.
    mutating func asks(_ peer: String) -> Bool {
        guard total > Self.asked, let known = peers[peer], known.question == nil else { return false }
        let mayBeRefused = known.unread > Self.limit || total > Self.ofAll && known.unread > Self.asked / 8
        guard mayBeRefused || known.unread > known.settled + Self.asked else { return false }
        peers[peer]?.question = known.unread
        return true
    }

    /// So much of what it had been answered when ``asks(_:)`` said so waits for it; nil: it is gone.
    mutating func settle(_ peer: String, _ unread: Int?) {
        guard let known = peers[peer], let question = known.question else { return }
        guard let unread else {
            total -= known.unread
            peers[peer] = nil
            return
        }
        let now = min(known.unread, unread + known.unread - question)
        total += now - known.unread
        peers[peer] = Peer(unread: now, question: nil, settled: now)
    }

    private mutating func forgetSmall() {
        for (peer, known) in peers where known.unread < Self.asked / 64 && known.question == nil {
            total -= known.unread
            peers[peer] = nil
        }
        capacity = max(Self.peers, 2 * peers.count)
    }
}
