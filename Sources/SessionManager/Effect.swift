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
    /// The session it is about; nil for what concerns nobody in particular.
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
