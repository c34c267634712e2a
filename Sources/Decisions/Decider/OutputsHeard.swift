import PluginAPI
import SessionManager

/// On which outputs the streams of each session were last heard (rules §7, "Whose output went").
///
/// A stream that is paused, held or muted, or that has ended, counts where it was. When an output is unplugged, the server
/// moves its streams at once, and may report that before the loss itself. So for a short time a moved stream counts on both
/// outputs. While a session is interrupted, nothing changes: its sound may be moved, and is not to be heard.
struct OutputsHeard: Sendable, Codable {
    private struct Place: Codable {
        var output: String
        /// Where it was before.
        var former: Former?
    }

    private struct Former: Codable {
        let output: String
        /// Until when it also counts there.
        let until: Instant
    }

    /// How long a moved stream also counts where it was, in seconds: longer than a loss may be unreported
    /// (`SettleTime` of the backend).
    private static let moveTime = 0.5

    /// By session, the uids; never an empty set.
    private(set) var outputs: [SessionID: Set<String>]
    /// When ``look(_:of:at:owners:)`` is due again; nil: when something changes.
    private(set) var deadline: Instant?
    /// The streams that were heard.
    private var places: [AudioStream.ID: Place] = [:]

    /// `outputs`: those that an earlier daemon knew.
    init(_ outputs: [SessionID: Set<String>] = [:]) { self.outputs = outputs.filter { !$0.value.isEmpty } }

    /// The server is gone, and its streams with it; the outputs keep their uids.
    mutating func forgetStreams() {
        places = [:]
        deadline = nil
    }

    mutating func look(
        _ streams: [AudioStream], of sessions: [Session], at now: Instant, owners: (AudioStream.ID) -> [SessionID]
    ) {
        deadline = nil
        guard !streams.isEmpty || !outputs.isEmpty else { return }
        let (present, known) = (Set(streams.map(\.id)), Set(sessions.map(\.id)))
        places = places.filter { present.contains($0.key) }
        outputs = outputs.filter { known.contains($0.key) }
        let silent = Set(sessions.lazy.filter { $0.state == .interrupted }.map(\.id))
        var own: [SessionID: [AudioStream]] = [:]
        for stream in streams where stream.direction == .playback {
            let owners = owners(stream.id)
            for id in owners { own[id, default: []].append(stream) }
            if !owners.isEmpty, !owners.allSatisfy(silent.contains) { hear(stream, at: now) }
        }
        for (id, streams) in own where !silent.contains(id) || outputs[id] == nil {
            let used = streams.reduce(into: Set<String>()) { $0.formUnion(self.outputs(of: $1, of: id)) }
            if !used.isEmpty { outputs[id] = used }
        }
    }

    private mutating func hear(_ stream: AudioStream, at now: Instant) {
        var place = places[stream.id]
        if stream.isSounding, let output = stream.outputUID, output != place?.output {
            place = Place(
                output: output,
                former: place.map {
                    Former(output: $0.output, until: now.advanced(bySeconds: OutputsHeard.moveTime))
                })
        }
        if let until = place?.former?.until {
            if until <= now { place?.former = nil } else { deadline = min(deadline ?? until, until) }
        }
        places[stream.id] = place
    }

    private func outputs(of stream: AudioStream, of id: SessionID) -> Set<String> {
        if let place = places[stream.id] { return Set([place.output, place.former?.output].compactMap { $0 }) }
        // It was not heard yet, or not by this daemon.
        return outputs[id] ?? (stream.isHeld ? [] : Set([stream.outputUID].compactMap { $0 }))
    }
}
