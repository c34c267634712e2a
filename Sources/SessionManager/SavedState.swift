public import PluginAPI

/// Everything of a session that must outlive the daemon. What follows from it (lowered, muted, hints) is computed anew.
public struct SavedSession: Sendable, Hashable {
    public var id: SessionID
    public var new: NewSession
    public var state: SessionState
    public var isForeground: Bool
    public var preferences: Preferences
    public var override: OutputOverride
    public var preferredInput: String
    public var interruption: Interruption?
    public var waitingFor: [SessionID]
    public var claimExpires: Instant?
    public var since: Instant
    /// Activations in their order.
    public var activation: UInt64

    public init(
        id: SessionID, new: NewSession, state: SessionState, isForeground: Bool, preferences: Preferences,
        override: OutputOverride, preferredInput: String, interruption: Interruption?, waitingFor: [SessionID],
        claimExpires: Instant?, since: Instant, activation: UInt64
    ) {
        self.id = id
        self.new = new
        self.state = state
        self.isForeground = isForeground
        self.preferences = preferences
        self.override = override
        self.preferredInput = preferredInput
        self.interruption = interruption
        self.waitingFor = waitingFor
        self.claimExpires = claimExpires
        self.since = since
        self.activation = activation
    }
}

/// Everything of the core that must outlive the daemon and belongs to no session.
public struct SavedManager: Sendable, Hashable {
    public var sequence: UInt64
    public var lastID: UInt64
    public var clock: UInt64
    public var isSilentMode: Bool
    public var isScreenLocked: Bool
    public var isMicrophoneMuted: Bool

    public init(
        sequence: UInt64, lastID: UInt64, clock: UInt64, isSilentMode: Bool, isScreenLocked: Bool,
        isMicrophoneMuted: Bool
    ) {
        self.sequence = sequence
        self.lastID = lastID
        self.clock = clock
        self.isSilentMode = isSilentMode
        self.isScreenLocked = isScreenLocked
        self.isMicrophoneMuted = isMicrophoneMuted
    }
}

/// Why a saved state is not one that the rules can lead to.
public struct SavedStateError: Error, Sendable, CustomStringConvertible {
    public let description: String
}

extension Arbiter {
    public var savedManager: SavedManager {
        SavedManager(
            sequence: sequence, lastID: lastID, clock: clock, isSilentMode: isSilentMode,
            isScreenLocked: isScreenLocked, isMicrophoneMuted: isMicrophoneMuted)
    }

    /// Nil where there is no such session.
    public func savedSession(_ id: SessionID) -> SavedSession? {
        guard let session = session(id) else { return nil }
        return SavedSession(
            id: id,
            new: NewSession(
                name: session.name, client: session.client, sessionClass: session.sessionClass,
                configuration: session.configuration, notifiesOnExit: session.notifiesOnExit),
            state: session.state, isForeground: session.isForeground, preferences: session.preferences,
            override: session.override, preferredInput: session.preferredInput, interruption: session.interruption,
            waitingFor: session.waitingFor, claimExpires: session.claimExpires, since: session.since,
            activation: session.standing.activation)
    }

    /// Goes on where another one was. Nobody is told anything: everybody was told then.
    ///
    /// Throws where no sequence of events leads to such a state: it is then to be believed in no part.
    public init(
        restoring manager: SavedManager, _ saved: [SavedSession], settings: Settings = Settings()
    ) throws(SavedStateError) {
        self.init(settings: settings)
        sequence = manager.sequence
        lastID = manager.lastID
        clock = manager.clock
        isSilentMode = manager.isSilentMode
        isScreenLocked = manager.isScreenLocked
        isMicrophoneMuted = manager.isMicrophoneMuted
        for session in saved.sorted(by: { $0.id < $1.id }) { sessions.append(Session(restoring: session)) }
        try checkRestored()
        var told = Effects()
        settle(at: sessions.map(\.since).max() ?? Instant(microseconds: 0), &told)
    }

    private func checkRestored() throws(SavedStateError) {
        func require(_ holds: Bool, _ what: String) throws(SavedStateError) {
            if !holds { throw SavedStateError(description: what) }
        }
        var exclusive = 0
        for (x, session) in sessions.enumerated() {
            let id = session.id
            try require(x == 0 || sessions[x - 1].id < id, "session \(id) is there twice")
            try require(id.number > 0 && id.number <= lastID, "session \(id) was never created")
            try require(
                session.standing.activation <= clock && (session.interruption?.order ?? 0) <= clock,
                "session \(id) is ahead of its time")
            try require(
                (session.state == .interrupted) == (session.interruption != nil),
                "session \(id) is interrupted without an interruption, or the other way round")
            try require(session.state == .interrupted || session.waitingFor.isEmpty, "session \(id) waits for nothing")
            try require(session.claimExpires == nil || session.state == .inactive, "session \(id) has two claims")
            for other in session.waitingFor {
                try require(
                    other != id && self.session(other)?.holdsClaim == true,
                    "session \(id) waits for \(other), which holds no claim")
            }
            if session.state == .active, session.sessionClass == .app, !session.configuration.isMixable {
                exclusive += 1
            }
        }
        try require(exclusive <= 1, "\(exclusive) sessions that do not mix are active at once")
    }
}

extension Session {
    fileprivate init(restoring saved: SavedSession) {
        self.init(saved.id, saved.new, at: saved.since)
        preferredInput = saved.preferredInput
        interruption = saved.interruption
        waitingFor = saved.waitingFor.sorted()
        standing.state = saved.state
        standing.isForeground = saved.isForeground
        standing.preferences = saved.preferences
        standing.override = saved.override
        standing.claimExpires = saved.claimExpires
        standing.activation = saved.activation
        recallCause()
    }

    /// As much of the state's cause as the state itself tells.
    mutating func recallCause() {
        cause = Cause(
            .restored, interruption?.rule ?? .services, at: since, by: interruption?.by, interruption?.byName ?? "")
    }
}
