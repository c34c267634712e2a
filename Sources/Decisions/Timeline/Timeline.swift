/// Who was heard, ducked, muted and waiting, over time.
///
/// All times are microseconds of one clock that never goes back. The layouts ``TimelineText``, ``TimelinePicture`` and
/// ``TimelinePage`` read nothing else.
public struct Timeline: Hashable, Sendable {
    /// What is known of a session at one moment; a session that is neither has no span.
    public enum State: CaseIterable, Hashable, Sendable {
        case heard, ducked, muted, waiting

        /// The word for people.
        public var word: String {
            switch self {
            case .heard: "heard"
            case .ducked: "ducked"
            case .muted: "muted"
            case .waiting: "waiting"
            }
        }
    }

    /// A session in one state, from `start` until `end`.
    public struct Span: Hashable, Sendable {
        public let state: State
        public let start: UInt64
        public let end: UInt64
        /// How, for people: `ducked 12 dB`, `interrupted by Phone`.
        public let note: String

        public init(_ state: State, _ start: UInt64, _ end: UInt64, note: String) {
            (self.state, self.start, self.end, self.note) = (state, start, end, note)
        }
    }

    /// One program: a session, or several of the same name and kind, one after the other.
    public struct Row: Hashable, Sendable {
        public let name: String
        /// `Music`, `Call`; empty if it is not known.
        public let kind: String
        /// In order; they do not overlap.
        public let spans: [Span]

        public init(name: String, kind: String, spans: [Span]) {
            (self.name, self.kind, self.spans) = (name, kind, spans)
        }
    }

    /// Something that concerns everybody: a change of the route, the silent switch.
    public struct Mark: Hashable, Sendable {
        public let time: UInt64
        public let text: String

        public init(_ time: UInt64, _ text: String) { (self.time, self.text) = (time, text) }
    }

    /// Who came first is the first.
    public let rows: [Row]
    /// In order.
    public let marks: [Mark]
    public let start: UInt64
    /// Later than `start`.
    public let end: UInt64
    /// What must be added to a time for the local time of day, in microseconds.
    public let offset: Int64

    public init(rows: [Row], marks: [Mark], start: UInt64, end: UInt64, offset: Int64) {
        (self.rows, self.marks, self.start, self.offset) = (rows, marks, start, offset)
        self.end = max(end, start + 1)
    }

    /// The length in microseconds; at least 1.
    public var length: UInt64 { end - start }

    /// The states that occur, in their order.
    public var states: [State] {
        State.allCases.filter { state in rows.contains { $0.spans.contains { $0.state == state } } }
    }

    /// The state that takes most of each of `count` equal parts; nil where there is none. Also a span that is shorter than a part
    /// is seen, if nothing else is in that part.
    public func cells(of row: Row, _ count: Int) -> [State?] {
        (0..<max(0, count)).map { index in
            let (from, to) = (time(index, of: count), time(index + 1, of: count))
            var shares: [State: UInt64] = [:]
            for span in row.spans where span.start < to && span.end > from {
                shares[span.state, default: 0] += min(span.end, to) - max(span.start, from)
            }
            return State.allCases.filter { shares[$0] != nil }.max { shares[$0, default: 0] < shares[$1, default: 0] }
        }
    }

    /// The number of the part that has that moment, of `count` equal ones.
    public func cell(at time: UInt64, of count: Int) -> Int {
        let share = Double(min(max(time, start), end) - start) / Double(length)
        return min(count - 1, Int(share * Double(count)))
    }

    private func time(_ index: Int, of count: Int) -> UInt64 {
        start + UInt64((Double(length) * Double(index) / Double(count)).rounded())
    }

    /// Everything that happened, in order: the spans that tell more than that somebody was heard, and the marks.
    public var events: [Event] {
        let spans = rows.flatMap { row in
            row.spans.map { span in
                Event(
                    time: span.start, name: row.name, text: span.note.isEmpty ? span.state.word : span.note,
                    state: span.state, length: span.end - span.start, isOpen: span.end >= end)
            }
        }
        let others = marks.map {
            Event(time: $0.time, name: "", text: $0.text, state: nil, length: 0, isOpen: false)
        }
        return (spans + others).enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }
            .map(\.element)
    }

    /// A line of the list of everything that happened.
    public struct Event: Hashable, Sendable {
        public let time: UInt64
        /// Empty: it concerns everybody.
        public let name: String
        public let text: String
        /// Nil for a mark.
        public let state: State?
        /// Microseconds; 0 for a mark.
        public let length: UInt64
        /// Whether it lasts until the end of the timeline.
        public let isOpen: Bool
    }
}
