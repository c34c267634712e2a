public import Decider
import Enforcement
import PluginAPI
import Routing
import SessionManager

/// An exported history: the facts that the daemon got, from which everything is decided again, and its results.
extension Transcript {
    /// The history since the earliest start with which the text has at most `limit` bytes, or without any fact. Titles, tracks
    /// and folders have pseudonyms, unless `isPrivate`.
    public static func text(of decider: Decider, isPrivate: Bool = false, limit: Int = .max) -> String {
        for start in decider.replayStarts {
            var export = Export(decider.replayable(from: start), isPrivate: isPrivate)
            if let text = export.text(limit) { return text }
        }
        // The last facts alone are too large, or the limit was reduced and no start is left.
        var export = Export(decider.replayableFromNow, isPrivate: isPrivate)
        return export.text(.max) ?? ""
    }

    /// The first line of an exported history.
    static let title = "# A history of sessiond; run it again with: sessionctl simulate FILE"

    /// What followed from a fact, in the fixed form: every decision with all its effects, then all requests.
    mutating func results(of record: FactLog.Record, _ decisions: some Sequence<Decision>) -> [String] {
        var lines: [String] = []
        var answer = record.content.request
        for decision in decisions {
            if decision.event == answer {
                answer = nil
            } else {
                lines.append("= > " + step(decision.event, creating: decision.created))
            }
            lines += self.lines(of: decision).dropFirst(2)
        }
        for request in record.requests { lines.append(line(of: request)) }
        return lines
    }

    private mutating func line(of request: History.Request) -> String {
        var words = ["= request", request.name]
        if let session = request.session { words.append(name(session)) }
        for field in request.fields { words.append("\(field.name)=\(text(of: field.value))") }
        return words.joined(separator: " ")
    }

    private mutating func text(of field: Effect.Field) -> String {
        switch field {
        case .text(let text): written(hideName(text))
        case .flag(let flag): flag ? "on" : "off"
        case .session(let id): id.map(name) ?? "none"
        case .microseconds(let duration): writtenTime(duration)
        case .decibels(let gain): gain.description
        case .number(let number): String(number)
        case .route: "route"
        }
    }
}

extension FactLog.Content {
    /// The request that a client waits for; nil: none.
    fileprivate var request: Event? {
        switch self {
        case .fact(.request(let event)): event
        case .fact(.create(let new, _)): .create(new)
        case .fact, .streams: nil
        }
    }
}

/// The lines of one exported history.
private struct Export {
    private let part: Decider.Replayable
    private var transcript = Transcript()
    /// As written last.
    private var seen = Node.nothing
    private var view = Node.nothing

    init(_ part: Decider.Replayable, isPrivate: Bool) {
        self.part = part
        if !isPrivate { transcript.hidden = Pseudonyms(of: part) }
    }

    /// Nil: longer than the limit.
    mutating func text(_ limit: Int) -> String? {
        let memory = part.start.arbiter.memory
        let from = transcript.lines(of: memory)
        let state = hide(Node.state(part.start.state))
        seen = state["seen"] ?? .nothing
        view = hide(Node(part.view))
        let fresh = Node.state(Decider.State(Settings()))
        let before =
            fresh.words(to: state).chunks.map { "state " + $0.joined(separator: " ") }
            + Node(Routing.View()).words(to: view).chunks.map { "state-server " + $0.joined(separator: " ") }
        var body: [String] = []
        var size = 0
        var index = 0
        for (place, record) in part.records.enumerated() {
            let end = place + 1 < part.records.count ? part.records[place + 1].position : .max
            var decisions: [Decision] = []
            while index < part.entries.count, part.position + index < end {
                decisions.append(part.entries[index].decision)
                index += 1
            }
            let lines = facts(of: record, decisions) + transcript.results(of: record, decisions)
            size += lines.reduce(0) { $0 + $1.utf8.count + 1 }
            if size > limit { return nil }
            body += lines
        }
        var head = [Transcript.title]
        if !part.isWhole {
            head.append(
                "# Earlier events are not in this file; 'from' and 'state' describe the state at its beginning.")
        }
        if transcript.hidden != nil {
            head.append("# Titles, tracks and folders have other names here; 'history --export --private' shows them.")
        }
        head.append("exact facts")
        return (head + transcript.declarations + from + before + body).joined(separator: "\n") + "\n"
    }

    private mutating func hide(_ node: Node) -> Node { transcript.hidden?.hide(node) ?? node }

    /// The time, what the server showed, and the fact.
    private mutating func facts(of record: FactLog.Record, _ decisions: [Decision]) -> [String] {
        var lines = ["at \(writtenTime(record.time.microseconds))"]
        for changed in record.views {
            let new = hide(Node(changed.view))
            lines += long("view \(changed.look)", view.words(to: new))
            view = new
        }
        switch record.content {
        case .fact(.request(let event)): lines.append(transcript.step(event, creating: nil))
        case .fact(.create(let new, let member)):
            let created = decisions.first { $0.event == .create(new) }?.created
            lines += long("member", Node.nothing.words(to: hide(Node(member))))
            lines.append(transcript.step(.create(new), creating: created))
        case .fact(.settings(let settings)):
            lines += long("fact settings", hide(Node(Settings())).words(to: hide(Node(settings))))
        case .fact(let fact): lines += long("fact", Node.nothing.words(to: hide(Node(fact))))
        case .streams(let change):
            var hidden = transcript.hidden
            let new = seen.applying(change) { hidden?.hide($0) ?? $0 }
            transcript.hidden = hidden
            lines += long("fact streams", seen.words(to: new))
            seen = new
        }
        return lines
    }

    /// A line, and before it those with the words that it has no room for.
    private func long(_ line: String, _ words: [String]) -> [String] {
        let chunks = words.chunks
        return chunks.dropLast().map { "words " + $0.joined(separator: " ") }
            + [([line] + (chunks.last ?? [])).joined(separator: " ")]
    }
}

extension Decider.Replayable {
    /// Whether nothing happened before its facts. The settings may differ from the defaults.
    fileprivate var isWhole: Bool {
        start.arbiter.memory.isBlank && view == Routing.View()
            && Node.state(start.state) == Node.state(Decider(start.state.settings).state)
    }
}

extension Pseudonyms {
    /// For all that is written of it.
    fileprivate init(of part: Decider.Replayable) {
        self.init()
        learn(.state(part.start.state))
        for record in part.records {
            switch record.content {
            case .streams(let change): for facts in change.changed { learn(Node(facts)) }
            case .fact(let fact): learn(Node(fact))
            }
        }
    }
}

extension Node {
    /// The state as it is written: the streams by their names.
    static func state(_ state: Decider.State) -> Node {
        var node = Node(state)
        node["seen"] = .streams(state.seen)
        return node
    }
}

extension [String] {
    /// The words of one line each.
    fileprivate var chunks: [[String]] {
        var result: [[String]] = []
        var size = Int.max
        for word in self {
            if size > 4_000 {
                result.append([])
                size = 0
            }
            result[result.count - 1].append(word)
            size += word.utf8.count + 1
        }
        return result
    }
}
