import Logging
import PluginAPI
import SessionManager

/// Moves the recordings of sessions with a preferred input to that input, also those that start later; and to the
/// default when the preference ends.
final class PreferredInputs {
    private let backend: any AudioBackend
    private let log: Logger
    private var preferences: [SessionID: String] = [:]
    /// The recordings that were moved, and where to.
    private var moved: [AudioStream.ID: String] = [:]

    init(_ backend: any AudioBackend, log: Logger) {
        self.backend = backend
        self.log = log
    }

    /// nil: no preference.
    func prefer(_ uid: String?, of session: SessionID) { preferences[session] = uid }

    /// `owners`: the sessions to which a recording belongs.
    func place(_ owners: (AudioStream) -> [SessionID]) {
        guard !preferences.isEmpty || !moved.isEmpty else { return }
        let snapshot = backend.snapshot
        let streams = snapshot.streams.filter { $0.direction == .record && $0.portUID != nil }
        let present = Set(streams.map(\.id))
        moved = moved.filter { present.contains($0.key) }
        for stream in streams {
            let preferred = owners(stream).sorted().compactMap { preferences[$0] }.last
            if let preferred {
                move(stream, to: preferred)
            } else if moved[stream.id] != nil, let shared = snapshot.route.inputs.first?.uid {
                move(stream, to: shared)
                moved[stream.id] = nil
            }
        }
    }

    private func move(_ stream: AudioStream, to uid: String) {
        guard moved[stream.id] != uid else { return }
        moved[stream.id] = uid
        guard stream.portUID != uid else { return }
        backend.moveStream(stream.id, to: uid) { [weak self, log] result in
            guard case .failure(let error) = result else { return }
            log.warning("the recording could not be moved to the preferred input: \(error)")
            // It is tried again when the streams change.
            self?.moved[stream.id] = nil
        }
    }
}
