public import PluginAPI

/// The facts about a session that matter for streams. Times are microseconds on the monotonic clock.
public struct SessionFacts: Sendable, Hashable {
    /// How its program takes part.
    public enum Kind: Sendable, Hashable {
        /// The program is a client and gets signals.
        case client
        /// The program was adopted.
        case adopted(AdoptedProgram)
    }

    public let id: SessionID
    public let kind: Kind
    /// The process whose streams, with those of its descendants, belong to the session; 0: unknown.
    public let process: UInt32
    /// Its user; nil: unknown.
    public let user: UInt32?
    /// The id of the application from its sandbox, or its desktop entry; empty: none.
    public let application: String
    public let sessionClass: SessionClass
    public let configuration: Configuration
    public let state: SessionState
    /// When the state last changed.
    public let since: UInt64
    /// Muted by the silent switch or the screen lock.
    public let isMuted: Bool
    /// The decibels by which it is ducked, 0 or more.
    public let lowered: Double
    /// Whether the program ducks its own sound when it gets the signal.
    public let lowersItself: Bool
    /// The evidence of a guessed call, for display; else empty.
    public let evidence: String
    /// Whether its last interruption ended with the should-resume hint, and its claim is still valid.
    public let mayResume: Bool
    /// Whether it has a claim to come back after an interruption.
    public let holdsClaim: Bool
    /// Whether its interruption ended without the hint because its output was unplugged meanwhile, and its claim is still
    /// valid.
    public var lostItsOutput = false
    /// Whether it is heard again if the user starts its program: always for an app. A call or an alert does not end a
    /// declared call or an alert that holds it.
    public let mayBeTakenBack: Bool
    /// Whether its player was asked to pause, or to play before it was interrupted, a moment ago (`PauseBook`).
    public var isPausing = false
    /// Whether its player says that it is paused.
    public var hasPausedPlayer = false
    /// Set while only an unplugged output keeps it silent: from when a replug no longer resumes it. Then it waits for its
    /// user alone.
    public var awaitsUserFrom: UInt64?
    /// Whether its activation would be allowed now and would interrupt no other session.
    public let isFreeToActivate: Bool

    /// Whether it is an adopted alarm.
    var isAlarm: Bool {
        if case .adopted(let adopted) = kind { adopted.program == Program.alarm } else { false }
    }

    public init(
        id: SessionID, kind: Kind, process: UInt32, user: UInt32? = nil, application: String,
        sessionClass: SessionClass,
        configuration: Configuration, state: SessionState, since: UInt64, isMuted: Bool, lowered: Double,
        lowersItself: Bool, evidence: String = "", mayResume: Bool, holdsClaim: Bool, mayBeTakenBack: Bool,
        isFreeToActivate: Bool
    ) {
        self.id = id
        self.kind = kind
        self.process = process
        self.user = user
        self.application = application
        self.sessionClass = sessionClass
        self.configuration = configuration
        self.state = state
        self.since = since
        self.isMuted = isMuted
        self.lowered = lowered
        self.lowersItself = lowersItself
        self.evidence = evidence
        self.mayResume = mayResume
        self.holdsClaim = holdsClaim
        self.mayBeTakenBack = mayBeTakenBack
        self.isFreeToActivate = isFreeToActivate
    }

    var adopted: AdoptedProgram? {
        switch kind {
        case .client: nil
        case .adopted(let program): program
        }
    }
}

/// The program of an adopted session, and its role: one session for each such pair.
public struct AdoptedProgram: Sendable, Hashable, Codable {
    public let program: Program.Key
    public let role: Settings.Role
    /// Whether it is a guessed call.
    public let isGuess: Bool

    public init(program: Program.Key, role: Settings.Role, isGuess: Bool = false) {
        self.program = program
        self.role = role
        self.isGuess = isGuess
    }
}
