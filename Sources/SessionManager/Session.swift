public import PluginAPI

/// The connection that owns a session; the daemon numbers them and never reuses a number.
public struct ClientID: Hashable, Sendable, Codable {
    public let number: UInt64
    public init(_ number: UInt64) { self.number = number }

    public init(from decoder: any Decoder) throws { number = try decoder.singleValueContainer().decode(UInt64.self) }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(number)
    }
}

/// The parameters of a new session.
public struct NewSession: Sendable, Hashable, Codable {
    public let name: String
    public let client: ClientID
    public let sessionClass: SessionClass
    public let configuration: Configuration
    /// Whether a disconnect counts as deactivating with notify-others.
    public let notifiesOnExit: Bool
    /// For a guessed call: what its program does ("records from 'Headset Mic' and plays"), for display. Empty: the
    /// client or the label of the stream declared it.
    public let evidence: String

    public init(
        name: String, client: ClientID, sessionClass: SessionClass = .app, configuration: Configuration = .initial,
        notifiesOnExit: Bool = false, evidence: String = ""
    ) {
        self.name = name
        self.client = client
        self.sessionClass = sessionClass
        self.configuration = configuration
        self.notifiesOnExit = notifiesOnExit
        self.evidence = evidence
    }
}

/// One session: its requests, and what follows from all requests.
public struct Session: Sendable {
    public let id: SessionID
    public let name: String
    public let client: ClientID
    public let notifiesOnExit: Bool
    /// ``NewSession/evidence``.
    public let evidence: String
    /// Empty: no preference.
    public internal(set) var preferredInput = ""
    /// Present only while the state is `interrupted`.
    public internal(set) var interruption: Interruption?
    /// The sessions that must end before it may resume.
    public internal(set) var waitingFor: SessionSet = []
    /// The last refused request, until such a request succeeds.
    public internal(set) var refused: RefusedRequest?
    /// The cause of the state.
    public internal(set) var cause: Cause
    /// The interruption that ended, only in the grace period: it has the should-resume hint or not.
    public internal(set) var ended: Interruption?
    /// The number of the latest activation when its last interruption ended with the should-resume hint, while its claim is
    /// valid; nil: it may not resume.
    public internal(set) var resumeOrder: UInt64?
    /// Since when it plays on although it was interrupted; nil: it does not, or is not interrupted.
    public internal(set) var ignoredSince: Instant?
    /// Present only while it is ducked.
    public internal(set) var duckCause: Cause?
    /// Present only while it is muted.
    public internal(set) var muteCause: Cause?
    /// Present only while it is active and its category has no usable input or output.
    public internal(set) var lackCause: Cause?
    /// When the state last changed.
    public internal(set) var since: Instant
    var standing: Standing

    init(_ id: SessionID, _ new: NewSession, at instant: Instant) {
        self.id = id
        name = new.name
        client = new.client
        notifiesOnExit = new.notifiesOnExit
        evidence = new.evidence
        since = instant
        cause = Cause(.created, .category, at: instant)
        standing = Standing(new.sessionClass, new.configuration)
    }

    public var sessionClass: SessionClass { standing.sessionClass }
    /// Whether its last interruption ended with the should-resume hint, and its claim is still valid.
    public var mayResume: Bool { resumeOrder != nil }
    /// Whether it is a guessed call. The rules treat it as any call.
    public var isGuessedCall: Bool { !evidence.isEmpty }
    public var configuration: Configuration { standing.configuration }
    /// As reported by the shell; true until the first report (``Event/setForeground(_:_:)``).
    public var isForeground: Bool { standing.isForeground }
    public var preferences: Preferences { standing.preferences }
    public var override: OutputOverride { standing.override }
    public var state: SessionState { standing.state }
    public var refusal: SessionError? { refused?.error }
    /// In the grace period after `ended`: when its claim expires.
    public var claimExpires: Instant? { standing.claimExpires }
    /// Whether an active session ducks it, by ``Arbiter/Settings/duckGain``.
    public var isDucked: Bool { standing.isDucked }
    /// Whether the silent switch or the screen lock mutes it.
    public var isMuted: Bool { standing.isMuted }
    /// Whether another session plays, mixable or not.
    public var otherAudioPlaying: Bool { standing.otherAudioPlaying }
    /// Whether another session plays that does not mix.
    public var shouldSilenceSecondaryAudio: Bool { standing.shouldSilenceSecondaryAudio }
    /// Active, interrupted, or in the grace period: others may be waiting for it.
    public var holdsClaim: Bool { standing.holdsClaim }
}

/// The values that every event checks for every session: plain bits, so that a thousand sessions cause no reference
/// counting.
struct Standing: Sendable {
    let sessionClass: SessionClass
    var configuration: Configuration {
        didSet { place = Place(sessionClass, configuration) }
    }
    private(set) var place: Place
    var isForeground = true
    var preferences = Preferences()
    var override = OutputOverride.none
    var state = SessionState.inactive
    var claimExpires: Instant?
    var isDucked = false
    var isMuted = false
    var otherAudioPlaying = false
    var shouldSilenceSecondaryAudio = false
    /// The last sent values of the two properties that are sent to active sessions only.
    var toldOtherAudioPlaying = false
    var toldSilenceHint = false
    /// Whether it plays according to the server's streams.
    var isHeard = false
    /// Its position in the order of activations; 0: never active.
    var activation: UInt64 = 0
    /// The changes of the current event, sent once at its end.
    var changes: SessionProperties = []

    init(_ sessionClass: SessionClass, _ configuration: Configuration) {
        self.sessionClass = sessionClass
        self.configuration = configuration
        place = Place(sessionClass, configuration)
    }

    var isActive: Bool { state == .active }
    var holdsClaim: Bool { state != .inactive || claimExpires != nil }
    /// Neither interrupts nor is interrupted by app sessions. Calls and alerts never mix.
    var isMixable: Bool { sessionClass == .app && configuration.isMixable }
    /// An alarm or a call is heard whatever its category.
    var obeysSilentSwitch: Bool { sessionClass == .app && configuration.category.obeysSilentSwitch }
    var isDucker: Bool { isActive && configuration.ducksOthers }
    /// Only app sessions with an output can be ducked, or alerts as well, and a ducker is not ducked by another one.
    func canBeDucked(orAlert: Bool) -> Bool {
        isActive && (sessionClass == .app || orAlert && sessionClass == .alert) && configuration.category.hasOutput
            && !configuration.ducksOthers
    }
    /// Whether it plays: by its streams, or by its state if no server can be asked. An interrupted session counts as
    /// silent for all others at once, even while its last samples are played.
    func sounds(byState: Bool) -> Bool {
        byState ? isActive && configuration.category.hasOutput && !isMuted : isHeard && state != .interrupted
    }
    /// Calls and alerts go on, and what is interrupted already is silent.
    var mayBePausedByUnplug: Bool {
        sessionClass == .app && state != .interrupted && preferences.interruptsOnRouteDisconnect
    }
    var canBeNowPlaying: Bool { sessionClass == .app && !configuration.isMixable && configuration.category.hasOutput }

    /// Whether all values are equal to the last sent ones.
    func reads(ducked: Bool, others: Bool, exclusive: Bool) -> Bool {
        isDucked == ducked && otherAudioPlaying == others && shouldSilenceSecondaryAudio == exclusive
            && (!isActive || toldOtherAudioPlaying == others && toldSilenceHint == exclusive)
    }

    /// Whether an activation of the other session interrupts this one.
    func conflicts(with other: Place) -> Bool {
        if other.newcomer == .alert, preferences.noInterruptionsFromAlerts, sessionClass == .app { return false }
        return Matrix.verdict(other.newcomer, over: place.incumbent) == .interrupt
    }
}

/// The row and column of a session in the matrix: as the new session, and as the active one.
struct Place: Sendable {
    let newcomer: Matrix.Newcomer
    let incumbent: Matrix.Incumbent

    init(_ sessionClass: SessionClass, _ configuration: Configuration) {
        newcomer = Matrix.Newcomer(sessionClass, configuration)
        incumbent = Matrix.Incumbent(sessionClass, configuration)
    }
}

/// The properties of a session on the bus that one event changed.
public struct SessionProperties: OptionSet, Sendable, Hashable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public static let category = SessionProperties(rawValue: 1 << 0)
    public static let mode = SessionProperties(rawValue: 1 << 1)
    public static let options = SessionProperties(rawValue: 1 << 2)
    public static let configuration: SessionProperties = [.category, .mode, .options]
    public static let state = SessionProperties(rawValue: 1 << 3)
    public static let interruptionReason = SessionProperties(rawValue: 1 << 4)
    public static let waitingFor = SessionProperties(rawValue: 1 << 5)
    public static let foreground = SessionProperties(rawValue: 1 << 6)
    public static let ducked = SessionProperties(rawValue: 1 << 7)
    public static let duckGain = SessionProperties(rawValue: 1 << 8)
    public static let muted = SessionProperties(rawValue: 1 << 9)
    public static let otherAudioPlaying = SessionProperties(rawValue: 1 << 10)
    public static let silenceHint = SessionProperties(rawValue: 1 << 11)
    public static let route = SessionProperties(rawValue: 1 << 12)
    public static let availableInputs = SessionProperties(rawValue: 1 << 13)
    public static let preferredInput = SessionProperties(rawValue: 1 << 14)
    /// The requested value: it appears in IOBufferDuration.
    public static let preferences = SessionProperties(rawValue: 1 << 15)
    /// IgnoredInterruption.
    public static let ignored = SessionProperties(rawValue: 1 << 16)

    /// The changed parts of the configuration.
    init(from old: Configuration, to new: Configuration) {
        self = []
        if old.category != new.category { insert(.category) }
        if old.mode != new.mode { insert(.mode) }
        if old.options != new.options { insert(.options) }
    }
}

/// The properties of the manager on the bus that one event changed.
public struct ManagerProperties: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let silentMode = ManagerProperties(rawValue: 1 << 0)
    public static let screenLocked = ManagerProperties(rawValue: 1 << 1)
    public static let nowPlaying = ManagerProperties(rawValue: 1 << 2)
    public static let route = ManagerProperties(rawValue: 1 << 3)
    public static let inputs = ManagerProperties(rawValue: 1 << 4)
    public static let outputs = ManagerProperties(rawValue: 1 << 5)
    /// ServerConnected and ServerName.
    public static let server = ManagerProperties(rawValue: 1 << 6)
}
