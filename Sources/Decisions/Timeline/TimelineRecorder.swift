/// Makes a ``Timeline`` of what is known about sessions: facts in order, and how they are now.
public struct TimelineRecorder: Sendable {
    /// What happened to one session.
    public enum Fact: Hashable, Sendable {
        case created, closed, activated, deactivated
        /// It waits from now on. The text is for people: `interrupted by Phone`.
        case interrupted(String)
        /// It waits no longer, and is not active yet.
        case released
        case ducked(String), unducked
        case muted, unmuted
    }

    /// How a session is.
    public struct Condition: Hashable, Sendable {
        public enum Phase: Hashable, Sendable { case idle, active, waiting }

        public var phase: Phase
        /// Why it waits, for people.
        public var wait: String
        /// Nil: it is not ducked.
        public var ducking: String?
        public var isMuted: Bool

        public init(_ phase: Phase, wait: String = "", ducking: String? = nil, isMuted: Bool = false) {
            (self.phase, self.wait, self.ducking, self.isMuted) = (phase, wait, ducking, isMuted)
        }

        /// Nil: there is nothing to show.
        fileprivate var shown: (state: Timeline.State, note: String)? {
            switch phase {
            case .idle: nil
            case .waiting: (.waiting, wait)
            case .active: isMuted ? (.muted, "") : ducking.map { (.ducked, $0) } ?? (.heard, "")
            }
        }
    }

    private struct Life {
        let number: Int
        var name = ""
        var kind = ""
        var condition = Condition(.idle)
        var isKnown = false
        var changes: [(time: UInt64, condition: Condition)] = []
    }

    private let beginning: UInt64
    private var lives: [String: Life] = [:]
    private var marks: [Timeline.Mark] = []

    /// - Parameter beginning: the time of the first fact. What a fact says about the time before it is true since then.
    public init(since beginning: UInt64) { self.beginning = beginning }

    /// The name and the kind of a session; the latest ones count.
    public mutating func describe(_ session: String, name: String? = nil, kind: String? = nil) {
        change(session) { life in
            if let name { life.name = name }
            if let kind { life.kind = kind }
        }
    }

    /// A fact, not earlier than those before it.
    public mutating func note(_ fact: Fact, of session: String, at time: UInt64) {
        let beginning = beginning
        change(session) { life in
            if !life.isKnown {
                life.isKnown = true
                life.condition = Self.before(fact)
                life.changes.append((beginning, life.condition))
            }
            switch fact {
            case .created: break
            case .closed: life.condition = Condition(.idle)
            case .activated: life.condition.phase = .active
            case .deactivated, .released: life.condition.phase = .idle
            case .interrupted(let text): (life.condition.phase, life.condition.wait) = (.waiting, text)
            case .ducked(let text): life.condition.ducking = text
            case .unducked: life.condition.ducking = nil
            case .muted: life.condition.isMuted = true
            case .unmuted: life.condition.isMuted = false
            }
            life.changes.append((time, life.condition))
        }
    }

    /// How a session is now. It counts only for a session without facts.
    public mutating func settle(_ session: String, _ condition: Condition, since time: UInt64) {
        change(session) { life in
            guard !life.isKnown else { return }
            life.isKnown = true
            life.changes = [(time, condition)]
        }
    }

    /// Something that concerns everybody.
    public mutating func mark(_ text: String, at time: UInt64) { marks.append(Timeline.Mark(time, text)) }

    /// What was the case before the first known fact about a session.
    private static func before(_ fact: Fact) -> Condition {
        switch fact {
        case .created, .closed, .activated: Condition(.idle)
        case .deactivated, .interrupted, .ducked, .muted: Condition(.active)
        case .released: Condition(.waiting)
        case .unducked: Condition(.active, ducking: "ducked")
        case .unmuted: Condition(.active, isMuted: true)
        }
    }

    private mutating func change(_ session: String, _ body: (inout Life) -> Void) {
        var life = lives[session] ?? Life(number: lives.count)
        body(&life)
        lives[session] = life
    }

    // MARK: The timeline

    /// The part of it from `start` to `end`. If less is known, it begins later.
    public func timeline(from start: UInt64, to end: UInt64, offset: Int64) -> Timeline {
        let all = lives.values.sorted { $0.number < $1.number }.map { ($0, spans(of: $0, until: end)) }
        let known = all.compactMap { $0.1.first?.start } + marks.map(\.time)
        // A little earlier than the first thing, which is then not at the very edge.
        let first = known.min() ?? end
        let margin = max((end - min(first, end)) / 50, 1_000_000)
        let begin = max(start, first > margin ? first - margin : 0)
        var rows: [Timeline.Row] = []
        for (life, spans) in all {
            let seen = spans.compactMap { $0.cut(from: begin) }
            guard let earliest = seen.first else { continue }
            // Prompts of one program, for example, are one session each.
            if let index = rows.firstIndex(where: {
                $0.name == life.name && $0.kind == life.kind && ($0.spans.last?.end ?? 0) <= earliest.start
            }) {
                rows[index] = Timeline.Row(name: life.name, kind: life.kind, spans: rows[index].spans + seen)
            } else {
                rows.append(Timeline.Row(name: life.name, kind: life.kind, spans: seen))
            }
        }
        rows = rows.enumerated()
            .sorted { ($0.element.spans[0].start, $0.offset) < ($1.element.spans[0].start, $1.offset) }.map(\.element)
        return Timeline(
            rows: rows, marks: marks.filter { $0.time >= begin && $0.time <= end }, start: begin, end: end,
            offset: offset)
    }

    private func spans(of life: Life, until end: UInt64) -> [Timeline.Span] {
        var spans: [Timeline.Span] = []
        for (index, change) in life.changes.enumerated() {
            let stop = min(end, index + 1 < life.changes.count ? life.changes[index + 1].time : end)
            guard let shown = change.condition.shown, stop > change.time else { continue }
            if let last = spans.last, last.end == change.time, last.state == shown.state, last.note == shown.note {
                spans[spans.count - 1] = Timeline.Span(last.state, last.start, stop, note: last.note)
            } else {
                spans.append(Timeline.Span(shown.state, change.time, stop, note: shown.note))
            }
        }
        return spans
    }
}

extension Timeline.Span {
    /// The part from that moment on; nil if there is none.
    fileprivate func cut(from begin: UInt64) -> Timeline.Span? {
        end > begin ? Timeline.Span(state, max(start, begin), end, note: note) : nil
    }
}
