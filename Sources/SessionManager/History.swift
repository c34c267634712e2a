/// The newest decisions, in a ring: the oldest goes when it is full.
///
/// Beside them it keeps what replaying them needs: facts that changed nothing by themselves but change what later
/// events do, and now and then the whole core as it was (a copy that costs nothing until the core changes next).
public struct History: Sendable {
    /// A decision, and the facts before it that by themselves led to nothing.
    public struct Entry: Sendable {
        /// In order; replayed before the decision's event.
        public let silent: [Event]
        public let decision: Decision

        public init(silent: [Event], decision: Decision) {
            self.silent = silent
            self.decision = decision
        }
    }

    /// Decisions that can be replayed: the core before the first of them, and all from there on.
    public struct Replayable: Sendable {
        /// The core before the first of the entries; some of what is silent there it may know already.
        public let start: Arbiter
        /// In order, the newest last.
        public let entries: [Entry]
        /// Facts after the last decision, that led to nothing so far.
        public let silent: [Event]
        /// Whether nothing was dropped before the start.
        public let isWhole: Bool

        public init(start: Arbiter, entries: [Entry], silent: [Event], isWhole: Bool) {
            self.start = start
            self.entries = entries
            self.silent = silent
            self.isWhole = isWhole
        }
    }

    private struct Checkpoint: Sendable {
        /// Decisions kept before it, ever.
        let position: Int
        let core: Arbiter
    }

    /// How many decisions it holds; at least 1.
    public let capacity: Int
    private var ring: [Entry] = []
    private var next = 0
    /// Decisions kept, ever.
    private var total = 0
    /// Ascending by position.
    private var checkpoints: [Checkpoint] = []
    private var silent: [Event] = []

    public init(capacity: Int) { self.capacity = max(1, capacity) }

    /// Another capacity, with the newest of the old one's.
    public init(capacity: Int, keeping other: History) {
        self.init(capacity: capacity)
        ring = Array(other.entries.suffix(self.capacity))
        total = other.total
        checkpoints = other.checkpoints
        silent = other.silent
        dropCheckpoints()
    }

    /// Keeps the decision, where it changed or refused anything, or may change what later ones do.
    public mutating func append(_ decision: Decision) {
        guard decision.isNoteworthy else {
            if decision.event.isSilentFact { keepSilent(decision.event) }
            return
        }
        let entry = Entry(silent: silent, decision: decision)
        if !silent.isEmpty { silent = [] }
        total += 1
        if ring.count < capacity {
            ring.append(entry)
        } else {
            ring[next] = entry
            next = (next + 1) % capacity
            dropCheckpoints()
        }
    }

    /// Whether ``keep(_:)`` should be called before the next event: asked before each, there is always a start.
    public var wantsCheckpoint: Bool {
        guard let last = checkpoints.last else { return true }
        return total - last.position >= max(1, capacity / 4)
    }

    /// Keeps the core as it is now, between two events.
    public mutating func keep(_ core: Arbiter) {
        // What was silent until here is in the core already, but the next decision must not lack it when an older
        // checkpoint is replayed.
        checkpoints.append(Checkpoint(position: total, core: core))
        dropCheckpoints()
    }

    /// The newest `count` decisions, newest last; of those before the one of that sequence.
    public func latest(_ count: Int, before sequence: UInt64 = .max) -> [Decision] {
        let all = entries
        // Those that led to nothing have the sequence of the one before them.
        let end = sequence == .max ? all.count : all.firstIndex { $0.decision.sequence >= sequence } ?? all.count
        return all[..<end].suffix(max(0, count)).map(\.decision)
    }

    /// From how many places replaying can begin; none only before ``keep(_:)`` was called, and after the capacity was
    /// lowered.
    public var starts: Int { checkpoints.count }

    /// The decisions from that start on, which can be replayed exactly; 0: as many as there are.
    public func replayable(from start: Int = 0) -> Replayable? {
        guard checkpoints.indices.contains(start) else { return nil }
        let checkpoint = checkpoints[start]
        return Replayable(
            start: checkpoint.core, entries: Array(entries.suffix(total - checkpoint.position)), silent: silent,
            isWhole: checkpoint.core.memory.isBlank)
    }

    private var entries: [Entry] { Array(ring[next...] + ring[..<next]) }

    private mutating func dropCheckpoints() {
        let oldest = total - ring.count
        let useless = checkpoints.prefix { $0.position < oldest }.count
        if useless > 0 { checkpoints.removeFirst(useless) }
    }

    /// Only the last of each kind counts: none of them led to anything.
    private mutating func keepSilent(_ event: Event) {
        silent.removeAll { $0.name == event.name }
        silent.append(event)
    }
}

extension Event {
    /// Whether it may change what later events do without any effect of its own.
    var isSilentFact: Bool {
        switch self {
        case .soundingChanged, .microphoneMuted, .settingsChanged, .servicesLost: true
        case .create, .setCategory, .activate, .deactivate, .overrideOutput, .setPreferredInput, .setPreferences,
            .close, .setForeground, .setSilentMode, .setScreenLocked, .clientVanished, .servicesReset,
            .routeChanged, .portsChanged, .interruptionIgnored, .timePassed:
            false
        }
    }
}
