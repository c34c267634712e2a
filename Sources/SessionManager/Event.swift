public import PluginAPI

/// The events of the rules. Requests may be refused; facts may not.
public enum Event: Sendable, Hashable, Codable {
    // Requests of clients.
    case create(NewSession)
    case setCategory(SessionID, Configuration)
    case activate(SessionID)
    case deactivate(SessionID, notifyOthers: Bool)
    case overrideOutput(SessionID, OutputOverride)
    case setPreferredInput(SessionID, uid: String)
    case setPreferences(SessionID, Preferences)
    case close(SessionID)

    // Requests of the daemon around the rules.
    case setForeground(SessionID, Bool)
    case setSilentMode(Bool)
    case setScreenLocked(Bool)

    // Facts.
    /// The client disconnected from the bus, with all its sessions (R11).
    case clientVanished(ClientID)
    /// The sound server is connected, or connected again.
    case servicesReset(Audio)
    case servicesLost
    /// The current route and ports of the server; the route changed, or may have changed.
    case routeChanged(RouteChangeReason, Audio)
    /// The current ports of the server; the route is unchanged.
    case portsChanged(Audio)
    /// Nil: no server can be asked, and active sessions count as playing.
    case soundingChanged(Sounding?)
    /// The built-in microphone, while it is part of the route.
    case microphoneMuted(Bool)
    case settingsChanged(Arbiter.Settings)
    /// True: the machine is about to sleep; false: it has woken up, and what was unplugged meanwhile is known.
    case asleep(Bool)
    /// The client of the session kept others quiet for too long, and did not answer.
    case clientHangs(SessionID)
    /// A session got `began`, but its streams still played at the server after its deadline.
    case interruptionIgnored(SessionID)
    /// The deadline of the rules (``Arbiter/nextDeadline``) has come.
    case timePassed

    /// The session a request is about.
    public var session: SessionID? {
        switch self {
        case .setCategory(let id, _), .activate(let id), .deactivate(let id, _), .overrideOutput(let id, _),
            .setPreferredInput(let id, _), .setPreferences(let id, _), .close(let id), .setForeground(let id, _),
            .interruptionIgnored(let id), .clientHangs(let id):
            id
        case .create, .setSilentMode, .setScreenLocked, .clientVanished, .servicesReset, .servicesLost, .routeChanged,
            .portsChanged, .soundingChanged, .microphoneMuted, .settingsChanged, .asleep, .timePassed:
            nil
        }
    }

    /// Whether it may change what keeps sessions interrupted, without an effect about them.
    public var concernsInterruptions: Bool {
        switch self {
        case .servicesReset, .routeChanged, .portsChanged, .microphoneMuted, .asleep: true
        case .create, .setCategory, .activate, .deactivate, .overrideOutput, .setPreferredInput, .setPreferences,
            .close, .setForeground, .setSilentMode, .setScreenLocked, .clientVanished, .servicesLost,
            .soundingChanged, .settingsChanged, .interruptionIgnored, .clientHangs, .timePassed:
            false
        }
    }

    /// The event's name in the history, lower case with hyphens.
    public var name: String {
        switch self {
        case .create: "create"
        case .setCategory: "set-category"
        case .activate: "activate"
        case .deactivate: "deactivate"
        case .overrideOutput: "override-output"
        case .setPreferredInput: "set-preferred-input"
        case .setPreferences: "set-preferences"
        case .close: "close"
        case .setForeground: "set-foreground"
        case .setSilentMode: "set-silent-mode"
        case .setScreenLocked: "set-screen-locked"
        case .clientVanished: "client-vanished"
        case .servicesReset: "services-reset"
        case .servicesLost: "services-lost"
        case .routeChanged: "route-changed"
        case .portsChanged: "ports-changed"
        case .soundingChanged: "sounding-changed"
        case .microphoneMuted: "microphone-muted"
        case .settingsChanged: "settings-changed"
        case .interruptionIgnored: "interruption-ignored"
        case .asleep(true): "sleep"
        case .asleep(false): "wake"
        case .clientHangs: "client-hangs"
        case .timePassed: "claim-expired"
        }
    }
}

/// The current route and ports of the sound server. The ports are in the order of ``AudioSnapshot/availableInputs``:
/// the last one is the newest.
public struct Audio: Sendable, Hashable, Codable {
    public var route: Route
    public var inputs: [Port]
    public var outputs: [Port]

    /// A server without devices.
    public static let none = Audio(route: .none, inputs: [], outputs: [])

    public init(route: Route, inputs: [Port], outputs: [Port]) {
        self.route = route
        self.inputs = inputs
        self.outputs = outputs
    }
}

/// Which sessions play and where, judged by the server's streams.
public struct Sounding: Sendable, Hashable, Codable {
    /// The sessions with an audible stream.
    public var sessions: Set<SessionID>
    /// The adopted sessions whose players can be paused: an unplug pauses them too, whether they mix or not.
    public var pausable: Set<SessionID>
    /// The adopted sessions whose streams are held when their output is unplugged, until it is back.
    public var holdable: Set<SessionID>
    /// The sessions that an unplug never pauses.
    public var exempt: Set<SessionID>
    /// The outputs on which the streams of each session were last heard, by uid. A session that is not listed never had
    /// a stream: it uses the outputs of the route.
    public var outputs: [SessionID: Set<String>]
    /// Whether a program without a session plays.
    public var others: Bool

    public init(
        sessions: Set<SessionID>, pausable: Set<SessionID> = [], holdable: Set<SessionID> = [],
        exempt: Set<SessionID> = [], outputs: [SessionID: Set<String>] = [:], others: Bool
    ) {
        self.holdable = holdable
        self.exempt = exempt
        self.sessions = sessions
        self.pausable = pausable
        self.outputs = outputs
        self.others = others
    }
}
