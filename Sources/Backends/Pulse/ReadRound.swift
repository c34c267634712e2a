/// The parts of the server's state that must be read again, and whether answers are pending.
///
/// Events only mark the parts. All parts that are marked together are read in one round, which ends when all answers
/// have arrived.
struct ReadRound: Sendable, Hashable {
    struct Item: Sendable, Hashable {
        let facility: PulseConnection.Facility
        let index: UInt32
    }

    private enum Phase: Sendable, Hashable {
        case idle
        /// The next round starts when the loop comes to it.
        case scheduled
        /// Questions that the server has not answered.
        case asking(Int)
    }

    /// The consequence of an answer.
    enum Outcome: Sendable, Hashable {
        case wait
        /// More was marked in the meantime.
        case readAgain
        case evaluate
    }

    private var phase = Phase.idle
    /// The marked parts, and whether they were removed.
    private(set) var marked: [Item: Bool] = [:]
    /// When the first part was marked that is not evaluated yet, in this round or in one before it; nil: none.
    private var since: UInt64?
    /// Rounds that were not evaluated since the last one that was.
    private var repetitions = 0

    /// Microseconds and rounds after which a round is evaluated although more is marked, so that many events cannot hide a
    /// change forever. A busy server may need as long for one round; what it shows then may be half of a change.
    private static let longest: UInt64 = 100_000
    private static let mostRepetitions = 3

    var isAsking: Bool {
        if case .asking = phase { true } else { false }
    }

    mutating func mark(_ item: Item, isRemoved: Bool, at now: UInt64) {
        if since == nil { since = now }
        marked[item] = isRemoved
    }

    /// Reads it too, unless something else is marked.
    mutating func markAlso(_ item: Item) {
        if marked[item] == nil { marked[item] = false }
    }

    /// Everything that was marked is outdated; these are read instead.
    mutating func replace(with items: some Sequence<Item>, at now: UInt64) {
        if since == nil { since = now }
        marked = Dictionary(uniqueKeysWithValues: items.map { ($0, false) })
    }

    /// - Returns: whether the next round must be scheduled now.
    mutating func schedule() -> Bool {
        guard phase == .idle else { return false }
        phase = .scheduled
        return true
    }

    /// The scheduled time has come.
    /// - Returns: whether the round starts; false if it has started for another reason.
    mutating func startScheduled() -> Bool {
        guard phase == .scheduled else { return false }
        phase = .idle
        return true
    }

    /// Returns the parts to read now.
    mutating func take() -> [Item: Bool] {
        defer { marked = [:] }
        return marked
    }

    /// A question is asked.
    mutating func begin() {
        if case .asking(let count) = phase { phase = .asking(count + 1) } else { phase = .asking(1) }
    }

    /// A question is answered.
    mutating func end(at now: UInt64) -> Outcome {
        guard case .asking(let count) = phase else { return .wait }
        phase = count > 1 ? .asking(count - 1) : .idle
        if count > 1 { return .wait }
        if !marked.isEmpty, let since,
            repetitions < ReadRound.mostRepetitions || now &- since < ReadRound.longest
        {
            repetitions += 1
            return .readAgain
        }
        since = marked.isEmpty ? nil : now
        repetitions = 0
        return .evaluate
    }
}
