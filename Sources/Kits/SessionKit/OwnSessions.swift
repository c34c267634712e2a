public import DBus
import PluginAPI
import Synchronization

/// The sessions of this program, for its players and recorders.
final class OwnSessions: Sendable {
    static let all = OwnSessions()

    private struct Entry {
        weak var session: AudioSession?
    }

    private struct Known {
        /// Oldest first.
        var entries: [Entry] = []
        var shared: [BusAddress: AudioSession] = [:]
        var searches: [BusAddress: Task<Result<AudioSession, SessionError>, Never>] = [:]
    }

    private let known = Mutex(Known())

    func add(_ session: AudioSession) {
        known.withLock { known in
            known.entries.removeAll { $0.session == nil }
            known.entries.append(Entry(session: session))
        }
    }

    /// The oldest session of this program on that bus; nil: it has none.
    func first(on bus: BusAddress) -> AudioSession? {
        known.withLock { known in known.entries.lazy.compactMap(\.session).first { $0.bus == bus } }
    }

    /// The session of this program; one with the name of the program is created if there is none.
    func shared(on bus: BusAddress) async throws(SessionError) -> AudioSession {
        if let session = first(on: bus) { return session }
        let search = known.withLock { known in
            if let search = known.searches[bus] { return search }
            let search = Task { () -> Result<AudioSession, SessionError> in
                do throws(SessionError) {
                    return .success(try await AudioSession(name: OwnProcess.programName, bus: bus))
                } catch {
                    return .failure(error)
                }
            }
            known.searches[bus] = search
            return search
        }
        let result = await search.value
        known.withLock { known in
            // The next caller tries again.
            known.searches[bus] = nil
            if case .success(let session) = result { known.shared[bus] = session }
        }
        return try result.get()
    }

    /// If it is the shared session, the next caller gets a new one.
    func forgetShared(_ session: AudioSession) {
        known.withLock { known in
            known.entries.removeAll { $0.session == nil || $0.session === session }
            if known.shared[session.bus] === session { known.shared[session.bus] = nil }
        }
    }
}

extension AudioSession {
    /// The session of this program: the oldest one that it has created and still holds. If there is none, one is created
    /// with the name of the program and the category `.soloAmbient`, and kept.
    ///
    /// ``AudioPlayer``, ``AudioRecorder`` and ``Player`` use this session unless they are given another one.
    /// - Throws: `MediaServicesFailed` if there is no bus, else the daemon's refusal.
    public static func sharedInstance(bus: BusAddress = .session) async throws(SessionError) -> AudioSession {
        try await OwnSessions.all.shared(on: bus)
    }

    package static func shared() async throws(SessionError) -> AudioSession {
        try await OwnSessions.all.shared(on: .session)
    }
}

/// A player or a recorder of this program, for its session.
final class SessionGuest: Sendable {
    /// The sound must stop now. Called on the thread of the loop.
    let silence: @Sendable () -> Void

    init(silence: @escaping @Sendable () -> Void) { self.silence = silence }
}
