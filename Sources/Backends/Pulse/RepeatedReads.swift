/// When streams are read again although the server has reported no event.
///
/// PipeWire's server reports a stream while it is being created or moved, and need not report the end of that: a node that
/// runs always, like that of mpv, changes nothing but its link. All such reads are planned here. Each plan has a last
/// read, so without further events nothing is read any more. Only held streams are read, rarely, for as long as they are
/// held: a stream that the user has moved would be heard for the rest of a call.
struct RepeatedReads: Sendable, Hashable {
    typealias Item = ReadRound.Item

    /// The reads of one stream that are still to come.
    private struct Plan: Sendable, Hashable {
        private let pauses: [UInt64]
        /// Whether the last pause is repeated for ever.
        private let isEndless: Bool
        /// The number of reads that were planned.
        private var count = 0
        /// Nil: the last one was made.
        private(set) var due: UInt64?

        init(_ pauses: [UInt64], isEndless: Bool = false, at now: UInt64) {
            (self.pauses, self.isEndless) = (pauses, isEndless)
            planNext(at: now)
        }

        mutating func planNext(at now: UInt64) {
            due = count < pauses.count ? now &+ pauses[count] : nil
            if !isEndless || count < pauses.count - 1 { count += 1 }
        }
    }

    /// Streams that are being moved: for a moment the server may show the old device again.
    private var moves: [Item: Plan] = [:]
    /// Streams that the server shows only in part, also when they are read no more.
    private var incomplete: [Item: Plan] = [:]
    private var held: Set<Item> = []
    /// The reads of all held streams. Nil: none is held.
    private var heldPlan: Plan?
    /// Whether the server is moving all streams.
    private var isMovingAll = false

    /// Microseconds between the reads of a stream that is moved. A quantum of PipeWire is 21 ms, and nearly all moves are
    /// done in ten of them; a busy session manager needs longer.
    private static let movePauses = Array(repeating: 15_000, count: 16) + doubling(from: 30_000, count: 7)
    /// Microseconds between the reads of a stream that is shown in part. One that is never linked stays so.
    private static let completionPauses = doubling(from: 15_000, count: 11)
    /// Microseconds between the reads of held streams, one of which may have been moved by the user. The last pause is
    /// repeated.
    private static let heldPauses = doubling(from: 62_500, count: 9)

    private static func doubling(from first: UInt64, count: UInt64) -> [UInt64] { (0..<count).map { first << $0 } }

    /// When streams must be read; nil: when something happens.
    var next: UInt64? {
        ([moves, incomplete].flatMap(\.values) + [heldPlan].compactMap { $0 }).compactMap(\.due).min()
    }

    // MARK: Events

    /// The stream is being moved, or begins and may be moved. Only for what others do: a read must not cause reads.
    mutating func expectMove(of stream: Item, at now: UInt64) {
        moves[stream] = Plan(RepeatedReads.movePauses, at: now)
    }

    /// All streams are moved when `isMoving` changes.
    mutating func expectMoves(of streams: some Sequence<Item>, _ isMoving: Bool, at now: UInt64) {
        guard isMoving != isMovingAll else { return }
        isMovingAll = isMoving
        for stream in streams { expectMove(of: stream, at: now) }
    }

    /// Whether a stream that begins now may be moved at once. `isHoldThere`: the session manager moves a stream to the sink
    /// of the last one with its name, which may be the hold sink.
    func mayBeMoved(isHoldThere: Bool) -> Bool { isHoldThere || isMovingAll }

    /// The server has shown the stream, completely or in part.
    mutating func wasShown(_ stream: Item, isComplete: Bool, at now: UInt64) {
        if isComplete {
            incomplete[stream] = nil
        } else if incomplete[stream] == nil {
            incomplete[stream] = Plan(RepeatedReads.completionPauses, at: now)
        }
    }

    /// These streams, and no others, are held.
    mutating func hold(_ streams: Set<Item>, at now: UInt64) {
        if !streams.isSubset(of: held) { heldPlan = Plan(RepeatedReads.heldPauses, isEndless: true, at: now) }
        held = streams
        if streams.isEmpty { heldPlan = nil }
    }

    /// The server has reported an event: the user may move streams now. Only for what the server reports by itself.
    mutating func somethingHappened(at now: UInt64) {
        if !held.isEmpty { heldPlan = Plan(RepeatedReads.heldPauses, isEndless: true, at: now) }
    }

    mutating func ended(_ stream: Item) {
        moves[stream] = nil
        incomplete[stream] = nil
        held.remove(stream)
        if held.isEmpty { heldPlan = nil }
    }

    // MARK: Reads

    /// The streams that are shown only in part.
    func incompleteStreams(_ facility: PulseConnection.Facility) -> [Item] {
        incomplete.keys.filter { $0.facility == facility }
    }

    /// The streams that are read now.
    mutating func take(at now: UInt64) -> Set<Item> {
        var due: Set<Item> = []
        func read(_ plans: inout [Item: Plan]) {
            for (stream, plan) in plans {
                guard let time = plan.due, time <= now else { continue }
                due.insert(stream)
                plans[stream]?.planNext(at: now)
            }
        }
        read(&moves)
        moves = moves.filter { $0.value.due != nil }
        read(&incomplete)
        if let time = heldPlan?.due, time <= now {
            due.formUnion(held)
            heldPlan?.planNext(at: now)
        }
        return due
    }
}
