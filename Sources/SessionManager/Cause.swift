public import PluginAPI

/// Why a state began: recorded with the change, as plain values.
public struct Cause: Sendable, Hashable, Codable {
    /// The kind of event.
    public enum Kind: String, CaseIterable, Sendable, Hashable, Codable {
        // Causes of the state.
        case created, activated, deactivated
        /// Activated within the grace period.
        case cameBack = "came-back"
        /// Activated while interrupted.
        case tookBack = "took-back"
        /// Deactivated while interrupted, or within the grace period.
        case gaveUp = "gave-up"
        case interrupted
        /// The interruption ended; the claim lasts for the grace period.
        case released
        case ranOut = "ran-out"
        // Other causes.
        case lowered, muted, lacks, refused
        /// Before the beginning of the known history.
        case earlier
        /// A wait that ended because the two sessions no longer conflict.
        case dissolved
        /// The client kept others quiet for too long, and did not answer.
        case hung
        /// The machine slept.
        case slept
        /// Disconnected from the bus, or closed.
        case vanished, closed
    }

    public let kind: Kind
    public let rule: Rule
    /// When it happened.
    public let since: Instant
    /// The session that caused it; nil: none did.
    public let by: SessionID?
    /// That session's name, kept for the time after it has gone.
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
    /// The rule, the time, and the session that was the reason.
    public let cause: Cause

    public init(request: Request, error: SessionError, cause: Cause) {
        self.request = request
        self.error = error
        self.cause = cause
    }
}

/// The requests that can be refused. The raw value is the method's name on the bus.
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
    /// The session's request that this event is; nil for all other events.
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
            .portsChanged, .soundingChanged, .microphoneMuted, .settingsChanged, .interruptionIgnored, .asleep,
            .clientHangs, .timePassed:
            nil
        }
    }

    /// The usual rule for such an event.
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
        case .asleep, .clientHangs: .suspended
        }
    }
}

extension SessionError.Code {
    /// The rule for such a refusal.
    var rule: Rule {
        switch self {
        case .cannotInterruptOthers, .cannotStartPlaying, .cannotStartRecording, .insufficientPriority: .matrix
        case .missingEntitlement: .classes
        case .incompatibleCategory: .route
        case .mediaServicesFailed: .services
        case .badParameter, .isBusy, .resourceNotAvailable, .sessionNotActive, .expiredSession, .notOwner: .errors
        // Of jobs and files: no session is refused with them.
        case .notFound, .formatNotSupported, .decodeFailed, .decoderNotFound, .encoderNotFound, .noImageAtTime,
            .exportFailed, .fileAlreadyExists, .diskFull, .networkFailed, .timedOut, .cancelled, .notSupported,
            .notReady, .invalidSource:
            .errors
        }
    }
}
