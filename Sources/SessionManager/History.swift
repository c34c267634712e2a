public import PluginAPI

/// The latest decisions, in a ring buffer.
///
/// Also stores what is needed to replay them: facts that had no effect but influence later events, and sometimes a copy
/// of the complete state (a copy costs nothing until the state changes next).
public struct History: Sendable {
    /// A decision, and the facts before it that had no effect.
    public struct Entry: Sendable {
        /// In order; replayed before the decision's event.
        public let silent: [Event]
        public let decision: Decision
        /// Whether it creates a session that nobody requested: the streams of a program led to it.
        public let isAdoption: Bool
        /// The requests to the sound server after it and before the next decision.
        public internal(set) var requests: [Request] = []

        public init(silent: [Event], decision: Decision, isAdoption: Bool = false) {
            self.silent = silent
            self.decision = decision
            self.isAdoption = isAdoption
        }
    }

    /// A request to the sound server, because of the decisions so far.
    public struct Request: Sendable, Hashable {
        public let time: Instant
        /// Lower case with hyphens.
        public let name: String
        /// The session for which it was made; nil: none in particular.
        public let session: SessionID?
        public let fields: [Field]

        public struct Field: Sendable, Hashable {
            public let name: String
            public let value: Effect.Field

            public init(_ name: String, _ value: Effect.Field) {
                self.name = name
                self.value = value
            }
        }

        public init(_ name: String, at time: Instant, for session: SessionID?, _ fields: [Field]) {
            self.time = time
            self.name = name
            self.session = session
            self.fields = fields
        }
    }

    /// Decisions that can be replayed: the state before the first of them, and all that follow.
    public struct Replayable: Sendable {
        /// The state before the first entry; it may already contain some of its facts.
        public let start: Arbiter
        /// In order, the latest last.
        public let entries: [Entry]
        /// Facts after the last decision that had no effect so far.
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
        /// The number of decisions before it, in total.
        let position: Int
        let core: Arbiter
    }

    /// The capacity; at least 1.
    public let capacity: Int
    private var ring: [Entry] = []
    private var next = 0
    /// The number of decisions so far.
    public private(set) var total = 0
    /// Sorted by position.
    private var checkpoints: [Checkpoint] = []
    private var silent: [Event] = []

    public init(capacity: Int) { self.capacity = max(1, capacity) }

    /// The number of decisions that are kept.
    public var count: Int { ring.count }

    /// The decisions that are kept, except those before that number of decisions in total.
    public func entries(from position: Int) -> [Entry] { Array(entries.suffix(max(0, total - position))) }

    /// Changes the capacity and keeps the latest decisions.
    public init(capacity: Int, keeping other: History) {
        self.init(capacity: capacity)
        ring = Array(other.entries.suffix(self.capacity))
        total = other.total
        checkpoints = other.checkpoints
        silent = other.silent
        dropCheckpoints()
    }

    /// Stores the decision, if it changed or refused anything, or may influence later ones. `isAdoption`: as
    /// ``Entry/isAdoption``.
    public mutating func append(_ decision: Decision, isAdoption: Bool = false) {
        guard decision.isNoteworthy else {
            if decision.event.isSilentFact { keepSilent(decision.event) }
            return
        }
        let entry = Entry(silent: silent, decision: decision, isAdoption: isAdoption)
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

    /// The most requests kept with one decision: a program may open and close streams all day long.
    private static let mostRequests = 64

    /// Stores a request with the latest decision; the earliest ones with it are kept.
    public mutating func note(_ request: Request) {
        guard !ring.isEmpty else { return }
        let latest = (next + ring.count - 1) % ring.count
        if ring[latest].requests.count < History.mostRequests { ring[latest].requests.append(request) }
    }

    /// Whether ``keep(_:)`` should be called before the next event. If it is asked each time, there is always a start.
    public var wantsCheckpoint: Bool {
        guard let last = checkpoints.last else { return true }
        return total - last.position >= max(1, capacity / 4)
    }

    /// Stores a copy of the current state, between two events.
    public mutating func keep(_ core: Arbiter) {
        // Facts without effect are in the copy, but the next decision must also have them, in case an older copy is
        // replayed.
        checkpoints.append(Checkpoint(position: total, core: core))
        dropCheckpoints()
    }

    /// The latest `count` decisions before the one with that sequence, latest last.
    public func latest(_ count: Int, before sequence: UInt64 = .max) -> [Entry] {
        let all = entries
        // A decision that had no effect has the sequence of the one before it.
        let end = sequence == .max ? all.count : all.firstIndex { $0.decision.sequence >= sequence } ?? all.count
        return Array(all[..<end].suffix(max(0, count)))
    }

    /// The number of copies from which a replay can start; zero only before ``keep(_:)`` was called, and after the
    /// capacity was reduced.
    public var starts: Int { checkpoints.count }

    /// The decisions from that start on, which can be replayed exactly; 0: as many as possible.
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

    /// Only the last of each kind counts, because none had an effect.
    private mutating func keepSilent(_ event: Event) {
        silent.removeAll { $0.name == event.name }
        silent.append(event)
    }
}

extension Event {
    /// Whether it may influence later events although it has no effect itself.
    var isSilentFact: Bool {
        switch self {
        case .soundingChanged, .microphoneMuted, .settingsChanged, .servicesLost, .asleep: true
        case .create, .setCategory, .activate, .deactivate, .overrideOutput, .setPreferredInput, .setPreferences,
            .close, .setForeground, .setSilentMode, .setScreenLocked, .clientVanished, .servicesReset,
            .routeChanged, .portsChanged, .interruptionIgnored, .clientHangs, .timePassed:
            false
        }
    }
}
