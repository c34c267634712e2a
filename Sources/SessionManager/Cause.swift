public import PluginAPI

/// Why something became as it is: recorded with the transition, as plain values.
public struct Cause: Sendable, Hashable {
    /// What happened.
    public enum Kind: String, CaseIterable, Sendable, Hashable {
        // To the state.
        case created, activated, deactivated
        /// Activated within the grace time.
        case cameBack = "came-back"
        /// Activated while interrupted.
        case tookBack = "took-back"
        /// Deactivated while interrupted, or within the grace time.
        case gaveUp = "gave-up"
        case interrupted
        /// The interruption ended; the claim lasts for the grace time.
        case released
        case ranOut = "ran-out"
        // Beside the state.
        case lowered, muted, lacks, refused
        /// From before what is remembered, as at the beginning of a history whose start was dropped.
        case earlier
        /// A wait that no longer makes sense, as the two no longer conflict.
        case dissolved
        /// Gone from the bus, or closed.
        case vanished, closed
    }

    public let kind: Kind
    public let rule: Rule
    /// When it happened.
    public let since: Instant
    /// The session that caused it; nil: nobody else did.
    public let by: SessionID?
    /// That session's name, kept for when it has gone.
    public let byName: String

    public init(_ kind: Kind, _ rule: Rule, at since: Instant, by: SessionID? = nil, _ byName: String = "") {
        self.kind = kind
        self.rule = rule
        self.since = since
        self.by = by
        self.byName = byName
    }
}

/// The last request of a session that was refused.
public struct RefusedRequest: Sendable, Hashable {
    public let request: Request
    public let error: SessionError
    /// By which rule, when, and who stood in the way.
    public let cause: Cause

    public init(request: Request, error: SessionError, cause: Cause) {
        self.request = request
        self.error = error
        self.cause = cause
    }
}

/// What a session can be refused. The raw value is the method's name on the bus.
public enum Request: String, CaseIterable, Sendable, Hashable {
    case setCategory = "SetCategory"
    case activate = "Activate"
    case deactivate = "Deactivate"
    case overrideOutput = "OverrideOutput"
    case setPreferredInput = "SetPreferredInput"
    case setPreferences = "SetPreferences"
    case close = "Close"
    case setForeground = "SetForeground"
}

extension Event {
    /// The request of a session that this is; nil for everything else.
    public var request: Request? {
        switch self {
        case .setCategory: .setCategory
        case .activate: .activate
        case .deactivate: .deactivate
        case .overrideOutput: .overrideOutput
        case .setPreferredInput: .setPreferredInput
        case .setPreferences: .setPreferences
        case .close: .close
        case .setForeground: .setForeground
        case .create, .setSilentMode, .setScreenLocked, .clientVanished, .servicesReset, .servicesLost, .routeChanged,
            .portsChanged, .soundingChanged, .microphoneMuted, .settingsChanged, .interruptionIgnored, .timePassed:
            nil
        }
    }

    /// The rule by which such an event is judged, where nothing of the case says more.
    var rule: Rule {
        switch self {
        case .create, .setCategory: .category
        case .activate, .setForeground: .matrix
        case .interruptionIgnored: .comesBack
        case .deactivate, .close: .resume
        case .overrideOutput, .setPreferredInput, .setPreferences, .routeChanged, .portsChanged: .route
        case .setSilentMode, .setScreenLocked, .soundingChanged: .silentSwitch
        case .clientVanished: .vanished
        case .servicesReset, .servicesLost, .settingsChanged: .services
        case .microphoneMuted: .microphone
        case .timePassed: .grace
        }
    }
}

extension SessionError.Code {
    /// The rule that such a refusal stands on.
    var rule: Rule {
        switch self {
        case .cannotInterruptOthers, .cannotStartPlaying, .cannotStartRecording, .insufficientPriority: .matrix
        case .missingEntitlement: .classes
        case .incompatibleCategory: .route
        case .mediaServicesFailed: .services
        case .badParameter, .isBusy, .resourceNotAvailable, .sessionNotActive, .expiredSession, .notOwner: .errors
        }
    }
}
