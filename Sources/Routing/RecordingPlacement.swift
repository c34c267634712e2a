public import PluginAPI

/// Decides the input device of each recording: the one that its session prefers, also for recordings that start
/// later; without a preference, that of the route.
public struct RecordingPlacement: Sendable {
    public struct Move: Sendable, Hashable {
        public let stream: AudioStream.ID
        /// The port's uid.
        public let input: String
    }

    private var preferences: [SessionID: String] = [:]
    /// The recordings that were moved, with their inputs.
    private var moved: [AudioStream.ID: String] = [:]

    public init() {}

    /// Whether there is no preference, nor a recording to move back.
    public var isIdle: Bool { preferences.isEmpty && moved.isEmpty }

    /// nil: no preference.
    public mutating func prefer(_ uid: String?, of session: SessionID) { preferences[session] = uid }

    /// The moves that are needed. `owners`: the sessions to which a recording belongs.
    public mutating func moves(
        _ streams: [AudioStream], route: Route, owners: (AudioStream) -> [SessionID]
    ) -> [Move] {
        if isIdle { return [] }
        let recordings = streams.filter { $0.direction == .record && $0.portUID != nil }
        let present = Set(recordings.map(\.id))
        moved = moved.filter { present.contains($0.key) }
        var moves: [Move] = []
        for stream in recordings {
            if let preferred = owners(stream).sorted().compactMap({ preferences[$0] }).last {
                guard moved[stream.id] != preferred else { continue }
                moved[stream.id] = preferred
                if stream.portUID != preferred { moves.append(Move(stream: stream.id, input: preferred)) }
            } else if moved.removeValue(forKey: stream.id) != nil, let shared = route.inputs.first?.uid,
                stream.portUID != shared
            {
                moves.append(Move(stream: stream.id, input: shared))
            }
        }
        return moves
    }

    /// The server refused it: it is tried again when the streams change.
    public mutating func refused(_ move: Move) { moved[move.stream] = nil }
}
