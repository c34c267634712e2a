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
    /// The session it is about; nil: none in particular.
    public var session: SessionID? {
        switch self {
        case .created(let id), .activated(let id), .deactivated(let id), .closed(let id),
            .interruptionBegan(let id, _), .interruptionEnded(let id, _, _, _, _), .claimDropped(let id, _),
            .interruptionIgnored(let id), .duckingChanged(let id, _, _), .mutedChanged(let id, _),
            .silenceSecondaryAudioHint(let id, _),
            .selectOutput(let id, _), .selectInput(let id, _), .propertiesChanged(let id, _):
            id
        case .routeChanged(let id, _, _, _): id
        case .servicesLost, .servicesReset, .waitsChanged, .managerPropertiesChanged: nil
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
