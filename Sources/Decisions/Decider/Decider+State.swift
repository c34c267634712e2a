import Enforcement
import MediaControl
public import PluginAPI
public import Routing
public import SessionManager

extension Decider {
    /// Everything that decides what follows from the next facts, except the rules of the sessions, whose memory is
    /// separate (``Arbiter/memory``). Written with an exported history, and read from there.
    public struct State: Sendable, Codable {
        var members: [SessionID: Member] = [:]
        /// What the memory of the rules does not have when it is written (``Memory/Member/cause``, ``Memory/Member/ended``,
        /// ``Memory/Member/duckCause``).
        var causes: [SessionID: Past] = [:]
        var sounding: Sounding?
        var players = Players()
        var routing = Routing()
        var recordings = RecordingPlacement()
        var enforcement: Enforcement
        public internal(set) var seen = StreamsSeen()
        var outputs = OutputsHeard()
        var measured: Set<AudioStream.ID> = []
        var streamsDeadline: Instant?
        var lastClient: UInt64 = 0
        var suspension = Suspension()

        struct Past: Sendable, Codable {
            var cause: Cause?
            var ended: Interruption?
            /// Since when it is ducked decides when the client that ducks it is asked whether it still runs.
            var duckCause: Cause?
        }

        /// That of a new decider.
        public init(_ settings: Settings) { enforcement = Enforcement(settings) }

        public var settings: Settings { enforcement.settings }
    }

    public var state: State {
        var state = State(settings)
        state.members = members
        for session in arbiter.sessions
        where session.cause.kind == .cameBack || session.ended != nil || session.duckCause != nil {
            state.causes[session.id] = State.Past(
                cause: session.cause, ended: session.ended, duckCause: session.duckCause)
        }
        state.sounding = sounding
        state.players = players
        state.routing = routing
        state.recordings = recordings
        state.enforcement = enforcement
        state.seen = seen
        state.outputs = outputs
        state.measured = measured
        state.streamsDeadline = streamsDeadline
        state.lastClient = lastClient
        state.suspension = suspension
        return state
    }

    /// Continues from a written state. Throws if the memory contradicts itself.
    public init(_ state: State, _ memory: Memory) throws(MemoryError) {
        var memory = memory
        for place in memory.members.indices {
            guard let past = state.causes[memory.members[place].id] else { continue }
            memory.members[place].cause = past.cause
            memory.members[place].ended = past.ended
            memory.members[place].duckCause = past.duckCause
        }
        self.init(state.settings, try Arbiter(memory))
        members = state.members.filter { arbiter.session($0.key) != nil }
        adoptedCount = members.values.count { $0.adopted != nil }
        sounding = state.sounding
        players = state.players
        routing = state.routing
        recordings = state.recordings
        enforcement = state.enforcement
        seen = state.seen
        outputs = state.outputs
        measured = state.measured
        streamsDeadline = state.streamsDeadline
        lastClient = state.lastClient
        suspension = state.suspension
    }
}

extension Decider {
    /// Facts that can be replayed: the state before the first of them, and all that follow with their decisions.
    public struct Replayable: Sendable {
        public let start: Decider
        /// What was last seen of the server's state before the first fact.
        public let view: Routing.View
        public let records: [FactLog.Record]
        /// The decisions that are in the history, in order.
        public let entries: [History.Entry]
        /// The number of recorded decisions before the first of these (``FactLog/Record/position``).
        public let position: Int
    }

    /// Where a replay can start whose decisions are all in the history, the earliest first. The latest fact may have dropped
    /// some of them.
    public var replayStarts: [FactLog.Start] {
        log.starts.filter { $0.position >= history.total - history.count }
    }

    /// All facts since that start, one of ``replayStarts``.
    public func replayable(from start: FactLog.Start) -> Replayable {
        Replayable(
            start: start.decider, view: start.view, records: log.records(since: start),
            entries: history.entries(from: start.position), position: start.position)
    }

    /// The state now, without any fact.
    public var replayableFromNow: Replayable {
        Replayable(start: self, view: Routing.View(), records: [], entries: [], position: history.total)
    }
}
