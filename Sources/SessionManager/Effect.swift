public import PluginAPI

/// What follows from an event, in the order it must be carried out: others are restricted before anyone is granted.
public enum Effect: Sendable, Hashable {
    case created(SessionID)
    case activated(SessionID)
    case deactivated(SessionID)
    case closed(SessionID)
    case interruptionBegan(SessionID, Interruption)
    case interruptionEnded(SessionID, shouldResume: Bool, microseconds: UInt64, reason: InterruptionReason, rule: Rule)
    /// A claim ran out, or was given up, without any `ended`.
    case claimDropped(SessionID, rule: Rule)
    /// It was told to fall silent, and has to be silenced at the server.
    case interruptionIgnored(SessionID)
    /// Gain in decibels, 0 when no longer lowered.
    case duckingChanged(SessionID, ducked: Bool, gain: Double)
    case mutedChanged(SessionID, Bool)
    case silenceSecondaryAudioHint(SessionID, begin: Bool)
    /// For one session, or globally where nil.
    case routeChanged(SessionID?, RouteChangeReason, previous: Route, current: Route)
    case servicesLost
    case servicesReset
    /// Where that session's output should go from now on, as far as it decides; nil: where its category says.
    case selectOutput(SessionID, uid: String?)
    /// Where its recordings should come from; nil: from where everybody's do.
    case selectInput(SessionID, uid: String?)
    /// Which properties read differently now. After everything above.
    case propertiesChanged(SessionID, SessionProperties)
    /// Who waits for whom reads differently, and nothing else of those who wait. Like the one before.
    case waitsChanged(WaitChange)
    case managerPropertiesChanged(ManagerProperties)
}

extension Effect {
    /// What an effect is, without its values; the raw value is its name in the history.
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

        /// What follows from an effect of this kind.
        public struct Traits: OptionSet, Sendable {
            public let rawValue: UInt8
            public init(rawValue: UInt8) { self.rawValue = rawValue }

            /// Somebody is notified of it, more than that a property reads differently.
            public static let isNotified = Traits(rawValue: 1)
            /// It may change what a stream must be, or whose it is.
            public static let concernsStreams = Traits(rawValue: 2)
            /// It only says which properties to read again: the history leaves it out.
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

    /// The session it is about; nil for what concerns nobody in particular, or everybody.
    public var session: SessionID? { parts.session }

    /// What a machine reads of it: each value by its name in the history.
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

/// The effects of one event as they are found: restrictions come before the first grant, wherever they were found.
struct Effects {
    private(set) var list: [Effect] = []
    private var firstGrant: Int?

    /// What one event usually brings fits without growing.
    private static let usualCount = 8

    private mutating func add(_ effect: Effect) {
        if list.isEmpty { list.reserveCapacity(Effects.usualCount) }
        list.append(effect)
    }

    /// Someone loses the sound, or some of it.
    mutating func restrict(_ effect: Effect) {
        guard let index = firstGrant else { return add(effect) }
        list.insert(effect, at: index)
        firstGrant = index + 1
    }

    /// Someone gets it, or may have it again.
    mutating func grant(_ effect: Effect) {
        firstGrant = firstGrant ?? list.count
        add(effect)
    }

    /// Everything else.
    mutating func append(_ effect: Effect) { add(effect) }
}

/// One event, and everything that came of it.
public struct Decision: Sendable {
    /// Ascending by one per decision that changed or refused something; that of the newest one otherwise.
    public let sequence: UInt64
    public let time: Instant
    public let event: Event
    /// Empty where the event changed nothing, and where it was refused.
    public let effects: [Effect]
    /// Why it was refused; nil: it was not.
    public let refusal: SessionError?
    /// What it was about, as known before it was closed.
    public let session: SessionID?
    /// That session's; the new one's name at a `create`; empty where it is about none.
    public let name: String
    /// The rule by which the event did what it did, or was refused.
    public let rule: Rule
    /// Whether it changed something that no effect need tell of: a microphone's mute, who sounds, a refusal that is
    /// forgotten.
    let remembersMore: Bool

    /// Whether it changed or refused anything.
    public var isNoteworthy: Bool { !effects.isEmpty || refusal != nil }
    /// Whether a restart must know of it.
    public var isMemorable: Bool { isNoteworthy || remembersMore }
    /// The session a `create` made.
    public var created: SessionID? {
        for case .created(let id) in effects { return id }
        return nil
    }
}
