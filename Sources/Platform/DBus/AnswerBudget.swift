/// Counts the answers that callers have not read yet, as far as known.
///
/// If a peer does not read messages, the bus stores them and counts them for the sender. It stops reading from a sender
/// with too many of them. So one peer that calls and never reads would stop the service for all. Therefore answers are
/// counted, and the bus is asked how many still wait.
///
/// What was sent is no evidence: a peer may have read all of it. So no count of what was sent refuses a call. While a
/// peer may have too much unread, its calls wait for the figure of the bus (``doubts(_:)``, ``settle(_:_:)``). They are
/// refused only if the bus finds too much again and again, and nothing was read in between.
struct AnswerBudget {
    /// Bytes for one peer, after which the bus is asked.
    static let asked = 1 << 20
    /// Bytes for one peer, after which its calls wait. One answer may exceed this.
    static let limit = 8 << 20
    /// The same while more than ``ofAll`` is counted.
    static let limitOfMany = asked / 8
    /// Bytes for all peers together, after which each may have ``limitOfMany`` waiting.
    static let ofAll = 64 << 20
    /// The number of refusals, after which a peer that reads nothing gets no answer.
    static let refusals = 256
    /// Seconds without reading, after which a peer does not read.
    static let patience = 1.0
    /// Seconds before the first question and between the last questions about a peer that reads nothing.
    private static let firstPause = 0.001
    private static let longestPause = 0.25
    /// Bytes that a peer must have read between two questions, so that its calls wait longer. With none, one byte at a
    /// time would let them wait for ever.
    private static let progress = 4 << 10
    /// Bytes of a peer that are forgotten when too many peers are counted.
    private static let small = asked / 64
    /// The minimum number of counted peers; above it, peers with little waiting data are forgotten.
    private static let peers = 512

    /// What the bus or the peer has said about the answers that were sent before the question.
    enum Reading: Equatable {
        /// Bytes that the bus still keeps for the peer, of all senders.
        case unread(Int)
        /// The peer did not answer in time.
        case silence
        /// The peer has left the bus.
        case gone
    }

    /// What happens to the waiting calls of a peer.
    enum Outcome: Equatable {
        case handle
        /// They wait until the bus is asked once more, after those seconds.
        case ask(after: Double)
        case refuse
        case forget
    }

    private struct Peer {
        var unread = 0
        /// The value of ``unread`` when the bus was asked; nil: it is not being asked.
        var question: Int?
        /// The value of ``unread`` up to which the bus need not be asked.
        var settled = 0
        /// While it has too much unread: the least that the bus has reported.
        var least: Int?
        var pause = firstPause
        /// Seconds for which nothing of that was read.
        var idle = 0.0
        /// The number of refusals since it was found to read.
        var refused = 0
    }

    private var peers: [String: Peer] = [:]
    private var total = 0
    private var capacity = peers

    init() {}

    /// Whether so much is counted that somebody's calls could have to wait.
    var isLarge: Bool { total > Self.asked }

    /// Whether so much of that peer is counted that it must be forgotten when the peer leaves.
    func remembers(_ peer: String) -> Bool { isLarge && (peers[peer]?.unread ?? 0) >= Self.small }

    /// Whether that peer may have so much unread that its calls wait until the bus was asked.
    func doubts(_ peer: String) -> Bool {
        guard isLarge, let known = peers[peer] else { return false }
        return known.unread > limit
    }

    private var limit: Int { total > Self.ofAll ? Self.limitOfMany : Self.limit }

    /// Counts an answer.
    mutating func add(_ bytes: Int, to peer: String) {
        total += bytes
        if peers.count >= capacity, peers[peer] == nil { forgetSmall() }
        peers[peer, default: Peer()].unread += bytes
    }

    /// Whether the bus should be asked about that peer, although none of its calls waits.
    func wantsQuestion(_ peer: String) -> Bool {
        guard isLarge, let known = peers[peer] else { return false }
        return known.unread > known.settled + Self.asked
    }

    /// The seconds after which the bus is to be asked about a peer whose calls wait; nil: it is being asked.
    ///
    /// They are 0 except for a peer that was found to read nothing, so that its calls cost few questions.
    func pause(before peer: String) -> Double? {
        guard let known = peers[peer], known.question == nil else { return nil }
        return known.idle < Self.patience ? 0 : Self.longestPause
    }

    /// Whether the bus must be asked now; it is not asked twice at a time. Then call ``settle(_:_:)``.
    mutating func asks(_ peer: String) -> Bool {
        guard let known = peers[peer], known.question == nil else { return false }
        peers[peer]?.question = known.unread
        return true
    }

    /// Learns how much of the answers sent before ``asks(_:)`` still waits; that a peer is gone, asked for or not.
    mutating func settle(_ peer: String, _ reading: Reading) -> Outcome {
        guard let known = peers[peer] else { return reading == .gone ? .forget : .handle }
        let unread: Int
        switch reading {
        case .gone:
            total -= known.unread
            peers[peer] = nil
            return .forget
        case .silence: unread = known.unread
        case .unread(let bytes): unread = bytes
        }
        let question = known.question ?? known.unread
        let now = min(known.unread, unread + known.unread - question)
        total += now - known.unread
        peers[peer]?.unread = now
        peers[peer]?.question = nil
        peers[peer]?.settled = now
        // What was sent after the question is no evidence.
        guard min(unread, question) > limit else {
            peers[peer] = Peer(unread: now, settled: now)
            return .handle
        }
        return outcome(for: peer, unread, reading == .silence)
    }

    /// The bus has found too much unread.
    private mutating func outcome(for peer: String, _ unread: Int, _ isSilent: Bool) -> Outcome {
        guard var known = peers[peer] else { return .forget }
        defer { peers[peer] = known }
        let least = known.least
        known.least = min(least ?? unread, unread)
        if isSilent {
            known.idle = Self.patience
        } else if let least, unread + Self.progress > least {
            known.idle += known.pause
            known.pause = min(2 * known.pause, Self.longestPause)
        } else if least != nil {
            known.idle = 0
        }
        return known.idle < Self.patience ? .ask(after: known.pause) : .refuse
    }

    /// Whether that peer still gets refusals; counts one.
    mutating func mayRefuse(_ peer: String) -> Bool {
        let refused = peers[peer]?.refused ?? 0
        guard refused < Self.refusals else { return false }
        peers[peer, default: Peer()].refused = refused + 1
        return true
    }

    private mutating func forgetSmall() {
        for (peer, known) in peers where known.unread < Self.small && known.question == nil {
            total -= known.unread
            peers[peer] = nil
        }
        capacity = max(Self.peers, 2 * peers.count)
    }
}
