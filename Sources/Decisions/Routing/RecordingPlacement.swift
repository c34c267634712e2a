public import PluginAPI

/// Decides the input device of each recording: the one that its session prefers, also for recordings that start
/// later; without a preference, that of the route.
public struct RecordingPlacement: Sendable, Codable {
    public struct Move: Sendable, Hashable, Codable {
        public let stream: AudioStream.ID
        /// The port's uid.
        public let input: String
    }

    /// What was requested for a recording, and where it was then.
    private struct Request: Sendable, Hashable, Codable {
        let input: String
        let place: String?
        /// Whether the input was there.
        let isThere: Bool
        /// Whether the server has refused it.
        var isRefused = false
    }

    private var preferences: [SessionID: String] = [:]
    private var moved: [AudioStream.ID: Request] = [:]

    public init() {}

    /// Whether there is no preference, nor a recording to move back.
    public var isIdle: Bool { preferences.isEmpty && moved.isEmpty }

    /// nil: no preference.
    public mutating func prefer(_ uid: String?, of session: SessionID) { preferences[session] = uid }

    /// The moves that are needed. `inputs`: all that are available. `owners`: the sessions to which a recording belongs.
    public mutating func moves(
        _ streams: [AudioStream], route: Route, inputs: [Port], owners: (AudioStream) -> [SessionID]
    ) -> [Move] {
        if isIdle { return [] }
        let recordings = streams.filter { $0.direction == .record && $0.portUID != nil }
        let present = Set(recordings.map(\.id))
        moved = moved.filter { present.contains($0.key) }
        var moves: [Move] = []
        for stream in recordings {
            if let preferred = owners(stream).sorted().compactMap({ preferences[$0] }).last {
                let isThere = inputs.contains { $0.uid == preferred }
                if let last = moved[stream.id], last.input == preferred {
                    // If the recording is elsewhere now, the user has moved it, and it stays. A refused move is repeated when
                    // the recording or the input has changed.
                    if !last.isRefused || (last.place == stream.portUID && last.isThere == isThere) { continue }
                }
                moved[stream.id] = Request(input: preferred, place: stream.portUID, isThere: isThere)
                if stream.portUID != preferred { moves.append(Move(stream: stream.id, input: preferred)) }
            } else if let last = moved.removeValue(forKey: stream.id), !last.isRefused,
                let shared = route.inputs.first?.uid, stream.portUID != shared
            {
                moves.append(Move(stream: stream.id, input: shared))
            }
        }
        return moves
    }

    /// The server refused it: it is tried again when the recording is elsewhere, or the input has come or gone.
    public mutating func refused(_ move: Move) {
        if moved[move.stream]?.input == move.input { moved[move.stream]?.isRefused = true }
    }
}
