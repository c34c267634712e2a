public import PluginAPI

/// One effect of an event. Effects are listed in the order in which they must be carried out: restrictions first.
public enum Effect: Sendable, Hashable {
    case created(SessionID)
    case activated(SessionID)
    case deactivated(SessionID)
    case closed(SessionID)
    case interruptionBegan(SessionID, Interruption)
    case interruptionEnded(SessionID, shouldResume: Bool, microseconds: UInt64, reason: InterruptionReason, rule: Rule)
    /// A claim expired or was given up, without an `ended`.
    case claimDropped(SessionID, rule: Rule)
    /// The session ignored its interruption, and must be silenced at the server.
    case interruptionIgnored(SessionID)
    /// Gain in decibels, 0 when no longer ducked.
    case duckingChanged(SessionID, ducked: Bool, gain: Double)
    case mutedChanged(SessionID, Bool)
    case silenceSecondaryAudioHint(SessionID, begin: Bool)
    /// For one session, or globally where nil.
    case routeChanged(SessionID?, RouteChangeReason, previous: Route, current: Route)
    case servicesLost
    case servicesReset
    /// The output for that session from now on, as far as it decides; nil: that of its category.
    case selectOutput(SessionID, uid: String?)
    /// The input for its recordings; nil: the default.
    case selectInput(SessionID, uid: String?)
    /// The properties that changed. After all other effects.
    case propertiesChanged(SessionID, SessionProperties)
    /// Only the waits of sessions changed. Ordered like propertiesChanged.
    case waitsChanged(WaitChange)
    case managerPropertiesChanged(ManagerProperties)
}

extension Effect {
    /// The kind of an effect; the raw value is its name in the history.
    public enum Kind: String, CaseIterable, Sendable {
        case created, activated, deactivated, closed
        case interruptionBegan = "interruption-began"
        case interruptionEnded = "interruption-ended"
        case claimDropped = "claim-dropped"
        case interruptionIgnored = "interruption-ignored"
        case duckingChanged = "ducking-changed"
        case mutedChanged = "muted-changed"
        case silenceSecondaryAudioHint = "silence-secondary-audio-hint"
        case routeChanged = "route-changed"
        case servicesLost = "services-lost"
        case servicesReset = "services-reset"
        case selectOutput = "select-output"
        case selectInput = "select-input"
        case propertiesChanged, waitsChanged, managerPropertiesChanged

        /// The consequences of effects of this kind.
        public struct Traits: OptionSet, Sendable {
            public let rawValue: UInt8
            public init(rawValue: UInt8) { self.rawValue = rawValue }

            /// It causes a signal, not only a property change.
            public static let isNotified = Traits(rawValue: 1)
            /// It may change how a stream must be, or to which session it belongs.
            public static let concernsStreams = Traits(rawValue: 2)
            /// It only lists changed properties, so the history omits it.
            public static let isProperty = Traits(rawValue: 4)
        }

        public var traits: Traits {
            switch self {
            case .created, .interruptionIgnored, .selectOutput, .selectInput: []
            case .activated, .deactivated, .closed, .claimDropped: .concernsStreams
            case .interruptionBegan, .interruptionEnded, .duckingChanged, .mutedChanged:
                [.isNotified, .concernsStreams]
            case .silenceSecondaryAudioHint, .routeChanged, .servicesLost, .servicesReset: .isNotified
            case .propertiesChanged, .waitsChanged, .managerPropertiesChanged: .isProperty
            }
        }
    }

    /// One value of an effect, as the history has it.
    public enum Field: Sendable, Hashable {
        case text(String)
        case flag(Bool)
        case session(SessionID?)
        case microseconds(UInt64)
        case decibels(Double)
        case number(UInt32)
        case route(Route)
    }

    public var kind: Kind { parts.kind }

    /// The session it is about; nil: none in particular, or all.
    public var session: SessionID? { parts.session }

    /// Its values, by their names in the history.
    public var fields: [(name: String, value: Field)] {
        switch self {
        case .interruptionBegan(_, let interruption):
            [
                ("reason", .text(interruption.reason.rawValue)), ("by", .session(interruption.by)),
                ("by-name", .text(interruption.byName)),
            ]
        case .interruptionEnded(_, let shouldResume, let duration, let reason, _):
            [
                ("should-resume", .flag(shouldResume)), ("duration-usec", .microseconds(duration)),
                ("reason", .text(reason.rawValue)),
            ]
        case .duckingChanged(_, let ducked, let gain): [("ducked", .flag(ducked)), ("gain-db", .decibels(gain))]
        case .mutedChanged(_, let muted): [("muted", .flag(muted))]
        case .silenceSecondaryAudioHint(_, let begin): [("begin", .flag(begin))]
        case .routeChanged(_, let reason, let previous, let current):
            [("reason", .number(reason.rawValue)), ("previous", .route(previous)), ("current", .route(current))]
        case .selectOutput(_, let uid), .selectInput(_, let uid): [("uid", .text(uid ?? ""))]
        case .created, .activated, .deactivated, .closed, .claimDropped, .interruptionIgnored, .servicesLost,
            .servicesReset, .propertiesChanged, .waitsChanged, .managerPropertiesChanged:
            []
        }
    }

    private var parts: (kind: Kind, session: SessionID?) {
        switch self {
        case .created(let id): (.created, id)
        case .activated(let id): (.activated, id)
        case .deactivated(let id): (.deactivated, id)
        case .closed(let id): (.closed, id)
        case .interruptionBegan(let id, _): (.interruptionBegan, id)
        case .interruptionEnded(let id, _, _, _, _): (.interruptionEnded, id)
        case .claimDropped(let id, _): (.claimDropped, id)
        case .interruptionIgnored(let id): (.interruptionIgnored, id)
        case .duckingChanged(let id, _, _): (.duckingChanged, id)
        case .mutedChanged(let id, _): (.mutedChanged, id)
        case .silenceSecondaryAudioHint(let id, _): (.silenceSecondaryAudioHint, id)
        case .routeChanged(let id, _, _, _): (.routeChanged, id)
        case .servicesLost: (.servicesLost, nil)
        case .servicesReset: (.servicesReset, nil)
        case .selectOutput(let id, _): (.selectOutput, id)
        case .selectInput(let id, _): (.selectInput, id)
        case .propertiesChanged(let id, _): (.propertiesChanged, id)
        case .waitsChanged: (.waitsChanged, nil)
        case .managerPropertiesChanged: (.managerPropertiesChanged, nil)
        }
    }
}

extension Decision {
    /// The one rule that caused that effect of this decision.
    public func rule(of effect: Effect) -> Rule {
        switch effect {
        case .interruptionBegan(_, let interruption): interruption.rule
        case .interruptionEnded(_, _, _, _, let rule), .claimDropped(_, let rule): rule
        case .created: .category
        case .interruptionIgnored: .comesBack
        case .duckingChanged: .matrix
        case .mutedChanged, .silenceSecondaryAudioHint: .silentSwitch
        case .routeChanged(_, let reason, _, _): reason == .categoryChange ? .category : .route
        case .selectOutput, .selectInput: .route
        case .servicesLost, .servicesReset: .services
        case .waitsChanged(let change): change.isOver ? rule : .waitsToo
        case .activated, .deactivated, .closed, .propertiesChanged, .managerPropertiesChanged: rule
        }
    }
}

/// The effects of one event: restrictions come before the first grant, in whatever order they are added.
struct Effects {
    private(set) var list: [Effect] = []
    private var firstGrant: Int?

    // The usual number of effects fits without growing.
    private static let usualCount = 8

    private mutating func add(_ effect: Effect) {
        if list.isEmpty { list.reserveCapacity(Effects.usualCount) }
        list.append(effect)
    }

    /// A session is silenced or restricted.
    mutating func restrict(_ effect: Effect) {
        guard let index = firstGrant else { return add(effect) }
        list.insert(effect, at: index)
        firstGrant = index + 1
    }

    /// A session may play, or may play again.
    mutating func grant(_ effect: Effect) {
        firstGrant = firstGrant ?? list.count
        add(effect)
    }

    /// All other effects.
    mutating func append(_ effect: Effect) { add(effect) }
}

/// One event and all its effects.
public struct Decision: Sendable {
    /// Increases by one with each decision that changed or refused something; otherwise that of the latest such
    /// decision.
    public let sequence: UInt64
    public let time: Instant
    public let event: Event
    /// Empty if the event changed nothing, or was refused.
    public let effects: [Effect]
    /// The refusal; nil: it was not refused.
    public let refusal: SessionError?
    /// The session it was about, as it was before it was closed.
    public let session: SessionID?
    /// The name of that session, or of the new session at a `create`; empty if it is about none.
    public let name: String
    /// The rule of the event or of its refusal.
    public let rule: Rule
    /// Whether it changed something without an effect: a microphone's mute, the playing sessions, a refusal that no
    /// longer applies.
    let remembersMore: Bool

    /// Whether it changed or refused anything.
    public var isNoteworthy: Bool { !effects.isEmpty || refusal != nil }
    /// Whether it must survive a restart.
    public var isMemorable: Bool { isNoteworthy || remembersMore }
    /// The session that a `create` created.
    public var created: SessionID? {
        for case .created(let id) in effects { return id }
        return nil
    }
}
