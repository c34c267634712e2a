public import PluginAPI

/// The connection a session belongs to, as the shell numbers it: each once.
public struct ClientID: Hashable, Sendable {
    public let number: UInt64
    public init(_ number: UInt64) { self.number = number }
}

/// What a client asks for when it creates a session.
public struct NewSession: Sendable, Hashable {
    public let name: String
    public let client: ClientID
    public let sessionClass: SessionClass
    public let configuration: Configuration
    /// Whether vanishing counts as leaving with notify-others.
    public let notifiesOnExit: Bool
    /// Of a call that nobody declared: what its program does that shows it, for people ("records from 'Headset Mic' and
    /// plays"). Empty: the client, or the stream's label, says what it is.
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

/// One session: what it asked for, and what follows from everything that was asked.
public struct Session: Sendable {
    public let id: SessionID
    public let name: String
    public let client: ClientID
    public let notifiesOnExit: Bool
    /// ``NewSession/evidence``.
    public let evidence: String
    /// Empty: no preference.
    public internal(set) var preferredInput = ""
    /// Present exactly while the state is `interrupted`.
    public internal(set) var interruption: Interruption?
    /// Who must leave before it may resume.
    public internal(set) var waitingFor: SessionSet = []
    /// The last request that was refused, until such a request succeeds.
    public internal(set) var refused: RefusedRequest?
    /// Why the state is as it is.
    public internal(set) var cause: Cause
    /// The interruption that ended, present within the grace time only: it says whether to resume.
    public internal(set) var ended: Interruption?
    /// Whether the interruption that ended last ended with the advice to resume, and its claim still stands.
    public internal(set) var mayResume = false
    /// Since when it plays on although it was told to fall silent; nil: it does not, or is not interrupted.
    public internal(set) var ignoredSince: Instant?
    /// Present exactly while it is lowered.
    public internal(set) var duckCause: Cause?
    /// Present exactly while it is muted.
    public internal(set) var muteCause: Cause?
    /// Present exactly while it is active and nothing that the server offers suits its category.
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
    /// Whether it is a call that nobody declared. The rules treat it as any call; a user who plays something beside it is
    /// heard.
    public var isGuessedCall: Bool { !evidence.isEmpty }
    public var configuration: Configuration { standing.configuration }
    /// Whether the shell says so; true until anybody said (``Event/setForeground(_:_:)``).
    public var isForeground: Bool { standing.isForeground }
    public var preferences: Preferences { standing.preferences }
    public var override: OutputOverride { standing.override }
    public var state: SessionState { standing.state }
    public var refusal: SessionError? { refused?.error }
    /// Within the grace time after `ended`: when its claim runs out.
    public var claimExpires: Instant? { standing.claimExpires }
    /// Whether somebody active lowers it; by ``Arbiter/Settings/duckGain`` then.
    public var isDucked: Bool { standing.isDucked }
    /// By the silent switch or the screen lock.
    public var isMuted: Bool { standing.isMuted }
    /// Whether somebody else sounds, mixable or not.
    public var otherAudioPlaying: Bool { standing.otherAudioPlaying }
    /// Whether somebody else's non-mixable session sounds.
    public var shouldSilenceSecondaryAudio: Bool { standing.shouldSilenceSecondaryAudio }
    /// Active, interrupted, or within the grace time: others may be waiting for it.
    public var holdsClaim: Bool { standing.holdsClaim }
}

/// What is looked at of every session in every event: plain bits, so that a thousand sessions cost no counting of
/// references.
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
    /// What was last announced of the two that only active sessions are told of.
    var toldOtherAudioPlaying = false
    var toldSilenceHint = false
    /// Whether the server's streams say that it sounds.
    var isHeard = false
    /// When it last became active, in the order of activations; 0: never.
    var activation: UInt64 = 0
    /// What changed in the event at hand, to be told once at its end.
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
    var isDucker: Bool { isActive && configuration.ducksOthers }
    /// Only app sessions with an output can be lowered, and a ducker is not lowered by another.
    var canBeDucked: Bool {
        isActive && sessionClass == .app && configuration.category.hasOutput && !configuration.ducksOthers
    }
    /// Whether it sounds: by its streams, or by its state where no server can be asked. Interrupted, it is silent to
    /// everyone else from then on, while its last samples still leave it.
    func sounds(byState: Bool) -> Bool {
        byState ? isActive && configuration.category.hasOutput && !isMuted : isHeard && state != .interrupted
    }
    var canBeNowPlaying: Bool { sessionClass == .app && !configuration.isMixable && configuration.category.hasOutput }

    /// Whether all of that is what was told already.
    func reads(ducked: Bool, others: Bool, exclusive: Bool) -> Bool {
        isDucked == ducked && otherAudioPlaying == others && shouldSilenceSecondaryAudio == exclusive
            && (!isActive || toldOtherAudioPlaying == others && toldSilenceHint == exclusive)
    }

    /// Whether the other one's activation interrupts this one.
    func conflicts(with other: Place) -> Bool {
        if other.newcomer == .alert, preferences.noInterruptionsFromAlerts, sessionClass == .app { return false }
        return Matrix.verdict(other.newcomer, over: place.incumbent) == .interrupt
    }
}

/// Where a session stands in the matrix, both as the new one and as the one already there.
struct Place: Sendable {
    let newcomer: Matrix.Newcomer
    let incumbent: Matrix.Incumbent

    init(_ sessionClass: SessionClass, _ configuration: Configuration) {
        newcomer = Matrix.Newcomer(sessionClass, configuration)
        incumbent = Matrix.Incumbent(sessionClass, configuration)
    }
}

/// Which of a session's properties on the bus read differently after one event.
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
    /// What was asked for: it shows in IOBufferDuration.
    public static let preferences = SessionProperties(rawValue: 1 << 15)
    /// IgnoredInterruption.
    public static let ignored = SessionProperties(rawValue: 1 << 16)

    /// What of the configuration reads differently.
    init(from old: Configuration, to new: Configuration) {
        self = []
        if old.category != new.category { insert(.category) }
        if old.mode != new.mode { insert(.mode) }
        if old.options != new.options { insert(.options) }
    }
}

/// Which of the manager's properties on the bus read differently after one event.
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
