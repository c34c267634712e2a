public import PluginAPI

/// A session as far as it concerns streams. Times are microseconds on the monotonic clock.
public struct SessionFacts: Sendable, Hashable {
    /// How its program takes part.
    public enum Kind: Sendable, Hashable {
        /// The program speaks to us, and is told.
        case told
        /// We made the session for a program that does not.
        case adopted(AdoptedProgram)
    }

    public let id: SessionID
    public let kind: Kind
    /// Whose streams are its own, with all descendants; 0: unknown.
    public let process: UInt32
    /// Whose session it is; nil: unknown.
    public let user: UInt32?
    /// The application's id as its sandbox or its desktop entry has it; empty: none.
    public let application: String
    public let sessionClass: SessionClass
    public let configuration: Configuration
    public let state: SessionState
    /// When the state last changed.
    public let since: UInt64
    /// By the silent switch or the screen lock.
    public let isMuted: Bool
    /// Decibels it is lowered by, 0 or more.
    public let lowered: Double
    /// Whether the program lowers itself when it is told to.
    public let lowersItself: Bool
    /// Of a call that was guessed: what shows it, for people; else empty.
    public let evidence: String
    /// Whether its last interruption ended with the advice to resume, and its claim still stands.
    public let mayResume: Bool
    /// Whether it still has a claim to come back after an interruption.
    public let holdsClaim: Bool
    /// Whether it is heard again where the user starts its program: nobody that it waits for has declared a call or an
    /// alert.
    public let mayBeTakenBack: Bool
    /// Whether activating it now would be allowed and would interrupt nobody.
    public let isFreeToActivate: Bool

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
}

/// The program an adopted session stands for, and what its streams count as: one session for each such pair.
public struct AdoptedProgram: Sendable, Hashable {
    public let program: Program.Key
    public let role: Settings.Role
    /// Whether it is a call that nobody declared.
    public let isGuess: Bool

    public init(program: Program.Key, role: Settings.Role, isGuess: Bool = false) {
        self.program = program
        self.role = role
        self.isGuess = isGuess
    }
}
