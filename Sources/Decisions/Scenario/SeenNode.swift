import Decider
import Enforcement
import PluginAPI

extension Node {
    /// The streams at the sound server by their names, and their order, so that a change of one is a change of one part.
    static func streams(_ seen: StreamsSeen) -> Node {
        var rest = seen
        rest.streams = []
        rest.found = seen.found.map { StreamsSeen.Found($0.stream.forDecisions, $0.kept, isNew: $0.isNew) }
        var node = Node(rest)
        node["streams"] = .parts(
            Dictionary(seen.streams.map { ($0.stream.id.word, Node($0.forDecisions)) }) { $1 })
        node["order"] = .text(seen.streams.map(\.stream.id.word).joined(separator: ","))
        return node
    }

    /// The same after a change, of which `hide` hides the private texts.
    func applying(_ change: FactLog.StreamsChange, _ hide: (Node) -> Node) -> Node {
        var node = hide(Node.streams(change.seen))
        var streams: [String: Node] = [:]
        if case .parts(let before)? = self["streams"] { streams = before }
        for facts in change.changed { streams[facts.stream.id.word] = hide(Node(facts.forDecisions)) }
        if let order = change.order {
            let words = order.map(\.word)
            streams = streams.filter { words.contains($0.key) }
            node["order"] = .text(words.joined(separator: ","))
        } else {
            node["order"] = self["order"]
        }
        node["streams"] = .parts(streams)
        return node
    }

    /// The value that was written. `known`: streams that were read before, by their trees.
    func seen(_ known: inout [Node: StreamFacts]) throws(NodeError) -> StreamsSeen {
        var rest = self
        rest["order"] = nil
        rest["streams"] = .nothing
        var seen: StreamsSeen = try rest.value()
        guard case .text(let order)? = self["order"], case .parts(let streams)? = self["streams"] else {
            throw NodeError(message: "the streams or their order are missing")
        }
        var read: [Node: StreamFacts] = [:]
        for word in order.split(separator: ",") {
            guard let node = streams[String(word)] else { throw NodeError(message: "the stream \(word) is missing") }
            let facts: StreamFacts
            if let before = known[node] { facts = before } else { facts = try node.value() }
            guard facts.stream.id.word == word else {
                throw NodeError(message: "the stream \(word) has another name in it")
            }
            read[node] = facts
            seen.streams.append(facts)
        }
        known = read
        return seen
    }
}

extension AudioStream {
    /// Without the properties that decide nothing.
    fileprivate var forDecisions: AudioStream {
        var stream = self
        stream.properties = properties.filter { ["media.name", "application.id", "event.id"].contains($0.key) }
        return stream
    }
}

extension StreamFacts {
    fileprivate var forDecisions: StreamFacts {
        StreamFacts(stream: stream.forDecisions, ancestry: ancestry, user: user, sandbox: sandbox, program: program)
    }
}
