import Decider
import Enforcement
import PluginAPI
import Routing
import SessionManager

/// A fact of an exported history, and what the server showed while it was handled.
struct RecordedFact: Sendable {
    let fact: Fact
    /// By the number of the look, from 0.
    var views: [Int: Routing.View] = [:]
}

/// Reads the facts of an exported history, line by line.
struct FactReader {
    /// The words of the lines `words`, for the next line that needs them.
    private var words: [Token] = []
    private var member: Node?
    private var views: [Int: Routing.View] = [:]
    private var state = Node.state(Decider.State(Settings()))
    private var view = Node(Routing.View())
    private var seen = Node.streams(StreamsSeen())
    private var known: [Node: StreamFacts] = [:]
    private var isBegun = false

    mutating func add(_ tokens: [Token]) { words += tokens }

    private mutating func take(_ tokens: [Token]) -> [Token] {
        defer { words = [] }
        return words + tokens
    }

    // MARK: The start

    mutating func state(_ tokens: [Token]) throws(LineError) { try state.apply(take(tokens)) }

    mutating func server(_ tokens: [Token]) throws(LineError) { try view.apply(take(tokens)) }

    /// All lines of the start were read.
    mutating func begin(_ scenario: inout Scenario) throws(LineError) {
        if isBegun { return }
        isBegun = true
        do throws(NodeError) {
            seen = state["seen"] ?? .nothing
            var whole = state
            whole["seen"] = Node(try seen.seen(&known))
            let state: Decider.State = try whole.value()
            scenario.start = Scenario.Start(state: state, view: try view.value())
        } catch {
            throw LineError(
                column: 1, "the 'state' lines above are not complete: \(error.message); export the history again")
        }
        guard scenario.start?.state.settings.isUsable == true else {
            throw LineError(
                column: 1, "the 'state' lines above have a setting that is not allowed; export the history again")
        }
    }

    // MARK: Facts

    mutating func member(_ tokens: [Token]) throws(LineError) {
        var node = Node.nothing
        try node.apply(take(tokens))
        member = node
    }

    mutating func view(_ first: Token, _ tokens: [Token]) throws(LineError) {
        guard let look = Int(first.word), look >= 0 else {
            throw LineError(first, "\(quoted(first.word)) is not the number of a look at the server")
        }
        try view.apply(take(tokens))
        views[look] = try read(view, first)
    }

    /// `first`: the kind of fact.
    mutating func fact(_ first: Token, _ tokens: [Token]) throws(LineError) -> RecordedFact {
        switch first.word {
        case "streams" where first.value == nil:
            try seen.apply(take(tokens))
            do throws(NodeError) {
                return recorded(.streams(try seen.seen(&known)))
            } catch {
                throw wrong(error, first)
            }
        case "settings" where first.value == nil:
            var node = Node(Settings())
            try node.apply(take(tokens))
            let settings: Settings = try read(node, first)
            guard settings.isUsable else {
                throw LineError(first, "a setting is not allowed; sessiond.conf(5) has the ranges")
            }
            return recorded(.settings(settings))
        default:
            var node = Node.nothing
            try node.apply(take([first] + tokens))
            return recorded(try read(node, first))
        }
    }

    /// A request of a client, from its step.
    mutating func request(_ event: Event, _ first: Token) throws(LineError) -> RecordedFact {
        guard case .create(let new) = event else { return recorded(.request(event)) }
        guard let member else {
            throw LineError(first, "a line with 'member' is missing before this one; export the history again")
        }
        self.member = nil
        return recorded(.create(new, try read(member, first)))
    }

    private mutating func recorded(_ fact: Fact) -> RecordedFact {
        defer { views = [:] }
        return RecordedFact(fact: fact, views: views)
    }

    private func read<Value: Decodable>(_ node: Node, _ token: Token) throws(LineError) -> Value {
        do throws(NodeError) {
            return try node.value()
        } catch {
            throw wrong(error, token)
        }
    }

    private func wrong(_ error: NodeError, _ token: Token) -> LineError {
        LineError(token, "this is not what the daemon writes: \(error.message); export the history again")
    }
}

extension Settings {
    /// Whether each number is in a range that can be calculated with.
    fileprivate var isUsable: Bool {
        let times = [
            interruption.grace, interruption.maxAge, interruption.longest, ducking.attack, ducking.release,
            ducking.hold, ducking.longest, enforcement.deadline, routes.replug, library.interval, cache.size,
        ]
        return times.allSatisfy { (0...1e9).contains($0) } && (-200...0).contains(ducking.gain)
            && (0...1 << 20).contains(limits.history) && (0...1 << 20).contains(limits.stringLength)
            && limits.sessions >= 0 && limits.sessionsPerClient >= 0
    }
}
